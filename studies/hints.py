"""Count how often a hint (the first sentence of a solution) has the gold answer.

    python -m studies.hints [PROBLEMS]

PROBLEMS is a JSONL file to use instead of MATH-500 from the hub. Writes
studies/results/hints.csv and prints it: for each model that answered with the hint, a
row for the problems whose hint contains the answer and one for the others, with the
accuracy without and with the hint, and their difference.
"""

import re
import sys

import pandas as pd

from lib.prompts.conditions import parse_condition
from lib.prompts.problems import Problem, load_problems, posed
from reproduction import evaluation
from reproduction.evaluation.answer_tables import summarise
from reproduction.profiles import load_profile
from studies.keeping import RESULTS, keep

HINT = parse_condition("hint")
COLUMNS = ["model", "holds_answer", "n", "accuracy_none", "accuracy"]
COLUMNS += ["effect", "effect_low", "effect_high", "p_value"]


def holds_answer(problem: Problem) -> bool:
    """Return whether the hint contains the gold answer as it is written, and not only
    as part of a longer number or word.
    """
    hint = posed(problem, HINT).removeprefix(problem.problem)
    answer = re.escape(problem.answer)
    return re.search(rf"(?<![\w.]){answer}(?!\w|\.\d)", hint) is not None


def compared(answers: pd.DataFrame, problems: list[Problem]) -> pd.DataFrame:
    """Return the row of `summarise` for the hint, per model and kind of hint, with the
    accuracy without it.
    """
    both = answers[answers.condition.isin(["none", "hint"])]
    given = [problem.id for problem in problems if holds_answer(problem)]
    tables = []
    for holds, rows in both.groupby(both.problem_id.isin(given)):
        table = summarise(rows).assign(holds_answer=holds)
        none = table[table.condition == "none"].set_index("model").accuracy
        hinted = table[table.condition == "hint"]
        tables.append(hinted.assign(accuracy_none=hinted.model.map(none)))
    return pd.concat(tables, ignore_index=True).sort_values(["model", "holds_answer"])


def main() -> None:
    """Write the table of the families' answers."""
    source = sys.argv[1] if len(sys.argv) > 1 else "math500"
    answers = evaluation.answers(load_profile("families"), "comparisons")
    table = compared(answers, load_problems(source))[COLUMNS]
    keep(RESULTS / "hints.csv", table)


if __name__ == "__main__":
    main()
