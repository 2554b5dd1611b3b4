"""Profiles load and fit their models; what is wrong with one is said in a line."""

import copy
import json
import re
import types

import pytest
import yaml

from lib import paths
from lib.errors import InputError
from lib.grading.answer import last_box
from lib.profiles import (
    check,
    load_profile,
    overrides,
    profile_names,
    run_profile,
    variation,
)
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems

SHIPPED = ("demo", "families", "laptop", "paper", "paper-all")
DEMO = yaml.safe_load((paths.PROFILES / "demo.yaml").read_text(encoding="utf-8"))
# The paper's panels: model, layer and head.
OF_THE_PAPER = {
    "fig09": [("Q", 1, 22), ("Q", 2, 22), ("Q", 3, 22)],
    "fig10": [("Q", 1, 14)],
    "fig11": [("Q", 1, 1), ("L", 1, 27), ("G", 1, 8)],
    "fig13": [("Q", 1, 1), ("Q", 1, 2), ("Q", 1, 8)],
    "fig18": [("L", 1, 20), ("L", 1, 25), ("L", 1, 26)],
}


def changed(place, **fields):
    """Return the demo profile's content with fields set in the section at the dotted
    `place`.
    """
    content = section = copy.deepcopy(DEMO)
    for part in place.split(".") if place else []:
        section = section[int(part) if part.isdigit() else part]
    section |= fields
    return content


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles_load_and_their_models_exist(name):
    profile = load_profile(name)
    models = (paths.DATA / "models.yaml").read_text(encoding="utf-8")
    known = set(yaml.safe_load(models))
    assert profile_names() == list(SHIPPED)
    assert {*profile.attention.models, *profile.accuracy.models} <= known
    assert [str(c) for c in profile.accuracy.conditions[:2]] == ["none", "mless"]
    assert profile.filler == Filler()
    shown = {example.problem for example in profile.accuracy.examples}
    assert not shown & {item.problem for item in load_problems("embedded")}


@pytest.mark.parametrize("name", ["laptop", "paper", "paper-all"])
def test_profiles_of_the_papers_models_draw_its_heads(name):
    panels = load_profile(name).attention.panels
    drawn = {
        figure: [(panel.model[:1], panel.layer, panel.head) for panel in row]
        for figure, row in panels.items()
    }
    assert drawn == OF_THE_PAPER


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
            changed("accuracy", max_new_tokens=0, elicit=False),
            "accuracy: max_new_tokens is 0: nothing is answered unless elicit asks",
        ),
        (
            changed("accuracy", conditions=["none", "gap"]),
            "accuracy: gap: only likelihoods are measured under it",
        ),
        (
            changed("", pass_rates={"models": ["demo"], "conditions": ["none", "gap"]}),
            "pass_rates: conditions must hold mless: weights need how likely an answer",
        ),
        (
            changed("", pass_rates={"models": ["demo"], "samples": 1}),
            "pass_rates.samples: must be greater than or equal to 2, not 1",
        ),
        (
            changed("", pass_rates={"models": ["demo"], "max_new_tokens": 99999}),
            "none: SmolLM2-135M-Instruct has room for 8192 tokens, not for",
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
        (
            changed("", likelihood={"models": ["demo"], "problems": "problems.jsonl"}),
            "problems.jsonl: problem 1 has no solution, which likelihoods need of each",
        ),
    ],
)
def test_a_mistake_is_said_in_one_line(tmp_path, monkeypatch, content, expected):
    monkeypatch.setattr(paths, "PROFILES", tmp_path)
    (tmp_path / "demo.yaml").write_text(yaml.safe_dump(content))
    unsolved = {"unique_id": "1", "problem": "What is $3 + 4$?", "answer": "7"}
    (tmp_path / "problems.jsonl").write_text(json.dumps(unsolved))
    with pytest.raises(InputError) as caught:
        check(load_profile("demo"))
    message = str(caught.value).removeprefix(f"{tmp_path}/demo.yaml: ")
    message = message.removeprefix(f"{tmp_path}/")
    assert message.startswith(expected)
    assert "\n" not in message


def heads(profile):
    return {
        figure: [(panel.layer, panel.head) for panel in row]
        for figure, row in profile.attention.panels.items()
    }


def test_another_model_is_run_everywhere_with_what_fits_it(tiny_llama):
    run = run_profile("families", model="demo")
    for section in (run.attention, *run.parts.values()):
        assert section.models == ["demo"]
    assert run.models == ["demo"]
    of_demo = {"fig11": [(1, 9)], "fig18": [(1, 3), (1, 5), (1, 7)]}
    assert heads(run) == {"fig09": [], "fig10": [], "fig13": []} | of_demo

    of_three_layers = run_profile("demo", model=str(tiny_llama))
    check(of_three_layers)
    conditions = map(str, of_three_layers.accuracy.arm_map.conditions)
    layers = {name for name in conditions if "layer" in name}
    assert layers == {"arm:layer=2", "arm:layer=3"}


def test_no_layer_is_asked_for_that_another_model_does_not_have(tiny_checkpoint):
    file = tiny_checkpoint / "config.json"
    config = json.loads(file.read_text()) | {"num_hidden_layers": 2}
    file.write_text(json.dumps(config))
    assert load_profile("demo").attention.layers == 3
    assert run_profile("demo", model=str(tiny_checkpoint)).attention.layers == 2


def test_a_model_that_does_not_say_its_layers_is_asked_for_all(monkeypatch):
    monkeypatch.setattr(
        overrides, "card", lambda spec: types.SimpleNamespace(layers=None)
    )
    assert run_profile("demo", model="org/name").attention.layers == 3


def test_a_model_that_is_known_here_asks_no_hub_for_its_layers(monkeypatch):
    def no_hub(spec):
        raise InputError(f"{spec}: cannot be fetched")

    monkeypatch.setattr(overrides, "card", no_hub)
    with pytest.raises(InputError):
        run_profile("laptop", model="org/name")
    run = run_profile("laptop", model="Qwen2.5-Math-7B")
    assert run.attention.models == ["Qwen2.5-Math-7B"]
    assert run.attention.layers == 3


@pytest.mark.parametrize("limit, of_fillers", [(3, 3), (500, 48)])
def test_fewer_problems_go_everywhere_and_more_to_no_part(limit, of_fillers):
    run = run_profile("demo", limit=limit)
    assert run.attention.limit == run.accuracy.limit == limit
    assert run.accuracy.fillers.limit == of_fillers
    assert run.accuracy.levels == [1, 2, 3]
    assert run.attention.example == "embedded/draw/159"
    families = run_profile("families", limit=limit)
    assert families.likelihood.limit == families.pass_rates.limit == limit
    # What is stored is of all problems: a run that differs has nothing of it.
    assert not families.stored


def test_another_dtype_is_not_that_of_likelihoods_and_pass_rates():
    base = load_profile("families")
    run = run_profile("families", dtype="bfloat16")
    assert run.attention == base.attention.model_copy(update={"dtype": "bfloat16"})
    assert run.accuracy == base.accuracy.model_copy(update={"dtype": "bfloat16"})
    assert run.likelihood == base.likelihood
    assert run.pass_rates == base.pass_rates
    assert run.likelihood.dtype == run.pass_rates.dtype == "float32"


def test_an_override_has_a_name_and_folders_of_its_own():
    first = run_profile("demo", limit=3)
    assert first == run_profile("demo", limit=3)
    assert re.fullmatch("demo-[0-9a-f]{6}", first.name)
    assert run_profile("demo", limit=3, workers=2).name == first.name
    assert first.name not in {run_profile("demo", limit=4).name, "demo"}
    assert run_profile("demo") == load_profile("demo")
    assert run_profile("demo", limit=3, name="mine").name == "mine"
    assert first.results == paths.RESULTS / first.name
    assert first.figures == paths.FIGURES / first.name


README = (paths.ROOT / "README.md").read_text(encoding="utf-8")
# The profile and the problem that the README gives as an example.
MINE = README.partition("```yaml\nname: mine")[2].partition("```")[0]
MINE = f"name: mine{MINE}".replace("org/name", "tiny-llama")
(PROBLEM,) = re.findall(r"(?m)^`({\"unique_id.*})`", README)


def test_the_readmes_example_runs_a_model_on_problems_of_ones_own(
    tmp_path, tiny_checkpoint, monkeypatch
):
    (tmp_path / "mine.jsonl").write_text(PROBLEM)
    mine = tmp_path / "mine.yaml"
    mine.write_text(MINE)
    # Paths are the file's, wherever a run or a notebook starts.
    monkeypatch.chdir("/")
    profile = load_profile(mine)
    check(profile)
    (problem,) = load_problems(profile.attention.problems)
    assert (problem.id, problem.answer) == ("1", "7")
    for section in (profile.attention, profile.accuracy, profile.likelihood):
        assert section.models == [str(tiny_checkpoint)]
        assert section.problems == str(mine.with_name("mine.jsonl"))
    # What the likelihoods score ends in the answer, as the gold solutions do.
    assert last_box(problem.solution) == problem.answer


def test_a_profile_of_ones_own_is_read_again_but_not_under_a_shipped_name(
    tmp_path, tiny_checkpoint
):
    mine = tmp_path / "mine.yaml"
    mine.write_text(MINE)
    profile = load_profile(mine)
    # As a run hands it to its notebooks.
    mine.write_text(yaml.safe_dump(profile.model_dump()))
    assert load_profile(mine) == profile
    for name in ("demo", "../demo"):
        mine.write_text(MINE.replace("name: mine", f"name: {name}"))
        with pytest.raises(InputError, match="name: "):
            load_profile(mine)


def test_a_command_asks_for_a_run_as_it_can_be_asked_for_again(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    mine = run_profile("demo", limit=3, name="mine")
    assert load_profile("demo").options == "--profile demo"
    assert mine.options == "with the same options"
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "profile.yaml").write_text(yaml.safe_dump(mine.model_dump()))
    assert load_profile(mine.options.removeprefix("--profile ")) == mine


def test_a_variation_is_the_accuracy_run_with_a_few_settings_of_its_own():
    accuracy = load_profile("demo").accuracy
    fillers = variation(accuracy, "fillers")
    assert "mless:10" in map(str, fillers.conditions)
    assert fillers.limit == 48
    assert fillers.variations == {}
    assert fillers.max_new_tokens == accuracy.max_new_tokens
    assert fillers.elicit == accuracy.elicit
    assert variation(accuracy, "sampling").samples == 8
    with pytest.raises(InputError, match=r"this profile has no accuracy.sampling"):
        variation(load_profile("laptop").accuracy, "sampling")
