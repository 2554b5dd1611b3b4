"""Each option of a command changes its setting and nothing else.

A row of OPTIONS has a command, one option more than it needs, and the settings that
must differ. An option without a row fails.
"""

import inspect
import re
import shlex
import types
from pathlib import Path

import pandas as pd
import pytest
from pydantic import BaseModel

from lib.errors import InputError
from lib.prompts.conditions import Filler
from reproduction import run
from reproduction.__main__ import main
from reproduction.evaluation import answer_run, scored_texts
from reproduction.profiles import Profile, load_profile, profile_with_overrides

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
reproduce | --model org/m | name attention.models attention.panels accuracy.models LATER
reproduce | --limit 3 | name part_of attention.limit accuracy.limit PARTS
reproduce | --name mine | name part_of
reproduce | --dtype bfloat16 | name attention.dtype accuracy.dtype
reproduce | --engine vllm | name accuracy.engine
reproduce | --workers 2 | accuracy.workers
"""
DEMO_PARTS = load_profile("demo").accuracy.variations
SHORT = {
    "PARTS": " ".join(
        ["ablations.limit", *(f"accuracy.{part}.limit" for part in DEMO_PARTS)]
    ),
    "LATER": "ablations.models",
    "FILLER": " ".join(f"filler.{field}" for field in Filler.model_fields),
}
# The functions that the commands call with the typed settings.
RUNS = [
    (answer_run, "evaluate"),
    (scored_texts, "score_solutions"),
    (scored_texts, "score_drawn"),
    (run, "reproduce"),
]
# Options without a row: one of every command, and one that changes all settings.
ELSEWHERE = {command: {"--debug"} for command in COMMANDS}
ELSEWHERE["reproduce"].add("--profile")  # tests/test_command_line.py runs one

ROWS = []
for line in OPTIONS.strip().splitlines():
    _command, _typed, _fields = (cell.strip() for cell in line.split(" | "))
    for _name, _meaning in SHORT.items():
        _fields = _fields.replace(_name, _meaning)
    ROWS.append((_command, _typed, set(_fields.split())))


@pytest.fixture
def settings_of(monkeypatch):
    """A function that parses a command without running it, and returns the settings
    that it would run with, by dotted name.
    """
    settings = {}

    def keep(**values):
        for name, value in values.items():
            if isinstance(value, Profile):
                keep(**dict(value))
            elif isinstance(value, BaseModel):
                keep(**{f"{name}.{field}": inner for field, inner in value})
            else:
                settings[name] = value

    for module, name in RUNS:
        signature = inspect.signature(getattr(module, name))

        def take(*given, signature=signature):
            keep(**signature.bind(*given).arguments)

        monkeypatch.setattr(module, name, take)
    for function in (
        "reproduction.__main__.check",
        "reproduction.__main__.check_accuracy",
        "reproduction.evaluation.answer_tables.summarise",
        "reproduction.evaluation.pass_rate_tables.pass_rate_table",
        "reproduction.evaluation.likelihood_tables.nat_table",
        "reproduction.figures.notebook_tables.show",
    ):
        monkeypatch.setattr(function, lambda *given, **options: pd.DataFrame())
    monkeypatch.setattr(
        "reproduction.profiles.overrides.source_with_config",
        lambda spec: types.SimpleNamespace(layers=None),
    )

    def typed(command):
        settings.clear()
        assert main(shlex.split(command)) == 0
        return dict(settings)

    return typed


@pytest.mark.parametrize("command, typed, fields", ROWS)
def test_an_option_changes_exactly_its_settings(settings_of, command, typed, fields):
    before = settings_of(COMMANDS[command])
    after = settings_of(f"{COMMANDS[command]} {typed}")
    every = before.keys() | after.keys()
    missing = object()
    changed = {n for n in every if before.get(n, missing) != after.get(n, missing)}
    assert changed == fields


def test_the_typed_values_reach_the_settings(settings_of):
    typed = "--shard 2/8 --out ~/o --samples 2 --temperature 0.5"
    settings = settings_of(f"{COMMANDS['evaluate']} {typed}")
    assert (settings["shard"], settings["folder"]) == ((2, 8), Path.home() / "o")
    assert settings["accuracy.samples"] == 2
    assert settings["accuracy.temperature"] == 0.5


@pytest.mark.parametrize("command", COMMANDS)
def test_every_option_has_a_row(command, capsys):
    with pytest.raises(SystemExit):
        main([command, "--help"])
    options = re.findall(r"(?m)^  (--[\w-]+)", capsys.readouterr().out)
    with_rows = {typed.split()[0] for name, typed, _ in ROWS if name == command}
    assert set(options) == with_rows | ELSEWHERE[command]


def test_the_help_shows_every_default_and_that_a_run_has_one_model(capsys):
    with pytest.raises(SystemExit):
        main(["evaluate", "--help"])
    text = " ".join(capsys.readouterr().out.split())
    for option, default in (("seed", "0"), ("temperature", "0.0"), ("samples", "1")):
        of_option = text.split(f" --{option} {option.upper()} ")[1]
        assert re.search(r"\(default: (.*?)\)", of_option)[1] == default
    for option in ("elicit", "limit", "out"):
        assert "(default" not in text.split(f" --{option} ")[-1].split(" --")[0]
    assert " --model MODEL " in text


def test_plan_uses_the_profile_that_is_typed(monkeypatch, capsys):
    def receive(profile, *options):
        raise InputError(f"received {profile.name}")

    monkeypatch.setattr("reproduction.plan.tasks_of", receive)
    monkeypatch.setattr("reproduction.__main__.check", lambda profile: None)
    assert main(["plan", "--profile", "families", "--limit", "3"]) == 2
    name = profile_with_overrides("families", limit=3).name
    assert capsys.readouterr().err.endswith(f"error: received {name}\n")
