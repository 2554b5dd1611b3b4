"""What a row of the claims says, in words that follow from its numbers alone, and all rows as a page of text."""

from collections.abc import Sequence

from lib.claims.rule import NO_EFFECT, UNJUDGED
from lib.statistics import ALPHA, ENOUGH, rounded, told

INDENT = " " * 4


def standing(row: dict) -> str:
    """Return one of VERDICTS, or of UNJUDGED for a claim that was put to too few problems or to none."""
    too_few, not_tested = UNJUDGED
    if row["n"] < ENOUGH:
        return too_few if row["n"] else not_tested
    return row["verdict"]


def verdict_text(row: dict) -> str:
    """Return how a claim stands, and whether an untrained network gets the same verdict."""
    stands = standing(row)
    shared = row["control"] and stands == row["control"]["verdict"] != "undecided"
    return stands + (", also without training" if shared else "")


def measured_text(row: dict) -> str:
    """Return in one line what was measured, what was claimed, the untrained network's, and the n that would decide."""
    if row["reason"]:
        return f"Not tested: {row['reason']}."
    unit = row["unit"] + (f" in all {row['n']} problems" if row["low"] == row["high"] else "")
    text = f"{row['component']}: {effect_text(row)} {unit}, claimed {range_text(*row['range'])}, n = {row['n']}"
    text += f" of {row['clusters']} templates" if row["clusters"] and row["clusters"] < row["n"] else ""
    if row["components"] > 1:
        text += f", the least favourable of {row['components']}"
    if row["paper"]:
        text += f"; the paper {row['paper']['value']:g} ({row['paper']['of']})"
    for name, called in (("control", "untrained"), ("uniform", "uniform attention")):
        text += f"; {called} {_control_text(row[name], row['component'])}" if row[name] else ""
    if row["verdict"] == "undecided":
        size = "an effect of the paper's size" if row["paper"] else "an effect of this size"
        text += f"; {size} needs n = {row['needed']:,}" if row["needed"] else "; no n decides an effect at the edge"
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
    return about + (_about_training(row) if row["control"] else "") + "."


def _about_training(row: dict) -> str:
    control = row["control"]
    size = rounded(abs(control["difference"]), control["difference_low"], control["difference_high"])
    apart = f"{size} {'above' if control['difference'] > 0 else 'below'}"
    if row["verdict"] == control["verdict"]:
        same = " and for untrained ones" if row["verdict"] != "undecided" else ", nor for untrained ones"
        told = f"training moves it {apart} theirs" if row["specific"] else "nothing shows that training moves it"
        return f"{same}; {told}"
    told = {"supported": "training brings it about", "contradicted": "training undoes it"}.get(row["verdict"])
    if told is None or control["verdict"] == "undecided":
        told = "training moves it"
    shown = {"supported": "show it", "contradicted": "do not", "undecided": "leave it open"}
    text = f"; untrained ones {shown[control['verdict']]}"
    return f"{text}, {told} ({apart} theirs)" if row["specific"] else f"{text}, and the two are not told apart"


def closing(rows: Sequence[dict]) -> list[str]:
    """Return how many wrong verdicts so many rows lead one to expect, and which stand when corrected for all rows."""
    tested = [row for row in rows if row["n"] >= ENOUGH]
    decided = [row for row in tested if row["verdict"] != "undecided"]
    several = len({row["model"] for row in rows}) > 1
    named = [(row["id"] + f" ({row['model']})" * several, row["survives"]) for row in decided]
    names, lost = ([name for name, survives in named if survives is stands] for stands in (True, False))
    texts = [
        f"{len(tested)} rows were tested, each wrong with a chance of {100 * ALPHA / 2:g} % where the truth lies at "
        f"the edge of what is claimed: at most {len(tested) * ALPHA / 2:.1f} wrong verdicts are to be expected.",
        f"Corrected for all rows (Holm) {len(names)} of {len(decided)} verdicts stand: {', '.join(names) or 'none'}.",
    ]
    return [*texts, f"Not: {', '.join(lost)}."] if lost else texts


def _control_text(control: dict, component: str) -> str:
    """Return a control's effect, and of which component it is if another decides there."""
    named = f" ({control['component']})" if control["component"] not in (None, component) else ""
    return effect_text(control) + named


def effect_text(row: dict) -> str:
    """Return an effect with its interval."""
    return told(row["effect"], row["low"], row["high"])


def range_text(low: float | None, high: float | None) -> str:
    """Return what is claimed of a number; None: no end there."""
    if low is None:
        return f"< {high:g}"
    return f"> {low:g}" if high is None else f"{low:g} to {high:g}"


def page(rows: Sequence[dict]) -> str:
    """Return the claims as lines: verdict, statement, what was measured and learnt; what the number of rows means."""
    lines = []
    for row in rows:
        lines.append(f"{verdict_text(row).upper()}: {row['id']} ({row['source']}), {row['model']}")
        lines += [INDENT + text for text in (f"{row['claim']}.", f"{measured_text(row)}", learnt(row))]
    return "\n".join([*lines, *closing(rows)])
