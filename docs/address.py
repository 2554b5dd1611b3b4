"""Set the address under which this copy is published, wherever it is named.

    make address URL=https://github.com/someone/something

pyproject.toml's URLs are the one place that says it. The README's badge, Binder and
Colab links, the report and the page are written from there; CITATION.cff and the
notebooks of Colab name it themselves.
"""

import re
import sys
import tomllib
from pathlib import Path

from lib import paths
from lib.errors import InputError
from lib.files.atomic import write_atomically

ADDRESS = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
NAMING = ("pyproject.toml", "CITATION.cff", "notebooks/colab/*.ipynb")


def main() -> int:
    """Set the address of the command line; 2 with one line if it is none."""
    try:
        changed = set_address(paths.ROOT, "".join(sys.argv[1:]))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(changed) or "nothing to change")
    return 0


def set_address(root: Path, url: str) -> list[str]:
    """Write an address into the files of a copy and return those that changed.

    Raises InputError for what is no repository's address on GitHub.
    """
    match = ADDRESS.fullmatch(url.strip())
    if not match:
        raise InputError(
            f"URL is {url!r}: give the repository's, such as"
            " https://github.com/someone/something"
        )
    project = tomllib.loads((root / "pyproject.toml").read_text())["project"]
    old = ADDRESS.fullmatch(project["urls"]["Repository"])
    before = names_of(*old.groups())
    after = names_of(*match.groups())

    changed = []
    for pattern in NAMING:
        for path in sorted(root.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            new = text
            for name, other in zip(before, after, strict=True):
                new = new.replace(name, other)
            if new != text:
                write_atomically(path, new.encode())
                changed.append(path.relative_to(root).as_posix())
    return changed


def names_of(owner: str, repository: str) -> tuple[str, str]:
    """Return how links name a repository, and its page on GitHub Pages."""
    return f"{owner}/{repository}", f"{owner}.github.io/{repository}"


if __name__ == "__main__":
    sys.exit(main())
