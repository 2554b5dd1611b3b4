"""Shipped profiles load and fit their models; whatever is wrong with a profile is said in a line."""

import copy
import json

import pytest
import yaml

from lib import paths
from lib.errors import InputError
from lib.evaluation.findings import paper_numbers
from lib.profiles import (
    check,
    load_profile,
    override,
    profile_names,
    run_profile,
    variation,
)
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems

NAMES = ("demo", "families", "laptop", "paper")
HEADS = {"demo": 9, "gemma-3-270m": 4, "Qwen2.5-Coder-1.5B-Instruct": 12} | {
    "Qwen2.5-Math-7B": 28,
    "Llama-3.1-8B-Instruct": 32,
    "Gemma-3-4b-it": 8,
}
DEMO = yaml.safe_load((paths.PROFILES / "demo.yaml").read_text(encoding="utf-8"))
REMOVED = object()


def heads(profile, figure):
    return [(panel.layer, panel.head) for panel in getattr(profile.attention.panels, figure)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Stand in for data/profiles, so that messages name the files as they do there."""
    place = tmp_path / "data" / "profiles"
    place.mkdir(parents=True)
    monkeypatch.setattr(paths, "ROOT", tmp_path)
    monkeypatch.setattr(paths, "PROFILES", place)
    return place


def changed(place, **fields):
    """Return the demo profile's content with fields set in the section at the dotted `place`."""
    content = copy.deepcopy(DEMO)
    section = content
    for part in place.split(".") if place else []:
        section = section[int(part) if part.isdigit() else part]
    for name, value in fields.items():
        if value is REMOVED:
            del section[name]
        else:
            section[name] = value
    return content


def message(folder, content):
    """Return what loading this content as demo.yaml says after the file's name."""
    text = content if isinstance(content, str) else yaml.safe_dump(content)
    (folder / "demo.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(InputError) as caught:
        load_profile("demo")
    said = str(caught.value)
    assert said.startswith("data/profiles/demo.yaml: ") and "\n" not in said
    return said.removeprefix("data/profiles/demo.yaml: ")


def test_names():
    assert profile_names() == list(NAMES)


@pytest.mark.parametrize("name", NAMES)
def test_shipped_profiles_load_and_their_models_and_heads_exist(name):
    profile = load_profile(name)
    known = set(yaml.safe_load((paths.DATA / "models.yaml").read_text(encoding="utf-8"))) | {"demo"}
    assert {*profile.attention.models, *profile.accuracy.models} <= known
    for _, row in profile.attention.panels:
        assert all(panel.head <= HEADS[panel.model] for panel in row)
    assert profile.accuracy.conditions[:2] == ["none", "mless"]
    assert Filler(**profile.filler.model_dump()) == Filler()


@pytest.mark.parametrize("name", ["laptop", "paper"])
def test_panels_are_the_papers(name):
    panels = load_profile(name).attention.panels
    seen = {figure: [(p.model[:1], p.layer, p.head) for p in row] for figure, row in panels}
    assert seen == {
        "fig09": [("Q", 1, 22), ("Q", 2, 22), ("Q", 3, 22)],
        "fig10": [("Q", 1, 14)],
        "fig11": [("Q", 1, 1), ("L", 1, 27), ("G", 1, 8)],
        "fig13": [("Q", 1, 1), ("Q", 1, 2), ("Q", 1, 8)],
        "fig18": [("L", 1, 20), ("L", 1, 25), ("L", 1, 26)],
    }


def test_profiles_differ_where_they_should():
    demo, _, laptop, paper = map(load_profile, NAMES)
    assert [p.accuracy.problems for p in (demo, laptop, paper)] == ["embedded", "math500", "math500"]
    assert [p.accuracy.limit for p in (demo, laptop, paper)] == [96, 100, None]
    assert [p.attention.limit for p in (demo, laptop, paper)] == [100, 100, None]
    assert [p.accuracy.elicit for p in (demo, laptop, paper)] == [True, False, False]
    assert [p.accuracy.samples for p in (demo, laptop, paper)] == [1, 1, 5]
    assert heads(demo, "fig18") == [(1, 3), (1, 5), (1, 7)]
    assert demo.accuracy.engine == "transformers"


def test_no_example_of_the_demo_is_a_problem_of_its_set():
    shown = {example.problem for example in load_profile("demo").accuracy.examples}
    assert len(shown) == 2 and not shown & {item.problem for item in load_problems("embedded")}


def test_other_problems_are_taken_whatever_their_level():
    assert load_profile("demo").accuracy.levels == [1, 2, 3]
    assert override(load_profile("demo"), problems="embedded").accuracy.levels is None


PANEL = {"model": "demo", "layer": 1, "head": 1}
MISTAKES = [
    (
        changed("accuracy", max_new_token=96, max_new_tokens=REMOVED),
        "accuracy.max_new_token: unknown field (did you mean max_new_tokens?)",
    ),
    (changed("accuracy", zzz=1), "accuracy.zzz: unknown field"),
    (changed("accuracy", format="plain"), "accuracy: examples are turns of a chat: format must be chat"),
    (changed("", atention={}), "atention: unknown field (did you mean attention?)"),
    (changed("", filler={"lenght": 5}), "filler.lenght: unknown field (did you mean length?)"),
    (
        changed("attention.panels", fig12=[PANEL]),
        "attention.panels.fig12: unknown field (did you mean fig1",
    ),
    (
        changed("attention.panels", fig10=[{**PANEL, "heads": 1}]),
        "attention.panels.fig10.0.heads: unknown field (did you mean head?)",
    ),
    (
        changed("accuracy", seeds=1, samples="3", batch_size=0, models=REMOVED),
        "accuracy.seeds: unknown field; accuracy.models: missing field; accuracy.samples: must be a whole "
        "number, not '3'; accuracy.batch_size: must be greater than 0, not 0",
    ),
    (changed("accuracy", limit="96"), "accuracy.limit: must be a whole number, not '96'"),
    (changed("accuracy", limit=True), "accuracy.limit: must be a whole number, not True"),
    (changed("accuracy", limit=0), "accuracy.limit: must be greater than 0, not 0"),
    (changed("accuracy", elicit="yes"), "accuracy.elicit: must be true or false, not 'yes'"),
    (changed("accuracy", format="chatt"), "accuracy.format: must be 'plain' or 'chat', not 'chatt'"),
    (changed("accuracy", models="demo"), "accuracy.models: must be a list, not 'demo'"),
    (changed("accuracy", temperature=-1), "accuracy.temperature: must be greater than or equal to 0"),
    (changed("accuracy", temperature=float("inf")), "accuracy.temperature: must be a finite number"),
    (changed("accuracy", samples=2), "accuracy: samples is 2 at temperature 0"),
    (changed("accuracy", conditions=["mless"]), "accuracy: conditions must hold 'none'"),
    (changed("accuracy", conditions=["none", "none"]), "accuracy: conditions must hold 'none'"),
    (
        changed("accuracy", conditions=["none", "mles"]),
        "accuracy.conditions.1: unknown condition 'mles' (did you mean mless?): choose from none, mless",
    ),
    (changed("attention", example=100), "attention: example 100 is not among 100 problems"),
    (changed("attention", layers=2), "attention: panels.fig09: layer 3 of demo is not loaded"),
    (changed("attention.panels.fig10.0", model="x"), "attention: panels.fig10: layer 1 of x is not loaded"),
    (changed("attention.panels.fig10.0", head=0), "attention.panels.fig10.0.head: must be greater"),
    (changed("", filler={"length": 0}), "filler.length: must be greater than 0, not 0"),
    (changed("", filler={"mful": ""}), "filler.mful: must not be empty"),
    (changed("", accuracy=[1]), "accuracy: must be fields with values"),
    (changed("", **{"name": "other"}), "name: must be 'demo' like the file, not 'other'"),
    ({**DEMO, 1: 2}, "1: "),
    ("", "must be fields with values"),
    ("name: demo\nseed: [0\n", "line 3: "),
    ("name: a: b\n", "line 1: mapping values are not allowed here"),
    ("name: \x00\n", "unacceptable character"),
]


@pytest.mark.parametrize(("content", "expected"), MISTAKES, ids=[expected for _, expected in MISTAKES])
def test_a_mistake_is_said_in_one_line(folder, content, expected):
    assert message(folder, content).startswith(expected)


def test_a_misspelt_field_is_the_only_thing_said(folder):
    content = changed("accuracy", max_new_token=96, max_new_tokens=REMOVED)
    assert message(folder, content).endswith("(did you mean max_new_tokens?)")


@pytest.mark.parametrize("name", ["dmo", "", "../profiles/demo", "demo.yaml"])
def test_unknown_profile_lists_the_known(name):
    with pytest.raises(InputError, match=r"unknown profile .*: choose from demo, families, laptop, paper"):
        load_profile(name)


def test_override_replaces_everywhere_and_leaves_the_original():
    laptop = load_profile("laptop")
    before = laptop.model_dump()
    other = override(laptop, model="demo", problems="mine.jsonl", limit=7)
    assert laptop.model_dump() == before
    assert other.attention.models == other.accuracy.models == ["demo"]
    assert {panel.model for _, row in other.attention.panels for panel in row} == {"demo"}
    assert heads(other, "fig13") == heads(laptop, "fig13")
    for section in (other.attention, other.accuracy):
        assert (section.problems, section.limit) == ("mine.jsonl", 7)


@pytest.mark.parametrize(
    ("change", "limits"),
    [
        ({}, (100, 96)),
        ({"problems": "math500"}, (None, None)),
        ({"limit": 3}, (3, 3)),
        ({"model": "demo"}, (100, 96)),
    ],
)
def test_limits_after_override(change, limits):
    profile = override(load_profile("demo"), **change)
    assert (profile.attention.limit, profile.accuracy.limit) == limits


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({"limit": 0}, "parameters: limit: must be greater than 0, not 0"),
        ({"limit": -3}, "parameters: limit: must be greater than 0, not -3"),
        ({"model": ""}, "parameters: model: must not be empty"),
        ({"problems": ""}, "parameters: problems: must not be empty"),
    ],
)
def test_override_mistakes(change, expected):
    with pytest.raises(InputError) as caught:
        run_profile("demo", **change)
    assert str(caught.value).startswith(expected)


def test_a_profile_cannot_be_changed_in_place():
    with pytest.raises(ValueError, match="frozen"):
        load_profile("demo").accuracy.limit = 1


def test_paper_numbers():
    numbers = paper_numbers()
    beside = {name: row["none"] for name, row in numbers.pop("fig08")["panels"].items()}
    assert [point.get("reported") for point in beside.values()] == [None, 72.4, 72.4]
    assert set(numbers) == {"fig10", "table1", "table2", "table4", "table5"}
    for entry in numbers.values():
        assert entry["source"].startswith("arXiv 2510.01032v1, ")
        assert all(0 <= value <= 100 for row in entry["values"].values() for value in row.values())
    assert numbers["fig10"]["values"]["Llama-3.1-8B-Instruct"] == {"none": 44, "mless": 46, "mful": 48}
    baselines = {name: entry["values"]["Qwen2.5-Math-7B"]["none"] for name, entry in numbers.items()}
    assert baselines == {"fig10": 73, "table1": 72.3, "table2": 72.4, "table4": 72.4, "table5": 72.4}


TWELVE_LINES = """
name: mine
description: A model of my own on problems of my own
attention:
  models: [tiny-llama]
  problems: mine.jsonl
  limit: 2
accuracy:
  models: [tiny-llama]
  problems: mine.jsonl
  limit: 2
  max_new_tokens: 4
"""


@pytest.fixture
def mine(tmp_path, tiny_checkpoint):
    """The path of a short profile beside its model, of three layers with two heads, and its problems."""
    rows = [{"problem": f"What is $1+{i}$?", "answer": str(1 + i), "unique_id": f"p{i}"} for i in range(3)]
    (tmp_path / "mine.jsonl").write_text("\n".join(json.dumps(row) for row in rows))
    (tmp_path / "mine.yaml").write_text(TWELVE_LINES)
    return tmp_path / "mine.yaml"


def test_twelve_lines_run_a_model_on_problems_of_ones_own(mine, tiny_checkpoint, monkeypatch):
    monkeypatch.chdir("/")  # paths are the file's, wherever a run or a notebook starts
    profile = load_profile(mine)
    check(profile)
    assert profile.attention.models == profile.accuracy.models == [str(tiny_checkpoint)]
    assert profile.attention.problems == str(mine.with_name("mine.jsonl"))
    drawn = {figure: heads(profile, figure) for figure, _ in profile.attention.panels}
    three = [(1, 1), (2, 1), (3, 1)]
    first = [(1, 1), (1, 2)]
    assert drawn == {"fig09": three, "fig10": [(1, 1)], "fig11": first, "fig13": first, "fig18": [(1, 2)]}
    assert (profile.results, profile.figures) == (paths.RESULTS / "mine", paths.FIGURES / "mine")
    with mine.open("w") as file:
        yaml.safe_dump(profile.model_dump(), file)
    assert load_profile(mine) == profile  # as a run hands it to its notebooks


@pytest.mark.parametrize("name", [*NAMES, "../demo", ""])
def test_a_file_cannot_take_a_shipped_profiles_name_nor_leave_the_folder(mine, name):
    mine.write_text(TWELVE_LINES.replace("name: mine", f"name: {name!r}"))
    with pytest.raises(InputError, match="name: "):
        load_profile(mine)


def test_an_override_has_a_name_and_folders_of_its_own():
    first, second = run_profile("demo", limit=3), run_profile("demo", limit=4)
    assert len({"demo", first.name, second.name}) == 3 and first.name.startswith("demo-")
    assert run_profile("demo", limit=3) == first and run_profile("demo") == load_profile("demo")
    assert first.results == paths.RESULTS / first.name and first.figures == paths.FIGURES / first.name
    assert run_profile("demo", limit=3, name="three").name == "three"
    with pytest.raises(InputError, match="name 'demo' is a profile"):
        run_profile("demo", limit=3, name="demo")


def test_a_command_asks_for_a_run_as_it_can_be_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    assert load_profile("demo").options == "--profile demo"
    mine = run_profile("demo", limit=3, name="mine")
    assert mine.options == "with the same options"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "profile.yaml").write_text(yaml.safe_dump(mine.model_dump()))
    assert mine.options == f"--profile {tmp_path / 'mine' / 'profile.yaml'}"
    assert load_profile(mine.options.split()[1]) == mine


def test_an_overriding_dtype_is_that_of_answers_and_of_attention():
    narrow = run_profile("demo", dtype="bfloat16")
    assert (narrow.accuracy.dtype, narrow.attention.dtype) == ("bfloat16", "bfloat16")
    assert narrow.name != run_profile("demo", limit=3).name != "demo"
    with pytest.raises(InputError, match="dtype: must be 'auto'"):
        run_profile("demo", dtype="int8")


def test_an_overriding_model_is_drawn_by_its_first_heads_where_it_lacks_the_profiles(tiny_checkpoint):
    profile = run_profile("demo", model=str(tiny_checkpoint))
    check(profile)
    assert [heads(profile, figure) for figure in ("fig10", "fig11")] == [[(1, 1)], [(1, 1), (1, 2)]]
    assert "arm:layer=3" in profile.accuracy.arm_map.conditions
    assert "arm:layer=15" not in profile.accuracy.arm_map.conditions


@pytest.mark.parametrize(
    ("place", "change", "expected"),
    [
        ("attention.panels.fig10.0", {"head": 10}, "fig10: demo has heads 1 to 9, not 10"),
        ("attention", {"layers": 31}, "attention.layers: demo has layers 1 to 30, not 31"),
        ("accuracy", {"models": ["dmo"]}, "unknown model 'dmo'"),
        ("accuracy.arm_map", {"conditions": ["none", "arm:layer=31"]}, "arm:layer=31: the model has layers 1 to 30"),
        ("accuracy", {"problems": "math50"}, "unknown problems '.*math50' .did you mean math500"),
        ("attention", {"problems": "math50"}, "unknown problems '.*math50' .did you mean math500"),
    ],
)
def test_what_configs_and_files_tell_is_said_before_weights_are_read(folder, place, change, expected):
    (folder / "demo.yaml").write_text(yaml.safe_dump(changed(place, **change)))
    with pytest.raises(InputError, match=expected):
        check(load_profile("demo"))


def test_the_shipped_demo_can_run():
    check(load_profile("demo"))


def test_a_variation_is_the_accuracy_run_with_a_few_settings_of_its_own():
    accuracy = load_profile("demo").accuracy
    fillers = variation(accuracy, "fillers")
    assert "mless:10" in fillers.conditions and fillers.limit == 48 and fillers.fillers is None
    assert (fillers.max_new_tokens, fillers.elicit) == (accuracy.max_new_tokens, accuracy.elicit)
    assert variation(accuracy, "sampling").samples == 8


def test_a_limit_holds_for_variations_too_but_never_enlarges_them():
    assert override(load_profile("demo"), limit=5).accuracy.fillers.limit == 5
    assert override(load_profile("demo"), limit=500).accuracy.fillers.limit == 48
    assert override(load_profile("demo"), problems="math500").accuracy.fillers.limit == 48


def test_a_part_that_a_profile_lacks_is_named():
    with pytest.raises(InputError, match=r"this profile has no accuracy.sampling"):
        variation(load_profile("laptop").accuracy, "sampling")


def test_likelihoods_follow_a_model_and_a_limit_and_are_not_asked_for_of_other_problems():
    families = load_profile("families")
    changed = override(families, model="demo", limit=7, name="x").likelihood
    assert (changed.models, changed.limit) == (["demo"], 7)
    assert changed.conditions == families.likelihood.conditions
    assert override(families, problems="embedded", name="x").likelihood is None
