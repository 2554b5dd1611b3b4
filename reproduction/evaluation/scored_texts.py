"""Score texts under every condition: the reference solution, the gold answer without
reasoning, or sampled answers, which importance weighting needs.

The same text is scored under two conditions, so the difference has no sampling noise,
and a few hundred problems are as precise as thousands of answers are for accuracy.

The log-likelihood of a sampled answer is computed at its sampling temperature, on its
sampled tokens including the end token, and by the same revision of the model, in the
same dtype or in float32, whose rounding has no visible effect on importance weights.
Problems whose answers are all right, or all wrong, need no scores, because they
contribute a difference of 0.
"""

import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, cast

import pandas as pd

from lib import progress
from lib.errors import InputError
from lib.files.row_store import read_settings
from lib.models.loading import Loaded
from lib.models.sources import resolve
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler, is_chat
from lib.prompts.insertions import require_no_special_token
from lib.prompts.problems import Problem, load_problems, solved_problems
from reproduction.evaluation.rows import frame, recorded_settings, solution_table
from reproduction.evaluation.score_run import ScoreRun, TextToScore
from reproduction.evaluation.weighted_pass_rates import is_mixed, scored_draws
from reproduction.profiles import SAMPLING_CONDITIONS, Accuracy, Likelihood, PassRates
from reproduction.row_keys import (
    BEFORE_ANSWER,
    WantedScore,
    answers_wanted,
    draw_scores_wanted,
    found_rows,
    read_rows,
    scores_wanted,
    seed_of,
    wanted_in_stored_dtype,
)

PROMPTS_WITH_A_BAR = 1000  # so many prompts are built in about a second


def score_solutions(
    likelihood: Likelihood,
    filler: Filler,
    seed: int,
    folder: Path,
    others: Sequence[Path] = (),
) -> pd.DataFrame:
    """Score the reference solutions and gold answers whose scores are not stored, store
    each score in `folder` as soon as it is computed, and return the table of all
    scores, a row per text.

    others: further files in which scores may be stored. Problems come in sampling
    order, of which a smaller run has the first ones. Raises InputError for a problem
    without a solution, and for a text that has a special token or exceeds the model's
    context.
    """
    wanted_of = partial(scores_wanted, likelihood, filler, seed)
    settings = recorded_settings(likelihood, filler, seed)
    run = ScoreRun(likelihood, wanted_of, folder, settings, others)
    for loaded, format, missing in run.incomplete_models():
        solved = solved_problems(likelihood.problems, likelihood.limit, seed)
        problems = _with_short_solutions(loaded, likelihood, solved)
        run.score(loaded, texts_to_score(loaded, format, filler, problems, missing))
    return solution_table(run.rows(), likelihood)


def _with_short_solutions(
    loaded: Loaded, likelihood: Likelihood, problems: list[Problem]
) -> dict[str, Problem]:
    """Return the problems whose solutions have at most max_solution_tokens tokens, by
    id, and print how many have more.
    """
    most = likelihood.max_solution_tokens
    short = {
        problem.id: problem
        for problem in problems
        if len(_ids(loaded, problem.solution)) <= most
    }
    left_out = len(problems) - len(short)
    if left_out:
        print(
            f"{left_out} problems are left out: solutions of over {most} tokens",
            file=sys.stderr,
        )
    return short


def texts_to_score(
    loaded: Loaded,
    format: str,
    filler: Filler,
    problems: Mapping[str, Problem],
    scores: Mapping[str, WantedScore],
) -> dict[str, TextToScore]:
    """Return the texts of wanted scores by key, with their prompts.

    problems: with their texts, by id; scores of other problems are left out.
    """
    texts = {}
    name = f"{loaded.name}, prompts"
    scorable = {key: one for key, one in scores.items() if one.problem.id in problems}
    with progress.bar(name, len(scorable), least=PROMPTS_WITH_A_BAR) as bar:
        for key, one in scorable.items():
            problem, condition = problems[one.problem.id], one.condition
            prompt = build_prompt(
                loaded.tokenizer, problem, condition, format=format, filler=filler
            )
            lead, scored = _lead_and_text(loaded, format, problem, one)
            texts[key] = TextToScore(
                problem=problem,
                condition=condition,
                prompt=prompt,
                target=one.target,
                lead=lead,
                text=scored,
                seed=seed_of(key),
                draw=one.draw or {},
            )
            bar.update()
    return texts


def _lead_and_text(
    loaded: Loaded, format: str, problem: Problem, wanted: WantedScore
) -> tuple[list[int], list[int]]:
    """Return the tokens between a prompt and the text that is scored, and the tokens of
    this text.
    """
    if wanted.token_ids is not None:
        return [], wanted.token_ids
    solution = _ids(loaded, problem.solution)
    # A chat template ends the question itself.
    lead = [] if is_chat(format) else _tokens(loaded, "\n")
    # Instead of reasoning, a condition may insert the solution, or as many dots.
    if wanted.condition.thought == "solution":
        lead += solution
    elif wanted.condition.thought == "dots":
        lead += _ids(loaded, ".") * len(solution)
    if wanted.target == "solution":
        return lead, solution
    lead += _ids(loaded, BEFORE_ANSWER)
    return lead, _ids(loaded, problem.answer + "}")


def _ids(loaded: Loaded, text: str) -> list[int]:
    """Return the tokens of a text without the spaces at its ends."""
    return _tokens(loaded, text.strip())


def _tokens(loaded: Loaded, text: str) -> list[int]:
    """Return the tokens of a text; raise InputError for one with a special token."""
    require_no_special_token(loaded.tokenizer, text, f"the text {text[:40]!r}")
    tokenizer = cast(Any, loaded.tokenizer)
    return tokenizer(text, add_special_tokens=False)["input_ids"]


def score_draws(
    scoring: Likelihood | PassRates,
    filler: Filler,
    seed: int,
    temperature: float,
    answers: pd.DataFrame,
    folder: Path,
    others: Sequence[Path] = (),
) -> pd.DataFrame:
    """Score sampled answers as far as their scores are not stored, store each score in
    `folder` as soon as it is computed, and return all answers with their scores, as
    `scored_draws` does.

    filler, seed, temperature: the settings with which they were sampled from the
    complete distribution. answers: the table of all of them. others: further files in
    which scores may be stored. Raises InputError for answers that were sampled in
    another dtype, unless they are scored in float32.
    """
    mixed = answers[is_mixed(answers)]
    rows = mixed.to_dict("records")
    wanted_of = partial(draw_scores_wanted, scoring, filler, seed, temperature, rows)
    settings = recorded_settings(scoring, filler, seed) | {"temperature": temperature}
    run = ScoreRun(scoring, wanted_of, folder, settings, others)
    for loaded, format, missing in run.incomplete_models():
        _require_same_probabilities(loaded, mixed)
        problems = {one.id: one for one in load_problems(scoring.problems)}
        run.score(loaded, texts_to_score(loaded, format, filler, problems, missing))
    return scored_draws(answers, run.rows())


def score_drawn(likelihood: Likelihood, answers: Path, folder: Path) -> pd.DataFrame:
    """Score the sampled answers of a run of `evaluate`, as `score_draws` does, with the
    settings that the run.json of its folder has.

    Raises InputError if the folder has no answers of a model to these problems, and for
    answers that were not sampled from the complete distribution.
    """
    settings = read_settings(answers)
    filler, seed = Filler(**settings["filler"]), settings["seed"]
    names = settings.keys() & Accuracy.model_fields.keys()
    drawn_with = {name: settings[name] for name in names}
    # The weights assume a mixture of these two conditions, so that answers under others
    # are left out.
    shared = {"models": likelihood.models, "problems": likelihood.problems}
    shared |= {"limit": likelihood.limit or settings["limit"]}
    shared |= {"conditions": list(SAMPLING_CONDITIONS)}
    drawing = Accuracy.model_validate(drawn_with | shared)
    _require_probabilities(drawing)
    wanted_of = partial(answers_wanted, drawing, filler, seed)
    stored = read_rows(answers, "completions")
    for spec in likelihood.models:
        wanted = wanted_in_stored_dtype(spec, drawing, wanted_of, stored)
        if not wanted:
            raise InputError(
                f"{answers} has no answers of {resolve(spec).name} to these problems:"
                " name its model and revision by --model, and its problems by"
                " --problems"
            )
        if not wanted.by_key.keys() <= stored.keys():
            print(
                f"{answers} is not complete, and the missing answers may be the"
                " longest: run its command again first",
                file=sys.stderr,
            )
    drawn = frame(found_rows(drawing, wanted_of, stored))
    likelihood = likelihood.model_copy(update={"format": drawing.format})
    temperature = drawing.temperature
    return score_draws(likelihood, filler, seed, temperature, drawn, folder)


def _require_probabilities(drawing: Accuracy) -> None:
    """Raise InputError for answers whose sampling probability is not the likelihood
    that would be computed for them.
    """
    # A top_p below 1 changes the probabilities, and elicitation or examples would be
    # missing from the scored prompt.
    is_sampled = drawing.temperature > 0 and drawing.top_p == 1
    if not is_sampled or drawing.elicit or drawing.examples:
        raise InputError(
            "weights need answers that were drawn at a temperature above 0,"
            " with top_p = 1 and without elicit and examples: draw them again: evaluate"
            " --conditions none,mless --temperature 0.6 --samples 2 --top-p 1"
        )


def _require_same_probabilities(loaded: Loaded, answers: pd.DataFrame) -> None:
    """Raise InputError if a model's answers were sampled in another dtype than that in
    which it scores them, unless it scores in float32.
    """
    # Rounding to bfloat16 changes log p by tenths of a nat, by different amounts under
    # each condition. In float32 the ratio has no such error.
    dtypes = set(answers.loc[answers["model"] == loaded.name, "dtype"])
    if loaded.dtype != "float32" and dtypes != {loaded.dtype}:
        raise InputError(
            f"answers of {loaded.name} were drawn in {' and '.join(sorted(dtypes))},"
            f" not {loaded.dtype}, so their probabilities differ: score in their dtype,"
            " or in float32"
        )
