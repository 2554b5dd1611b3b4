"""Progress bars on stderr, only for programs that switch them on.

progress.shown = True
with progress.bar("layer 1", len(prompts)) as bar:
    bar.update()
"""

import sys
from typing import Any

from tqdm import tqdm as Bar

shown = False
# In a file or a log, a bar is a line that is written every ten minutes and at the end
# of its stage; the delay omits an empty bar. All values are in seconds.
IN_A_LOG: dict[str, Any] = {"mininterval": 600, "maxinterval": 600, "delay": 1e-9}


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> Bar:
    """Return a bar with counts and the time left, for use in a `with` block."""
    pace: dict[str, Any] = {} if sys.stderr.isatty() else IN_A_LOG
    names = {"desc": text, "unit": unit}
    return Bar(total=total, initial=done, disable=not shown, **names, **pace)
