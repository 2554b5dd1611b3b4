"""Release files (CITATION.cff, .zenodo.json) that repeat facts of other files."""

import json
import tomllib

from lib import paths
from lib.files.text_files import read_yaml


def test_all_release_files_have_the_same_version_and_description():
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    cited = read_yaml(paths.ROOT / "CITATION.cff")
    zenodo = json.loads((paths.ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert project["version"] == cited["version"] == zenodo["version"]
    assert zenodo["title"] == cited["title"]
    assert zenodo["description"] == cited["abstract"]
    assert zenodo["license"] == cited["license"]
    assert zenodo["creators"] == cited["authors"]
