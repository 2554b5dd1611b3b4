"""What asking again changes: stored answers beside those of a second run.

In other batches, or on another processor:

    python -m lib evaluate --model Qwen2.5-Coder-1.5B-Instruct --problems math500 \\
        --limit 100 --conditions none --max-new-tokens 768 --dtype bfloat16 \\
        --batch-size 30 --out runs/again
    python -m studies.again runs/again...

An accuracy moves by that much with nothing changed. The second run asks as
data/profiles/families.yaml does. Writes data/families/again.csv, a row per model,
dtype and pair of processors, and prints it: answers with another text, right ones that
are wrong the second time, and wrong ones that are right.
"""

from lib import evaluation
from lib.evaluation.rows import frame
from lib.paths import DATA
from lib.profiles import load_profile
from studies.keeping import keep, rows_of_runs

AGAIN = DATA / "families" / "again.csv"
# What an answer is known by, asked once or again.
SAME_ANSWER = ["model", "revision", "dtype", "condition", "problem_id", "sample"]


def main() -> None:
    """Compare the answers of all folders with the stored ones and write the table."""
    first = evaluation.answers(load_profile("families"))
    second = frame(rows_of_runs(__doc__, "completions*.jsonl"))
    both = first.merge(second, on=SAME_ANSWER, suffixes=("", "_again"))
    both["other_text"] = both.response != both.response_again
    both["lost"] = both.right & ~both.right_again
    both["gained"] = ~both.right & both.right_again

    runs = ["model", "dtype", "processor", "processor_again"]
    groups = both.groupby(runs, sort=False)
    table = groups[["other_text", "lost", "gained"]].sum().astype(int)
    table.insert(0, "n", groups.size())
    keep(AGAIN, table.reset_index())


if __name__ == "__main__":
    main()
