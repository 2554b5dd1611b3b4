"""Profiles load and fit their models; an error in a profile takes one line."""

import copy
import re
import types

import pytest
import yaml

from lib.grading.extraction import last_box
from lib.models.sources import known_models
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems
from reproduction import paths
from reproduction.measurement.measurement_run import Measurements
from reproduction.profiles import (
    Accuracy,
    check,
    check_accuracy,
    load_profile,
    overrides,
    preflight_checks,
    profile_names,
    profile_with_overrides,
)

SHIPPED = ("authors", "demo", "families", "laptop", "paper", "paper-all")
DEMO = yaml.safe_load((paths.PROFILES / "demo.yaml").read_text(encoding="utf-8"))
UNSOLVED = '{"unique_id": "1", "problem": "What is $3 + 4$?", "answer": "7"}'


@pytest.mark.parametrize("name", SHIPPED)
def test_shipped_profiles_load_and_their_models_exist(name):
    profile = load_profile(name)
    assert profile_names() == list(SHIPPED)
    assert set(profile.models) <= known_models().keys()
    assert [str(c) for c in profile.accuracy.conditions[:2]] == ["none", "mless"]
    assert profile.filler == Filler()
    shown = {example.problem for example in profile.accuracy.examples}
    assert not shown & {item.problem for item in load_problems("embedded")}


# A section of the demo profile, its changed fields, and the error message.
MISTAKES = """
accuracy | {max_new_token: 96}
accuracy.max_new_token: unknown field (did you mean max_new_tokens?)

accuracy | {format: plain}
accuracy: examples are turns of a chat: format must be chat

attention.panels | {fig12: []}
attention.panels.fig12: must be 'fig09', 'fig10', 'fig11', 'fig13'

accuracy | {conditions: [mless]}
accuracy: conditions must include 'none'

accuracy | {conditions: [none, gap]}
accuracy: gap: only likelihoods are measured under it

accuracy | {max_new_tokens: 0, elicit: false}
accuracy: max_new_tokens is 0, so nothing is answered: set elicit

| {pass_rates: {models: [demo], conditions: [none, gap]}}
pass_rates: conditions must include mless: importance weights need

accuracy.sampling | {temperature: 0}
accuracy.sampling: samples is 8 at temperature 0, where every sample is the same

| {likelihood: {models: [demo, demo]}}
likelihood.models: demo is given twice

accuracy | {levels: []}
accuracy.levels: must have at least 1 item

| {likelihood: {models: [org/m@a, org/m@b]}}
org/m@a and org/m@b are both called m in results: use a separate profile for each

| {likelihood: {models: [demo], conditions: [none, "arm:mode=code"]}}
likelihood.conditions (item 2): arm:mode=code: log-likelihoods require ARM's

| {pass_rates: {models: [demo], samples: 1}}
pass_rates.samples: must be greater than or equal to 2, not 1

| {pass_rates: {models: [demo], max_new_tokens: 99999}}
none: SmolLM2-135M-Instruct has room for 8192 tokens, not for

| {name: other}
name: must be 'demo' like the file, not 'other'

attention.panels.fig10.0 | {head: 10}
fig10: demo has heads 1 to 9, not 10

attention | {example: x/1}
example 'x/1' is none of the problems of embedded

accuracy.arm_map | {conditions: [none, "arm:layer=31"]}
arm:layer=31: the model has layers 1

| {likelihood: {models: [demo], problems: problems.jsonl}}
problems.jsonl: problem 1 has no solution, which likelihoods need of each
"""


@pytest.mark.parametrize("mistake", MISTAKES.strip().split("\n\n"))
def test_a_mistake_in_a_profile_is_reported_in_one_line(
    tmp_path, monkeypatch, refused, mistake
):
    changed, expected = mistake.splitlines()
    path, fields = changed.split("| ")
    content = section = copy.deepcopy(DEMO)
    for part in filter(None, path.strip().split(".")):
        section = section[int(part) if part.isdigit() else part]
    section |= yaml.safe_load(fields)

    monkeypatch.setattr(paths, "PROFILES", tmp_path)
    (tmp_path / "demo.yaml").write_text(yaml.safe_dump(content))
    (tmp_path / "problems.jsonl").write_text(UNSOLVED)
    message = refused(lambda: check(load_profile("demo")))
    message = message.removeprefix(f"{tmp_path}/").removeprefix("demo.yaml: ")
    assert message.startswith(expected)


def test_each_model_has_room_for_the_profiles_filler_and_answers(tiny_llama, refused):
    accuracy = Accuracy(models=["demo", str(tiny_llama)])
    message = refused(check_accuracy, accuracy, Filler())
    assert message.startswith("none: tiny-llama has room for 512 tokens")
    filler = Filler(length=9000)
    message = refused(check_accuracy, Accuracy(models=["demo"]), filler)
    assert message.startswith("mless: SmolLM2-135M-Instruct has room for 8192")


def test_answers_to_compute_are_checked_although_measurements_are_stored(refused):
    families = load_profile("families")
    accuracy = families.accuracy.model_copy(update={"problems": "missing.jsonl"})
    changed = families.model_copy(update={"accuracy": accuracy})
    check(changed)  # nothing is computed
    computing = changed.model_copy(update={"stored_only": False})
    assert Measurements(computing, "gemma-3-270m").uses_shipped
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(preflight_checks, "require_available", lambda models: None)
        patch.setattr(preflight_checks, "_check_attention", lambda attention: None)
        assert refused(check, computing).startswith("unknown problems 'missing.jsonl'")


def heads(profile):
    return {
        figure: [(panel.layer, panel.head) for panel in row]
        for figure, row in profile.attention.panels.items()
    }


def test_another_model_replaces_all_models_with_heads_and_layers_that_it_has(
    tiny_llama,
):
    run = profile_with_overrides("families", model="demo")
    assert run.models == ["demo"]
    of_demo = {"fig11": [(1, 9)], "fig18": [(1, 3), (1, 5), (1, 7)]}
    assert heads(run) == {"fig09": [], "fig10": [], "fig13": []} | of_demo

    of_three_layers = profile_with_overrides("demo", model=str(tiny_llama))
    check(of_three_layers)
    conditions = map(str, of_three_layers.accuracy.arm_map.conditions)
    layers = {name for name in conditions if "layer" in name}
    assert layers == {"arm:layer=2", "arm:layer=3"}


@pytest.mark.parametrize("known, layers", [(2, 2), (None, 3)])
def test_the_number_of_layers_is_limited_to_those_of_another_model(
    monkeypatch, known, layers
):
    source = types.SimpleNamespace(layers=known)
    monkeypatch.setattr(overrides, "source_with_config", lambda spec: source)
    assert profile_with_overrides("demo", model="org/name").attention.layers == layers


@pytest.mark.parametrize("limit, of_fillers", [(3, 3), (500, 48)])
def test_a_limit_lowers_the_problems_of_every_part_and_raises_only_main_sections(
    limit, of_fillers
):
    run = profile_with_overrides("demo", limit=limit)
    assert run.attention.limit == run.accuracy.limit == limit
    assert run.accuracy.fillers.limit == of_fillers
    assert run.accuracy.levels == [1, 2, 3]
    assert run.attention.example == "embedded/draw/159"
    families = profile_with_overrides("families", limit=limit)
    assert families.likelihood.limit == families.pass_rates.limit == limit
    # A smaller sample is part of the stored one.
    assert families.stored_only == (limit < load_profile("families").attention.limit)


def test_a_profile_with_overrides_has_another_name_and_other_folders():
    first = profile_with_overrides("demo", limit=3)
    assert first == profile_with_overrides("demo", limit=3)
    assert re.fullmatch("demo-[0-9a-f]{6}", first.name)
    assert profile_with_overrides("demo", limit=3, workers=2).name == first.name
    assert first.name not in {profile_with_overrides("demo", limit=4).name, "demo"}
    assert profile_with_overrides("demo") == load_profile("demo")
    assert profile_with_overrides("demo", limit=3, name="mine").name == "mine"
    assert first.results == paths.RESULTS / first.name
    assert first.figures == paths.FIGURES / first.name


README = (paths.ROOT / "README.md").read_text(encoding="utf-8")
# The profile and the problem of the README's example.
MINE = README.partition("```yaml\nname: mine")[2].partition("```")[0]
MINE = f"name: mine{MINE}".replace("org/name", "tiny-llama")
(PROBLEM,) = re.findall(r"(?m)^{\"unique_id.*}$", README)


@pytest.fixture
def mine(tmp_path, tiny_checkpoint):
    """The file of that profile, in a folder with its problem and its model."""
    (tmp_path / "mine.jsonl").write_text(PROBLEM)
    (tmp_path / "mine.yaml").write_text(MINE)
    return tmp_path / "mine.yaml"


def test_the_readmes_example_profile_runs_a_users_model_on_a_users_problems(
    mine, tiny_checkpoint, monkeypatch
):
    # Paths are relative to the profile's file, wherever a run or a notebook starts.
    monkeypatch.chdir("/")
    profile = load_profile(mine)
    check(profile)
    (problem,) = load_problems(profile.attention.problems)
    assert (problem.id, problem.answer) == ("1", "7")
    for section in (profile.attention, profile.accuracy):
        assert section.models == [str(tiny_checkpoint)]
        assert section.problems == str(mine.with_name("mine.jsonl"))
    # The scored solution ends with the answer, as the reference solutions do.
    assert last_box(problem.solution) == problem.answer


@pytest.mark.parametrize("name", ["demo", "../demo"])
def test_a_users_profile_is_read_back_but_not_under_a_shipped_name(mine, name, refused):
    profile = load_profile(mine)
    # A run writes the complete profile for its notebooks.
    mine.write_text(yaml.safe_dump(profile.model_dump()))
    assert load_profile(mine) == profile
    mine.write_text(MINE.replace("name: mine", f"name: {name}"))
    assert "name: " in refused(load_profile, mine)


def test_a_variation_inherits_the_accuracy_settings_that_it_does_not_change():
    accuracy = load_profile("demo").accuracy
    fillers = accuracy.variations["fillers"]
    assert "mless:10" in map(str, fillers.conditions)
    assert fillers.limit == 48
    assert fillers.variations == {}
    assert fillers.elicit == accuracy.elicit
    assert accuracy.variations["sampling"].samples == 8
    without = accuracy.fillers.model_copy(update={"limit": None})
    changed = accuracy.model_copy(update={"fillers": without})
    assert changed.variations["fillers"].limit == accuracy.limit
    # Answers without reasoning: no tokens are generated before the elicitation.
    direct = load_profile("families").accuracy.variations["direct"]
    assert direct.max_new_tokens == 0
    assert direct.elicit
