"""The numbers of README.md and docs/report.md, as the stored results give them.

    python -m docs.numbers

Both documents are written by hand. Every row of tables must stand in one of them, every
phrase of the statements must be true, and every number of their sentences must be in
their tables, among the values, or in CONSTANTS or PILOT. The command prints what
differs, and tests/test_documents.py fails if anything does.
"""

import re
import sys
from collections.abc import Iterable, Iterator
from itertools import chain
from statistics import mean

from docs import stored
from docs.stored import about, contrast, paper_gain, verdicts
from docs.write import cells, gains, names
from reproduction import paths

DOCUMENTS = ("README.md", "docs/report.md")
BIG = "Qwen2.5-Coder-1.5B-Instruct"
SMALL = "Qwen2.5-Coder-0.5B-Instruct"
# Settings, and numbers of the paper and of other papers. Integers up to ten are not
# compared, since most of them are names, such as layer 1.
CONSTANTS = "0.3 3.2 1.5 2.7 3.11 55 95 80 100 192 220 448 500 512 768 1536 0.6"
CONSTANTS += " 11 12 13 18 30 47 60 70 90 54.6 3.8 300"
# The pilot with the authors' form of the prompt, whose rows are not stored.
PILOT = {
    "24",
    "1.4 [+0.7, +2.2]",
    "0.9 [-0.1, +1.9]",
    "1.41 [+0.69, +2.20]",
    "0.89 [-0.09, +1.93]",
    "0.40 [-0.06, +0.87]",
}
NO_PROSE = re.compile(r"```.*?```|\]\([^)]*\)|`[^`]*`|\b\d{4}\.\d{5}\b", re.S)
# An estimate with its interval, or a number that is not part of a name.
ESTIMATE = r"[+-]?\d[\d.]* \[[^\]]+\]"
NUMBER = re.compile(ESTIMATE + r"|(?<![\w.-])\d[\d,]*(?:\.\d+)?(?![\w.]*[A-Za-z])")

WITH_N = "{0.estimate:+}{dagger} ({0.n})"
CHANGE = "{0.estimate:+}{dagger}"
# The row of README about a claim, and the claim.
JUDGED = {
    "lower the attention on instruction and problem in layer 1": "dilution",
    "lower the attention on the problem alone in layer 1": "dilution-problem",
    "attention on the prompt in layer 1 more than in layers 2 and 3": "layer-1-most",
    "scale layer 1's attention output by one factor and shift it": "affine",
    "move the activations of the first MLP away from zero": "redistribution",
    r"make the reference solution more likely \*": "likelihood-gain",
    r"the reference solution more likely through layer 1 \*": "likelihood-layer-1",
    r"solution more likely than ten slashes do \*": "ablation-ten-slashes",
    r"solution less likely if they precede the instruction \*": "ablation-before",
    "raise accuracy with reasoning (greedy answers)": "accuracy-mless",
    r"raise accuracy with reasoning (weighted samples) \*": "points-slashes",
    "activations as ARM, the paper's second method, does": "arm-like-mless",
}

CHANGED = {
    "weighted samples (points; n = 500)": "points-slashes",
    "changes activations and not the prompt": "points-arm",
    "accuracy without reasoning (points; n = 500)": "direct-slashes",
    "appears only if layer 1 sees the slashes (nats)": "likelihood-layer-1",
}
REPORTED = {
    "reference solution, nats": "likelihood-gain",
    "the part of it through layer 1, nats": "likelihood-layer-1",
    "greedy answers, points": "accuracy-mless",
    "sampled answers, points": "points-slashes",
    "seen by layers 1 to 8 alone": "ablation-early-layers",
    "seen by layers after 8 alone": "ablation-late-layers",
    "55 slashes, instead of ten": "ablation-ten-slashes",
}
CONTRASTED = {
    "a gap, instead of none": ("gap", "none"),
    "slashes, instead of the gap": ("mless", "gap"),
}


def study(name: str, **fields: object) -> list:
    """Return the rows of a table of studies/results with these values."""
    rows = stored.rows(f"studies/results/{name}.csv")
    return [row for row in rows if fields.items() <= vars(row).items()]


def above(rows: list, name: str = "estimate") -> list:
    """Return the rows in which the interval of a field lies above 0."""
    return [row for row in rows if getattr(row, name).lies_above(0)]


def below(rows: list, name: str = "estimate") -> list:
    """Return the rows in which the interval of a field lies below 0."""
    return [row for row in rows if getattr(row, name).lies_below(0)]


def losses(claim: str) -> list:
    """Return the verdicts on a claim that are significant and below 0."""
    return [row for row in below(about(claim)) if row.survives]


def weighted() -> tuple:
    """Return the rows of weights.csv on slashes, of the larger model first."""
    return tuple(study("weights", treatment="mless", reference="none"))


def limits() -> tuple[list, list]:
    """Return the larger model's rows by token limit, of greedy and sampled answers."""
    return study("limits", model=BIG), study("sampled_limits", model=BIG)


def contrast_cells(treatment: str, reference: str, text: str = "{0.change:+}") -> str:
    """Return the cells of a table with a contrast of each model."""
    return "|".join(text.format(row) for row in contrast(treatment, reference))


def rows_of_readme() -> Iterator[str]:
    """Yield the ends of rows of README's tables, and of its comments on commands."""
    right = [
        study("authors_rule", condition="none", model=name)[0] for name in (BIG, SMALL)
    ]
    without = " and ".join(f"{row.ours.effect:.1f}" for row in right)
    n = listed(about("accuracy-mless"), " and ")
    greedy = cells("accuracy-mless", CHANGE)
    yield f"(points; n = {n}; {without} % right without slashes)|{greedy}|"
    for label, claim in CHANGED.items():
        yield f"{label}|{cells(claim, CHANGE)}|"
    easier = study("twice", condition="mless", outcome="right")
    by_model = {row.set: row.effect for row in easier}
    changes = "|".join(f"{by_model[row.model]:+}" for row in about("dilution"))
    yield f"project (points, not corrected)|{changes}|"
    nats = cells("likelihood-gain", CHANGE)
    yield f"(nats; n = {listed(about('likelihood-gain'))})|{nats}|"
    of_example = cells("likelihood-gain", "{0.of_example:+}")
    yield f"worked example in the prompt gains|{of_example}|"
    through = "mless", "hidden-from-layer-1"
    shorter = contrast_cells(*through)
    yield f"not corrected; n = {listed(contrast(*through))})|{shorter}|"
    for label, claim in JUDGED.items():
        yield f"{label}|{cells(claim, '{word}{untrained}')}|"
    install, reproduce, test = stored.rows("benchmarks/results/commands.csv")
    yield f"once: {install.minutes} minutes, {install.disk_gb} GB"
    yield f"results: {reproduce.minutes} minutes on {install.cores} CPU cores"
    yield f"all checks and tests: {test.minutes} to 10 minutes"


def listed(rows: list, between: str = ", ") -> str:
    """Return the numbers of problems of some rows."""
    return between.join(str(row.n) for row in rows)


def rows_of_report() -> Iterator[str]:
    """Yield the ends of the rows of the report's tables."""
    yield f"(1: no change)|{cells('dilution', '{0.estimate} ({0.n})')}|"
    for label, claim in REPORTED.items():
        yield f"{label}|{cells(claim, WITH_N)}|"
    for label, pair in CONTRASTED.items():
        yield f"{label}|{contrast_cells(*pair, '{0.change:+} ({0.n})')}|"


def values_of_attention() -> Iterator[tuple]:
    """Yield formats, and numbers of sentences on attention that are in no table."""
    dilution = about("dilution")
    taken = study("attention_taken", inserted="random")
    for inserted in ("slashes", "taken"):
        yield "{:.0f}", *ends(getattr(row, inserted) for row in taken)
    yield "{:.0f}", *ends(100 * row.effect for row in about("affine"))
    yield "{:.2f}", *ends(row.effect for row in dilution)
    yield "{:.2f}", *ends(row.control.effect for row in dilution)
    for inserted in ("mless", "random"):
        later = [row for row in stored.sinks() if row.condition == inserted]
        yield "{:.1f}", *ends(row.mass.effect for row in later)


def values_of_solutions() -> Iterator[tuple]:
    """Yield those of sentences on the reference solution."""
    yield "{:.1f}", *ends(row.effect for row in gains(about("likelihood-later-layers")))
    yield "{:.1f}", *ends(row.effect for row in above(about("ablation-before")))
    apart = contrast("gap", "gap@before")
    yield "{:.1f}", *ends(-row.change.effect for row in apart)
    yield "{}", *ends(row.n for row in apart)
    through = contrast("mless", "hidden-from-layer-1")
    yield "{:+}", *(row.change for row in above(through, "change"))
    yield "{:+}", *(row.rho for row in study("nats_and_points"))
    yield "{:.1f}", about("likelihood-gain")[0].effect
    yield "{:.0f}", round(mean(row.n for row in study("contamination")), -1)


def values_of_accuracy() -> Iterator[tuple]:
    """Yield those of sentences on accuracy."""
    big, small = weighted()
    greedy, sampled = limits()
    yield "{:.1f}", paper_gain(big.right), paper_gain(small.right)
    highest = [row.high for row in about("accuracy-mless")]
    yield "{:.1f}", *highest, small.points.high
    yield "{:.1f}", *ends(stored.paper_baselines("Llama-3.1-8B-Instruct"))
    yield "{:.1f}", max(row.effect.effect for row in sampled)
    yield "{:.3f}", *(row.p_value for row in study("chance"))
    yield "{:+}", *(row.effect for row in greedy if row.limit == 448)
    for row in study("greedy_and_sampled", model=BIG):
        yield "{:+}", row.difference
        yield "{:.3f}", row.p_value
    first, others = study("blocks")
    yield "{:+}", first.points, others.points
    yield "{:+}", *(row.effect for row in study("pooled", condition="mless"))
    again = study("twice", set="all", outcome="right", condition="mless")
    yield "{:+}", again[0].effect, *(row.estimate for row in controls_that_moved())
    for row in study("authors_rule", condition="none", model=SMALL):
        yield "{:.1f}", row.ours.effect, row.rule_authors_prompt.effect
    (width,) = study("precision", way="sampled, weighted", model=SMALL)
    yield "{:.1f}", width.half_width_more
    yield "{:.0f}", width.more, first.n, big.mixed_problems, small.mixed_problems
    every = verdicts("families")
    rules = {row.id: row.written for row in reversed(every)}.values()
    yield "{}", len(rules), list(rules).count("after"), sum(row.n > 0 for row in every)


def ends(numbers: Iterable[float]) -> tuple[float, float]:
    """Return the lowest and the highest number."""
    every = list(numbers)
    return min(every), max(every)


def controls_that_moved() -> list:
    """Return the verdicts on controls of accuracy that are decided."""
    controls = [row for row in verdicts("families") if row.reading == "control"]
    return [row for row in controls if row.unit == "points" and row.decided]


def on_accuracy() -> dict[str, bool]:
    """Return whether the stored results support the statements on accuracy, each named
    by a phrase that a document has.
    """
    single, sampled = about("accuracy-mless"), about("points-slashes")
    answered = [*single, *sampled, *about("direct-slashes"), *about("points-arm")]
    clear = [row for row in answered if row.decided and row.survives]
    big, small = weighted()
    _, holm, largest = study("chance", of="greedy answers")
    weak = holm.p_value > 0.05 > largest.p_value and not above(limits()[1], "effect")
    single_, sampled_ = ([row.estimate for row in rows] for rows in (single, sampled))
    return {
        "accuracy does not rise significantly": not gains(answered),
        "Accuracy does not change significantly": not clear,
        "which samples exclude": not big.points.includes(paper_gain(big.right)),
        "they do not exclude": small.points.includes(paper_gain(small.right)),
        "models include zero": all(one.includes(0) for one in single_),
        "and a gain of two points": all(one.includes(2) for one in single_),
        "exclude two points": not any(one.includes(2) for one in sampled_),
        "in the table below lies above zero": not above(answered),
        "raise accuracy significantly either": all(
            row.lost for row in controls_that_moved()
        ),
        "weak evidence for a gain": weak,
    }


def on_solutions_and_attention() -> dict[str, bool]:
    """Return the same of the statements on reference solutions and on attention."""
    nats, layer_1 = about("likelihood-gain"), about("likelihood-layer-1")
    lost = {claim: len(losses(claim)) for claim in REPORTED.values()}
    dilution, before = about("dilution"), about("ablation-before")
    less = max(row.control.effect for row in dilution)
    moved = [
        row for row in study("requantised") if "dilution" in str(row.verdicts_moved)
    ]
    slashes = [row for row in stored.sinks() if row.condition == "mless"]
    later = gains(about("likelihood-later-layers"))
    taken = study("attention_taken", inserted="random")
    agree = [row.rho.includes(0) for row in study("nats_and_points")]
    return {
        "rises significantly in none": not gains(nats),
        "in two of the four models": lost["likelihood-gain"] == 2,
        "significantly worse than ten in all four": lost["ablation-ten-slashes"] == 4,
        "no model gains significantly": not above(layer_1),
        "and two lose": lost["likelihood-layer-1"] == 2,
        "falls in all four models": len(below(stored.solutions("gap", "none"))) == 4,
        "it rises again in three models": len(later) == 3,
        "except in Gemma 270M": names(below(before)) == "Gemma 270M",
        "significantly correlated": all(agree),
        "draws at least as much": len(above(taken, "change")) == 4,
        "show the effect more strongly": min(row.effect for row in dilution) > less,
        "Gemma 270M is a borderline case": names(moved) == "Gemma 270M",
        "do not become attention sinks": not any(row.sinks for row in slashes),
    }


def unlike(texts: dict[str, str]) -> list[str]:
    """Return what differs between documents and stored results, a line each."""
    plain = {name: " ".join(text.split()) for name, text in texts.items()}
    every = " ".join(plain.values())
    rows = [*rows_of_readme(), *rows_of_report()]
    found = [f"no document has: {row}" for row in rows if row not in every]
    for phrase, holds in (on_accuracy() | on_solutions_and_attention()).items():
        if phrase not in every or not holds:
            found.append(f"not said, or not true any more: {phrase}")
    known = set(CONSTANTS.split()) | PILOT
    parts = values_of_attention(), values_of_solutions(), values_of_accuracy()
    for style, *numbers in chain(*parts):
        known |= {style.format(number).lstrip("+-") for number in numbers}
    for name, text in texts.items():
        lines = text.splitlines()
        checked = [line for line in lines if any(row in line for row in rows)]
        shown = known | numbers_in("\n".join(checked))
        prose = NO_PROSE.sub(
            "…", "\n".join(line for line in lines if line not in checked)
        )
        for number in sorted(numbers_in(" ".join(prose.split())) - shown):
            found.append(f"{name} has a number of unknown source: {number}")
    return found


def numbers_in(text: str) -> set[str]:
    """Return the numbers of a text without their signs, and intervals as a whole;
    integers up to ten are left out.
    """
    found = {number.lstrip("+-") for number in NUMBER.findall(text)}
    found = {one if "[" in one else one.replace(",", "") for one in found}
    return {one for one in found if not one.isdigit() or int(one) > 10}


def main() -> int:
    """Print what differs, and return the exit code: 1 if anything does."""
    texts = {name: (paths.ROOT / name).read_text() for name in DOCUMENTS}
    found = unlike(texts)
    print("\n".join(found) or "every number is that of the stored results")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
