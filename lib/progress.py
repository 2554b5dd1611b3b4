"""Progress bars on stderr: of the programs, which switch them on with `progress.shown =
True`, and of nobody else.

with progress.bar("layer 1", len(prompts)) as bar:
    bar.update()
"""

import sys

from tqdm.asyncio import tqdm

shown = False
IN_A_LOG = {
    "mininterval": 600,
    "maxinterval": 600,
    "delay": 1e-9,
}  # seconds; the delay leaves an empty bar out


class Bar(tqdm):
    """A bar in a terminal; in a file or a log a line when its stage ends, renewed every
    ten minutes before.
    """

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs | ({} if sys.stderr.isatty() else IN_A_LOG))


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> Bar:
    """Return a bar with counts and time left, which closes at the end of a `with`
    block.
    """
    return Bar(total=total, initial=done, desc=text, unit=unit, disable=not shown)
