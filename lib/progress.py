"""What a terminal shows: bars on stderr, which only the command line switches on, and lines as wide as it is.

with progress.bar("layer 1", len(prompts)) as shown:
    shown.update()
"""

import contextlib
import shutil
import sys
import textwrap
from collections.abc import Iterator

from tqdm import tqdm

WIDEST = 10_000  # columns: no terminal's
_switch = {"on": False}


@contextlib.contextmanager
def switched_on() -> Iterator[None]:
    """Show bars until the block ends."""
    _switch["on"] = True
    try:
        yield
    finally:
        _switch["on"] = False


def columns(most: int) -> int:
    """Return the terminal's width, at most so many columns; all of them where the output is no terminal."""
    return min(shutil.get_terminal_size((most, 24)).columns, most) if sys.stdout.isatty() else most


def folded(text: str) -> str:
    """Return lines that break between words where the terminal ends, the rest of each indented."""
    width, indent = columns(WIDEST), " " * 4
    return "\n".join(
        textwrap.fill(line, width, subsequent_indent=indent, replace_whitespace=False, break_on_hyphens=False)
        for line in text.splitlines()
    )


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> tqdm:
    """Return a bar with counts and time left, which closes at the end of a `with` block."""
    return tqdm(total=total, initial=done, desc=text, unit=unit, file=sys.stderr, disable=not _switch["on"])
