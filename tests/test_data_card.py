"""The data card of data/families describes the files that are there."""

import gzip
import json
import re

import datasets
import pytest

from lib import paths
from lib.files.text_files import read

FOLDER = paths.DATA / "families"
CARD = (FOLDER / "README.md").read_text(encoding="utf-8")
ROWS = sorted(FOLDER.glob("*/*.jsonl.gz"))
NAMES_AND_FILES = re.findall(r"config_name: (\w+)\n +data_files: (\S+)", CARD)


@pytest.mark.parametrize("path", ROWS, ids=lambda path: path.name)
def test_every_column_is_explained_and_none_holds_a_problem_or_a_solution(path):
    explained = set(re.findall(r"`([a-z_]+)`", CARD))
    with gzip.open(path, "rt", encoding="utf-8") as lines:
        columns = set().union(*map(json.loads, lines))
    assert columns <= explained
    assert not columns & {"problem", "solution", "prompt", "text"}


def test_the_card_names_the_kind_of_every_file():
    kinds = re.findall(r"^\| `([^`]+)` \| an? |^\| `([^`]+)` \|", CARD, re.M)
    patterns = {first or second for first, second in kinds}
    known = {
        path
        for pattern in patterns
        if "." in pattern
        for path in FOLDER.glob(pattern.replace("MODEL", "*"))
    }
    files = {path for path in FOLDER.rglob("*") if path.is_file()}
    assert files - known == {FOLDER / "README.md"}


def test_the_links_of_the_card_lead_to_files():
    links = re.findall(r"\]\(([^)]+)\)", CARD)
    assert len(links) >= 5
    assert all((FOLDER / link).is_file() for link in links)


@pytest.mark.parametrize("name, pattern", NAMES_AND_FILES)
def test_the_cards_example_opens_every_set_of_rows(
    tmp_path, monkeypatch, name, pattern
):
    (example,) = re.findall("```python\n(.*?)```", CARD, re.DOTALL)
    monkeypatch.chdir(paths.ROOT)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    found = {}
    exec(example.replace('"answers"', f'"{name}"'), found)
    rows = read(*sorted(FOLDER.glob(pattern)))
    assert found["answers"].to_list() == rows


def test_every_file_of_rows_is_in_the_cards_front_matter():
    opened = {path for _, pattern in NAMES_AND_FILES for path in FOLDER.glob(pattern)}
    assert opened == set(ROWS)
