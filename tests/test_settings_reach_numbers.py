"""Each setting changes the numbers that depend on it, and no others.

One setting after the other is changed to a value that is not its default. A row of
CHANGES names the results that must change: `measured` numbers, `answers`, answers of
the variation `sampling`, `scores`, `draws` with their weights. All other results must
stay the same, and a setting without a row fails. Numbers are stored under keys, here
called their identity. The identity must change whenever the numbers do, so that no run
reuses the numbers of another setting. `(answers)` means that the identity changes
although the numbers need not, and `=answers` that the numbers are computed again and
must be the same.
"""

import functools
import inspect
import json
import shutil
from typing import get_args, get_origin

import pandas as pd
import pytest
import torch
import yaml
from safetensors.torch import load_file, save_file

from lib.errors import Settings
from lib.models.loading import load_without_weights
from reproduction import evaluation, paths
from reproduction.evaluation import scored_texts
from reproduction.measurement.measurement_run import Measurements, measure
from reproduction.profiles import Profile, load_profile
from reproduction.row_keys import answers_wanted, scores_wanted, wanted_rows

MINE = """
name: mine
description: every section and every filler, on a network of a megabyte
attention:
  models: [tiny-llama]
  problems: mine.jsonl
  limit: 3
  layers: 2
  map_problems: 2
  example: p1
accuracy:
  models: [tiny-llama]
  problems: mine.jsonl
  limit: 3
  conditions: [none, mless, mful, random, question, letters, arm]
  temperature: 1.0
  max_new_tokens: 6
  elicit: true
  elicit_tokens: 3
  sampling:
    conditions: [none]
    limit: 2
    temperature: 1.0
    samples: 2
likelihood:
  models: [tiny-llama]
  problems: mine.jsonl
  limit: 3
  conditions: [none, mless, mful, random, question, letters]
pass_rates:
  models: [tiny-llama]
  problems: mine.jsonl
  limit: 2
  temperature: 1.0
  max_new_tokens: 6
"""
PROBLEMS = [
    ("What is $1 + 1$?", "Adding gives $\\boxed{2}$.", "2", 1),
    ("What is $7 - 3$?", "What is left is $\\boxed{4}$.", "4", 1),
    ("Compute $3 \\times 5$.", "Five threes are $\\boxed{15}$.", "15", 2),
    ("Find $10 \\div 2$.", "Half of ten is $\\boxed{5}$.", "5", 2),
]
# A setting by its dotted name, another value, and the results that change with it.
CHANGES = """
name | other |
description | other |
seed | 1 | measured answers sampling scores draws
filler.length | 7 | measured answers scores draws
filler.position | end | measured answers scores draws
filler.mless | "!" | measured answers scores draws
filler.mful | well | measured answers scores
filler.random | Rain fell all day | measured answers scores
filler.question | "!?" | answers scores (measured)
filler.letters | a b c d e f | answers scores (measured)
attention.models | other-llama | measured
attention.problems | other.jsonl | measured
attention.limit | 2 | measured
attention.format | chat | measured
attention.dtype | bfloat16 | measured
attention.layers | 1 | measured
attention.map_problems | 1 | measured
attention.example | p3 | measured
attention.panels | {fig10: [{model: tiny-llama, layer: 1, head: 2}]} |
accuracy.models | other-llama | answers sampling
accuracy.problems | other.jsonl | answers sampling
accuracy.limit | 2 | answers
accuracy.format | plain | answers sampling
accuracy.dtype | bfloat16 | answers sampling
accuracy.levels | [2] | answers sampling
accuracy.examples | [{problem: "2 + 2?", solution: "$\\\\boxed{4}$"}] | answers sampling
accuracy.conditions | [none, mless, arm] | answers
accuracy.max_new_tokens | 3 | answers sampling
accuracy.elicit | false | answers sampling
accuracy.elicit_tokens | 2 | answers sampling
accuracy.temperature | 3.0 | answers
accuracy.top_p | 0.2 | answers
accuracy.samples | 2 | answers
accuracy.batch_size | 2 | =answers
accuracy.engine | vllm | (answers) (sampling)
accuracy.workers | 2 |
accuracy.gpus_per_worker | 1 |
accuracy.fillers | {conditions: [none, mless]} |
accuracy.interventions | {conditions: [none, arm]} |
accuracy.arm_map | {conditions: [none, arm]} |
accuracy.comparisons | {conditions: [none, example]} |
accuracy.direct | {conditions: [none, mless], models: [other-llama]} |
accuracy.sampling.limit | 1 | sampling
accuracy.sampling.conditions | [none, mless] | sampling
accuracy.sampling.temperature | 3.0 | sampling
accuracy.sampling.top_p | 0.2 | sampling
accuracy.sampling.samples | 3 | sampling
likelihood.models | other-llama | scores
likelihood.problems | other.jsonl | scores
likelihood.limit | 2 | scores
likelihood.format | plain | scores
likelihood.dtype | bfloat16 | scores
likelihood.conditions | [none, gap] | scores
likelihood.at_once | [none] | scores
likelihood.max_solution_tokens | 9 | scores
ablations | {models: [tiny-llama], problems: mine.jsonl} |
pass_rates.models | other-llama | draws
pass_rates.problems | other.jsonl | draws
pass_rates.limit | 1 | draws
pass_rates.format | plain | draws
pass_rates.dtype | bfloat16 | draws
pass_rates.conditions | [none, mless, gap] | draws
pass_rates.samples | 3 | draws
pass_rates.temperature | 3.0 | draws
pass_rates.max_new_tokens | 3 | draws
pass_rates.batch_size | 2 | =draws
"""
# Sections with the same settings as accuracy.sampling, or as likelihood.
OTHER_VARIATIONS = (
    *("fillers", "interventions", "arm_map", "comparisons", "direct"),
    "ablations",
)
# part_of is set by overrides; stored_only says whether anything is computed.
NO_SETTINGS = ("part_of", "stored_only")

ROWS = []
for line in CHANGES.strip().splitlines():
    _setting, _value, _changed = (cell.strip() for cell in line.split("|"))
    ROWS.append((_setting, yaml.safe_load(_value), _changed.split()))


@pytest.fixture(scope="module")
def folder(tmp_path_factory, tiny_llama):
    """A folder with the profile MINE, which has every section, and its files."""
    folder = tmp_path_factory.mktemp("mine")
    shutil.copytree(tiny_llama, folder / "tiny-llama")
    other = shutil.copytree(tiny_llama, folder / "other-llama")
    alter_weights(other)
    for name, problems in (("mine", PROBLEMS), ("other", PROBLEMS[::-1])):
        lines = []
        for number, (problem, solution, answer, level) in enumerate(problems):
            row = {"problem": problem, "solution": solution, "answer": answer}
            row |= {"level": level, "unique_id": f"p{number}"}
            lines.append(json.dumps(row) + "\n")
        (folder / f"{name}.jsonl").write_text("".join(lines))
    (folder / "mine.yaml").write_text(MINE)
    return folder


def alter_weights(checkpoint):
    """Shift the weights within each tensor of a checkpoint by one element."""
    file = checkpoint / "model.safetensors"
    weights = load_file(file)
    rolled = {name: weights[name].roll(1).contiguous() for name in weights}
    save_file(rolled, file, {"format": "pt"})


def with_change(folder, setting, value):
    """Return the profile with another value of a setting, given by its dotted name."""
    content = yaml.safe_load(MINE)
    *sections, name = setting.split(".")
    section = content
    for part in sections:
        section = section.setdefault(part, {})
    section[name] = [value] if name == "models" else value
    file = folder / "changed.yaml"
    file.write_text(yaml.safe_dump(content))
    return load_profile(file)


def identity(profile):
    """Return the settings and keys under which the numbers of each section are
    stored.
    """
    spec = profile.attention.models[0]
    model = unloaded(spec, profile.attention.dtype)
    settings = Measurements(profile, spec).settings
    measured = settings, model.revision, model.dtype
    return {
        "measured": measured,
        "answers": identity_of_answers(profile, profile.accuracy),
        "sampling": identity_of_answers(
            profile, profile.accuracy.variations["sampling"]
        ),
        "scores": identity_of_scores(profile),
        "draws": identity_of_draws(profile, profile.pass_rates),
    }


@functools.cache
def unloaded(spec, dtype):
    return load_without_weights(spec, "cpu", dtype, fetch=False)


def identity_of_answers(profile, accuracy):
    settings = accuracy, profile.filler, profile.seed
    wanted_of = functools.partial(answers_wanted, *settings)
    return keys_of(accuracy, wanted_of)


def identity_of_scores(profile):
    section = profile.likelihood
    settings = section, profile.filler, profile.seed
    wanted_of = functools.partial(scores_wanted, *settings)
    # Rows of longer solutions are left out.
    return keys_of(section, wanted_of), section.max_solution_tokens


def keys_of(section, wanted_of):
    return list(wanted_rows(section.models[0], section, wanted_of, {}).by_key)


def identity_of_draws(profile, rates):
    # The key of a score depends on its condition, so the conditions are enough.
    drawn = identity_of_answers(profile, rates.drawing_settings)
    return drawn, [str(condition) for condition in rates.conditions]


def numbers(profile, section, results):
    """Return the numbers of a section, computed in an empty folder."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", results)
        if section == "measured":
            parts = measure(profile, "tokens", "attention", "activations")
            (measured,) = parts.values()
            return measured.drop_vars("part")
        if section == "scores":
            scores = evaluation.scores(profile)
            return scores[["problem_id", "condition", "target", "nats"]]
        if section == "draws":
            # A random model gives only wrong answers, which would not be scored.
            patch.setattr(
                scored_texts,
                "is_mixed",
                lambda rows: pd.Series(True, rows.index),
            )
            return evaluation.draws(profile)
        part = "main" if section == "answers" else section
        answers = evaluation.answers(profile, part)
        return answers[["problem_id", "condition", "sample", "response"]]


@pytest.fixture(scope="module")
def base(folder, tmp_path_factory):
    """The profile, its identity, and its numbers by section."""
    profile = load_profile(folder / "mine.yaml")
    before = {}
    for section in ("measured", "answers", "sampling", "scores", "draws"):
        before[section] = numbers(profile, section, tmp_path_factory.mktemp(section))
    return identity(profile), before


def test_every_setting_has_a_row():
    settings = {setting for setting, _, _ in ROWS}
    assert set(settings_below(Profile)) == settings


def settings_below(model, prefix=""):
    """Yield the dotted name of each setting; one variation stands for all."""
    for name, field in model.model_fields.items():
        if name in NO_SETTINGS:
            continue
        section = section_of(field.annotation)
        if section and name not in OTHER_VARIATIONS:
            yield from settings_below(section, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}"


def section_of(annotation):
    """Return the class of a field that is a section with settings, else None."""
    if get_origin(annotation) is list:
        return None
    kinds = get_args(annotation) or (annotation,)
    sections = [
        kind for kind in kinds if inspect.isclass(kind) and issubclass(kind, Settings)
    ]
    return sections[0] if sections else None


@functools.cache
def attends_in_bfloat16():
    """Return whether torch can compute the attention of a longer prompt in bfloat16.

    It fails if a processor has AMX and ATEN_CPU_CAPABILITY is "default".
    """
    query = torch.ones(1, 1, 64, 8, dtype=torch.bfloat16)
    try:
        torch.nn.functional.scaled_dot_product_attention(query, query, query)
    except RuntimeError:
        return False
    return True


@pytest.mark.parametrize("setting, value, changed", ROWS, ids=[row[0] for row in ROWS])
def test_a_setting_changes_its_numbers_and_no_others(
    base, folder, tmp_path, setting, value, changed
):
    if value == "bfloat16" and not attends_in_bfloat16():
        pytest.skip("torch itself fails in bfloat16 with this ATEN_CPU_CAPABILITY")
    old_identity, before = base
    profile = with_change(folder, setting, value)
    now = identity(profile)
    others = {name for name in now if now[name] != old_identity[name]}
    computed_again = {name.strip("=") for name in changed if name.startswith("=")}
    cautious = {name.strip("()") for name in changed if name.startswith("(")}
    different = {name for name in changed if name.isalpha()}
    assert others == different | cautious
    for section in different | computed_again:
        same = numbers(profile, section, tmp_path).equals(before[section])
        assert same is (section in computed_again), section
