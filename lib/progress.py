"""Progress bars on stderr: of the programs, which switch them on with `progress.shown = True`, and of nobody else.

In a file or a log a bar is one line when its stage ends, and one every ten minutes before.

with progress.bar("layer 1", len(prompts)) as bar:
    bar.update()
"""

import io
import sys

from tqdm.asyncio import tqdm

BETWEEN = 600  # seconds between two lines in a log
shown = False


class Bar(tqdm):
    """A bar in a terminal, lines anywhere else."""

    def __init__(self, *args, **kwargs):
        self.in_lines = not sys.stderr.isatty()
        if self.in_lines:
            # The line breaks and carriage returns that it writes by itself go nowhere, nor does an empty bar.
            kwargs |= {"file": io.StringIO(), "mininterval": BETWEEN, "delay": 1e-9}
        super().__init__(*args, **kwargs)

    def display(self, msg: str | None = None, pos: int | None = None) -> None:
        if self.in_lines:
            print(self, file=sys.stderr, flush=True)
        else:
            super().display(msg, pos)


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> Bar:
    """Return a bar with counts and time left, which closes at the end of a `with` block."""
    return Bar(total=total, initial=done, desc=text, unit=unit, disable=not shown)
