"""Show progress bars on stderr, if a program switches them on or somebody watches a
notebook's cell.

progress.shown = True
with progress.bar("layer 1", len(prompts)) as bar:
    bar.update()
"""

import sys
from typing import Any

from IPython.core.getipython import get_ipython
from tqdm import tqdm as Bar

shown = False  # set by programs such as `python -m reproduction`
# In a file or a log, a bar writes a line every ten minutes and one at its end; because
# of the delay it writes no empty line. All values are in seconds.
IN_A_LOG: dict[str, Any] = {"mininterval": 600, "maxinterval": 600, "delay": 1e-9}


def bar(
    text: str, total: int, unit: str = "prompt", done: int = 0, least: int = 0
) -> Bar:
    """Return a progress bar with counts and the time left, for use in a `with` block.

    total, done: how many units there are, and how many are done before the bar starts.
    least: fewer units are done in a moment and show no bar. In a notebook the bar is
    removed at its end, so that it is no part of the stored outputs.
    """
    in_notebook = accepts_input()
    pace: dict[str, Any] = {} if sys.stderr.isatty() else IN_A_LOG
    if in_notebook:
        pace = {"leave": False}
    names = {"desc": text, "unit": unit}
    disable = not (shown or in_notebook) or total < least
    return Bar(total=total, initial=done, disable=disable, **names, **pace)


def say(line: str) -> None:
    """Print a line on stderr, except in a notebook that nobody watches: there it would
    be stored, or be compared with what is stored.
    """
    if not _kernel() or accepts_input():
        print(line, file=sys.stderr, flush=True)


def _kernel() -> Any:
    return getattr(get_ipython(), "kernel", None)


def accepts_input() -> bool:
    """Return whether this cell can receive input from a person: True in JupyterLab,
    False under papermill, nbconvert and nbval.
    """
    kernel = _kernel()
    if not kernel:
        return False
    return bool(kernel.get_parent("shell").get("content", {}).get("allow_stdin"))
