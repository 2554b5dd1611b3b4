"""Set the GitHub address of this copy in every file that contains it.

    make address URL=https://github.com/someone/something

The README's badge, its Binder and Colab links and the report take the address from
pyproject.toml when they are written; CITATION.cff and the notebooks of Colab contain it
themselves.
"""

import re
import sys
import tomllib
from pathlib import Path

from lib import paths
from lib.errors import InputError
from lib.files.atomic import write_atomically

ADDRESS = re.compile(r"https://github\.com/([\w.-]+)/([\w.-]+?)(?:\.git)?/?")
FILES = ("pyproject.toml", "CITATION.cff", "notebooks/colab/*.ipynb")


def main() -> int:
    """Set the address given on the command line, and print the changed files; return
    the exit code, 2 for an invalid address.
    """
    try:
        changed = set_address(paths.ROOT, "".join(sys.argv[1:]))
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print("\n".join(changed) or "nothing to change")
    return 0


def set_address(root: Path, url: str) -> list[str]:
    """Write an address into the files of the copy at `root`, and return the paths of
    those that changed.

    Raises InputError if the address is not that of a repository on GitHub.
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
    for pattern in FILES:
        for path in sorted(root.glob(pattern)):
            text = path.read_text(encoding="utf-8")
            new = text
            for old_name, new_name in zip(before, after, strict=True):
                new = new.replace(old_name, new_name)
            if new != text:
                write_atomically(path, new.encode())
                changed.append(path.relative_to(root).as_posix())
    return changed


def addresses() -> dict[str, str]:
    """Return the URLs in pyproject.toml, such as Repository, by name; empty before
    `make address` has set them.
    """
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    urls = project["urls"]
    return {} if "OWNER" in urls["Repository"] else urls


def names_of(owner: str, repository: str) -> tuple[str, str]:
    """Return the names of a repository in links to GitHub and to GitHub Pages."""
    return f"{owner}/{repository}", f"{owner}.github.io/{repository}"


if __name__ == "__main__":
    sys.exit(main())
