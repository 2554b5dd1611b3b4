"""Files beside the README that say a second time what stands elsewhere."""

import json
import re
import tomllib

from lib import paths
from lib.paths import read_yaml


def test_zenodo_is_told_what_the_citation_says():
    cited = read_yaml(paths.ROOT / "CITATION.cff")
    zenodo = json.loads((paths.ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    for name, field in {"title": "title", "description": "abstract"}.items():
        assert zenodo[name] == cited[field]
    assert (zenodo["upload_type"], zenodo["license"]) == (
        cited["type"],
        cited["license"],
    )
    assert zenodo["creators"] == cited["authors"]
    (paper,) = cited["references"]
    (named,) = zenodo["related_identifiers"]
    assert named["identifier"] == paper["identifiers"][0]["value"]


def test_a_release_has_one_version():
    project = tomllib.loads((paths.ROOT / "pyproject.toml").read_text())["project"]
    cited = read_yaml(paths.ROOT / "CITATION.cff")
    zenodo = json.loads((paths.ROOT / ".zenodo.json").read_text(encoding="utf-8"))
    assert project["version"] == cited["version"] == zenodo["version"]


def test_a_commit_is_checked_by_what_make_test_runs_before_the_tests():
    makefile = (paths.ROOT / "Makefile").read_text()
    (recipe,) = re.findall(r"^test: .*\n((?:\t.*\n)+)", makefile, re.MULTILINE)
    commands = recipe.replace("$(BIN)", ".venv/bin").split("\n\t")
    *first, tests = [command.strip() for command in commands]
    assert "pytest" in tests
    (local,) = read_yaml(paths.ROOT / ".pre-commit-config.yaml")["repos"]
    assert [hook["entry"] for hook in local["hooks"]] == first
