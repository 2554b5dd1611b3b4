r"""Whether importance weights do on a second model what they do on the first.

The stored answers that are weighted are one model's. These rules were written down
before the first of the following answers was drawn:

    python -m lib evaluate --model demo --problems embedded --format chat \
        --conditions none,mless --samples 2 --temperature 0.6 --top-p 1 \
        --max-new-tokens 256 --dtype float32 --out runs/second
    python -m studies.second_model --answers runs/second --out runs/second-scores

- Sample: four answers to each of the project's 300 problems, two under none and two
  under mless. The number is fixed, and no answer is graded before all are drawn.
  Changed after 396 and again after 465 answers were drawn, and before anybody saw a
  grade or a score, since processors were short: the sample is that of --limit 300, 200,
  150, 100 or 50, the largest whose answers are all drawn and scored when the time is
  up. It does not depend on what the answers are. This was 50 problems. Changed after
  they had been looked at (weighting -4.3 points, counting -4.0, slope 1.16, mean weight
  0.995): the 150 problems that were drawn by then were scored as well, which is a
  second look at the same question.
- Right: an answer that ended before the limit of tokens and whose last number equals
  the gold answer. This model rarely writes a box, which the project's grader requires.
- Primary: the accuracy under mless minus that under none, in points by weighting, with
  its 95 % interval. As for all means over these problems, problems of one kind count
  as one.
- Agreement: weighting and counting use the same answers, so that it is their difference
  which is compared with 0. They agree if its 95 % interval includes 0.
- Checks: all answers are scored, so that the mean weight has the expectation 1 without
  any selection. The intervals of the calibration slope and of the mean weight under
  mless should both include 1. If one does not, all numbers of this study are in doubt.
  The effective sample size, the largest weight, the log ratio's standard deviation and
  the share of answers that the limit cut off are reported and decide nothing.
- Gain: how many times as many answers counting would take for an interval as narrow. It
  is reported whatever it is, and is expected to be small, for the reason below.
- Secondary: the same with the interval over problems, which takes the kinds as given;
  and with the project's grader.
- Known before: in stored greedy answers after two worked examples, 26 % of 96 problems
  are right with and 27 % without slashes. Answers without reasoning to these problems
  change by -1.3 points (studies/twice.py). How long the run takes was tried with five
  problems and another seed, and the 20 answers, which are not in the sample, were read
  and scored. None has a box, which is why the last number counts, and two were cut. By
  the last number 2 of 10 are right without and 3 of 10 with slashes. The log ratios
  have a standard deviation of 5.0 nats, four times that of the first model's answers.
  The prompts have few texts in common then, and weighting is close to counting.

Without folders the second command takes the answers and scores that are kept in
studies/results/second_model. It writes studies/results/second_model.csv and prints it:
a row per grader and unit over which the intervals are.
"""

import argparse
import re
from pathlib import Path

import numpy as np
import pandas as pd

from lib.errors import InputError
from lib.evaluation.pass_rate_tables import SAMPLED_PAIR
from lib.evaluation.rows import (
    COMPLETIONS,
    DRAW_SCORE_FIELDS,
    SECTION_SETTINGS,
    base_settings,
    frame,
)
from lib.evaluation.score_run import score_models
from lib.evaluation.scored_texts import draws_wanted
from lib.evaluation.weighted_pass_rates import (
    is_mixed,
    observed_differences,
    scored_draws,
    weighted_differences,
)
from lib.files.row_store import read_settings
from lib.files.text_files import read
from lib.grading import grade_many
from lib.profiles import SAMPLING_CONDITIONS, Likelihood, PassRates
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems, sampling_order
from lib.statistics.importance_weighting import log_weights
from lib.statistics.intervals import POINTS, cluster_ids, interval
from studies.keeping import RESULTS, keep, kept_draws
from studies.weights import checks

KEPT = RESULTS / "second_model"
LIMITS = (300, 200, 150, 100, 50)  # problems
EACH = 4  # answers to a problem
SEED = 0
NUMBER = re.compile(r"-?(?:\\[dt]?frac\{\d+\}\{\d+\}|\d+/\d+|\d+(?:,\d{3})*(?:\.\d+)?)")


def largest_sample(answers: pd.DataFrame) -> pd.DataFrame:
    """Return the answers to the largest sample of LIMITS that is answered completely.

    Raises InputError if none is.
    """
    order = [problem.id for problem in sampling_order(load_problems("embedded"), SEED)]
    for limit in LIMITS:
        of_sample = answers[answers["problem_id"].isin(order[:limit])]
        if len(of_sample) == EACH * limit:
            return of_sample
    raise InputError(f"fewer than {EACH} answers to each of {LIMITS[-1]} problems")


def right_by_last_number(answers: pd.DataFrame) -> pd.Series:
    """Return for each answer whether it ended and its last number is the gold answer.

    answers: as `lib.evaluation.rows.frame` has them.
    """
    numbers = [(NUMBER.findall(text) or [""])[-1] for text in answers["response"]]
    boxes = [rf"\boxed{{{number}}}" for number in numbers]
    grades = grade_many(list(zip(answers["answer"], boxes, strict=True)))
    is_equal = pd.Series([grade.correct for grade in grades], answers.index)
    return is_equal.eq(True) & answers["finish_reason"].ne("length")


def scores_of(answers: pd.DataFrame, drawn: Path, folder: Path) -> pd.DataFrame:
    """Return the log-likelihood of every answer under none and mless, a row per score,
    computed as far as `folder` lacks it.

    answers: those of the folder `drawn`, whose prompts and temperature they have.
    """
    drawn_with = read_settings(drawn)
    scoring = Likelihood(models=["demo"], conditions=list(SAMPLING_CONDITIONS))
    filler = Filler(**drawn_with["filler"])
    shared = base_settings(scoring.problems, filler, drawn_with["seed"])
    shared |= {name: drawn_with[name] for name in SECTION_SETTINGS[PassRates]}
    every = load_problems(scoring.problems)

    def wanted_of(loaded):
        return draws_wanted(loaded, scoring, answers, every, drawn_with)

    rows = score_models(scoring, folder, shared, wanted_of)
    return pd.DataFrame(rows, columns=DRAW_SCORE_FIELDS)


def compared(draws: pd.DataFrame) -> dict[str, object]:
    """Return the row of `studies.weights.checks` for the answers of one model, with
    standard errors, the difference between weighting and counting, and the mean weight.

    draws: as `scored_draws` has them, all of them scored.
    """
    row = checks(draws).iloc[0].to_dict()
    row["right_none"] = row.pop("right")
    under_mless = draws.loc[draws["drawn_under"] == "mless", "right"]
    row["right_mless"] = POINTS * under_mless.astype(float).mean()
    weighted = weighted_differences(draws, *SAMPLED_PAIR)
    counted = observed_differences(draws).reindex(weighted.index)
    row["error"] = float(interval(weighted, weighted.index).error)
    row["observed_error"] = float(interval(counted, counted.index).error)
    row |= _ends("apart", weighted - counted)
    log_weight = log_weights(
        draws[["mless"]].to_numpy(), draws[[*SAMPLING_CONDITIONS]].to_numpy()
    )
    weight = pd.Series(np.exp(log_weight[:, 0])).groupby(draws["problem_id"])
    row |= _ends("mean_weight", weight.mean())
    mixed = draws["problem_id"][is_mixed(draws)].unique()
    row["mixed_units"] = len(np.unique(cluster_ids(mixed)))
    return row | {"answers": len(draws)}


def _ends(name: str, by_problem: pd.Series) -> dict[str, float]:
    """Return the mean of a Series by problem with the ends of its interval."""
    mean = interval(by_problem, by_problem.index)
    return {name: mean.estimate, f"{name}_low": mean.low, f"{name}_high": mean.high}


def table(answers: pd.DataFrame, scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per grader and unit, kinds or problems."""
    by_grader = {
        "last number": answers.assign(right=right_by_last_number(answers)),
        "box": answers,
    }
    rows = []
    for grader, graded in by_grader.items():
        draws = scored_draws(graded, scores)
        # Without the slashes of its id a problem belongs to no kind.
        names = draws["problem_id"].str.replace("/", " ")
        by_unit = {"kinds": draws, "problems": draws.assign(problem_id=names)}
        for unit, same in by_unit.items():
            rows.append({"grader": grader, "unit": unit} | compared(same))
    return pd.DataFrame(rows)


def main() -> None:
    """Score the answers if they are given, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--answers", type=Path)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if bool(options.answers) != bool(options.out):
        parser.error("--answers and --out belong together")
    if options.answers:
        answers = largest_sample(frame(read(*options.answers.glob(COMPLETIONS))))
        scores = scores_of(answers, options.answers, options.out)
    else:
        answers, scores = kept_draws(KEPT)
    keep(RESULTS / "second_model.csv", table(answers, scores))


if __name__ == "__main__":
    main()
