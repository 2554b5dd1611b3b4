"""The report as a file: what it says, what it says is missing, and what cannot get out
of its place in it.
"""

import base64
import gzip
import json
import re
import shutil
import time
from pathlib import Path

import pytest
import xarray as xr
from report_folder import (
    ANSWERS,
    CLAIMS,
    EVIL,
    answer,
    claim,
    made_profile,
    measured,
    verdict_of,
    write,
)

from lib import paths
from lib.claims.claim import load_claims
from lib.errors import InputError
from lib.evaluation import of_profile
from lib.evaluation.answer_tables import GRADERS
from lib.evaluation.store import read
from lib.measurement.store import save_measured
from lib.paths import read_yaml
from lib.profiles import load_profile
from lib.report.answers import TEXT_LIMIT, answers_by_problem, read_stored
from lib.report.axis import AXIS_EDGE, AXIS_WIDTH, axis
from lib.report.gallery import CAPTIONS
from lib.report.heads import read_heads
from lib.report.page import write_report

profile = made_profile


def page(profile) -> str:
    return write_report(profile).read_text(encoding="utf-8")


def embedded(html: str) -> str:
    """Return the JSON that the page's code reads."""
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', html)
    return found[1]


def data(html: str) -> dict:
    return json.loads(embedded(html))


def packed_answers(html: str) -> dict:
    """Return what the page's code reads when somebody opens the answers."""
    found = re.search(r'<script type="text/plain" id="answers-data">(.*?)<', html)
    return json.loads(gzip.decompress(base64.b64decode(found[1])))["answers"]


SAID = [
    "Token by token (λ), the original ones lose 20 % of their attention in trained",
    "head 1: 0.80 [0.70, 0.90] λ, claimed &lt; 1, n = 24; all 2 parts hold;"
    " untrained 0.900 to 1.020.",
    "Not tested: the profile measures none.",
    "Control, the same rule on untrained networks: undecided",
    "the rule was written after such numbers had been seen",
    "tiny @ abc; n = 24 to 24",
    "an effect of 2, the paper&#39;s for a bigger model, needs n = 90",
    "claim dilution of <i>Meaningless tokens, measured</i>",
]


def test_the_page_tells_what_was_found_and_each_claim_with_its_numbers(profile):
    html = page(profile)
    missing = [text for text in SAID if text not in html]
    assert not missing


def test_a_word_is_explained_where_it_first_stands(profile):
    html = page(profile)
    terms = re.findall(r'<dfn tabindex="0" data-term="([^"]+)', html)
    assert len(terms) > 3
    assert len(set(terms)) == len(terms)


def test_figures_stand_in_the_papers_order_and_a_strangers_after_all(profile):
    stranger = profile.figures / "holiday.png"
    shutil.copy(profile.figures / "fig13.png", stranger)
    html = page(profile)
    names = ("fig13", "lambda_map", "holiday")
    places = [html.index(f'id="figure-{name}"') for name in names]
    assert places == sorted(places)
    assert "nothing here says what it shows" in html


def test_a_figure_lies_beside_the_page_with_its_caption(profile):
    html = page(profile)
    assert "three heads of layer 1" in html.lower()
    assert "2 rows in the csv" in html
    for name in ("fig13.png", "fig13.pdf", "fig13.csv"):
        assert f'href="figures/{name}"' in html
        copied = profile.results / "report" / "figures" / name
        assert copied.read_bytes() == (profile.figures / name).read_bytes()


def test_a_notebook_lies_beside_the_page_and_an_executed_copy_replaces_it(profile):
    place = profile.results / "report" / "notebooks" / "01_attention_maps.html"
    assert 'href="notebooks/01_attention_maps.html"' in page(profile)
    assert "One prompt" in place.read_text()
    executed = profile.results / "01_attention_maps.ipynb"
    text = (paths.NOTEBOOKS / executed.name).read_text()
    executed.write_text(text.replace("One prompt", "As it ran"))
    page(profile)
    assert "As it ran" in place.read_text()


def test_the_page_is_written_in_time_and_below_three_megabytes(profile):
    started = time.process_time()
    write_report(profile)
    assert time.process_time() - started < 3
    write(profile, CLAIMS, [], measured(layers=30, heads=16, tokens=250))
    assert write_report(profile).stat().st_size < 3e6


def test_each_stored_file_is_read_once_for_all_that_the_page_shows(
    profile, monkeypatch
):
    files = []

    def counted(*paths: Path) -> list[dict]:
        files.extend(paths)
        return read(*paths)

    monkeypatch.setattr(of_profile, "read", counted)
    write_report(profile)
    assert files
    assert len(set(files)) == len(files)


@pytest.fixture
def evil_page(profile):
    """A page in which every text of a model tries to get out of its place."""
    evil = EVIL + "\ud800"
    records = [
        answer(evil, name, True, response=evil, model=evil, extracted=evil)
        for name in ("none", evil)
    ]
    claims = [claim(model=EVIL, id=EVIL, claim=EVIL)]
    write(profile, claims, records, measured(EVIL, EVIL))
    (profile.figures / "<img src=x onerror=alert(1)>.png").write_bytes(b"x")
    return page(profile)


def test_nothing_that_a_model_wrote_leaves_its_place(evil_page):
    assert "window.pwned" in evil_page
    assert "<script>window.pwned" not in evil_page
    assert "<img src=x" not in evil_page
    assert evil_page.count("</script>") == 7
    assert "\u2028" not in embedded(evil_page)


def test_what_a_model_wrote_is_embedded_as_it_is(evil_page):
    assert data(evil_page)["heads"][0]["name"] == EVIL
    answers = packed_answers(evil_page)
    assert len(answers["texts"]) == 1
    assert answers["texts"][0].startswith(EVIL)


BROKEN = {
    None: "no claims of profile made yet: python -m lib",
    b"": "holds no claims",
    b"[" * 5000: "holds no claims",
    b"[1]": "id is missing or wrong",
    json.dumps([claim(verdict="?")]).encode(): "verdict is missing or wrong",
}


@pytest.mark.parametrize("content", BROKEN)
def test_missing_and_damaged_claims_give_one_line(profile, content):
    path = profile.results / "claims.json"
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    with pytest.raises(InputError, match=BROKEN[content]) as error:
        write_report(profile)
    assert "\n" not in str(error.value)


WRONG = [
    ("fig13.csv", None, "fig13.csv: No such file or directory"),
    ("fig13.png", b"GIF89a", "fig13.png: no png file"),
    ("completions.jsonl", b'{"key": "a"}\n', "completions.jsonl: model: missing field"),
    ("tiny.nc", b"x", "tiny.nc cannot be read"),
    ("tiny.nc", None, "No heads of this profile yet"),
]


@pytest.mark.parametrize("name, content, says", WRONG)
def test_what_is_missing_or_damaged_is_named_in_its_part(
    profile, tmp_path, name, content, says
):
    (path,) = tmp_path.rglob(name)
    if content is None:
        path.unlink()
    else:
        path.write_bytes(content)
    assert says in page(profile)


@pytest.fixture
def heavy_answers(profile):
    """Answers of which one repeats another's text and one has a text too long."""
    again = answer("sum/3", "none", False, response=ANSWERS[0]["response"])
    heavy = answer("sum/4", "none", True, response="x" * TEXT_LIMIT)
    write(profile, CLAIMS, [*ANSWERS, again, heavy], measured())
    return answers_by_problem(profile, read_stored(profile))


def test_answers_stand_side_by_side(heavy_answers):
    answers, revisions, _ = heavy_answers
    (run,) = answers["runs"]
    assert run["conditions"] == ["none", "mless"]
    assert run["problems"][1] == ["sum/2", 2, "4", None]
    assert run["cells"][0][1] == [[True, False, "4", 1, "stop", 9]]
    assert revisions == {"tiny": "abc"}


def test_each_text_is_held_once_and_what_would_make_the_page_heavy_is_counted(
    heavy_answers,
):
    answers, _, missing = heavy_answers
    (run,) = answers["runs"]
    assert len(answers["texts"]) == 4
    repeated = [[False, False, "5", 0, "stop", 9]]
    too_long = [[True, True, "4", None, "stop", 9]]
    assert run["cells"][2:] == [[repeated, []], [too_long, []]]
    assert len(missing) == 1
    assert missing[0].startswith("1 texts are left out")


def test_a_problems_text_is_shown_only_where_it_is_the_projects_own(profile):
    own = answer("embedded/draw/159", "none", True)
    write(profile, CLAIMS, [own, *ANSWERS], measured())
    answers, *_ = answers_by_problem(profile, read_stored(profile))
    (run,) = answers["runs"]
    texts = {name: text for name, *_, text in run["problems"]}
    assert texts["embedded/draw/159"].startswith("A bag holds")
    assert texts["sum/1"] is None


WIDE = {"low_end": 5e-5, "high_end": None, "effect": 1e-4, "low": -1e6, "high": 1e4}
NARROW = {"high_end": 0, "effect": 0, "low": 0, "high": 0}


def drawn_axis(**changes) -> dict:
    return axis(verdict_of(claim(**changes)))


@pytest.mark.parametrize("changes", [WIDE, NARROW])
def test_the_axis_holds_interval_and_range_with_round_ticks(changes):
    drawn = drawn_axis(**changes)
    low, middle, high = drawn["bar"]
    assert AXIS_EDGE <= low <= middle <= high <= AXIS_WIDTH - AXIS_EDGE
    assert drawn["shade"][0] < drawn["shade"][1]
    places = [place for place, _ in drawn["ticks"]]
    assert 2 <= len(places) <= 6
    assert min(places) >= AXIS_EDGE
    assert max(places) <= AXIS_WIDTH - AXIS_EDGE


# Which ends of the claimed range stand at 0 and which at the edge of the drawing.
RANGES = [
    ({"low_end": None, "high_end": 0}, (AXIS_EDGE, "0")),
    ({"low_end": 0, "high_end": None}, ("0", AXIS_WIDTH - AXIS_EDGE)),
]


@pytest.mark.parametrize("changes, ends", RANGES)
def test_a_range_that_ends_at_zero_is_shaded_to_zero(changes, ends):
    drawn = drawn_axis(effect=0.2, low=-0.5, high=0.7, **changes)
    ticks = {text: place for place, text in drawn["ticks"]}
    assert drawn["shade"] == tuple(ticks.get(end, end) for end in ends)


def entries() -> list[dict]:
    return [entry for group in read_yaml(CAPTIONS).values() for entry in group]


def test_captions_have_all_fields_and_name_every_claim():
    fields = {"id", "title", "shows", "read", "notebook", "claims"}
    assert all(entry.keys() == fields for entry in entries())
    named = {name for entry in entries() for name in entry["claims"]}
    assert named == {known.id for known in load_claims()}


def test_captions_name_notebooks_that_exist_and_every_figure_that_is_committed():
    notebooks = {path.stem for path in paths.NOTEBOOKS.glob("0*.ipynb")}
    assert {entry["notebook"] for entry in entries()} <= notebooks
    drawn = {path.stem for path in (paths.ROOT / "figures").glob("*/*.png")}
    assert drawn == {entry["id"] for entry in entries()}


def test_answers_that_the_repository_stores_of_a_profile_are_shown_by_part():
    profile = load_profile("families")
    stored = read_stored(profile)
    answers, revisions, missing = answers_by_problem(profile, stored)
    parts = {run["part"]: run["conditions"] for run in answers["runs"]}
    assert parts == {
        "accuracy": ["none", "mless"],
        "a worked example, no instruction, an ordinary sentence": [
            "none",
            "bare",
            "example",
            "random",
        ],
    }
    sizes = ("0.5B", "1.5B")
    assert sorted(revisions) == [f"Qwen2.5-Coder-{size}-Instruct" for size in sizes]
    assert not missing


def test_heads_measured_here_come_before_those_of_the_repository(
    profile, tmp_path, monkeypatch
):
    monkeypatch.setattr(paths, "DATA", tmp_path / "data")
    folder = tmp_path / "data" / profile.name
    folder.mkdir(parents=True)
    stored = measured().drop_vars("text")
    save_measured(folder / "tiny.nc", stored)
    write(profile, CLAIMS, ANSWERS, measured().assign_attrs(revision="here"))
    save_measured(folder / "other.nc", stored.assign_attrs(model="other"))
    models, missing = read_heads(profile)
    assert [model["name"] for model in models] == ["other", "tiny"]
    here, stored = (
        next(model for model in models if model["name"] == name)
        for name in ("tiny", "other")
    )
    assert here["revision"] == "here"
    assert stored["revision"] == "abc"
    assert not missing


def test_a_head_has_its_mean_with_ends_and_a_layer_the_mean_of_its_heads(profile):
    (model,), _ = read_heads(profile)
    assert list(model["columns"]) == ["mless"]
    means = [mean for mean, _, _ in model["columns"]["mless"]]
    assert means == pytest.approx([0.5, 0.68, 0.86])
    assert all(low < mean < high for mean, low, high in model["columns"]["mless"])
    by_layer = [(layer, mean) for layer, mean, _, _ in model["layers"]["mless"]]
    assert by_layer == [(1, pytest.approx(0.68)), (2, pytest.approx(1.22))]


def test_the_same_answers_stand_by_grader_with_what_the_slashes_change(profile):
    answers = [
        answer(f"sum/{i}", name, i % share == 0, correct_authors=True)
        for i in range(30)
        for name, share in (("none", 3), ("mless", 2))
    ]
    write(profile, CLAIMS, answers, measured())
    graders = data(page(profile))["graders"]
    right = {row["label"]: row["x"] for row in graders["right"]}
    assert right[GRADERS["correct"]] == 33.3
    assert right[GRADERS["correct_authors"]] == 100
    change = graders["changes"][0]
    assert change["low"] < change["x"] == 16.67 < change["high"]
    assert change["text"].startswith("+17 [")


def test_of_untrained_networks_the_middle_one_counts_and_the_outer_ones_are_ends(
    profile,
):
    trained = measured()["lambda"]
    others = [
        (trained + change).assign_coords(network=[f"untrained {seed}"])
        for seed, change in enumerate((0.1, 0.2, 0.5))
    ]
    networks = xr.concat([trained, *others], "network")
    whole = measured().drop_vars("lambda").drop_dims("network")
    whole["lambda"] = networks
    write(profile, CLAIMS, ANSWERS, whole)
    (model,), _ = read_heads(profile)
    first, *_ = model["columns"]["untrained"]
    assert first == pytest.approx([0.7, 0.6, 1.0])
