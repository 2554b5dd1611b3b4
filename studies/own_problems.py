r"""Answers without reasoning to the embedded problems, by two definitions of right.

Without reasoning, a small model often boxes the expression in the problem. It equals
the gold answer, but the model has not worked anything out.

    python -m reproduction evaluate --model demo --problems embedded --format chat \
        --conditions none,mless,mless@end,dots:50@end,pause:50@end,repeat \
        --max-new-tokens 0 --elicit --dtype float32 --out runs/own-chat
    python -m studies.own_problems runs/own-chat...

Writes studies/results/own_problems.csv and prints it: a row per model and condition
with the share of answers that are worked out, and of all that equal the gold answer,
in %, and their differences from none in points. Problems of a kind count as one.
"""

import pandas as pd

from reproduction.evaluation.answer_tables import summarise
from reproduction.evaluation.rows import frame
from studies.keeping import RESULTS, keep, rows_of_runs

NUMBERS = ["accuracy", "low", "high", "effect", "effect_low", "effect_high", "p_value"]
EQUAL = {name: f"equal_{name}" for name in NUMBERS} | {"accuracy": "equal"}


def compared(answers: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and condition: n, the NUMBERS of answers that are worked
    out, and the same numbers of all answers that equal the gold answer.
    """
    worked_out = summarise(answers)
    equal = summarise(answers.assign(right=answers["correct"]))
    kept = worked_out[["model", "condition", "n", *NUMBERS]]
    return kept.join(equal[NUMBERS].rename(columns=EQUAL))


def main() -> None:
    """Compare the answers of all folders and write the table."""
    table = compared(frame(rows_of_runs(__doc__, "completions*.jsonl")))
    keep(RESULTS / "own_problems.csv", table)


if __name__ == "__main__":
    main()
