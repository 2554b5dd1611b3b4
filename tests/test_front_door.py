"""Files beside the README that say a second time what stands elsewhere."""

import json
import tomllib

from lib import paths
from lib.files.atomic import read_yaml


def test_a_release_has_one_version_and_is_described_once():
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    cited = read_yaml(paths.ROOT / "CITATION.cff")
    zenodo = json.loads((paths.ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert project["version"] == cited["version"] == zenodo["version"]
    assert zenodo["title"] == cited["title"]
    assert zenodo["description"] == cited["abstract"]
    assert zenodo["license"] == cited["license"]
    assert zenodo["creators"] == cited["authors"]
