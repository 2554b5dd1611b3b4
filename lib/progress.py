"""Progress bars on stderr, for programs that switch them on and for nobody else.

progress.shown = True
with progress.bar("layer 1", len(prompts)) as bar:
    bar.update()
"""

import contextlib
import sys
import time
from collections.abc import Iterator

from tqdm.asyncio import tqdm

shown = False
# In a file or a log a bar is a line, written when its stage ends and every ten minutes
# before; the delay leaves an empty bar out. All of it is in seconds.
IN_A_LOG = {"mininterval": 600, "maxinterval": 600, "delay": 1e-9}


class Bar(tqdm):
    """A bar in a terminal, a line now and then in a log."""

    def __init__(self, *args, **options):
        if not sys.stderr.isatty():
            options |= IN_A_LOG
        super().__init__(*args, **options)

    def refresh(self, *args, **options) -> None:
        """Draw the bar anew; in a log only where its time has come."""
        is_seen = sys.stderr.isatty() or self.disable
        if is_seen or time.time() - self.last_print_t >= self.mininterval:
            super().refresh(*args, **options)


@contextlib.contextmanager
def ending_bars() -> Iterator[type[Bar]]:
    """Give a class whose bars end with the block, for a library that forgets them.

    A bar that counted nothing leaves no line.
    """
    bars: list[Bar] = []

    class Ending(Bar):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            bars.append(self)

    try:
        yield Ending
    finally:
        for bar in bars:
            bar.leave = bar.n > 0
            bar.disable |= not bar.n and not sys.stderr.isatty()
            bar.close()


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> Bar:
    """Return a bar with counts and time left, to be used in a `with` block."""
    return Bar(total=total, initial=done, desc=text, unit=unit, disable=not shown)
