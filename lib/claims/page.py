"""The claims as a table in a terminal."""

import textwrap
from collections.abc import Sequence

from lib.claims.sentences import closing, learnt, measured_text, verdict_text

WIDTH, INDENT = 118, " " * 4


def page(rows: Sequence[dict], width: int = WIDTH) -> str:
    """Return the claims as text: verdict, statement, what was measured and learnt; what the number of rows means."""
    lines = []
    for row in rows:
        heading = f"{verdict_text(row).upper()}: {row['id']} ({row['source']}), {row['model']}"
        lines += textwrap.wrap(heading, width, subsequent_indent=INDENT)
        for text in (f"{row['claim']}.", measured_text(row), learnt(row)):
            lines += textwrap.wrap(text, width, initial_indent=INDENT, subsequent_indent=INDENT)
    for text in closing(rows):
        lines += textwrap.wrap(text, width)
    return "\n".join(lines)
