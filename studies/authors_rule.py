r"""Accuracy by the authors' grading rule, which depends on the prompt that it reads.

The authors' rule looks for the last `\boxed{...}` of prompt plus answer. Their
instruction carries `\boxed{{}}`, whose content, a pair of braces, is in no gold answer;
ours carries `\boxed{}`, and an empty text is contained in every gold answer. So an
answer without a box is wrong by the rule with their prompt, and right with ours.

    python -m studies.authors_rule

Writes studies/results/authors_rule.csv and prints it: a row per profile, part, model
and condition of the stored answers, with the share that is right, in %, by this
project's grader and by the rule with either prompt and without any. Answers after a
hint are left out, because a hint may contain a box.
"""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from lib.evaluation.answer_tables import answer_groups, mean_and_bounds, right_by_sample
from lib.evaluation.rows import frame
from lib.files.text_files import read
from lib.grading.authors_grader import is_correct_by_authors, with_doubled_braces
from lib.paths import DATA
from lib.prompts.conditions import INSTRUCTION, parse_condition
from lib.statistics.intervals import POINTS

TABLE = Path(__file__).parent / "results" / "authors_rule.csv"
GRADERS = ["ours", "rule_our_prompt", "rule_authors_prompt", "rule_completion"]


def judged(answers: pd.DataFrame) -> pd.DataFrame:
    """Return answers with a column for each of GRADERS: whether it accepts the
    answer.
    """
    verdicts = []
    for row in answers.itertuples():
        # The rule only reads the last box, and that of a prompt is in its instruction;
        # the box of a worked example comes before it.
        is_instructed = parse_condition(row.condition).instructed
        ours = INSTRUCTION if is_instructed else ""
        prompts = ours, with_doubled_braces(ours), ""
        verdicts.append(
            [
                is_correct_by_authors(row.answer, prompt, row.response)
                for prompt in prompts
            ]
        )
    by_rule = pd.DataFrame(verdicts, answers.index, GRADERS[1:])
    return answers.assign(ours=answers["correct"], **by_rule)


def compared(answers: pd.DataFrame) -> Iterator[dict]:
    """Yield a row per model and condition: n, and the accuracy by each of GRADERS with
    its interval, in %.
    """
    for (model, condition), group in answer_groups(judged(answers)).items():
        row = {"model": model, "condition": condition}
        row["n"] = group["problem_id"].nunique()
        for name in GRADERS:
            by_problem = POINTS * right_by_sample(group, name).mean(axis=1)
            row |= mean_and_bounds([name, f"{name}_low", f"{name}_high"], by_problem)
        yield row


def main() -> None:
    """Judge all stored answers and write the table, the main part of each profile
    first.
    """
    files = sorted(
        DATA.glob("*/answers/*.jsonl.gz"),
        key=lambda file: (file.parts[-3] == "demo", file.name != "main.jsonl.gz", file),
    )
    rows = []
    for file in files:
        named = {"profile": file.parts[-3], "part": file.name.partition(".")[0]}
        answers = frame(read(file))
        unhinted = answers[answers.condition != "hint"]
        rows += [named | row for row in compared(unhinted)]
    table = pd.DataFrame(rows)
    table.to_csv(TABLE, index=False, float_format="%.4g")
    print(table[["part", "model", "condition", "n", *GRADERS]].round(1).to_string())


if __name__ == "__main__":
    main()
