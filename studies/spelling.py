"""The effect of a comma in the instruction, as a placebo for the effect of slashes.

The instruction is often written "Please reason step by step, and put ..."; ours lacks
the comma. The other spelling is scored as a prompt without an instruction (`bare`)
whose problem begins with it:

    python -m studies.spelling problems math500 > runs/spelled.jsonl
    python -m reproduction likelihood --model demo \\
        --problems runs/spelled.jsonl --limit 100 --conditions bare --out runs/spelled
    python -m studies.spelling compare runs/spelled...

Writes studies/results/spelling.csv and prints it: a row per model with the change by
the comma in log p of the reference solution, in nats, and that by slashes on the same
problems. This study was planned after the likelihoods under slashes were known.
"""

import argparse
from pathlib import Path

import pandas as pd

from lib.files.text_files import read
from lib.prompts.conditions import INSTRUCTION
from lib.prompts.problems import Problem, load_problems
from reproduction import evaluation
from reproduction.evaluation.answer_tables import mean_and_bounds
from reproduction.evaluation.rows import SCORES
from reproduction.profiles import load_profile
from studies.keeping import RESULTS, keep

SPELLED = INSTRUCTION.replace("step by step and", "step by step, and")
CHANGES = {"comma": "spelled", "slashes": "mless"}


def spelled(problem: Problem) -> Problem:
    """Return a problem that begins with the other spelling of the instruction."""
    return problem.model_copy(update={"problem": f"{SPELLED} {problem.problem}"})


def compared(of_spelled: pd.DataFrame, stored: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model with the changes by the comma and by slashes.

    of_spelled: scores under the other spelling; stored: scores of solutions under none
    and mless.
    """
    rows = []
    for model, scores in of_spelled.groupby("model", sort=False):
        nats = stored[stored["model"] == model].pivot(
            index="problem_id", columns="condition", values="nats"
        )
        nats["spelled"] = scores.set_index("problem_id")["nats"]
        both = nats[["none", "mless", "spelled"]].astype(float).dropna()
        row: dict[str, object] = {"model": model, "n": len(both)}
        for name, condition in CHANGES.items():
            names = [name, f"{name}_low", f"{name}_high"]
            change = both[condition] - both["none"]
            row |= mean_and_bounds(names, change, "mean")
        row["comma_spread"] = (both["spelled"] - both["none"]).std()
        row["slashes_spread"] = (both["mless"] - both["none"]).std()
        rows.append(row)
    return pd.DataFrame(rows)


def main() -> None:
    """Print the problems, or write the table of runs on them."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("problems").add_argument("source")
    commands.add_parser("compare").add_argument("folders", nargs="+", type=Path)
    arguments = parser.parse_args()
    if arguments.command == "problems":
        for problem in load_problems(arguments.source):
            print(spelled(problem).model_dump_json(by_alias=True))
        return
    of_spelled = pd.DataFrame(read(*[folder / SCORES for folder in arguments.folders]))
    every = evaluation.scores(load_profile("families"))
    table = compared(of_spelled, every[every["target"] == "solution"])
    keep(RESULTS / "spelling.csv", table)


if __name__ == "__main__":
    main()
