"""Progress bars on stderr, which only the command line switches on; a log gets a new state every ten minutes at most.

with progress.bar("layer 1", len(prompts)) as shown:
    shown.update()
"""

import contextlib
import sys
from collections.abc import Iterator

from tqdm.asyncio import tqdm

BETWEEN = 600  # seconds between two states in a log
_switch = {"on": False}


class Bar(tqdm):
    """A bar that is drawn anew all the time in a terminal alone."""

    def __init__(self, *args, **kwargs):
        seldom = {} if sys.stderr.isatty() else {"mininterval": BETWEEN, "maxinterval": BETWEEN}
        super().__init__(*args, **kwargs | seldom)


@contextlib.contextmanager
def switched_on() -> Iterator[None]:
    """Show bars until the block ends."""
    _switch["on"] = True
    try:
        yield
    finally:
        _switch["on"] = False


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> Bar:
    """Return a bar with counts and time left, which closes at the end of a `with` block."""
    return Bar(total=total, initial=done, desc=text, unit=unit, disable=not _switch["on"])
