"""Check that a profile can run, before any weights are read."""

from collections.abc import Sequence
from itertools import product
from math import inf

from lib.errors import InputError
from lib.models.sources import require_available, source_with_config
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import (
    load_problems,
    shown_problem,
    solved_problems,
)
from reproduction.profiles.profile import Profile
from reproduction.profiles.sections import Accuracy, Attention, Likelihood


def check(profile: Profile) -> None:
    """Raise InputError if a profile cannot run, as far as its problems and the configs
    of its models show.
    """
    if profile.stored_only:
        # Nothing is computed, so neither problems nor models are needed.
        return
    require_available(profile.models)
    _check_attention(profile.attention)
    for section in profile.parts.values():
        if isinstance(section, Accuracy):
            check_accuracy(section, profile.filler)
        else:
            _require_layers(section.conditions, section.models)
        if isinstance(section, Likelihood):
            # Raises InputError for a problem without a reference solution.
            solved_problems(section.problems, section.limit, profile.seed)


def _check_attention(attention: Attention) -> None:
    """Raise InputError for an unknown example, and for a layer or head that a model
    lacks.
    """
    shown_problem(attention.problems, attention.example)
    for spec in attention.models:
        _require_head("attention.layers", spec, attention.layers, 1)
    for figure, row in attention.panels.items():
        for panel in row:
            _require_head(figure, panel.model, panel.layer, panel.head)


def _require_head(field: str, spec: str, layer: int, head: int) -> None:
    """Raise InputError if a model lacks the layer or the head that a field names."""
    known = source_with_config(spec)
    for name, number, last in (
        ("layers", layer, known.layers),
        ("heads", head, known.heads),
    ):
        if last and number > last:
            raise InputError(f"{field}: {spec} has {name} 1 to {last}, not {number}")


def check_accuracy(accuracy: Accuracy, filler: Filler) -> None:
    """Raise InputError for problems that cannot be read, for a model or layer that does
    not exist, and for a condition that the model's context or the engine rules out.
    """
    load_problems(accuracy.problems, levels=accuracy.levels)
    _require_layers(accuracy.conditions, accuracy.models)
    for spec, condition in product(accuracy.models, accuracy.conditions):
        known = source_with_config(spec)
        context = known.context or inf
        inserts = condition.inserted != "none"
        length = condition.filler(filler).length if inserts else 0
        if max(length, accuracy.max_new_tokens) >= context:
            tokens = f"{length} inserted and {accuracy.max_new_tokens} new tokens"
            raise InputError(
                f"{condition}: {known.name} has room for {context} tokens, not for"
                f" {tokens}"
            )
        if condition.arm and accuracy.engine == "vllm":
            raise InputError(
                f"{condition}: engine vllm does not run ARM: use transformers"
            )


def _require_layers(conditions: Sequence[Condition], specs: Sequence[str]) -> None:
    """Raise InputError for a condition that names a layer which a model lacks."""
    for condition, spec in product(conditions, specs):
        last = source_with_config(spec).layers
        if last and condition.deepest > last:
            raise InputError(f"{condition}: the model has layers 1 to {last}")
