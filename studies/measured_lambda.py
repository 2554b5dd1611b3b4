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
from lib.attention.received import received_attention
from lib.models.loading import Loaded, load
from lib.paths import DATA
from lib.prompts.building import Prompt
from lib.prompts.conditions import EVERY_LAYER, Condition
from lib.prompts.problems import load_problems
from reproduction import evaluation
from reproduction.measurement.attention_changes import averaged_tokens, prompts_of
from reproduction.profiles import load_profile

FILE = DATA / "authors" / "lambda.csv"


def lambda_in_layer_1(loaded: Loaded, plain: Prompt, inserted: Prompt) -> float:
    """Return lambda of a prompt with an insertion, compared with the one without."""
    after, before = averaged_tokens(inserted)
    with_it = received_attention(loaded.model, inserted.input_ids, [1])[0, 0]
    without = received_attention(loaded.model, plain.input_ids, [1])[0, 0]
    return (with_it[:, after].mean() / without[:, before].mean()).item()


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
        plain = prompts.pop("none")
        columns: dict[str, object] = {"model": loaded.name, "problem_id": ids}
        with progress.bar(loaded.name, len(prompts), "condition") as bar:
            for condition, inserted in prompts.items():
                columns[condition] = [
                    lambda_in_layer_1(loaded, plain[id], inserted[id]) for id in ids
                ]
                bar.update()
        tables.append(pd.DataFrame(columns))
    pd.concat(tables).to_csv(FILE, index=False, float_format="%.5f")


def _is_measured(condition: Condition) -> bool:
    return condition.inserted != "none" and condition.view == EVERY_LAYER


if __name__ == "__main__":
    progress.shown = True
    main()
