"""Progress bars on stderr, which only the command line switches on: notebooks and tests show none.

with progress.bar("layer 1", len(prompts)) as shown:
    shown.update()
"""

import contextlib
import sys
from collections.abc import Iterator

from tqdm import tqdm

_switch = {"on": False}


@contextlib.contextmanager
def switched_on() -> Iterator[None]:
    """Show bars until the block ends."""
    _switch["on"] = True
    try:
        yield
    finally:
        _switch["on"] = False


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> tqdm:
    """Return a bar with counts and time left, which closes at the end of a `with` block."""
    return tqdm(total=total, initial=done, desc=text, unit=unit, file=sys.stderr, disable=not _switch["on"])
