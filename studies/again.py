"""How many of the stored answers change in a second run of the same model.

The second run uses other batches, or another processor:

    python -m reproduction evaluate --model Qwen2.5-Coder-1.5B-Instruct \\
        --problems math500 --limit 100 --conditions none --max-new-tokens 768 \\
        --dtype bfloat16 --batch-size 30 --out runs/again
    python -m studies.again main runs/again
    python -m studies.again draw_scores runs/scored-again

The table shows how far an accuracy moves although nothing was changed. The second run
has the settings of the named part of data/profiles/families.yaml: main, comparisons,
direct or draws.

Writes data/families/again.csv, a row per part, model, dtype and pair of processors, and
prints it: the number of answers with another text, of right ones that are wrong the
second time, and of wrong ones that are right. Rows of other runs are kept. For scores
of sampled answers that another processor computed, it writes
studies/results/scores_again.csv: their largest difference in nats under each condition.
"""

import argparse
from pathlib import Path

import pandas as pd

from benchmarks.measuring import machine
from lib.files.text_files import read
from lib.paths import DATA
from reproduction import evaluation
from reproduction.evaluation.profile_parts import parts_of_profile
from reproduction.evaluation.rows import frame
from reproduction.profiles import load_profile
from studies.keeping import RESULTS, keep

AGAIN = DATA / "families" / "again.csv"
SCORES_AGAIN = RESULTS / "scores_again.csv"
RUNS = ["part", "model", "dtype", "processor", "processor_again"]
CHANGES = ["other_text", "lost", "gained"]


def compared(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return a row per group of RUNS with n, the number of answers in both runs, and
    the counts of CHANGES.

    first, second: completions of one part, from `reproduction.evaluation.rows.frame`;
    an answer has the same key in both.
    """
    same = ["key", "part", "model", "dtype"]
    both = first.merge(second, on=same, suffixes=("", "_again"))
    both["other_text"] = both.response != both.response_again
    both["lost"] = both.right & ~both.right_again
    both["gained"] = ~both.right & both.right_again
    groups = both.groupby(RUNS, sort=False)
    table = groups[CHANGES].sum().astype(int)
    table.insert(0, "n", groups.size())
    return table


def scores_compared(first: pd.DataFrame, second: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, condition and pair of processors: the number of scores
    that both have computed, and their largest difference in nats.

    first, second: one row per score, from a run of `likelihood`.
    """
    same = ["key", "model", "condition", "dtype"]
    both = first.merge(second, on=same, suffixes=("", "_again"))
    both = both[both.processor != both.processor_again]
    both["difference"] = (both.nats - both.nats_again).abs()
    runs = ["model", "condition", "dtype", "processor", "processor_again"]
    groups = both.groupby(runs, sort=False).difference
    return groups.agg(n="size", largest="max")


def main() -> None:
    """Compare the rows of a folder with the stored ones and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("part")
    parser.add_argument("folder", type=Path)
    options = parser.parse_args()
    families = load_profile("families")
    if options.part == "draw_scores":
        rows = pd.DataFrame(read(*options.folder.glob("scores*.jsonl")))
        stored = parts_of_profile(families)[options.part].rows()
        table = scores_compared(pd.DataFrame(stored), rows)
        keep(SCORES_AGAIN, table.reset_index())
        return
    first = evaluation.answers(families, options.part)
    rows = read(*options.folder.glob("completions*.jsonl"))
    table = compared(first, frame(rows, options.part))
    kept = pd.read_csv(AGAIN).set_index(RUNS)
    others = kept[~kept.index.isin(table.index)]
    every = pd.concat([others, table.assign(**machine())])
    every.to_csv(AGAIN)
    print(every[list(table)].to_string())


if __name__ == "__main__":
    main()
