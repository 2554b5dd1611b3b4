"""The repository's address is stored in pyproject.toml and set in all other files from
there.
"""

import shutil
import subprocess
import tomllib

import pytest

from docs.address import FILES, names_of, set_address
from docs.write import documents
from lib import paths
from lib.errors import InputError

PROJECT = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
CURRENT = PROJECT["urls"]["Repository"].removeprefix("https://github.com/")
MINE = "https://github.com/some-one/my.copy"


@pytest.fixture
def copy(tmp_path):
    """A folder with copies of the files that name the address."""
    for pattern in FILES:
        for path in paths.ROOT.glob(pattern):
            copied = tmp_path / path.relative_to(paths.ROOT)
            copied.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, copied)
    return tmp_path


def texts(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_text(encoding="utf-8")
        for pattern in FILES
        for path in folder.glob(pattern)
    }


def test_the_address_of_the_page_follows_from_that_of_the_repository():
    owner, name = CURRENT.split("/")
    assert PROJECT["urls"]["Page"] == f"https://{names_of(owner, name)[1]}"


def test_every_file_that_names_the_address_is_known():
    command = ["git", "-C", str(paths.ROOT), "grep", "-lF", CURRENT]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"no git repository: {done.stderr.strip()}")
    written = {path.relative_to(paths.ROOT).as_posix() for path in documents()}
    assert set(done.stdout.split()) <= {*texts(paths.ROOT), *written}


def test_an_address_is_set_in_every_file_and_back(copy):
    before = texts(copy)
    changed = set_address(copy, MINE + ".git")
    everything = "\n".join(texts(copy).values())
    assert {"CITATION.cff", "pyproject.toml"} <= set(changed)
    assert sum(name.startswith("notebooks/colab/") for name in changed) == 2
    for old in names_of(*CURRENT.split("/")):
        assert old not in everything
    assert "https://some-one.github.io/my.copy" in everything
    urls = tomllib.loads((copy / "pyproject.toml").read_text())["project"]["urls"]
    assert urls["Repository"] == MINE

    set_address(copy, f"https://github.com/{CURRENT}/")
    assert texts(copy) == before


@pytest.mark.parametrize("url", ["github.com/a/b", "https://github.com/a"])
def test_an_invalid_address_is_refused(copy, url):
    before = texts(copy)
    with pytest.raises(InputError, match="give the repository's"):
        set_address(copy, url)
    assert texts(copy) == before
