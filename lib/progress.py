"""What a terminal shows: bars on stderr, which only the command line switches on, and lines as wide as it is.

In a file or a log a bar is one line when its stage ends, and one every ten minutes before.

with progress.bar("layer 1", len(prompts)) as shown:
    shown.update()
"""

import contextlib
import io
import shutil
import sys
import textwrap
from collections.abc import Iterator

from tqdm.asyncio import tqdm

WIDEST = 10_000  # columns: no terminal's
BETWEEN_LINES = 600  # seconds
_switch = {"on": False}


class Bar(tqdm):
    """A bar in a terminal, lines anywhere else."""

    def __init__(self, *args, **kwargs):
        self.in_lines = not sys.stderr.isatty()
        if self.in_lines:
            # The line breaks and carriage returns that it writes by itself go nowhere, nor does an empty bar.
            kwargs |= {"file": io.StringIO(), "mininterval": BETWEEN_LINES, "delay": 1e-9}
        super().__init__(*args, **kwargs)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        if not self.in_lines:
            super().display(msg, pos)
        else:
            print(self, file=sys.stderr, flush=True)


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


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> Bar:
    """Return a bar with counts and time left, which closes at the end of a `with` block."""
    return Bar(total=total, initial=done, desc=text, unit=unit, disable=not _switch["on"])
