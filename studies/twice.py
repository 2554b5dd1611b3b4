r"""Whether repeating the problem raises accuracy without reasoning: a confirmation.

On MATH-500 it did over four models, by 1.2 points, in an exploratory analysis
(`pooled` in studies/stored_answers.py). So the rules of this test were written down
before its run:

    python -m reproduction evaluate --model MODEL --problems embedded --format chat \
        --conditions none,repeat,mless --max-new-tokens 0 --elicit --dtype float32 \
        --out runs/twice/MODEL
    python -m studies.twice runs/twice/...

- Sample: all 300 problems of the project, and the models Qwen2.5-Coder-0.5B-Instruct,
  demo, gemma-3-270m and Qwen2.5-Coder-1.5B-Instruct, in this order and with mless last,
  for lack of processors. A model counts as soon as it has answered all of them under
  both conditions that are compared.
- Primary: repeat - none over all models, in right answers. A problem's change is the
  mean over the models. The claim is supported if the 95 % interval lies above zero. As
  for all means over these problems, problems of one kind count as one.
- Secondary: mless - none; the interval over problems, which takes the 28 kinds as
  fixed; the sign test of answers gained and lost; answers that equal the gold one,
  worked out or not; each model.
- Known before: answers of demo and gemma-3-270m to the same problems under the same
  conditions (studies/own_problems.py). Repeating the problem changed their accuracy by
  -1.3 and 0 points, and their answers that equal the gold one by +2.3 and +3. Such
  answers of the two Qwen models were new; their row is the test on new answers.

Writes studies/results/twice.csv and prints it: a row per set of models, outcome and
condition with the number of answers that are right, without and with the change.
"""

from itertools import product

import pandas as pd

from lib.statistics.proportions import mcnemar_exact
from reproduction.evaluation.rows import COMPLETIONS, frame
from studies.keeping import RESULTS, keep, rows_of_runs
from studies.stored_answers import pooled

UNSEEN = ["Qwen2.5-Coder-0.5B-Instruct", "Qwen2.5-Coder-1.5B-Instruct"]
OUTCOMES = {"right": "right", "equal": "correct"}  # by column of the answers
CONDITIONS = ["repeat", "mless"]


def compared(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per set of models, outcome and condition, using only models that
    have answered all problems under none and under the condition.
    """
    sets = {"all": answers, "new": answers[answers.model.isin(UNSEEN)]}
    sets |= {str(name): rows for name, rows in answers.groupby("model", sort=False)}
    problems = answers.problem_id.nunique()
    table = []
    for (name, rows), (outcome, column), condition in product(
        sets.items(), OUTCOMES.items(), CONDITIONS
    ):
        pair = rows[rows.condition.isin(["none", condition])]
        answered = pair.groupby("model").problem_id.transform("size")
        complete = pair[answered == 2 * problems]
        if not complete.empty:
            row = {"set": name, "outcome": outcome}
            table.append(row | change(complete.assign(right=complete[column])))
    return pd.DataFrame(table)


def change(answers: pd.DataFrame) -> dict[str, object]:
    """Return the change by the condition that is not none. Intervals are over kinds of
    problems, except in fields that end in _problems.
    """
    row = pooled(answers).iloc[0].drop("p_holm").to_dict()
    # An id without slashes has no kind, so that each problem counts by itself.
    names = answers.problem_id.str.replace("/", " ")
    of_problems = pooled(answers.assign(problem_id=names)).iloc[0]
    for name in ("effect", "low", "high", "p_value"):
        row[f"{name}_problems"] = of_problems[name]
    is_none = answers.condition == "none"
    row["right_none"] = int(answers.right[is_none].sum())
    row["right"] = int(answers.right[~is_none].sum())
    return row | {"p_sign": mcnemar_exact(row["lost"], row["gained"])}


def main() -> None:
    """Compare the answers of all folders and write the table."""
    answers = frame(rows_of_runs(__doc__, COMPLETIONS))
    keep(RESULTS / "twice.csv", compared(answers))


if __name__ == "__main__":
    main()
