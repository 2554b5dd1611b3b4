"""What cannot run, said before any weights are read."""

from math import inf

from lib.errors import InputError
from lib.models.card import card, require_cards
from lib.models.names import Source
from lib.profiles.profile import Profile
from lib.profiles.sections import Accuracy, Attention, Panel
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import drawn_problem, load_problems, solved_problems


def check(profile: Profile) -> None:
    """Raise InputError for what the problems and the models' configs say cannot run."""
    if profile.stored:
        # Nothing runs.
        return
    require_cards(profile.models)
    _check_attention(profile.attention)
    for section in profile.parts.values():
        if isinstance(section, Accuracy):
            check_accuracy(section, profile.filler)
    if asked := profile.likelihood:
        solved_problems(asked.problems, asked.limit, profile.seed)


def _check_attention(attention: Attention) -> None:
    drawn_problem(attention.problems, attention.example)
    for spec in attention.models:
        deepest = Panel(model=spec, layer=attention.layers, head=1)
        _check_panel("attention.layers", deepest, card(spec))
    for figure, row in attention.panels.items():
        for panel in row:
            _check_panel(figure, panel, card(panel.model))


def _check_panel(figure: str, panel: Panel, known: Source) -> None:
    """Raise InputError when the model lacks a panel's layer or head."""
    asked = ("layers", panel.layer, known.layers), ("heads", panel.head, known.heads)
    for name, number, last in asked:
        if last and number > last:
            raise InputError(
                f"{figure}: {known.spec} has {name} 1 to {last}, not {number}"
            )


def check_accuracy(accuracy: Accuracy, filler: Filler) -> None:
    """Raise InputError for problems that cannot be read, a model or layer that does not
    exist, a filler too long.
    """
    load_problems(accuracy.problems, levels=accuracy.levels)
    for known in [card(spec) for spec in accuracy.models]:
        for condition in accuracy.conditions:
            _check_condition(condition, known, accuracy, filler)


def _check_condition(
    condition: Condition, known: Source, accuracy: Accuracy, filler: Filler
) -> None:
    room = known.context or inf
    inserts = condition.inserted != "none"
    length = condition.filler(filler).length if inserts else 0
    if max(length, accuracy.max_new_tokens) >= room:
        tokens = f"{length} inserted and {accuracy.max_new_tokens} new tokens"
        raise InputError(
            f"{condition}: {known.name} has room for {room} tokens, not for {tokens}"
        )
    if condition.arm and accuracy.engine == "vllm":
        raise InputError(f"{condition}: engine vllm does not run ARM: use transformers")
    if condition.arm and known.layers and condition.arm.layer > known.layers:
        raise InputError(f"{condition}: the model has layers 1 to {known.layers}")
