"""Shipped profiles load and fit their models; whatever is wrong with a profile is said
in a line.
"""

import copy
import json

import pytest
import yaml

from lib import paths
from lib.errors import InputError
from lib.profiles import check, load_profile, profile_names, run_profile, variation
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems

NAMES = ("demo", "families", "laptop", "paper")
DEMO = yaml.safe_load((paths.PROFILES / "demo.yaml").read_text(encoding="utf-8"))
# The paper's panels: model, layer and head.
PAPERS = {"fig09": [("Q", 1, 22), ("Q", 2, 22), ("Q", 3, 22)], "fig10": [("Q", 1, 14)]}
PAPERS |= {
    "fig11": [("Q", 1, 1), ("L", 1, 27), ("G", 1, 8)],
    "fig13": [("Q", 1, 1), ("Q", 1, 2), ("Q", 1, 8)],
}
PAPERS |= {"fig18": [("L", 1, 20), ("L", 1, 25), ("L", 1, 26)]}


def changed(place, **fields):
    """Return the demo profile's content with fields set in the section at the dotted
    `place`.
    """
    content = section = copy.deepcopy(DEMO)
    for part in place.split(".") if place else []:
        section = section[int(part) if part.isdigit() else part]
    section |= fields
    return content


@pytest.mark.parametrize("name", NAMES)
def test_shipped_profiles_load_their_models_exist_and_those_for_the_paper_draw_its_heads(
    name,
):
    profile = load_profile(name)
    known = set(
        yaml.safe_load((paths.DATA / "models.yaml").read_text(encoding="utf-8"))
    )
    assert (
        profile_names() == list(NAMES)
        and {*profile.attention.models, *profile.accuracy.models} <= known
    )
    assert [*map(str, profile.accuracy.conditions[:2])] == [
        "none",
        "mless",
    ] and profile.filler == Filler()
    shown = {example.problem for example in profile.accuracy.examples}
    assert not shown & {item.problem for item in load_problems("embedded")}
    panels = {
        figure: [(p.model[:1], p.layer, p.head) for p in row]
        for figure, row in profile.attention.panels.items()
    }
    assert panels == PAPERS or name in ("demo", "families")


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (
            changed("accuracy", max_new_token=96),
            "accuracy.max_new_token: unknown field (did you mean max_new_tokens?)",
        ),
        (
            changed("accuracy", format="plain"),
            "accuracy: examples are turns of a chat: format must be chat",
        ),
        (
            changed("attention.panels", fig12=[]),
            "attention.panels.fig12: must be 'fig09', 'fig10', 'fig11', 'fig13'",
        ),
        (
            changed("accuracy", samples="3", limit=0),
            "accuracy.limit: must be greater than 0, not 0; accuracy.samples:",
        ),
        (
            changed("accuracy", conditions=["mless"]),
            "accuracy: conditions must hold 'none'",
        ),
        (
            changed("accuracy", conditions=["none", "mles"]),
            "accuracy.conditions.1: unknown condition 'mles' (did you",
        ),
        (
            changed("accuracy", conditions=["none", "gap"]),
            "accuracy: gap: only likelihoods are measured under it",
        ),
        (changed("", name="other"), "name: must be 'demo' like the file, not 'other'"),
        # What configs and files tell is said before weights are read.
        (
            changed("attention.panels.fig10.0", head=10),
            "fig10: demo has heads 1 to 9, not 10",
        ),
        (
            changed("attention", layers=31),
            "attention.layers: demo has layers 1 to 30, not 31",
        ),
        (
            changed("attention", example="x/1"),
            "example 'x/1' is none of the problems of embedded",
        ),
        (
            changed("accuracy.arm_map", conditions=["none", "arm:layer=31"]),
            "arm:layer=31: the model has layers 1",
        ),
    ],
)
def test_a_mistake_is_said_in_one_line(tmp_path, monkeypatch, content, expected):
    monkeypatch.setattr(paths, "PROFILES", tmp_path)
    (tmp_path / "demo.yaml").write_text(yaml.safe_dump(content))
    with pytest.raises(InputError) as caught:
        check(load_profile("demo"))
    said = str(caught.value).removeprefix(f"{tmp_path}/demo.yaml: ")
    assert said.startswith(expected) and "\n" not in said


def test_an_override_replaces_everywhere_and_keeps_what_fits_the_model(
    tmp_path, monkeypatch, tiny_llama
):
    (tmp_path / "mine.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    other = run_profile(
        "families",
        model="demo",
        problems="mine.jsonl",
        limit=7,
        name="x",
        dtype="bfloat16",
    )
    drawn = {
        figure: [(p.layer, p.head) for p in row]
        for figure, row in other.attention.panels.items()
    }
    assert drawn == {
        "fig09": [],
        "fig10": [],
        "fig11": [(1, 9)],
        "fig13": [],
        "fig18": [(1, 3), (1, 5), (1, 7)],
    }
    for part in (other.attention, other.accuracy):
        found = part.models, part.problems, part.limit, part.dtype
        assert found == (["demo"], str(tmp_path / "mine.jsonl"), 7, "bfloat16")
    assert other.likelihood is None  # of other problems no solutions are known
    scored, stored = (
        run_profile("families", model="demo", limit=7).likelihood,
        load_profile("families").likelihood,
    )
    assert scored == stored.model_copy(update={"models": ["demo"], "limit": 7})
    check(of_three_layers := run_profile("demo", model=str(tiny_llama)))
    asked = [*map(str, of_three_layers.accuracy.arm_map.conditions)]
    assert "arm:layer=3" in asked and "arm:layer=15" not in asked


@pytest.mark.parametrize(
    "limit, limits", [(None, (None, None, 48)), (3, (3, 3, 3)), (500, (500, 500, 48))]
)
def test_an_override_changes_limits_and_other_problems_have_other_levels_and_none_that_is_drawn(
    limit, limits
):
    profile = run_profile("demo", limit=limit, problems=None if limit else "math500")
    assert (
        profile.attention.limit,
        profile.accuracy.limit,
        profile.accuracy.fillers.limit,
    ) == limits
    of_problems = profile.accuracy.levels, profile.attention.example
    assert of_problems == (([1, 2, 3], "embedded/draw/159") if limit else (None, None))


def test_an_override_has_a_name_and_folders_of_its_own():
    first, again, *others = (
        run_profile("demo", **one)
        for one in ({"limit": 3}, {"limit": 3}, {"limit": 4}, {})
    )
    assert (
        first == again
        and first.name.startswith("demo-")
        and first.name not in {one.name for one in others}
    )
    assert (first.results, first.figures) == (
        paths.RESULTS / first.name,
        paths.FIGURES / first.name,
    )


def test_a_dozen_lines_run_a_model_on_problems_of_ones_own(
    tmp_path, tiny_checkpoint, monkeypatch
):
    section = "  models: [tiny-llama]\n  problems: mine.jsonl\n  limit: 2\n"
    lines = (
        f"name: mine\ndescription: x\nattention:\n{section}accuracy:\n{section} "
        " max_new_tokens: 4\n"
    )
    (tmp_path / "mine.jsonl").write_text(
        json.dumps({"problem": "$1+1$?", "answer": "2", "unique_id": "p"})
    )
    (mine := tmp_path / "mine.yaml").write_text(lines)
    monkeypatch.chdir("/")  # paths are the file's, wherever a run or a notebook starts
    check(profile := load_profile(mine))
    assert profile.attention.models == profile.accuracy.models == [str(tiny_checkpoint)]
    assert profile.attention.problems == str(mine.with_name("mine.jsonl"))
    mine.write_text(yaml.safe_dump(profile.model_dump()))
    assert load_profile(mine) == profile  # as a run hands it to its notebooks
    for name in ("demo", "../demo"):
        mine.write_text(lines.replace("name: mine", f"name: {name}"))
        with pytest.raises(InputError, match="name: "):
            load_profile(mine)


def test_a_command_asks_for_a_run_as_it_can_be_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    mine = run_profile("demo", limit=3, name="mine")
    assert (load_profile("demo").options, mine.options) == (
        "--profile demo",
        "with the same options",
    )
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "profile.yaml").write_text(yaml.safe_dump(mine.model_dump()))
    assert load_profile(mine.options.removeprefix("--profile ")) == mine


def test_a_variation_is_the_accuracy_run_with_a_few_settings_of_its_own():
    accuracy = load_profile("demo").accuracy
    fillers = variation(accuracy, "fillers")
    assert (
        "mless:10" in map(str, fillers.conditions)
        and fillers.limit == 48
        and fillers.fillers is None
    )
    assert (fillers.max_new_tokens, fillers.elicit) == (
        accuracy.max_new_tokens,
        accuracy.elicit,
    )
    assert variation(accuracy, "sampling").samples == 8
    with pytest.raises(InputError, match=r"this profile has no accuracy.sampling"):
        variation(load_profile("laptop").accuracy, "sampling")
