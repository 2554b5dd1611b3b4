"""How many tokens texts and prompts have, estimated from characters: that needs no
tokenizer.
"""

from collections.abc import Iterable, Sequence

from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import Problem

# Of a token, as Qwen counts them: solutions have more formulas.
PROBLEM_CHARACTERS = 2.9
SOLUTION_CHARACTERS = 2.4
INSTRUCTION_TOKENS = 20
TEMPLATE_TOKENS = 30  # that a chat template adds


def mean_prompt_tokens(problems: Sequence[Problem], chat: bool) -> float:
    """Return the mean tokens of a prompt into which nothing is inserted."""
    texts = mean_of(problem_tokens(problem.problem) for problem in problems)
    return INSTRUCTION_TOKENS + texts + (TEMPLATE_TOKENS if chat else 0)


def inserted_tokens(filler: Filler, conditions: Sequence[Condition]) -> float:
    """Return how many tokens these conditions insert on average."""
    lengths = []
    for condition in conditions:
        inserts = condition.inserted != "none"
        lengths.append(condition.filler(filler).length if inserts else 0)
    return mean_of(lengths)


def problem_tokens(text: str) -> float:
    """Return the tokens of a problem's text."""
    return len(text) / PROBLEM_CHARACTERS


def solution_tokens(text: str) -> float:
    """Return the tokens of a worked solution."""
    return len(text) / SOLUTION_CHARACTERS


def mean_of(values: Iterable[float]) -> float:
    """Return the mean of some numbers, 0 of none."""
    numbers = list(values)
    return sum(numbers) / len(numbers) if numbers else 0.0
