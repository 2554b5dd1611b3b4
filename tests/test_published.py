"""One number has one interval, in tables and claims, and sentences of notebooks and
README tell no other.

What is told is compared as a reader can: each number as exact as its last digit.
"""

import re
from collections import defaultdict
from itertools import combinations

import nbformat
import numpy as np
import pandas as pd
import pytest

from lib import evaluation, paths
from lib.claims.claim import load_claims
from lib.claims.network_measures import AFFINE
from lib.claims.verdict import stored_verdicts
from lib.evaluation import answer_tables
from lib.figures.tables import triples
from lib.measurement.measured_tables import AFFINE_TEXT
from lib.profiles import load_profile

# What tells a number from the others of its column, besides model and n.
LABELS = (
    "condition",
    "layer",
    "head",
    "class",
    "cause",
    "grader",
    "level",
    "subject",
    "samples",
    "source",
)
LABELS += ("problems", "x", "span", "query", "inserted")
NAMES = {
    "mean": "measure",
    "value": "measure",
    "ratio": "measure",
}  # columns whose name is in another one
LIKELIHOODS = {
    "solution": "likelihood",
    "answer": "answer_at_once",
}  # the figures of nats, by what was scored
NATS = {name: name for name in LIKELIHOODS.values()} | {
    "likelihood_courses": "likelihood",
    "overview": "likelihood",
}
SHARE = 0.01  # of an interval's width: a smaller difference is no other interval
NUMBER = r"[-+−]?\d+(?:\.\d+)?"
TOLD = re.compile(rf"({NUMBER})(?: points)? \[({NUMBER}), ({NUMBER})\]")
CLAIMS = {claim.id: claim for claim in load_claims()}
IDS = {claim.claim: claim.id for claim in CLAIMS.values()}
PROFILES = sorted(folder.name for folder in paths.FIGURES.iterdir())


def read(texts):
    """Return printed numbers (3,) and by how much printing may have moved each (3,)."""
    texts = [text.replace("−", "-") for text in texts]
    return np.array(texts, dtype=float), np.array(
        [0.51 * 10.0 ** -len(text.partition(".")[2]) for text in texts]
    )


def exact(numbers):
    """Return stored numbers (3,) as `read` returns printed ones."""
    return np.array(numbers, dtype=float), np.zeros(3)


def apart(one, other):
    """Return whether two numbers with ends differ by more than their printing and SHARE
    of their width.
    """
    (a, moved_a), (b, moved_b) = one, other
    return bool(
        (np.abs(a - b) > moved_a + moved_b + SHARE * max(np.ptp(a), np.ptp(b))).any()
    )


def of_table(table):
    """Yield (key, (numbers, moved)) for each estimate of a table that is followed by
    its ends, or told with them.
    """
    names = list(table)
    for row in table.astype(object).where(table.notna(), "").to_dict("records"):
        told = [
            name for name in ("model", "n", *LABELS) if row.get(name, "all") != "all"
        ]
        told += ["panel", "curve"] * (
            row.get("panel", "pairs") != "pairs"
        )  # a course of lengths, places or layers
        known = {name: str(row[name]).removesuffix(".0") for name in told}
        whole = [some for some in triples(names) if "" not in map(row.get, some)]
        found = {some[0]: exact([row[name] for name in some]) for some in whole}
        found |= {
            name: read(told.groups())
            for name, text in row.items()
            if (told := TOLD.match(str(text)))
        }
        claim = IDS.get(row.get("claim"))
        for name, numbers in found.items():
            yield (
                (claim or row.get(NAMES.get(name, ""), name), frozenset(known.items())),
                numbers,
            )


def of_claims(table):
    """Yield each claim's number under its own name, and under that of the table which
    has it too.
    """
    for row in table[table.n > 0].dropna(subset="low").to_dict("records"):
        ends = np.array([row["effect"], row["low"], row["high"]])
        known = {"model": row["model"], "n": f"{row['n']:.0f}"}
        yield (row["id"], frozenset(known.items())), exact(ends)
        if (other := elsewhere(CLAIMS[row["id"]], row.get("part"))) is not None:
            name, labels, turned = other
            yield (name, frozenset((known | labels).items())), exact(turned(ends))


def elsewhere(claim, component):
    """Return the name, labels and transformation of a claim's component in the tables;
    None if no table has it.
    """
    given, same = claim.arguments, lambda ends: ends
    if not isinstance(component, str):
        return None
    if claim.measure == "lambdas" and component.startswith("head "):
        return (
            "lambda",
            {
                "condition": given["condition"],
                "layer": "1",
                "head": component.split()[1],
            },
            same,
        )
    if claim.measure == "accuracy_differences":
        more, less = component.split(" - ")
        if less == "none":
            return "effect", {"condition": more}, same
        return (
            ("effect", {"condition": less}, lambda ends: -ends[[0, 2, 1]])
            if more == "none"
            else None
        )
    if claim.measure == "likelihood_differences":
        return (
            LIKELIHOODS[given["target"]],
            {"x": component.replace(" - ", " − ")},
            same,
        )
    if claim.measure == "activation_changes":
        measure, _, direction = component.rpartition(" ")
        labels = {"condition": given["condition"], "layer": "1"}
        return (
            measure,
            labels,
            np.exp if direction == "up" else lambda ends: np.exp(-ends[[0, 2, 1]]),
        )
    if claim.measure == "class_differences":
        return (
            "against others",
            {"condition": given["condition"], "class": component},
            same,
        )
    if claim.measure == "likeness":
        return "shape", {"condition": given["condition"], "layer": "1"}, same
    forms = {text: name for name, text in AFFINE.items()}
    return (
        (AFFINE_TEXT[forms[component]], {}, same)
        if claim.measure == "affine_fit"
        else None
    )


def collected(profile):
    """Return by key every number of a profile's tables: (numbers, moved, where)."""
    found = defaultdict(list)
    for path in sorted((paths.FIGURES / profile).glob("*.csv")):
        table = pd.read_csv(path)
        table = table.rename(
            columns={"effect": NATS[path.stem]} if path.stem in NATS else {}
        )
        for key, (numbers, moved) in (
            of_claims(table) if path.stem.startswith("claims") else of_table(table)
        ):
            found[key].append((numbers, moved, path.name))
    return found


def differing(found):
    """Return what is published twice with different numbers, as lines."""
    return [
        f"{name} {dict(labels)}: {a[0]} in {a[2]}, {b[0]} in {b[2]}"
        for (name, labels), entries in found.items()
        for a, b in combinations(entries, 2)
        if apart(a[:2], b[:2])
    ]


@pytest.fixture(scope="module", params=PROFILES)
def found(request):
    return collected(request.param)


def test_no_number_is_published_with_two_intervals(found):
    assert not differing(found)
    twice = [
        key
        for key, entries in found.items()
        if len({where for *_, where in entries}) > 1
    ]
    assert len(twice) >= 4  # else nothing was compared


def test_no_interval_of_few_answers_has_no_width(found):
    accuracies = [
        entry
        for (name, _), entries in found.items()
        if name in ("accuracy", "effect")
        for entry in entries
    ]
    assert accuracies and all(np.ptp(numbers[1:]) > 1 for numbers, *_ in accuracies)


def test_no_interval_is_told_that_no_table_has():
    known = [
        entry[:2]
        for profile in PROFILES
        for some in collected(profile).values()
        for entry in some
    ]
    for profile in PROFILES:
        table = pd.read_csv(stored_verdicts(profile))
        for name in ("uniform_effect", "keys_effect", "finished"):
            ends = [name.replace("_effect", "") + end for end in ("_low", "_high")]
            known += map(exact, table[[name, *ends]].dropna().to_numpy())
    answers = evaluation.answers(load_profile("families"))
    graded = answer_tables.graders(answers)[["effect", "effect_low", "effect_high"]]
    known += map(exact, graded.dropna().to_numpy())
    told = [
        (text, "README.md")
        for text in TOLD.findall((paths.ROOT / "README.md").read_text(encoding="utf-8"))
    ]
    for path in paths.notebooks():
        for cell in nbformat.read(path, as_version=4).cells:
            printed = "".join(
                output.get("text", "") for output in cell.get("outputs", ())
            )
            told += [(text, path.stem) for text in TOLD.findall(printed)]
    unknown = [
        (text, where)
        for text, where in told
        if all(apart(read(text), one) for one in known)
    ]
    assert len(told) > 40 and not unknown
