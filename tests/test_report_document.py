"""docs/report.md, the reproducibility report, against what `make readme` writes."""

import re

import pytest

from docs import make_report
from docs.markdown import BLOCK, with_blocks
from lib import paths

TEXT = make_report.REPORT.read_text(encoding="utf-8")
SECTIONS = (
    "Scope of reproducibility",
    "Methodology",
    "Results",
    "What was easy",
    "What was difficult",
    "Communication with the authors",
    "Limits",
    "Cost",
    "How to cite",
)


def test_its_numbers_are_what_the_stored_files_say():
    named = {name for _, name, _ in BLOCK.findall(TEXT)}
    assert named == set(make_report.REPORT_BLOCKS)
    assert with_blocks(TEXT, make_report.REPORT_BLOCKS) == TEXT, "make readme"


def test_it_has_the_sections_of_the_field_and_one_for_each_claim():
    headings = re.findall(r"^## (.+)$", TEXT, re.M)
    assert headings == list(SECTIONS)
    claims = re.findall(r"^### \d+\. (.+)$", TEXT, re.M)
    assert claims == list(make_report.SECTIONS.values())


def test_it_is_short():
    assert 100 <= len(make_report.abstract().split()) <= 160
    assert len(TEXT.split()) <= 1500


def test_the_figures_and_files_that_it_names_exist():
    places = re.findall(r"\]\((?!https)([^)]+)\)", TEXT)
    assert len(places) >= 6
    missing = [place for place in places if not (paths.ROOT / "docs" / place).is_file()]
    assert not missing


# What the numbers do not bear, whatever they are.
FORBIDDEN = [
    r"training causes the (?!smaller losses)",
    r"due to chance(?!:)",
    r"no effect on",
]


@pytest.mark.parametrize("claim", FORBIDDEN)
def test_it_claims_nothing_that_was_not_measured(claim):
    assert not re.search(claim, TEXT)
    assert "does not say that slashes have no effect" in TEXT
    assert "little of ARM's accuracy" in TEXT
