"""What scores of solutions and answers show: how likely they are under each condition.

nat_table(evaluation.scores(run))  # a row per target, model and condition
"""

import pandas as pd

from lib.evaluation.answer_tables import EFFECT_ENDS, mean_and_ends

NAT_COLUMNS = ["target", "model", "condition", "n", "nats", *EFFECT_ENDS]


def nat_table(scores: pd.DataFrame) -> pd.DataFrame:
    """Return a row per target, model and condition: the mean of log p in nats, and the
    effect, its mean difference per problem to none, or else to the first condition.

    n is the number of problems that both have; there is no row where that is 0.
    """
    rows = []
    for (target, model), table in scores.groupby(["target", "model"], sort=False):
        # The mean of a problem's answers, where there are several.
        by_problem = table.pivot_table(
            index="problem_id", columns="condition", values="nats"
        )
        conditions = list(dict.fromkeys(table["condition"]))
        conditions.sort(key=lambda name: name != "none")
        for condition in conditions:
            differences = by_problem[condition] - by_problem[conditions[0]]
            differences = differences.dropna()
            if differences.empty:
                continue
            row = {"target": target, "model": model, "condition": condition}
            row["n"] = len(differences)
            row["nats"] = by_problem[condition].mean()
            rows.append(row | mean_and_ends(EFFECT_ENDS, differences, "mean"))
    return pd.DataFrame(rows, columns=NAT_COLUMNS)
