"""Measure how much each insertion dilutes attention in the authors' prompt.

    python -m studies.measured_lambda

For every model and problem whose reference solution was scored with that prompt, this
writes lambda in layer 1 under each condition into data/authors/lambda.csv: a row per
model and problem, a column per condition. Lambda is the attention that the original
tokens receive with the insertion, divided by what they receive without it, both as
means over heads and tokens. The script needs the wheels of requirements/families.txt
and the texts of MATH-500, and takes a minute. The table lambda_and_nats of
`studies.stored_answers` has the changes in log-likelihood beside it.
"""

import pandas as pd

from lib import progress
from lib.models.loading import load
from lib.paths import DATA
from lib.prompts.conditions import EVERY_LAYER, Condition
from lib.prompts.problems import load_problems
from reproduction import evaluation
from reproduction.measurement.attention_changes import measure_attention, prompts_of
from reproduction.profiles import load_profile

FILE = DATA / "authors" / "lambda.csv"


def main() -> None:
    """Measure every condition whose insertion all layers see."""
    run = load_profile("authors")
    section = run.require("likelihood")
    scores = evaluation.scores(run)
    problems = {problem.id: problem for problem in load_problems(section.problems)}
    conditions = [str(one) for one in section.conditions if _is_measured(one)]
    tables = []
    for spec in section.models:
        loaded = load(spec, layers=1)
        ids = scores.problem_id[scores.model == loaded.name].unique()
        scored = [problems[id] for id in ids]
        prompts = prompts_of(loaded, scored, conditions, section.format, run.filler)
        measured = measure_attention(loaded, prompts, [1])["lambda_over_heads"]
        of_layer = measured.sel(layer=1, span="original", query="all")
        table = of_layer.transpose("problem", "condition").to_pandas()
        table.insert(0, "model", loaded.name)
        tables.append(table.rename_axis("problem_id").reset_index())
    pd.concat(tables).to_csv(FILE, index=False, float_format="%.5f")


def _is_measured(condition: Condition) -> bool:
    return condition.inserted != "none" and condition.view == EVERY_LAYER


if __name__ == "__main__":
    progress.shown = True
    main()
