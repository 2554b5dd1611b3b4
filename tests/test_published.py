"""One number has one interval, in tables and claims.

What is told is compared as a reader can: each number as exact as its last digit.
"""

import re
from collections import defaultdict
from itertools import combinations

import numpy as np
import pandas as pd
import pytest

from lib import paths
from lib.claims.claim import load_claims
from lib.claims.network_measures import AFFINE
from lib.figures.tables import triples
from lib.measurement.measured_tables import AFFINE_TEXT

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
    "problems",
    "x",
    "span",
    "query",
    "inserted",
    "way",
)
# Columns whose name is in another one.
NAMES = dict.fromkeys(("mean", "value", "ratio"), "measure")
# The figures of nats, by what was scored, and those that show the same numbers.
LIKELIHOODS = {"solution": "likelihood", "answer": "answer_at_once"}
NATS = {
    "likelihood": "likelihood",
    "answer_at_once": "answer_at_once",
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
    numbers = []
    moved = []
    for text in texts:
        decimals = text.partition(".")[2]
        numbers.append(float(text.replace("−", "-")))
        moved.append(0.51 * 10.0 ** -len(decimals))
    return np.array(numbers), np.array(moved)


def exact(numbers):
    """Return stored numbers (3,) as `read` returns printed ones."""
    return np.array(numbers, dtype=float), np.zeros(3)


def apart(one, other):
    """Return whether two numbers with ends differ by more than their printing and SHARE
    of their width; one number beside many gives as many answers.
    """
    a, moved_a = one
    b, moved_b = other
    width = np.maximum(np.ptp(a, axis=-1), np.ptp(b, axis=-1))
    allowed = moved_a + moved_b + SHARE * width[..., None]
    return (np.abs(a - b) > allowed).any(axis=-1)


def of_table(table):
    """Yield (key, (numbers, moved)) for each estimate of a table that is followed by
    its ends, or told with them.
    """
    filled = table.astype(object).where(table.notna(), "")
    for row in filled.to_dict("records"):
        labels = labels_of(row)
        claim = IDS.get(row.get("claim"))
        for name, numbers in estimates_of(row).items():
            measure = row.get(NAMES.get(name, ""), name)
            yield (claim or measure, labels), numbers


def labels_of(row):
    """Return what tells a row's numbers from those of other rows."""
    names = ["model", "n", *LABELS]
    names = [name for name in names if row.get(name, "all") != "all"]
    if row.get("panel", "pairs") != "pairs":  # a course of lengths, places or layers
        names += ["panel", "curve"]
    labels = {name: str(row[name]).removesuffix(".0") for name in names}
    return frozenset(labels.items())


def estimates_of(row):
    """Return by column (numbers, moved) of each estimate of a row with its ends."""
    estimates = {}
    for columns in triples(list(row)):
        numbers = [row[column] for column in columns]
        if "" not in numbers:
            estimates[columns[0]] = exact(numbers)
    for name, text in row.items():
        told = TOLD.match(str(text))
        if told:
            estimates[name] = read(told.groups())
    return estimates


def of_claims(table):
    """Yield each claim's number under its own name, and under that of the table which
    has it too.
    """
    tested = table[table.n > 0].dropna(subset="low")
    for row in tested.to_dict("records"):
        ends = np.array([row["effect"], row["low"], row["high"]])
        known = {"model": row["model"], "n": f"{row['n']:.0f}"}
        yield (row["id"], frozenset(known.items())), exact(ends)

        place = elsewhere(CLAIMS[row["id"]], row.get("part"))
        if place is not None:
            name, labels, transformed = place
            both = known | labels
            yield (name, frozenset(both.items())), exact(transformed(ends))


def same(ends):
    return ends


def turned(ends):
    """The number with its ends of what is counted the other way round."""
    return -ends[[0, 2, 1]]


def inverse(ends):
    return np.exp(turned(ends))


def elsewhere(claim, component):
    """Return the name, labels and transformation of a claim's component in the tables;
    None if no table has it.
    """
    if not isinstance(component, str):
        return None
    within = IN_TABLES.get(claim.measure)
    return within(claim.arguments, component) if within else None


def lambda_of_a_head(arguments, component):
    if not component.startswith("head "):
        return None
    labels = {
        "condition": arguments["condition"],
        "layer": "1",
        "head": component.split()[1],
    }
    return "lambda", labels, same


def effect_on_accuracy(arguments, component):
    more, less = component.split(" - ")
    if less == "none":
        return "effect", {"condition": more}, same
    if more == "none":
        return "effect", {"condition": less}, turned
    return None


def difference_in_nats(arguments, component):
    compared = component.replace(" - ", " − ")
    return LIKELIHOODS[arguments["target"]], {"x": compared}, same


def change_of_activations(arguments, component):
    measure, _, direction = component.rpartition(" ")
    labels = {"condition": arguments["condition"], "layer": "1"}
    return measure, labels, np.exp if direction == "up" else inverse


def difference_of_classes(arguments, component):
    labels = {"condition": arguments["condition"], "class": component}
    return "against others", labels, same


def likeness_of_shape(arguments, component):
    return "shape", {"condition": arguments["condition"], "layer": "1"}, same


def fit_of_eq_2(arguments, component):
    forms = {text: name for name, text in AFFINE.items()}
    return AFFINE_TEXT[forms[component]], {}, same


# By a claim's measure.
IN_TABLES = {
    "lambdas": lambda_of_a_head,
    "accuracy_differences": effect_on_accuracy,
    "likelihood_differences": difference_in_nats,
    "activation_changes": change_of_activations,
    "class_differences": difference_of_classes,
    "likeness": likeness_of_shape,
    "affine_fit": fit_of_eq_2,
}


def collected(profile):
    """Return by key every number of a profile's tables: (numbers, moved, where)."""
    entries = defaultdict(list)
    for path in sorted((paths.FIGURES / profile).glob("*.csv")):
        table = pd.read_csv(path)
        if path.stem in NATS:
            table = table.rename(columns={"effect": NATS[path.stem]})
        of_this = of_claims if path.stem.startswith("claims") else of_table
        for key, (numbers, moved) in of_this(table):
            entries[key].append((numbers, moved, path.name))
    return entries


def differing(published):
    """Return what is published twice with different numbers, as lines."""
    lines = []
    for (name, labels), entries in published.items():
        for a, b in combinations(entries, 2):
            if apart(a[:2], b[:2]):
                both = f"{a[0]} in {a[2]}, {b[0]} in {b[2]}"
                lines.append(f"{name} {dict(labels)}: {both}")
    return lines


@pytest.fixture(scope="module", params=PROFILES)
def published(request):
    return collected(request.param)


def test_no_number_is_published_with_two_intervals(published):
    assert not differing(published)
    twice = 0
    for entries in published.values():
        places = {where for *_, where in entries}
        twice += len(places) > 1
    assert twice >= 4  # else nothing was compared


def test_no_interval_of_few_answers_has_no_width(published):
    widths = []
    for (name, _), entries in published.items():
        if name in ("accuracy", "effect"):
            widths += [np.ptp(numbers[1:]) for numbers, *_ in entries]
    assert widths
    assert all(width > 1 for width in widths)
