"""The claims as a table in a terminal."""

import textwrap
from collections.abc import Sequence

from lib.claims.sentences import closing, learnt, measured_text, verdict_text

WIDTH, INDENT = 118, " " * 4


def page(rows: Sequence[dict]) -> str:
    """Return the claims as text: verdict, statement, what was measured and learnt; what the number of rows means."""
    lines = []
    for row in rows:
        lines.append(f"{verdict_text(row).upper()}: {row['id']} ({row['source']}), {row['model']}")
        for text in (f"{row['claim']}.", measured_text(row), learnt(row)):
            lines += textwrap.wrap(text, WIDTH, initial_indent=INDENT, subsequent_indent=INDENT)
    for text in closing(rows):
        lines += textwrap.wrap(text, WIDTH)
    return "\n".join(lines)
