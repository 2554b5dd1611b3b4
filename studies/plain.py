"""What the prompt's form changes: likelihoods in the paper's plain one, beside chat.

The likelihoods of data/families are of chat prompts where a model has them. The authors
gave instruction and problem as they are, also to models that know chats:

    python -m lib likelihood --model demo --problems math500 --limit 100 \\
        --format plain --conditions none,mless,random,mful,hidden-from-layer-1 \\
        --dtype float32 --out runs/plain
    python -m studies.plain runs/plain...

Writes studies/results/plain.csv and prints it: a row per model and pair of conditions
with their difference in log p(solution) under plain prompts, and under chat prompts on
the same problems where these are stored, in nats.
"""

import argparse
from pathlib import Path

import pandas as pd

from lib import evaluation
from lib.evaluation.store import SCORES, read
from lib.profiles import load_profile
from lib.statistics import interval
from studies.keeping import RESULTS, keep

PAIRS = [
    ("mless", "none"),
    ("random", "none"),
    ("mful", "none"),
    ("mless", "hidden-from-layer-1"),
]


def nats_by_problem(scores: pd.DataFrame) -> pd.DataFrame:
    """Return log p(solution) of one model, a row per problem, a column per
    condition.
    """
    solutions = scores[scores.target == "solution"]
    return solutions.pivot(index="problem_id", columns="condition", values="nats")


def difference(nats: pd.DataFrame, more: str, less: str) -> dict[str, float]:
    """Return the mean difference of two conditions with its interval, n and median;
    nothing where one of them was not scored.
    """
    if not {more, less} <= set(nats):
        return {}
    apart = (nats[more] - nats[less]).dropna()
    mean = interval(apart, apart.index)
    return {
        "effect": mean.estimate,
        "low": mean.low,
        "high": mean.high,
        "n": mean.n,
        "median": apart.median(),
    }


def compared(plain: pd.DataFrame, chat: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model and pair of conditions of scores in both forms."""
    rows = []
    for model, scores in plain.groupby("model", sort=False):
        in_plain = nats_by_problem(scores)
        in_chat = nats_by_problem(chat[chat.model == model])
        in_chat = in_chat[in_chat.index.isin(in_plain.index)]
        for more, less in PAIRS:
            row = {"model": model, "more": more, "less": less}
            row |= difference(in_plain, more, less)
            for name, value in difference(in_chat, more, less).items():
                row[f"{name}_in_chat"] = value
            rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Compare the scores of all folders with the stored ones and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folders", nargs="+", type=Path)
    folders = parser.parse_args().folders
    plain = pd.DataFrame(read(*[folder / SCORES for folder in folders]))
    table = compared(plain, evaluation.scores(load_profile("families")))
    keep(RESULTS / "plain.csv", table)
    print(table.round(2).to_string(index=False))


if __name__ == "__main__":
    main()
