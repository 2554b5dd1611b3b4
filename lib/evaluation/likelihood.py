"""Score texts under every condition: the reference solution, the gold answer without
reasoning, or sampled answers.

Two conditions of the same problem differ only by the condition's effect on the model,
so a few hundred problems are as precise as thousands of answers are for accuracy. A
sampled answer is scored so that `pass_rates` can weight it: at its sampling
temperature, on its sampled tokens including the end token, and with the weights that
sampled it, in the same dtype or in float32, whose rounding has no visible effect on
weights. Problems whose answers are all right, or all wrong, need no score, because
their weights are multiplied by 0.
"""

import functools
import sys
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import product
from pathlib import Path
from typing import Any, cast

import pandas as pd

from lib.errors import InputError
from lib.evaluation.log_probability import (
    Texts,
    TextToScore,
    require_room,
    score_key,
    score_rows,
)
from lib.evaluation.next_token import next_token_rows
from lib.evaluation.pass_rates import is_divided, scored_draws
from lib.evaluation.records import (
    DECIDING,
    DRAW_SCORE_FIELDS,
    SCORES,
    SUMMARY,
    frame,
    run_settings,
    score_fields,
    shared_settings,
    versions,
)
from lib.evaluation.wanted import prompt_of
from lib.files.store import opened, read, read_run, require_same
from lib.models.loading import Loaded, load_without_weights, with_weights
from lib.models.names import resolve
from lib.profiles import HALVES, Likelihood, PassRates
from lib.prompts.building import Prompt, format_for
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import (
    Problem,
    digest,
    load_problems,
    sampling_order,
    solved_problems,
)

# The text before the gold answer if there is no reasoning.
BEFORE_ANSWER = "The final answer is $\\boxed{"


def likelihoods(
    settings: Likelihood,
    filler: Filler,
    seed: int,
    folder: Path,
    known: Sequence[dict] = (),
) -> pd.DataFrame:
    """Score the solutions and answers that `folder` lacks, store each at once, and
    return the run's rows in the order of a growing sample.

    `known` scores are copied. Raises InputError for a problem without a solution, a
    text that does not fit into the context, and a folder with other settings.
    """
    problems = solved_problems(settings.problems, settings.limit, seed)

    def wanted_of(loaded: Loaded) -> Texts:
        short = _with_short_solutions(loaded, settings, problems)
        return texts_wanted(loaded, settings, filler, short)

    shared = shared_settings(settings, filler, seed)
    make = next_token_rows if settings.next_token else _plain_rows
    rows = score_models(settings, folder, shared, wanted_of, make, known)
    return pd.DataFrame(rows, columns=score_fields(settings))


def score_draws(
    settings: Likelihood, answers: Path, folder: Path, known: Sequence[dict] = ()
) -> pd.DataFrame:
    """Score the sampled answers of one folder that another one lacks, store each score
    at once, and return all answers to the problems, as `scored_draws` does.

    Filler, seed, format and temperature are those of the answers. `known` scores are
    copied. Raises InputError for answers that were not sampled from the complete
    distribution, or have other problems, models or weights than `settings`.
    """
    drawn_with = read_run(answers)
    _require_probabilities(answers, drawn_with)
    every = load_problems(settings.problems)
    if digest(every) != drawn_with["problems_sha256"]:
        raise InputError(
            f"{answers} answers {drawn_with['problems']}, not {settings.problems}:"
            " name its problems by --problems"
        )
    filler = Filler(**drawn_with["filler"])
    problems = sampling_order(every, drawn_with["seed"])[: settings.limit]
    if not (answers / SUMMARY).is_file():
        print(
            f"{answers} is not whole: what is missing may be what takes long; run its"
            " command again first",
            file=sys.stderr,
        )
    rows = read(*answers.glob("completions*.jsonl"))
    drawn = frame(rows)
    asked = [problem.id for problem in problems]
    # The mixture consists of these two conditions; other answers are left out.
    is_half = drawn["condition"].isin(HALVES)
    drawn = drawn[is_half & drawn["problem_id"].isin(asked)]
    # Independent of the order in which they were finished.
    drawn = drawn.sort_values(["problem_id", "condition", "sample"])

    def wanted_of(loaded: Loaded) -> Texts:
        own = _drawn_from(loaded, drawn, answers)
        own = own[is_divided(own)]
        return draws_wanted(loaded, settings, own, problems, filler, drawn_with)

    shared = run_settings(settings.problems, filler, drawn_with["seed"])
    shared |= {name: drawn_with[name] for name in DECIDING[PassRates]}
    scored = score_models(settings, folder, shared, wanted_of, _plain_rows, known)
    names = [resolve(spec).name for spec in settings.models]
    scores = pd.DataFrame(scored, columns=DRAW_SCORE_FIELDS)
    own = drawn[drawn["model"].isin(names)]
    return scored_draws(own, scores)


def score_models(
    settings: Likelihood,
    folder: Path,
    shared: dict,
    wanted_of: Callable[[Loaded], Texts],
    rows_of: Callable[[Loaded, Texts, Texts], Generator[dict, None, None]],
    known: Sequence[dict] = (),
) -> list[dict]:
    """Score with each model the wanted texts that `folder` lacks, store each score at
    once, and return the rows of all wanted texts in order.

    shared: the settings that all rows of the folder share. `rows_of` yields the rows of
    missing texts, given all wanted ones; `known` rows are copied. A text that is
    refused leaves no new folder. Weights are read only if a score is missing.
    """
    require_same(folder, shared)
    rows: list[dict] = []
    for spec in settings.models:
        loaded = load_without_weights(spec, dtype=settings.dtype, fetch=False)
        wanted = wanted_of(loaded)
        with opened(folder, shared, versions(), file=SCORES) as store:
            store.take_over(wanted, known)
            make = functools.partial(_scored, loaded, wanted, rows_of)
            store.fill(wanted, make, loaded.name, "score")
            scored = store.everything()
        rows += [scored[key] for key in wanted]
    return rows


def _scored(
    known: Loaded,
    wanted: Texts,
    rows_of: Callable[[Loaded, Texts, Texts], Generator[dict, None, None]],
    missing: Texts,
) -> Generator[dict, None, None]:
    """Yield the rows of missing texts, by a model whose weights are read for them."""
    loaded = with_weights(known, offload=True)
    yield from rows_of(loaded, missing, wanted)


def _plain_rows(
    loaded: Loaded, missing: Texts, wanted: Texts
) -> Generator[dict, None, None]:
    """Yield the rows of missing texts, with only their log p."""
    yield from score_rows(loaded, missing)


def _with_short_solutions(
    loaded: Loaded, settings: Likelihood, problems: list[Problem]
) -> list[Problem]:
    """Return the problems whose solutions are not too long, and report how many are."""
    short = [
        problem
        for problem in problems
        if len(_ids(loaded, problem.solution)) <= settings.max_solution_tokens
    ]
    left_out = len(problems) - len(short)
    if left_out:
        print(
            f"{left_out} problems have solutions of over"
            f" {settings.max_solution_tokens} tokens",
            file=sys.stderr,
        )
    return short


def texts_wanted(
    loaded: Loaded, settings: Likelihood, filler: Filler, problems: list[Problem]
) -> Texts:
    """Return by key every solution and answer that a run scores, problem by problem;
    raise InputError if one does not fit into the context.
    """
    end_of_question = []
    if format_for(loaded.tokenizer, settings.format) == "plain":
        # If nothing else ends it.
        end_of_question = _tokens(loaded, "\n")

    conditions = dict.fromkeys([*settings.conditions, *settings.at_once])
    texts = []
    for place in _places(loaded, settings.format, filler, problems, conditions):
        problem, condition, _ = place
        solution = _ids(loaded, problem.solution)
        lead = [*end_of_question, *_thought(loaded, condition, solution)]
        if condition in settings.conditions:
            texts.append(TextToScore(*place, "solution", lead, solution))
        if condition in settings.at_once:
            before = [*lead, *_ids(loaded, BEFORE_ANSWER)]
            answer = _ids(loaded, problem.answer + "}")
            texts.append(TextToScore(*place, "answer", before, answer))
    return _by_key(loaded, texts)


def draws_wanted(
    loaded: Loaded,
    settings: Likelihood,
    drawn: pd.DataFrame,
    problems: list[Problem],
    filler: Filler,
    drawn_with: dict,
) -> Texts:
    """Return by key every sampled answer under every condition, problem by problem;
    raise InputError if one does not fit into the context.

    drawn_with: the format and temperature of the sampling.
    """
    by_problem: dict[str, list[dict]] = {}
    for row in drawn.to_dict("records"):
        by_problem.setdefault(row["problem_id"], []).append(row)

    answered = [problem for problem in problems if problem.id in by_problem]
    format = drawn_with["format"]
    texts = []
    for place in _places(loaded, format, filler, answered, settings.conditions):
        problem, _, _ = place
        for row in by_problem[problem.id]:
            draw = {
                "answer": row["key"],
                "sample": row["sample"],
                "drawn_under": row["condition"],
                "temperature": drawn_with["temperature"],
            }
            texts.append(TextToScore(*place, "draw", [], row["token_ids"], draw))
    return _by_key(loaded, texts)


def _places(
    loaded: Loaded,
    format: str,
    filler: Filler,
    problems: Iterable[Problem],
    conditions: Iterable[Condition],
) -> Iterator[tuple[Problem, Condition, Prompt]]:
    """Yield each problem under each condition, with its prompt."""
    for problem, condition in product(problems, conditions):
        yield problem, condition, prompt_of(loaded, problem, condition, format, filler)


def _by_key(loaded: Loaded, texts: Iterable[TextToScore]) -> Texts:
    """Return texts by the keys of their scores; raise InputError if one does not
    fit.
    """
    wanted = {}
    for text in texts:
        require_room(loaded, text)
        wanted[score_key(loaded, text)] = text
    return wanted


def _thought(loaded: Loaded, condition: Condition, solution: list[int]) -> list[int]:
    """Return the tokens that a condition puts between the question and the answer."""
    if condition.thought == "solution":
        return solution
    if condition.thought == "dots":
        return _ids(loaded, ".") * len(solution)
    return []


def _ids(loaded: Loaded, text: str) -> list[int]:
    return _tokens(loaded, text.strip())


def _tokens(loaded: Loaded, text: str) -> list[int]:
    tokenizer = cast(Any, loaded.tokenizer)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def _require_probabilities(folder: Path, drawn_with: dict) -> None:
    """Raise InputError for answers that were not sampled with a known probability."""
    # A lower top_p gives some tokens a probability of 0, and with an elicitation or
    # examples the scored prompt would be another one.
    from_all = drawn_with.get("temperature", 0) > 0 and drawn_with.get("top_p") == 1
    if not from_all or drawn_with["elicit"] or "examples" in drawn_with:
        raise InputError(
            f"{folder}: weights need answers that were drawn at a temperature above 0,"
            " with top_p = 1 and without elicit and examples: draw them again: evaluate"
            " --conditions none,mless --temperature 0.6 --samples 2 --top-p 1"
        )


def _drawn_from(loaded: Loaded, drawn: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """Return a model's answers; raise InputError if there are none, or if they were
    sampled with other weights or in a finer dtype.
    """
    own = drawn[drawn["model"] == loaded.name]
    if own.empty:
        others = " and ".join(sorted(drawn["model"].unique())) or "no model"
        raise InputError(
            f"{folder} has answers of {others}, not of {loaded.name}: name it by"
            " --model"
        )
    # Rounding to bfloat16 changes log p by tenths of a nat, by different amounts under
    # each condition. In float32 the ratio has no such error (studies/bfloat16.py).
    fits = own["dtype"].eq(loaded.dtype) | (loaded.dtype == "float32")
    unfit = own[own["revision"].ne(loaded.revision) | ~fits]
    if len(unfit):
        first = unfit.iloc[0]
        raise InputError(
            f"{folder}: answers were drawn from revision {first['revision']} in"
            f" {first['dtype']}, not {loaded.revision} in {loaded.dtype}: their"
            " probabilities differ; score with the weights that sampled them, in"
            " their --dtype or in float32"
        )
    return own
