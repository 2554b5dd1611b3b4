"""Each option of a command reaches the setting it stands for.

A row of OPTIONS types one option more than the command needs, and names the places
where what runs then differs, and in nothing else. An option without a row fails.
"""

import argparse
import shlex
import types
from pathlib import Path

import pandas as pd
import pytest
import yaml
from pydantic import BaseModel

from lib import reproduce
from lib.__main__ import main, parser
from lib.errors import InputError
from lib.evaluation import likelihood, run
from lib.profiles import Overrides, load_profile, run_profile
from lib.prompts.conditions import Filler

COMMANDS = {
    "evaluate": "evaluate --model demo --out o",
    "likelihood": "likelihood --model demo --out o",
    "reproduce": "reproduce",
}
OPTIONS = """
evaluate | --model families-of-none.gguf | accuracy.models
evaluate | --out p | folder
evaluate | --seed 1 | seed
evaluate | --shard 2/8 | shard
evaluate | --problems math500 | accuracy.problems
evaluate | --limit 3 | accuracy.limit
evaluate | --format plain | accuracy.format
evaluate | --dtype bfloat16 | accuracy.dtype
evaluate | --conditions none,mless:25 | accuracy.conditions
evaluate | --temperature 0.5 | accuracy.temperature
evaluate | --top-p 0.5 | accuracy.top_p
evaluate | --samples 2 --temperature 0.5 | accuracy.samples accuracy.temperature
evaluate | --max-new-tokens 7 | accuracy.max_new_tokens
evaluate | --elicit | accuracy.elicit
evaluate | --elicit-tokens 7 | accuracy.elicit_tokens
evaluate | --batch-size 7 | accuracy.batch_size
evaluate | --engine vllm | accuracy.engine
evaluate | --workers 2 | accuracy.workers
evaluate | --gpus-per-worker 2 | accuracy.gpus_per_worker
likelihood | --model families-of-none.gguf | likelihood.models
likelihood | --out p | folder
likelihood | --seed 1 | seed
likelihood | --answers a | answers seed FILLER
likelihood | --problems math500 | likelihood.problems
likelihood | --limit 3 | likelihood.limit
likelihood | --format plain | likelihood.format
likelihood | --dtype bfloat16 | likelihood.dtype
likelihood | --conditions none,gap | likelihood.conditions
likelihood | --at-once none,mless | likelihood.at_once
likelihood | --max-solution-tokens 7 | likelihood.max_solution_tokens
reproduce | --only 1,02 | notebooks
reproduce | --fresh | fresh
reproduce | --model org/m | name attention.models attention.panels accuracy.models
reproduce | --limit 3 | name attention.limit accuracy.limit PARTS
reproduce | --name mine | name
reproduce | --dtype bfloat16 | name attention.dtype accuracy.dtype
reproduce | --engine vllm | name accuracy.engine
reproduce | --workers 2 | accuracy.workers
"""
DEMO_PARTS = load_profile("demo").accuracy.variations
SHORT = {
    "PARTS": " ".join(f"accuracy.{part}.limit" for part in DEMO_PARTS),
    "FILLER": " ".join(f"filler.{field}" for field in Filler.model_fields),
}
# A profile changes everything: tests/test_command_line.py runs one.
ELSEWHERE = {("reproduce", "--profile")}

ROWS = []
for line in OPTIONS.strip().splitlines():
    _command, _typed, _places = (cell.strip() for cell in line.split(" | "))
    for _name, _meaning in SHORT.items():
        _places = _places.replace(_name, _meaning)
    ROWS.append((_command, _typed, set(_places.split())))


@pytest.fixture
def settings_of(monkeypatch):
    """Type a command of which nothing runs; return what it would run, by place."""
    settings = {}

    def keep(**values):
        for name, value in values.items():
            if isinstance(value, BaseModel):
                keep(**{f"{name}.{field}": inner for field, inner in value})
            else:
                settings[name] = value

    def evaluate(accuracy, filler, seed, folder, shard):
        keep(accuracy=accuracy, filler=filler, seed=seed)
        keep(folder=folder, shard=shard)

    def likelihoods(likelihood, filler, seed, folder):
        keep(likelihood=likelihood, filler=filler, seed=seed, folder=folder)

    def score_draws(likelihood, answers, folder):
        keep(likelihood=likelihood, answers=answers, folder=folder)

    def reproduce_profile(profile, notebooks, fresh):
        keep(**dict(profile), notebooks=notebooks, fresh=fresh)

    monkeypatch.setattr(run, "evaluate", evaluate)
    monkeypatch.setattr(likelihood, "likelihoods", likelihoods)
    monkeypatch.setattr(likelihood, "score_draws", score_draws)
    monkeypatch.setattr(reproduce, "reproduce", reproduce_profile)
    for place in (
        "lib.__main__.check",
        "lib.__main__.check_accuracy",
        "lib.evaluation.answer_tables.summarise",
        "lib.evaluation.pass_rates.pass_rate_table",
        "lib.evaluation.answer_tables.nat_table",
        "lib.figures.tables.show",
    ):
        monkeypatch.setattr(place, lambda *given, **options: pd.DataFrame())
    monkeypatch.setattr(
        "lib.profiles.overrides.card", lambda spec: types.SimpleNamespace(layers=None)
    )

    def typed(command):
        settings.clear()
        assert main(shlex.split(command)) == 0
        return dict(settings)

    return typed


@pytest.mark.parametrize("command, typed, places", ROWS)
def test_an_option_changes_the_setting_that_it_stands_for(
    settings_of, command, typed, places
):
    before = settings_of(COMMANDS[command])
    after = settings_of(f"{COMMANDS[command]} {typed}")
    every = before.keys() | after.keys()
    missing = object()
    changed = {n for n in every if before.get(n, missing) != after.get(n, missing)}
    assert changed == places


def test_what_is_typed_is_the_value_that_arrives(settings_of):
    typed = "--shard 2/8 --out ~/o --samples 2"
    settings = settings_of(f"{COMMANDS['evaluate']} {typed} --temperature 0.5")
    assert settings["shard"] == (2, 8)
    assert settings["folder"] == Path.home() / "o"
    assert settings["accuracy.samples"] == 2
    assert settings["accuracy.temperature"] == 0.5


def test_every_option_has_a_row():
    with_rows = set(ELSEWHERE)
    for command, typed, _ in ROWS:
        options = [word for word in typed.split() if word.startswith("--")]
        with_rows.add((command, options[0]))
    (commands,) = [
        action
        for action in parser()._actions
        if isinstance(action, argparse._SubParsersAction)
    ]
    for command in COMMANDS:
        for action in commands.choices[command]._actions:
            name = action.option_strings[-1]
            if name not in ("--help", "--debug"):
                assert (command, name) in with_rows


# The other commands that take a profile, and what each of them hands it to first.
RECEIVERS = """
plan : lib.plan.make_plan
fetch : lib.plan.make_plan
claims : lib.claims.judging.gather
report : lib.claims.judging.gather
"""
# A value of each override that is not its default.
OVERRIDES = """
profile: families
model: gemma-3-270m
limit: 3
name: mine
dtype: bfloat16
engine: vllm
workers: 2
"""


@pytest.mark.parametrize("line", RECEIVERS.strip().splitlines())
def test_each_command_hands_on_the_profile_that_is_typed(monkeypatch, tmp_path, line):
    command, place = line.split(" : ")
    # A report judges only what results/ lacks, which may be full here.
    monkeypatch.setattr("lib.paths.RESULTS", tmp_path)
    handed_on = []

    def receive(profile, **options):
        handed_on.append(profile)
        raise InputError("that is all")

    monkeypatch.setattr(place, receive)
    monkeypatch.setattr("lib.__main__.check", lambda profile: None)
    silent = types.SimpleNamespace(layers=None)
    monkeypatch.setattr("lib.profiles.overrides.card", lambda spec: silent)
    changes = yaml.safe_load(OVERRIDES)
    assert changes.keys() == Overrides.model_fields.keys()
    for name, value in changes.items():
        assert main([command, f"--{name}", str(value)]) == 2
        changed = {"profile": "demo"} | {name: value}
        assert handed_on.pop() == run_profile(**changed)
