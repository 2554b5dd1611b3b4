"""How many answers change between right and wrong with no slashes at all."""

import pandas as pd

from lib.paths import DATA
from lib.statistics import POINTS

# Written by studies/again.py.
AGAIN = DATA / "families" / "again.csv"


def noise_sentences(power: pd.DataFrame) -> list[str]:
    """Return how many answers change with slashes, beside how many do when the same
    prompts are asked again in other batches, by model.

    power: a table of `lib.evaluation.answer_tables.power`. Nothing is said of a model
    that studies/again.py did not ask again.
    """
    if power.empty or not AGAIN.is_file():
        return []
    asked_again = pd.read_csv(AGAIN).set_index("model")
    sentences = []
    for row in power[power.condition == "mless"].itertuples():
        if row.model in asked_again.index:
            again = asked_again.loc[row.model]
            share = POINTS * (again.lost + again.gained) / again.n
            sentences.append(
                f"With slashes {row.discordant:.1f} % of the answers of {row.model}"
                f" change between right and wrong; asked again without any,"
                f" {share:.1f} % of {again.n} do (studies/again.py, {again['dtype']})."
            )
    return sentences
