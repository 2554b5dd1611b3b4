r"""Whether the problem given twice raises accuracy without reasoning: a second look.

On MATH-500 it did over four models, by 1.2 points, which was found after the fact
(studies/pooled.py). So its rules were written down before this run:

    python -m lib evaluate --model MODEL --problems embedded --format chat \
        --conditions none,repeat,mless --max-new-tokens 0 --elicit --dtype float32 \
        --out runs/twice/MODEL
    python -m studies.twice runs/twice/...

- Sample: all 300 problems of the project, and the models Qwen2.5-Coder-0.5B-Instruct,
  demo, gemma-3-270m and Qwen2.5-Coder-1.5B-Instruct, in this order and with mless last,
  for lack of processors. A model counts once it has answered all of them under both
  conditions that are compared.
- Primary: repeat - none over all models, in right answers. A problem's change is the
  mean over the models. The claim is supported if the 95 % interval lies above zero. As
  for all means over these problems, problems of one kind count as one.
- Secondary: mless - none; the interval over problems, which takes the 28 kinds as
  given; the sign test of answers gained and lost; answers that equal the gold one,
  worked out or not; each model.
- Known before: answers of demo and gemma-3-270m to the same problems under the same
  conditions (studies/own_problems.py). The problem twice changed their right answers
  by -1.3 and 0 points, and those that equal the gold one by +2.3 and +3. Nobody had
  seen such answers of the two Qwen models, whose row is the test on new answers.

Writes studies/results/twice.csv and prints it: a row per set of models, outcome and
condition with the number of answers that are right, without and with the change.
"""

import pandas as pd

from lib.evaluation.records import COMPLETIONS, frame
from lib.statistics.intervals import mcnemar_exact
from studies.keeping import RESULTS, keep, rows_of_runs
from studies.pooled import ENDS, pooled

UNSEEN = ["Qwen2.5-Coder-0.5B-Instruct", "Qwen2.5-Coder-1.5B-Instruct"]
OUTCOMES = {"right": "right", "equal": "correct"}


def compared(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per set of models, outcome and condition other than none."""
    sets = {"all": answers, "unseen": answers[answers.model.isin(UNSEEN)]}
    sets |= {str(name): rows for name, rows in answers.groupby("model", sort=False)}
    tables = []
    for name, rows in sets.items():
        for outcome, column in OUTCOMES.items():
            table = changes(rows.assign(right=rows[column]))
            tables.append(table.assign(model=name, outcome=outcome))
    table = pd.concat(tables, ignore_index=True)
    first = ["model", "outcome", "condition"]
    return table[[*first, *table.columns.drop(first)]]


def changes(answers: pd.DataFrame) -> pd.DataFrame:
    """Return what each condition changes, with intervals over kinds of problems and,
    in columns that end in _problems, over problems.
    """
    table = pooled(answers).drop(columns="p_holm")
    # Without the slashes of its id, a problem belongs to no kind.
    names = answers.problem_id.str.replace("/", " ")
    by_problem = pooled(answers.assign(problem_id=names))
    for column in (*ENDS[1:], "p_value"):
        table[f"{column}_problems"] = by_problem[column]
    counts = answers.groupby("condition").right.sum()
    table["right_none"] = counts["none"]
    table["right"] = table.condition.map(counts)
    table["p_sign"] = [mcnemar_exact(*row) for row in table[["lost", "gained"]].values]
    return table


def main() -> None:
    """Compare the answers of all folders and write the table."""
    answers = frame(rows_of_runs(__doc__, COMPLETIONS))
    keep(RESULTS / "twice.csv", compared(answers))


if __name__ == "__main__":
    main()
