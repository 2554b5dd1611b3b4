"""How likely a model finds answers that were drawn from it, under every condition: what
`pass_rates` weighs them by.

An answer is scored at the temperature that it was drawn with, by the tokens that were
drawn, with the one that ended it, and by the weights that it was drawn from: in the
dtype of the draw, or in float32, whose rounding no weight shows. Problems whose answers
are all right, or all wrong, need no score: their weights are multiplied by 0.
"""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from lib.errors import InputError
from lib.evaluation.pass_rates import (
    is_divided,
    pass_rate_table,
    pass_rates_as_text,
    scored_draws,
)
from lib.evaluation.plan import arm_of
from lib.evaluation.rows import DRAW_SCORE_FIELDS, frame
from lib.evaluation.scoring import (
    Texts,
    TextToScore,
    require_room,
    score_key,
    score_models,
)
from lib.evaluation.settings import draw_score_settings, read_run
from lib.evaluation.store import read
from lib.models.loading import Loaded
from lib.models.names import resolve
from lib.profiles import Likelihood
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Condition, Filler
from lib.prompts.problems import (
    Problem,
    digest,
    load_problems,
    posed,
    sampling_order,
)


def score_draws(settings: Likelihood, answers: Path, folder: Path) -> pd.DataFrame:
    """Score the answers in one folder as far as another lacks that, each kept at once,
    then return all answers to the problems, as `scored_draws` has them.

    Filler, seed, format and temperature are those of the answers. Raises InputError for
    answers that were not drawn from a whole distribution, have no tokens, or are of
    other problems, models or weights than `settings` name.
    """
    drawn_with = read_run(answers)
    _require_draws(answers, drawn_with)
    every = load_problems(settings.problems)
    if digest(every) != drawn_with["problems_sha256"]:
        raise InputError(
            f"{answers} answers {drawn_with['problems']}, not {settings.problems}:"
            " name its problems by --problems"
        )
    seed = drawn_with["seed"]
    filler = Filler(**drawn_with["filler"])
    problems = sampling_order(every, seed)[: settings.limit]
    rows = _in_sampling_order(read(*answers.glob("completions*.jsonl")), problems)

    shared = draw_score_settings(settings.problems, filler, drawn_with)

    def wanted_of(loaded: Loaded) -> Texts:
        own = _rows_of(loaded, rows, answers)
        return _draws_wanted(loaded, settings, own, problems, filler, drawn_with)

    scored = score_models(settings, folder, shared, wanted_of)
    scores = pd.DataFrame(scored, columns=DRAW_SCORE_FIELDS)
    names = [resolve(spec).name for spec in settings.models]
    drawn = frame([row for row in rows if row["model"] in names])
    return scored_draws(drawn, scores)


def _in_sampling_order(rows: list[dict], problems: list[Problem]) -> list[dict]:
    """Return the answers to these problems, problem by problem."""
    places = {problem.id: place for place, problem in enumerate(problems)}
    of_problems = [row for row in rows if row["problem_id"] in places]
    return sorted(
        of_problems,
        key=lambda row: (places[row["problem_id"]], row["condition"], row["sample"]),
    )


def _draws_wanted(
    loaded: Loaded,
    settings: Likelihood,
    rows: list[dict],
    problems: list[Problem],
    filler: Filler,
    drawn_with: dict,
) -> Texts:
    """Return by key every answer that decides under every condition, problem by
    problem; raises InputError where one does not fit.
    """
    temperature = drawn_with["temperature"]
    decides = is_divided(frame(rows))
    deciding = [row for row, counts in zip(rows, decides, strict=True) if counts]
    by_problem: dict[str, list[dict]] = {}
    for row in deciding:
        by_problem.setdefault(row["problem_id"], []).append(row)

    wanted = {}
    for problem in problems:
        for condition in settings.conditions:
            arm = arm_of(condition, loaded)
            prompt = build_prompt(
                loaded.tokenizer,
                posed(problem, condition),
                condition,
                format=drawn_with["format"],
                filler=filler,
            )
            for row in by_problem.get(problem.id, []):
                draw = {
                    "answer": row["key"],
                    "sample": row["sample"],
                    "drawn_under": row["condition"],
                    "temperature": temperature,
                }
                text = TextToScore(
                    problem,
                    condition,
                    arm,
                    "draw",
                    prompt,
                    lead=[],
                    text=row["token_ids"],
                    temperature=temperature,
                    draw=draw,
                )
                require_room(loaded, text, "leave this problem out")
                wanted[score_key(loaded, text)] = text
    return wanted


def points_as_text(draws: pd.DataFrame, conditions: Sequence[Condition]) -> str:
    """Return a line per model and condition: its pass rate less that under the first
    condition, empty where answers or scores are too few.
    """
    first, *others = map(str, conditions)
    table = pass_rate_table(draws, [(condition, first) for condition in others])
    return pass_rates_as_text(table)


def _require_draws(folder: Path, drawn_with: dict) -> None:
    """Raise InputError for answers whose texts were not drawn with a probability."""
    how = f"{folder} was made with"
    again = "draw answers anew: evaluate --temperature 0.6 --samples 2 --top-p 1"
    if drawn_with["temperature"] == 0:
        raise InputError(f"{how} temperature = 0, which draws nothing: {again}")
    if drawn_with["top_p"] < 1:
        raise InputError(
            f"{how} top_p = {drawn_with['top_p']}, under which what was cut off has no"
            f" probability: {again}"
        )
    if drawn_with["elicit"]:
        raise InputError(
            f"{how} elicit, and what follows an elicitation is not scored: {again}"
        )
    if "examples" in drawn_with:
        raise InputError(
            f"{how} examples, which prompts that are scored do not have: {again}"
        )


def _rows_of(loaded: Loaded, rows: list[dict], folder: Path) -> list[dict]:
    """Return a model's answers; raises InputError where there are none, where one has
    no tokens or where they were drawn from other weights or in a finer dtype.
    """
    own = [row for row in rows if row["model"] == loaded.name]
    if not own:
        others = " and ".join(sorted({row["model"] for row in rows})) or "no model"
        raise InputError(
            f"{folder} has answers of {others}, not of {loaded.name}: name it by"
            " --model"
        )
    for row in own:
        # Rounding to bfloat16 moves log p by tenths of a nat, otherwise under each
        # condition, which float32 keeps out of their ratio (studies/bfloat16.py).
        dtypes = (row.get("dtype"), "float32")
        if row.get("revision") != loaded.revision or loaded.dtype not in dtypes:
            raise InputError(
                f"{folder}: answers were drawn from revision {row.get('revision')} in"
                f" {row.get('dtype')}, not {loaded.revision} in {loaded.dtype}: their"
                " probabilities are others; score the weights that they were drawn"
                " from, in their --dtype or in float32"
            )
        if not row.get("token_ids"):
            raise InputError(
                f"{folder}: the answer {row['key']} to {row['problem_id']} has no"
                " token ids, which an older run did not keep: draw it anew"
            )
    return own
