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
