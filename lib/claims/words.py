"""What the verdicts say, in words that follow from their numbers alone; `verdicts` is the frame of lib.claims.verdict.

A row of it, as a dict, has None where a number does not apply.
"""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from lib.claims.asked import as_evidence, load_claims
from lib.claims.verdict import NO_EFFECT, VERDICTS, judge
from lib.paths import DATA, read_yaml
from lib.profiles import Profile
from lib.statistics import ALPHA, ENOUGH, rounded, told

UNJUDGED = ("too few", "not tested")  # what is said of a claim with fewer problems, or none
INDENT = " " * 4
ACCURACY = ("accuracy-mless", "accuracy-mful", "arm-accuracy")
NATS = "nats"  # the unit of what is put to likelihoods


def rows_of(verdicts: pd.DataFrame) -> list[dict]:
    """Return the rows as dicts, None where nothing is known, also of a frame that was read from a file."""
    rows = verdicts.to_dict("records")
    return [{str(name): None if pd.isna(value) else value for name, value in row.items()} for row in rows]


def standing(row: dict) -> str:
    """Return one of VERDICTS, or of UNJUDGED for a claim that was put to too few problems or to none."""
    too_few, not_tested = UNJUDGED
    return row["verdict"] if (row["n"] or 0) >= ENOUGH else too_few if row["n"] else not_tested


def verdict_text(row: dict) -> str:
    """Return how a claim stands, and whether an untrained network gets the same verdict."""
    return standing(row) + (", also without training" if shared(row) else "")


def shared(row: dict) -> bool:
    """Return whether untrained networks get the same verdict, and one that decides."""
    return standing(row) == row["control_verdict"] != "undecided"


def effect_text(row: dict, of: str = "", sign: str = "") -> str:
    """Return an effect with its interval; `of` is the prefix of a control's columns."""
    effect, low, high = (row[f"{of}{end}"] for end in ("effect", "low", "high"))
    return told(effect, low, high, sign)


def range_text(low: float | None, high: float | None) -> str:
    """Return what is claimed of a number; None: no end there."""
    if low is None:
        return f"< {high:g}"
    return f"> {low:g}" if high is None else f"{low:g} to {high:g}"


def measured_text(row: dict) -> str:
    """Return in one line what was measured, what was claimed, the untrained network's, and the n that would decide."""
    if not row["n"]:
        return f"Not tested: {row['reason']}."
    unit = row["unit"] + (f" in all {row['n']} problems" if row["low"] == row["high"] else "")
    claimed = range_text(row["low_end"], row["high_end"])
    text = f"{row['component']}: {effect_text(row)} {unit}, claimed {claimed}, n = {row['n']:.0f}"
    text += f" of {row['clusters']:.0f} templates" if row["clusters"] and row["clusters"] < row["n"] else ""
    if row["components"] > 1:
        text += f", the least favourable of {row['components']:.0f}"
    if row["paper"] is not None:
        text += f"; the paper {row['paper']:g} ({row['paper_of']})"
    for of, called in (("control_", "untrained"), ("uniform_", "uniform attention")):
        if row[f"{of}verdict"]:
            other = row[f"{of}component"]
            text += f"; {called} {effect_text(row, of)}" + (f" ({other})" if other != row["component"] else "")
    if row["verdict"] == "undecided":
        size = "an effect of this size" if row["paper"] is None else "an effect of the paper's size"
        text += f"; {size} needs n = {row['needed']:,.0f}" if row["needed"] else "; no n decides an effect at the edge"
    return text


def learnt(row: dict) -> str:
    """Return in one sentence what the row teaches about the claim, and about training where a control was measured."""
    if not row["n"]:
        return "Nothing is learnt: it was not tested."
    if row["n"] < ENOUGH:
        return f"Nothing is learnt: a verdict takes {ENOUGH} problems."
    about = {
        "supported": "It holds for this model",
        "contradicted": "It does not hold for this model",
        NO_EFFECT: "It is at most a tenth of what a worked example gains in this model",
        "undecided": "These problems cannot tell",
    }[row["verdict"]]
    return about + (_about_training(row) if row["control_verdict"] else "") + "."


def _about_training(row: dict) -> str:
    control, size = row["control_verdict"], rounded(*(row[f"difference{end}"] for end in ("", "_low", "_high")))
    apart = f"{size.lstrip('-')} {'above' if row['difference'] > 0 else 'below'}"
    if row["verdict"] == control:
        same = " and for untrained ones" if row["verdict"] != "undecided" else ", nor for untrained ones"
        moved = f"training moves it {apart} theirs" if row["specific"] else "nothing shows that training moves it"
        return f"{same}; {moved}"
    moved = {"supported": "training brings it about", "contradicted": "training undoes it"}.get(row["verdict"])
    if moved is None or control == "undecided":
        moved = "training moves it"
    shown = {"supported": "show it", "contradicted": "do not", "undecided": "leave it open"}
    text = f"; untrained ones {shown[control]}"
    return f"{text}, {moved} ({apart} theirs)" if row["specific"] else f"{text}, and the two are not told apart"


def closing(verdicts: pd.DataFrame) -> list[str]:
    """Return how many wrong verdicts so many rows lead one to expect, and which stand when corrected for all rows."""
    tested = [row for row in rows_of(verdicts) if (row["n"] or 0) >= ENOUGH]
    decided = [row for row in tested if row["verdict"] != "undecided"]
    several = verdicts.model.nunique() > 1
    named = [(row["id"] + f" ({row['model']})" * several, row["survives"]) for row in decided]
    names, lost = ([name for name, survives in named if bool(survives) is stands] for stands in (True, False))
    texts = [
        f"{len(tested)} rows were tested, each wrong with a chance of {100 * ALPHA / 2:g} % where the truth lies at "
        f"the edge of what is claimed: at most {len(tested) * ALPHA / 2:.1f} wrong verdicts are to be expected.",
        f"Corrected for all rows (Holm) {len(names)} of {len(decided)} verdicts stand: {_list(names)}.",
    ]
    return [*texts, f"Not: {', '.join(lost)}."] if lost else texts


def lead(verdicts: pd.DataFrame) -> list[str]:
    """Return how many claims got which verdict, and what so many verdicts are worth, as sentences."""
    counts = Counter(map(standing, rows_of(verdicts)))
    parts = {name: f"{counts[name] or 'none'} {'is' if counts[name] == 1 else 'are'} {name}" for name in VERDICTS}
    equal = f"{counts[NO_EFFECT]} show{'s' * (counts[NO_EFFECT] == 1)} {NO_EFFECT}, " if counts[NO_EFFECT] else ""
    rest = sum(counts[name] for name in UNJUDGED)
    untold = f" {rest} {'was' if rest == 1 else 'were'} not tested, or on too few problems." if rest else ""
    claims, models = verdicts.id.nunique(), verdicts.model.nunique()
    asked = (
        f"Of {claims} claims"
        if models == 1
        else f"Of {len(verdicts)} verdicts, on {claims} claims and {models} models,"
    )
    decided = f"{parts['supported']} by what was measured, {parts['contradicted']}"
    return [f"{asked} {decided}, {equal}and {parts['undecided']}.{untold}", *closing(verdicts)]


def page(verdicts: pd.DataFrame) -> str:
    """Return the claims as lines: verdict, statement, what was measured and learnt; what the number of rows means."""
    lines = []
    for row in rows_of(verdicts):
        lines.append(f"{verdict_text(row).upper()}: {row['id']} ({row['source']}), {row['model']}")
        lines += [INDENT + text for text in (f"{row['claim']}.", measured_text(row), learnt(row))]
    return "\n".join([*lines, *closing(verdicts)])


def beside(row: dict) -> str:
    """Return what was measured beside each row of the figure, what was claimed, and the paper's number if any."""
    if not row["n"]:
        return "not tested"
    text = f"{effect_text(row)} {row['unit']}, claimed {range_text(row['low_end'], row['high_end'])}"
    return text if row["paper"] is None else text + f", paper {row['paper']:g}"


def cell_text(row: dict) -> str:
    """Return what stands in a cell of the matrix: the effect with its interval, the control's effect and n."""
    control = [row[f"control_{end}"] for end in ("effect", "low", "high")]
    untrained = "" if control[0] is None else f"untrained {rounded(*control)}, "
    return f"{effect_text(row)}\n{untrained}n = {row['n']}{', too few' * (row['n'] < ENOUGH)}"


def counted(verdicts: pd.DataFrame) -> str:
    """Return how many claims have each verdict, and how many have none."""
    counts = Counter(map(standing, rows_of(verdicts)))
    always = [name for name in VERDICTS if name != NO_EFFECT]
    return ", ".join(f"{counts[name]} {name}" for name in (*VERDICTS, *UNJUDGED) if name in always or counts[name])


def counts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model: how many claims stand how."""
    table = verdicts.assign(stands=[standing(row) for row in rows_of(verdicts)])
    wide = table.value_counts(["model", "stands"]).unstack(fill_value=0)
    names = [name for name in (*VERDICTS, *UNJUDGED) if name in wide]
    return wide.loc[verdicts.model.unique(), names].rename_axis(columns=None).reset_index()


def found(run: Profile, notebook: str, measured=None, answers=(), scores=None) -> pd.DataFrame:
    """Return how the claims stand on which a notebook's figures bear (data/figures.yaml), as far as they are tested.

    What it has at hand is as `as_evidence` takes it. A row per model and claim: verdict, effect with its ends, unit, n.
    """
    captions = (row for group in read_yaml(DATA / "figures.yaml").values() for row in group)
    ids = {claim for row in captions if row["notebook"].startswith(notebook) for claim in row["claims"]}
    asked = [claim for claim in load_claims() if claim.id in ids]
    verdicts = judge(asked, as_evidence(run, measured, answers, scores))
    tested = verdicts[verdicts.n > 0]
    told = tested.assign(verdict=[verdict_text(row) for row in rows_of(tested)])
    models = list(dict.fromkeys(told.model))
    told = told.sort_values("model", key=lambda names: names.map(models.index), kind="stable")
    return told[["model", "claim", "verdict", "effect", "low", "high", "unit", "n"]]


def inside(verdicts: pd.DataFrame) -> list[str]:
    """Say which claims on the inside hold in all of several models, in some and in none, and what training adds."""
    table = verdicts[(verdicts.n > 0) & ~verdicts.id.isin(ACCURACY) & (verdicts.unit != NATS)]
    several = table.groupby("id", sort=False).filter(lambda part: len(part) > 1)
    held = (several.verdict == "supported").groupby(several.id, sort=False).mean()
    in_all, in_none = ([name for name, share in held.items() if share == which] for which in (1, 0))
    in_some = [str(name) for name in held.index if name not in (*in_all, *in_none)]
    decided = [row for row in rows_of(several) if row["verdict"] != "undecided"]
    return [
        f"Of {len(held)} claims about the inside of {several.model.nunique()} models, supported in all: "
        f"{_list(in_all)}; in some: {_list(in_some)}; in none: {_list(in_none)}.",
        f"Untrained networks share {sum(map(shared, decided))} of {len(decided)} verdicts.",
    ]


def accuracies(verdicts: pd.DataFrame) -> list[str]:
    """Return a sentence per model: the effects on its accuracy with the n that an effect of the paper's size needs."""
    table, texts = verdicts[(verdicts.n > 0) & verdicts.id.isin(ACCURACY)], []
    for model, part in table.groupby("model", sort=False):
        effects = [
            f"{row['id']} {effect_text(row, sign='+')} "
            + (f"(needs {row['needed']:,.0f})" if row["needed"] else f"({row['verdict']})")
            for row in rows_of(part)
        ]
        texts.append(f"Effect on accuracy, in points, on {model} (n = {part.n.min():.0f}): {_list(effects)}.")
    return texts or ["No model's accuracy was tested."]


def _list(names: Sequence) -> str:
    return ", ".join(names) or "nothing"
