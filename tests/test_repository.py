"""What people expect beside the code: the workflow, images, environments and changes name what exists."""

import json
import os
import re
import shutil
import subprocess

import pytest
import yaml

from lib import paths

MAKEFILE = (paths.ROOT / "Makefile").read_text(encoding="utf-8")
TARGETS = re.search(r"^\.PHONY: (.+)$", MAKEFILE, re.MULTILINE)[1].split()


def read(name: str) -> str:
    return (paths.ROOT / name).read_text(encoding="utf-8")


def test_the_workflow_calls_the_two_commands():
    job = yaml.safe_load(read(".github/workflows/ci.yml"))["jobs"]["commands"]
    assert job["strategy"]["matrix"]["command"] == ["test", "reproduce"] and {"test", "reproduce"} <= set(TARGETS)
    assert "make ${{ matrix.command }}" in [step.get("run") for step in job["steps"]]


def test_images_install_as_make_does():
    image = json.loads(read(".devcontainer/devcontainer.json"))
    assert (paths.ROOT / ".devcontainer" / image["build"]["dockerfile"]).is_file()
    assert image["postCreateCommand"] == "make .venv/.ready"
    assert "READY := .venv/.ready" in MAKEFILE
    assert "RUN make .venv/.ready" in read(".devcontainer/Dockerfile")


@pytest.mark.parametrize("name", ["environment.yml", "binder/requirements.txt", "binder/postBuild"])
def test_environments_name_requirements_that_exist(name):
    folder = (paths.ROOT / name).parent if name.endswith(".txt") else paths.ROOT
    files = re.findall(r"-[rc] (\S+\.txt)", read(name))
    assert files and all((folder / file).is_file() for file in files)


def test_binder_opens_the_notebook_and_can_run_what_prepares_it():
    (notebook,) = re.findall(r"mybinder\.org/\S+labpath=([^)]+)\)", read("README.md"))
    assert (paths.ROOT / notebook).is_file() and os.access(paths.ROOT / "binder" / "postBuild", os.X_OK)
    bash = shutil.which("bash")
    assert subprocess.run([bash, "-n", paths.ROOT / "binder" / "postBuild"], check=False).returncode == 0


def test_the_changes_begin_with_this_version():
    version = re.search(r'^version = "(.+)"$', read("pyproject.toml"), re.MULTILINE)[1]
    assert re.search(r"^## (\S+)", read("CHANGELOG.md"), re.MULTILINE)[1] == version
