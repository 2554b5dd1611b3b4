"""The 0.5B's sampled answers of at most 1,536 tokens, as far as they are drawn.

Of its published samples, of at most 512 tokens, a third was cut, which counts as wrong.
They stay as they are; these answers take their place in the verdicts when all planned
problems are drawn and scored (data/claims.yaml).

    python -m studies.longer [ANSWERS SCORES]

With two folders, a run of `evaluate` and its scores, their rows are stored first, in
studies/results/longer, from where the run can go on. Writes studies/results/longer.csv
and prints it: a row as `studies.weights.checks` has it for each pair of conditions that
all deciding answers are scored under. Beside it stands the `margin` in points: what an
odds ratio of 1.09, the paper's gain, is at the rate of right answers without slashes.
"""

import argparse
import gzip
from pathlib import Path

import pandas as pd

from lib.evaluation.pass_rates import scored_draws
from lib.evaluation.rows import frame
from lib.evaluation.store import COMPLETIONS, SCORES, read
from lib.files import write_whole
from lib.statistics.intervals import POINTS
from studies.keeping import RESULTS, keep
from studies.weights import checks

STORED = RESULTS / "longer"
ODDS_RATIO = 1.09  # from 63.9 to 65.9 % right answers (Table 1)


def store(folder: Path, file: str) -> None:
    """Keep the rows of a run beside the table."""
    content = (folder / file).read_bytes()
    STORED.mkdir(exist_ok=True)
    write_whole(STORED / f"{file}.gz", gzip.compress(content, mtime=0))


def margin(rate: float) -> float:
    """Return by how many points ODDS_RATIO raises a rate in %."""
    odds = ODDS_RATIO * rate / (POINTS - rate)
    return POINTS * odds / (1 + odds) - rate


def main() -> None:
    """Write the table of what is stored."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="*", type=Path, help="ANSWERS SCORES")
    folders = parser.parse_args().folders
    for folder, file in zip(folders, (COMPLETIONS, SCORES), strict=False):
        store(folder, file)

    answers = frame(read(STORED / f"{COMPLETIONS}.gz"))
    scores = pd.DataFrame(read(STORED / f"{SCORES}.gz"))
    table = checks(scored_draws(answers, scores))
    under_none = answers[answers["condition"] == "none"]
    right = POINTS * float(under_none["right"].astype(float).mean())
    table = table.assign(right=right, margin=margin(right))
    keep(RESULTS / "longer.csv", table)


if __name__ == "__main__":
    main()
