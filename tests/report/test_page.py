"""The report as a file: what it says, what it says is missing, and what cannot get out
of its place in it.
"""

import json
import re
import time

import pytest
from report_folder import (
    ANSWERS,
    CLAIMS,
    EVIL,
    answer,
    claim,
    made_profile,
    measured,
    write,
)

from lib import paths
from lib.claims.claim import load_claims
from lib.claims.verdict import verdict_of
from lib.errors import InputError
from lib.paths import read_yaml
from lib.profiles import load_profile
from lib.report.answers import TEXT_LIMIT, read_answers
from lib.report.gallery import CAPTIONS
from lib.report.page import write_report
from lib.report.parts import EDGE, WIDTH, axis

profile = made_profile


def page(profile) -> str:
    return write_report(profile).read_text(encoding="utf-8")


def data(html: str) -> dict:
    return json.loads(
        re.search(r'<script type="application/json" id="data">(.*?)</script>', html)[1]
    )


def test_the_page_tells_verdicts_in_words_and_each_claim_with_its_numbers(profile):
    html = page(profile)
    for text in (
        (
            "3 claims, as the paper words them, on 2 models (6 cells): 1 supported, 1"
            " contradicted, 1 undecided, 3 not"
        ),
        (
            "head 1: 0.80 [0.70, 0.90] λ, claimed &lt; 1, n = 24; all 2 parts hold;"
            " untrained 0.900 to 1.020."
        ),
        "Not tested: the profile measures none.",
        "Control, the same rule on untrained networks: undecided",
        "The rule was written after such numbers had been seen.",
        "tiny @ abc; n = 24 to 24",
        "an effect of 2, the paper&#39;s for a bigger model, needs n = 90",
    ):
        assert text in html


def test_a_figure_comes_with_its_caption_and_its_files_and_a_strangers_after_all(
    profile,
):
    (profile.figures / "holiday.png").write_bytes(
        (profile.figures / "fig13.png").read_bytes()
    )
    html = page(profile)
    places = [
        html.index(f'id="figure-{name}"') for name in ("fig13", "lambda_map", "holiday")
    ]
    assert places == sorted(places) and "nothing here says what it shows" in html
    assert (
        "Three heads of layer 1".lower() in html.lower() and "2 rows in the csv" in html
    )
    assert 'download="fig13.pdf"' in html and 'href="data:text/csv;base64,' in html


def test_the_page_is_written_in_time_and_below_three_megabytes(profile):
    started = time.process_time()
    write_report(profile)
    assert time.process_time() - started < 3
    write(profile, CLAIMS, [], measured(layers=30, heads=16, tokens=250))
    assert write_report(profile).stat().st_size < 3e6


def test_nothing_that_a_model_wrote_leaves_its_place(profile):
    evil = EVIL + "\ud800"
    records = [
        answer(evil, name, True, response=evil, model=evil, extracted=evil)
        for name in ("none", evil)
    ]
    write(
        profile, [claim(model=EVIL, id=EVIL, claim=EVIL)], records, measured(EVIL, EVIL)
    )
    (profile.figures / "<img src=x onerror=alert(1)>.png").write_bytes(b"x")
    html = page(profile)
    assert (
        "window.pwned" in html
        and "<script>window.pwned" not in html
        and "<img src=x" not in html
    )
    assert (
        html.count("</script>") == 3
        and "\u2028" not in re.search(r'id="data">(.*?)</script>', html)[1]
    )
    assert (
        data(html)["answers"]["texts"] == [evil]
        and data(html)["heads"][0]["name"] == EVIL
    )


BROKEN = {
    None: "no claims of profile made yet: python -m lib",
    b"": "holds no claims",
    b"[" * 5000: "holds no claims",
}
BROKEN |= {
    b"[1]": "id is missing or wrong",
    json.dumps([claim(verdict="?")]).encode(): "verdict is missing or wrong",
}


@pytest.mark.parametrize("content", BROKEN)
def test_missing_and_damaged_claims_give_one_line(profile, content):
    path = profile.results / "claims.json"
    path.unlink() if content is None else path.write_bytes(content)
    with pytest.raises(InputError, match=BROKEN[content]) as error:
        write_report(profile)
    assert "\n" not in str(error.value)


WRONG = [
    ("fig13.csv", None, "fig13.csv: No such file or directory"),
    ("fig13.png", b"GIF89a", "fig13.png: no png file"),
]
WRONG += [
    ("completions.jsonl", b'{"key": "a"}\n', "completions.jsonl: model: missing field")
]
WRONG += [
    ("tiny.nc", b"x", "tiny.nc cannot be read"),
    ("tiny.nc", None, "No heads of this profile yet"),
]


@pytest.mark.parametrize("name, content, says", WRONG)
def test_what_is_missing_or_damaged_is_named_in_its_part(
    profile, tmp_path, name, content, says
):
    (path,) = tmp_path.rglob(name)
    path.unlink() if content is None else path.write_bytes(content)
    assert says in page(profile)


def test_answers_stand_side_by_side_and_those_that_would_be_too_many_are_counted(
    profile,
):
    again = answer("sum/3", "none", False, response=ANSWERS[0]["response"])
    heavy = answer("sum/4", "none", True, response="x" * TEXT_LIMIT)
    write(profile, CLAIMS, [*ANSWERS, again, heavy], measured())
    found, revisions, missing = read_answers(profile)
    (run,) = found["runs"]
    assert run["conditions"] == ["none", "mless"] and run["problems"][1] == [
        "sum/2",
        2,
        "4",
        None,
    ]
    assert run["cells"][0][1] == [[True, False, "4", 1, "stop", 9]]
    assert run["cells"][2:] == [
        [[[False, False, "5", 0, "stop", 9]], []],
        [[[True, True, "4", None, "stop", 9]], []],
    ]
    assert len(found["texts"]) == 4 and revisions == {"tiny": "abc"}
    assert len(missing) == 1 and missing[0].startswith("1 texts are left out")


WIDE = {"low_end": 5e-5, "high_end": None, "effect": 1e-4, "low": -1e6, "high": 1e4}


@pytest.mark.parametrize(
    "changes", [WIDE, {"high_end": 0, "effect": 0, "low": 0, "high": 0}]
)
def test_the_axis_holds_interval_and_range_with_round_ticks(changes):
    drawn = axis(verdict_of(claim(**changes)))
    low, middle, high = drawn["bar"]
    assert (
        EDGE <= low <= middle <= high <= WIDTH - EDGE
        and drawn["shade"][0] < drawn["shade"][1]
    )
    assert 2 <= len(drawn["ticks"]) <= 6 and all(
        EDGE <= x <= WIDTH - EDGE for x, _ in drawn["ticks"]
    )


def test_captions_name_claims_and_notebooks_that_exist_and_every_figure_of_the_demo():
    entries = [entry for group in read_yaml(CAPTIONS).values() for entry in group]
    assert all(
        entry.keys() == {"id", "title", "shows", "read", "notebook", "claims"}
        for entry in entries
    )
    assert {name for entry in entries for name in entry["claims"]} == {
        claim.id for claim in load_claims()
    }
    assert {entry["notebook"] for entry in entries} <= {
        path.stem for path in paths.NOTEBOOKS.glob("0*.ipynb")
    }
    assert {path.stem for path in (paths.ROOT / "figures" / "demo").glob("*.png")} <= {
        entry["id"] for entry in entries
    }


def test_answers_that_the_repository_stores_of_a_profile_are_shown_by_part():
    answers, revisions, missing = read_answers(load_profile("families"))
    parts = {run["part"]: run["conditions"] for run in answers["runs"]}
    assert parts == {"accuracy": ["none", "mless"]}
    assert (
        sorted(revisions)
        == [f"Qwen2.5-Coder-{size}-Instruct" for size in ("0.5B", "1.5B")]
        and not missing
    )


def test_a_head_without_curves_has_its_lambda_and_a_token_without_text_is_a_dot(
    profile,
):
    stored = measured().drop_vars("text")
    stored["received"][:, 1] = float("nan")  # of layer 2
    write(profile, CLAIMS, ANSWERS, stored)
    (model,) = data(page(profile))["heads"]
    assert (
        model["layers"] == [1, 2]
        and [head is None for head in model["received"]] == [False] * 3 + [True] * 3
    )
    assert (
        set(model["changes"]["mless"]["tokens"]) == {"\N{MIDDLE DOT}"}
        and not model["texts"]
    )
    write(profile, CLAIMS, ANSWERS, stored.drop_vars(["received", "even", "part"]))
    (model,) = data(page(profile))["heads"]
    assert (
        model["received"] == [None] * 6 and len(model["changes"]["mless"]["ratio"]) > 10
    )
