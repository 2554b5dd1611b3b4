"""Every sentence about the stored verdicts is true: recomputed from their numbers, as a
reader would who doubts it.
"""

import json
import re

import pandas as pd
import pytest

from lib import paths
from lib.claims import words
from lib.claims.claim import load_claims
from lib.statistics import holm, rounded

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
README = (paths.ROOT / "README.md").read_text(encoding="utf-8")
CLAIMS = {claim.id: claim for claim in load_claims()}


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
            row = next(
                (
                    row
                    for row in rows
                    if (row["id"], row["model"]) == (name, model) and row["n"]
                ),
                None,
            )
            word = (
                "not tested"
                if row is None
                else "too few"
                if row["n"] < 20
                else row["verdict"]
            )
            found[word] = found.get(word, 0) + 1
    return found


def test_each_verdict_follows_from_its_own_interval_parts_and_controls(rows):
    for row in (row for row in rows if row["n"] >= 20):
        low, high = (
            (-float("inf") if row["low_end"] is None else row["low_end"]),
            row["high_end"],
        )
        high = float("inf") if high is None else high
        inside, outside = (
            low < row["low"] and row["high"] < high,
            row["high"] < low or row["low"] > high,
        )
        refuted = [name for name in (row["refuted"] or "").split(", ") if name]
        assert (row["verdict"] == "supported") == (
            row["held"] == row["parts"]
        ) and inside >= (row["verdict"] == "supported")
        assert (row["verdict"] == "in part") == (row["held"] > 0 and bool(refuted))
        assert (row["verdict"] == "contradicted") == (
            row["held"] == 0 and bool(refuted)
        )
        assert (
            outside
            or row["verdict"] not in ("contradicted", "in part")
            or row["parts"] > 1
        )
        assert row["training"] is None or row["control_verdict"] == row["verdict"]
        assert CLAIMS[row["id"]].reading == row["reading"]


def test_what_is_lost_is_what_holm_loses(rows):
    tested = [row for row in rows if row["n"]]
    for row, p in zip(tested, holm([row["p"] for row in tested]), strict=True):
        assert row["p_holm"] == pytest.approx(p, rel=1e-4)
        assert bool(row["survives"]) == (row["verdict"] != "undecided" and p <= 0.05)
    lost = [
        row
        for row in tested
        if row["n"] >= 20 and row["verdict"] != "undecided" and row["p_holm"] > 0.05
    ]
    decided = [
        row for row in tested if row["n"] >= 20 and row["verdict"] != "undecided"
    ]
    said = words.closing(pd.DataFrame(rows))[-1]
    assert numbers(said)[:2] == [len(decided) - len(lost), len(decided)]
    assert set(re.findall(r"[\w-]+(?= \(|,|\.$)", said.split(": ")[1])) >= {
        row["id"] for row in lost
    }


def test_the_counts_add_up_to_the_cells_and_are_the_verdicts(rows):
    table, by_hand = pd.DataFrame(rows), counted(rows)
    assert words.totals(table) == by_hand
    claims, models = (
        {row[name] for row in rows if row["reading"] == "literal"}
        for name in ("id", "model")
    )
    assert sum(by_hand.values()) == len(claims) * len(models)
    said = words.lead(table)[0].split(": ", 1)[1].rstrip(".")
    assert dict(reversed(part.split(" ", 1)) for part in said.split(", ")) == {
        k: str(v) for k, v in by_hand.items()
    }
    for wide in words.counts(table).to_dict("records"):
        model = wide.pop("model")
        mine = [
            row for row in rows if row["model"] == model and row["reading"] == "literal"
        ]
        assert wide["supported"] == sum(
            row["verdict"] == "supported" and row["n"] >= 20 for row in mine
        )
        assert sum(wide.values()) == len(claims)


def test_what_training_does_is_the_range_of_the_models(rows):
    diluted = [row for row in rows if row["id"] == "dilution" and row["n"]]
    said, *later = words.finding(pd.DataFrame(rows))
    for of in ("", "control_", "uniform_"):
        for end in (min, max):
            assert round(end(row[f"{of}effect"] for row in diluted), 2) in numbers(said)
    undone = [
        100 * (row["effect"] - row["control_effect"]) / (1 - row["control_effect"])
        for row in diluted
    ]
    assert {round(min(undone)), round(max(undone))} <= set(numbers(said))
    deep = [row for row in rows if row["id"] == "later-layers" and row["n"]]
    assert all(
        f"{row['model']} {rounded(row['effect'], row['low'], row['high'])} ["
        in later[0]
        for row in deep
    )


def test_supported_in_all_some_and_none_is_so(rows):
    for sentence in words.inside(pd.DataFrame(rows))[:3]:
        which, claims = re.match(
            r"Supported in (\w+) of \d models: (.*)\.$", sentence
        ).groups()
        for claim in claims.split("; ") if claims != "nothing" else []:
            part = [
                row["verdict"] == "supported"
                for row in rows
                if row["claim"].startswith(claim) and row["n"] >= 20
            ]
            assert {
                "all": all(part),
                "some": any(part) and not all(part),
                "none": not any(part),
            }[which], claim


def test_the_readme_tells_these_sentences_and_no_others():
    for profile, block in (("families", "families"), ("demo", "claims")):
        table = pd.read_csv(paths.FIGURES / profile / "claims_matrix.csv")
        told = (
            re.search(rf"<!-- begin {block} -->\n(.*?)<!-- end", README, re.S)[1]
            .strip()
            .split("\n")
        )
        known = [*words.inside(table), *words.lead(table), *words.accuracies(table)]
        unknown = [line for line in told if line.removeprefix("- ") not in known]
        assert not [
            line
            for line in unknown
            if not line.startswith("- With slashes λ is below 1 in")
        ], "make readme"
