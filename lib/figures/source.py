"""The code of an idea, folded away below the cell that uses it."""

import html
import inspect
import pydoc
from pathlib import Path

from lib.paths import relative_path


class Unfolded:
    """Functions of this project as a reader may unfold them in a notebook."""

    def __init__(self, names):
        """Look functions up by their dotted names; raises ValueError for one that does
        not exist.
        """
        self.functions = {name: pydoc.locate(name) for name in names}
        unknown = [name for name, value in self.functions.items() if value is None]
        if unknown:
            raise ValueError(f"no function is called {', '.join(unknown)}")

    def __repr__(self):
        return f"The code of {', '.join(self.functions)}"

    def _repr_html_(self):
        return "\n".join(map(_details, self.functions.values()))


def unfold(*names):
    """Return functions, by their dotted names, to be read where they are used.

    The notebook stores them; its stored outputs are tested to be what lib has.
    """
    return Unfolded(names)


def _details(function):
    """Return a function's source as HTML that is folded to a line."""
    name = html.escape(function.__qualname__)
    # The file of a decorated function would be its decorator's.
    file = relative_path(Path(inspect.getfile(inspect.unwrap(function))))
    source = html.escape(inspect.getsource(function))
    summary = f"The code: <code>{name}</code> in <code>{html.escape(file)}</code>"
    return f"<details><summary>{summary}</summary><pre>{source}</pre></details>"
