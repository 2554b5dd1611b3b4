"""What data/make_families.py keeps: whole problems, in one order."""

import gzip
import importlib.util
import json
from itertools import product

import numpy as np
import pytest
import xarray as xr
from hand_written import keep, record

from lib import paths
from lib.errors import InputError
from lib.evaluation.of_profile import recorded_settings
from lib.evaluation.records import shared_settings
from lib.files import write_json
from lib.models.names import resolve
from lib.profiles import load_profile
from lib.store import read

SPEC = importlib.util.spec_from_file_location(
    "make_families", paths.DATA / "make_families.py"
)
# A model that every part of the profile names.
MODEL = resolve(load_profile("families").accuracy.models[1]).name
STORED = paths.DATA / "families" / "answers" / "main.jsonl.gz"


@pytest.fixture
def script(tmp_path, monkeypatch):
    """The script, which writes into a temporary folder."""
    module = importlib.util.module_from_spec(SPEC)
    SPEC.loader.exec_module(module)
    monkeypatch.setattr(module, "FOLDER", tmp_path / "families")
    return module


def scores(counts, target="solution"):
    """Return lines of a run that scored each condition on so many problems."""
    fixed = {"model": MODEL, "revision": "r", "target": target, "level": 1, "tokens": 3}
    lines = []
    for name, count in counts.items():
        for i in range(count):
            row = {
                **fixed,
                "key": f"{target}-{name}-{i}",
                "condition": name,
                "problem_id": f"p{i:02d}",
                "nats": -1.5,
                "dtype": "float32",
                "processor": "CPU",
            }
            lines.append(json.dumps(row) + "\n")
    return lines


def test_scores_of_problems_that_every_condition_reached_are_kept_in_one_order(
    tmp_path, script
):
    lines = scores({"none": 30, "mless": 25, "bare": 3, "mless:10": 21})
    lines += scores({"none": 22}, "answer")
    (tmp_path / "a.jsonl").write_text("".join(lines) + '{"key": "half a li')
    (tmp_path / "b.jsonl").write_text("".join(reversed(lines)))

    script.write_scores([tmp_path / "a.jsonl"])
    kept = tmp_path / "families" / "likelihood" / f"{MODEL}.jsonl.gz"
    first = kept.read_bytes()
    rows = [json.loads(line) for line in gzip.decompress(first).splitlines()]
    places = {(row["target"], row["condition"], row["problem_id"]) for row in rows}
    both = {("solution", c, f"p{i:02d}") for c in ("none", "mless") for i in range(25)}
    # Of answers at once and under conditions that the profile does not score, fewer may
    # be there.
    others = {("solution", "mless:10", f"p{i:02d}") for i in range(21)}
    others |= {("answer", "none", f"p{i:02d}") for i in range(22)}
    assert places == both | others
    assert "processor" not in rows[0]
    assert rows[0]["nats"] == -1.5

    script.write_scores([tmp_path / "b.jsonl", tmp_path / "a.jsonl"])
    assert kept.read_bytes() == first


def test_numbers_are_kept_in_few_bits_and_counts_as_they_are(script):
    number = xr.DataArray([1.23456789, np.nan], name="lambda")
    short = script.rounded(number)
    assert short[0] != number[0]
    np.testing.assert_allclose(short, number, rtol=2.5e-4)
    counts = xr.DataArray([123456789.0], name="counts")
    assert script.rounded(counts).equals(counts)


def test_answers_are_graded_by_each_rule_and_keep_what_they_say(tmp_path, script):
    row = record("none", "p", False, response=r"\boxed{1}", dtype="float32")
    row |= {"model": MODEL}
    keep(tmp_path / "completions.jsonl", [row | {"answer": "12"}])
    script.write_answers([tmp_path])
    (kept,) = read(tmp_path / "families" / "answers" / "main.jsonl.gz")
    assert kept["dtype"] == "float32"
    # A part of the answer is enough for the authors' rule.
    assert kept["correct_authors_on_completion"]
    assert not kept["correct_exact"]


def test_answers_of_one_model_are_renewed_to_the_same_bytes_and_others_stay(
    tmp_path, script
):
    rows = read(STORED)
    problems = {row["problem_id"] for row in rows if row["model"] == rows[0]["model"]}
    two = sorted(problems)[:2]
    rows = [row for row in rows if row["problem_id"] in two]
    lines = [json.dumps(row) + "\n" for row in rows]
    kept = tmp_path / "families" / "answers" / "main.jsonl.gz"
    kept.parent.mkdir(parents=True)
    kept.write_bytes(before := gzip.compress("".join(lines).encode(), mtime=0))

    # A run that goes on has answered a third problem under one condition only.
    own = [row for row in rows if row["model"] == rows[0]["model"]]
    begun = own[0] | {"problem_id": "begun", "key": "another"}
    (tmp_path / "completions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in [*own, begun])
    )
    script.write_answers([tmp_path])
    assert kept.read_bytes() == before


# What a store holds in place of its rows, and what is said of it.
REFUSED = [
    (lambda rows: rows[:-2], "2 problems under .*, where 3 are stored"),
    (lambda rows: rows[::2], "0 problems under mless, where 3 are stored"),
    (
        lambda rows: [row | {"model": "other"} for row in rows],
        "other is no model of families",
    ),
]


@pytest.mark.parametrize("change, message", REFUSED)
@pytest.mark.parametrize("part", ["main", "likelihood"])
def test_a_part_of_what_is_stored_and_a_strangers_rows_are_not_stored(
    tmp_path, script, monkeypatch, part, change, message
):
    rows = []
    for problem, condition in product("abc", ("none", "mless")):
        row = dict.fromkeys(script.SCORE_FIELDS, 1) | {"key": problem + condition}
        row |= record(condition, problem, True, model=MODEL, target="solution")
        rows.append(row)
    file, write = {
        "main": ("completions.jsonl", script.write_answers),
        "likelihood": ("scores.jsonl", script.write_scores),
    }[part]
    monkeypatch.setattr(script, "ENOUGH", 1)
    keep(tmp_path / file, rows)
    write([tmp_path])
    (stored,) = (tmp_path / "families").rglob("*.gz")
    before = stored.read_bytes()

    keep(tmp_path / file, change(rows))
    with pytest.raises(InputError, match=message):
        write([tmp_path])
    assert stored.read_bytes() == before


@pytest.fixture
def drawn(tmp_path):
    """Write answers to three problems, of which p2 alone is answered rightly and
    wrongly, and scores; return the two folders.
    """

    def write(answers_less=0, scores_less=0):
        answers = [
            {
                "key": f"{problem}-{half}",
                "model": MODEL,
                "problem_id": problem,
                "condition": half,
                "sample": 0,
                "answer": "4",
                "response": response,
                "correct": response == r"\boxed{4}",
                "token_ids": [1, 2],
            }
            for problem, *responses in [
                ("p1", r"\boxed{4}", r"\boxed{4}"),
                ("p2", r"\boxed{4}", r"\boxed{5}"),
                ("p3", r"\boxed{5}", r"\boxed{5}"),
            ]
            for half, response in zip(("none", "mless"), responses, strict=True)
        ]
        scores = [
            {
                "key": f"{condition}-p2-{half}",
                "model": MODEL,
                "condition": condition,
                "answer": f"p2-{half}",
                "problem_id": "p2",
                "nats": -1.0,
            }
            for condition in ("gap", "none", "mless")
            for half in ("none", "mless")
        ]
        kept = {
            "completions": answers[: len(answers) - answers_less],
            "scores": scores[: len(scores) - scores_less],
        }
        for name, rows in kept.items():
            lines = "".join(json.dumps(row) + "\n" for row in rows)
            (tmp_path / name).mkdir()
            (tmp_path / name / f"{name}.jsonl").write_text(lines)
        # As `evaluate` and `likelihood` leave them: a folder of each.
        return [tmp_path / "completions", tmp_path / "scores"]

    return write


def test_draws_are_kept_with_the_scores_of_those_that_decide(script, tmp_path, drawn):
    script.write_draws(drawn())
    kept = read(tmp_path / "families" / "answers" / "draws.jsonl.gz")
    assert [row["problem_id"] for row in kept] == ["p1", "p1", "p2", "p2", "p3", "p3"]
    rows = read(tmp_path / "families" / "draws" / f"{MODEL}.jsonl.gz")
    conditions = {row["condition"] for row in rows}
    assert len(rows) == 6 and conditions == {"none", "mless", "gap"}


@pytest.mark.parametrize(
    "less, message",
    [
        ({"answers_less": 1}, "1 problems lack answers, 0 answers that decide"),
        ({"scores_less": 1}, "0 problems lack answers, 1 answers that decide"),
    ],
)
def test_draws_that_would_be_a_choice_of_problems_are_refused(
    script, drawn, less, message
):
    with pytest.raises(InputError, match=message):
        script.write_draws(drawn(**less))


def test_a_part_is_recorded_with_the_settings_that_its_runs_were_made_with(
    tmp_path, script
):
    (tmp_path / "families").mkdir()
    families = load_profile("families")
    settings = shared_settings(families.accuracy, families.filler, families.seed)
    run = tmp_path / "run"
    run.mkdir()
    write_json(run / "run.json", {"settings": settings})
    script.require_settings("main", [run])
    script.record("main")
    recorded = json.loads((tmp_path / "families" / "settings.json").read_text())
    assert recorded == {"main": recorded_settings(families, "main")}

    write_json(run / "run.json", {"settings": settings | {"max_new_tokens": 9}})
    with pytest.raises(InputError, match=r"max_new_tokens = 9, not 768"):
        script.require_settings("main", [run])
