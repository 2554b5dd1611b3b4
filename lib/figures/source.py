"""The code of an idea, folded away below the cell that uses it.

It is read from the files and not imported: a notebook that draws what is stored would
else load the libraries that run a network, only to show a function.
"""

import ast
import html
from pathlib import Path
from typing import NamedTuple

from lib import paths

Definition = ast.FunctionDef | ast.ClassDef


class Code(NamedTuple):
    """A function's name within its module, its file and its lines."""

    name: str
    file: Path
    text: str


class Unfolded:
    """Functions of this project as a reader may unfold them in a notebook."""

    def __init__(self, names):
        """Look functions up by their dotted names; raises ValueError for one that does
        not exist.
        """
        self.functions = {name: _find(name) for name in names}
        unknown = [name for name, code in self.functions.items() if code is None]
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


def _find(name):
    """Return the code of what has this dotted name, or None."""
    parts = name.split(".")
    for length in range(1, len(parts)):
        file = paths.ROOT.joinpath(*parts[:length]).with_suffix(".py")
        if file.is_file():
            return _find_in(file, parts[length:])
    return None


def _find_in(file, names):
    """Return the code of a class, of a function or of a method in a file."""
    text = file.read_text(encoding="utf-8")
    node = ast.parse(text)
    for name in names:
        named = {part.name: part for part in node.body if isinstance(part, Definition)}
        if name not in named:
            return None
        node = named[name]

    # A decorator's line comes before the definition's own.
    first = min(part.lineno for part in (node, *node.decorator_list))
    lines = text.splitlines(keepends=True)[first - 1 : node.end_lineno]
    return Code(".".join(names), file, "".join(lines))


def _details(code):
    """Return a function's code as HTML that is folded to a line."""
    name = html.escape(code.name)
    file = html.escape(paths.relative_path(code.file))
    summary = f"The code: <code>{name}</code> in <code>{file}</code>"
    text = html.escape(code.text)
    return f"<details><summary>{summary}</summary><pre>{text}</pre></details>"
