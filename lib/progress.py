"""Progress bars on stderr, for programs that switch them on and for nobody else.

progress.shown = True
with progress.bar("layer 1", len(prompts)) as bar:
    bar.update()
"""

import sys
from typing import Any

from tqdm import tqdm as Bar

shown = False
# In a file or a log a bar is a line, written when its stage ends and every ten minutes
# before; the delay leaves an empty bar out. All of it is in seconds.
IN_A_LOG: dict[str, Any] = {"mininterval": 600, "maxinterval": 600, "delay": 1e-9}


def bar(text: str, total: int, unit: str = "prompt", done: int = 0) -> Bar:
    """Return a bar with counts and time left, to be used in a `with` block."""
    pace: dict[str, Any] = {} if sys.stderr.isatty() else IN_A_LOG
    names = {"desc": text, "unit": unit}
    return Bar(total=total, initial=done, disable=not shown, **names, **pace)
