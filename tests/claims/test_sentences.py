"""Every sentence about the stored verdicts is true: recomputed from their numbers, as a reader would who doubts it."""

import json
import re

import pandas as pd
import pytest

from lib import paths
from lib.claims import words
from lib.statistics import rounded

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")


@pytest.fixture(params=["demo", "families"])
def rows(request):
    """The rows of a profile's claims.json, from the table beside its figure."""
    table = pd.read_csv(paths.FIGURES / request.param / "claims_matrix.csv")
    return json.loads(table.to_json(orient="records"))


def numbers(text):
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def counted(rows):
    """How the literal claims stand on each model, by hand."""
    found = {}
    for name in {row["id"] for row in rows if row["reading"] == "literal"}:
        for model in {row["model"] for row in rows}:
            row = next((row for row in rows if (row["id"], row["model"]) == (name, model) and row["n"]), None)
            word = "not tested" if row is None else "too few" if row["n"] < 20 else row["verdict"]
            found[word] = found.get(word, 0) + 1
    return found


def test_the_counts_add_up_to_the_cells_and_are_the_verdicts(rows):
    table, by_hand = pd.DataFrame(rows), counted(rows)
    assert words.totals(table) == by_hand
    said = words.lead(table)[0].split(": ", 1)[1].rstrip(".")
    assert dict(reversed(part.split(" ", 1)) for part in said.split(", ")) == {k: str(v) for k, v in by_hand.items()}
    claims = {row["id"] for row in rows if row["reading"] == "literal"}
    for wide in words.counts(table).to_dict("records"):
        model = wide.pop("model")
        mine = [row for row in rows if row["model"] == model and row["reading"] == "literal"]
        assert wide["supported"] == sum(row["verdict"] == "supported" and row["n"] >= 20 for row in mine)
        assert sum(wide.values()) == len(claims)


def test_what_training_does_is_the_range_of_the_models(rows):
    diluted = [row for row in rows if row["id"] == "dilution" and row["n"]]
    said, *later = words.finding(pd.DataFrame(rows))
    for of in ("", "control_", "uniform_"):
        for end in (min, max):
            assert round(end(row[f"{of}effect"] for row in diluted), 2) in numbers(said)
    undone = [100 * (row["effect"] - row["control_effect"]) / (1 - row["control_effect"]) for row in diluted]
    assert {round(min(undone)), round(max(undone))} <= set(numbers(said))
    deep = [row for row in rows if row["id"] == "later-layers" and row["n"]]
    assert all(f"{row['model']} {rounded(row['effect'], row['low'], row['high'])} [" in later[0] for row in deep)
