"""README.md against what `make readme` writes, its examples against the code."""

import re
import shlex

import pytest
import xarray as xr
import yaml

from docs import make_readme as readme
from lib import paths
from lib.__main__ import parser
from lib.measurement.plan import PER_HEAD
from lib.measurement.store import save_measured
from lib.models.card import card
from lib.profiles import load_profile

TEXT = readme.README.read_text(encoding="utf-8")
PROFILES = readme.PROFILES_PAGE.read_text(encoding="utf-8")
CODE = re.compile(r"```(\w+)\n(.*?)```", re.S)


def code(language):
    """Return the README's examples in a language."""
    return [text for name, text in CODE.findall(TEXT) if name == language]


def test_tables_and_numbers_are_what_the_stored_files_say():
    assert {name for _, name, _ in readme.BLOCK.findall(TEXT + PROFILES)} == set(
        readme.BLOCKS
    )
    assert (readme.rewritten(TEXT), readme.rewritten(PROFILES)) == (
        TEXT,
        PROFILES,
    ), "make readme"


@pytest.mark.parametrize(
    "command",
    [line for text in code("bash") for line in text.replace("\\\n", "").splitlines()],
)
def test_its_commands_are_understood(command):
    if command.startswith("sbatch"):
        command = shlex.split(command)[-1].replace("$SLURM_ARRAY_TASK_ID", "1")
    python, flag, package, *arguments = shlex.split(command)
    assert [python, flag, package] == ["python", "-m", "lib"] and parser().parse_args(
        arguments
    ).run


def test_its_profile_loads(tmp_path):
    (text,) = code("yaml")
    (tmp_path / "mine.yaml").write_text(
        text.replace("org/name", "demo")
    )  # a model whose heads are known
    (line,) = re.findall(r"`(\{\"unique_id.*?\})`", TEXT)
    (tmp_path / "mine.jsonl").write_text(line + "\n")
    profile = load_profile(tmp_path / "mine.yaml")
    assert (
        profile.accuracy.problems == str(tmp_path / "mine.jsonl")
        and profile.accuracy.limit == 20
    )
    assert yaml.safe_load(line)["answer"] == "7"


def test_its_measurement_opens(tmp_path, monkeypatch, capsys):
    (text,), model = code("python"), card("demo").name
    coords = {
        "network": ["trained"],
        "condition": ["mless"],
        "problem": ["a", "b"],
        "layer": [1],
        "head": [1, 2],
    }
    measured = xr.Dataset(
        {"lambda": (PER_HEAD.split(), [[[[[0.5, 0.75]], [[0.5, 0.25]]]]])}, coords
    )
    save_measured(tmp_path / f"results/demo/{model}.nc", measured)
    monkeypatch.chdir(tmp_path)
    exec(text, {})
    assert "[0.5, 0.5]" in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_the_files_that_are_named_exist():
    named = ("CONTRIBUTING.md", "environment.yml", "binder/postBuild")
    contributing, environment, binder = (
        (paths.ROOT / name).read_text(encoding="utf-8") for name in named
    )
    places = re.findall(r"\]\((?!https)([^)]+)\)", TEXT) + re.findall(
        r"-[rc] (\S+\.txt)", environment + binder
    )
    places += re.findall(
        r"`((?:lib|tests|data|benchmarks|studies)/[\w./]+)`", contributing
    )
    places += re.findall(r"mybinder\.org/\S+labpath=([^)]+)\)", TEXT)
    missing = [
        place
        for place in places
        if "NAME" not in place and not (paths.ROOT / place).exists()
    ]
    assert len(places) > 20 and not missing
