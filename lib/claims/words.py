"""What the verdicts say, in words that follow from their numbers alone; `verdicts` is the frame of lib.claims.verdict.

A row of it, as a dict, has None where a number does not apply. The literal readings are what is counted and told.
"""

from collections import Counter
from collections.abc import Sequence

import pandas as pd

from lib.claims.asked import as_evidence, load_claims
from lib.claims.verdict import VERDICTS, judge
from lib.paths import DATA, read_yaml
from lib.profiles import Profile
from lib.statistics import ALPHA, ENOUGH, rounded, told

UNJUDGED = ("too few", "not tested")  # what is said of a claim with fewer problems, or none
LOST = " †"  # marks a verdict that does not stand when corrected for all rows
TRAINING = {"also": ", also without training"}
TRAINING |= {how: f", {how} than without training" for how in ("stronger", "weaker")}
NATS = "nats"  # the unit of what is put to likelihoods


def rows_of(verdicts: pd.DataFrame) -> list[dict]:
    """Return the rows as dicts, None where nothing is known, also of a frame that was read from a file."""
    return [known(row) for row in verdicts.to_dict("records")]


def known(row: dict) -> dict:
    """Return a row with None for NaN."""
    return {str(name): None if pd.isna(value) else value for name, value in row.items()}


def literal(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of the literal readings, which are counted."""
    return verdicts[verdicts.reading == "literal"]


def standing(row: dict) -> str:
    """Return one of VERDICTS, or of UNJUDGED for a claim that was put to too few problems or to none."""
    too_few, not_tested = UNJUDGED
    return row["verdict"] if (row["n"] or 0) >= ENOUGH else too_few if row["n"] else not_tested


def verdict_text(row: dict) -> str:
    """Return how a claim stands: in how many of its parts, marked if lost, and what untrained networks have of it."""
    stands = standing(row)
    if stands == "in part":
        stands += f" ({row['held']:.0f} of {row['parts']:.0f})"
    return stands + (LOST if lost(row) else "") + TRAINING.get(row["training"], "")


def lost(row: dict) -> bool:
    """Return whether a verdict was reached that does not stand when corrected for all rows (Holm)."""
    return standing(row) not in (*UNJUDGED, "undecided") and not row["survives"]


def effect_text(row: dict, of: str = "", sign: str = "") -> str:
    """Return an effect with its interval; `of` is the prefix of other columns."""
    effect, low, high = (row[f"{of}{end}"] for end in ("effect", "low", "high"))
    return told(effect, low, high, sign)


def range_text(low: float | None, high: float | None) -> str:
    """Return what is claimed of a number; None: no end there."""
    if low is None:
        return f"< {high:g}"
    return f"> {low:g}" if high is None else f"{low:g} to {high:g}"


def untrained_text(row: dict) -> str:
    """Return between which ends untrained networks lie in the same part."""
    ends = row["control_effect"], row["control_low"], row["control_high"]
    return " to ".join(rounded(end, *ends[1:]) for end in ends[1:])


def measured_text(row: dict) -> str:
    """Return in one line what was measured, what was claimed, the controls, the parts, and the n that would decide."""
    if not row["n"]:
        return f"Not tested: {row['reason']}"
    claimed = range_text(row["low_end"], row["high_end"])
    text = f"{row['part']}: {effect_text(row)} {row['unit']}, claimed {claimed}, n = {row['n']:.0f}"
    text += f" of {row['clusters']:.0f} templates" if row["clusters"] and row["clusters"] < row["n"] else ""
    if row["heads"]:
        text += f"; as claimed in {row['heads_held']:.0f} of {row['heads']:.0f} heads"
    if row["held"] == row["parts"] > 1:
        text += f"; all {row['parts']:.0f} parts hold"
    elif row["parts"] > 1:
        text += f"; of {row['parts']:.0f} parts hold: {row['holds'] or 'none'}; refuted: {row['refuted'] or 'none'}"
    if row["paper"] is not None:
        text += f"; the paper {row['paper']:g} ({row['paper_of']})"
    if row["control_verdict"]:
        text += f"; untrained {untrained_text(row)}"
    if row["keys_verdict"]:
        text += f"; with other heads' keys {effect_text(row, 'keys_')}"
    if row["uniform_verdict"]:
        text += f"; evenly spread attention {effect_text(row, 'uniform_')}"
    return text + _answers_text(row)


def _answers_text(row: dict) -> str:
    """Return what belongs beside an accuracy: answers that were cut, the effect on the others, the n that decides."""
    text = ""
    if row["cut"] is not None:
        text += f"; {row['cut']:.0f} and {row['cut_less']:.0f} % of answers were cut at the token limit"
    if row["finished_n"]:
        finished = told(row["finished"], row["finished_low"], row["finished_high"], "+")
        text += f"; {finished} where both ended (n = {row['finished_n']:.0f})"
    if row["needed"]:
        ends = f" ({row['needed_low']:,.0f} to {row['needed_high']:,.0f})" if row["needed_low"] else ""
        text += f"; an effect of {abs(row['paper']):g}, the paper's for {row['paper_of']}, "
        text += f"needs n = {row['needed']:,.0f}{ends}"
    return text


def closing(verdicts: pd.DataFrame) -> list[str]:
    """Return how many wrong verdicts so many rows lead one to expect, and which do not stand corrected for all rows."""
    tested = [row for row in rows_of(verdicts) if (row["n"] or 0) >= ENOUGH]
    decided = [row for row in tested if row["verdict"] != "undecided"]
    several = verdicts.model.nunique() > 1
    names = [row["id"] + (f" ({row['model']})" if several else "") for row in decided if lost(row)]
    return [
        f"{len(tested)} rows were tested, each wrong with a chance of {100 * ALPHA / 2:g} % where the truth lies at "
        f"the edge of what is claimed: at most {len(tested) * ALPHA / 2:.1f} wrong verdicts are to be expected.",
        f"Corrected for all rows (Holm) {len(decided) - len(names)} of {len(decided)} verdicts stand; "
        f"not ({LOST.strip()}): {', '.join(names) or 'none'}.",
    ]


def lead(verdicts: pd.DataFrame) -> list[str]:
    """Return how many literal claims stand how, what was found, and what so many verdicts are worth."""
    stand = totals(verdicts)
    said = ", ".join(f"{count} {name}" for name, count in stand.items())
    claims, models = literal(verdicts).id.nunique(), verdicts.model.nunique()
    on = f"{models} models ({sum(stand.values())} cells)" if models > 1 else verdicts.model.iloc[0]
    return [f"{claims} claims, as the paper words them, on {on}: {said}.", *finding(verdicts), *closing(verdicts)]


def counts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model: how many literal claims stand how; what was not tested counts too."""
    some = literal(verdicts)
    tested = some[some.n > 0]
    stands = pd.Series([standing(row) for row in rows_of(tested)], tested.index, dtype=object)
    table = pd.crosstab(tested.model, stands).reindex(verdicts.model.unique(), fill_value=0)
    table[UNJUDGED[1]] = some.id.nunique() - table.sum(axis=1)
    used = [name for name in (*VERDICTS, *UNJUDGED) if name in table and table[name].any()]
    return table[used].rename_axis(index="model", columns=None).reset_index()


def totals(verdicts: pd.DataFrame) -> dict[str, int]:
    """Return how many literal claims stand how, over all models."""
    return counts(verdicts).set_index("model").sum().to_dict()


def listing(verdicts: pd.DataFrame) -> str:
    """Return the claims as lines: verdict, statement, what was measured; then what the number of rows means."""
    lines = []
    for row in rows_of(verdicts):
        lines.append(f"{verdict_text(row).upper()}: {row['id']} ({row['source']}, {row['reading']}), {row['model']}")
        lines += [f"    {row['claim']}.", f"    {measured_text(row)}."]
    return "\n".join([*lines, *closing(verdicts)])


def cell_text(row: dict) -> str:
    """Return what stands in a cell of the matrix: part and unit; effect; controls; n and what of several holds."""
    row = known(row)
    lines = [f"{row['part']}, {row['unit']}", effect_text(row) + (LOST if lost(row) else "")]
    lines += [f"untrained {untrained_text(row)}"] if row["control_verdict"] else []
    if row["finished_n"]:
        lines.append(f"cut {row['cut']:.0f}, {row['cut_less']:.0f} %; both ended {row['finished']:+.1f}")
    counted = f"; {row['held']:.0f} of {row['parts']:.0f} parts" if row["parts"] > 1 else ""
    counted += f"; {row['heads_held']:.0f} of {row['heads']:.0f} heads" if row["heads"] else ""
    return "\n".join([*lines, f"n = {row['n']:.0f}{', too few' if row['n'] < ENOUGH else ''}{counted}"])


def found(run: Profile, notebook: str, measured=None, answers=(), scores=None) -> pd.DataFrame:
    """Return how the claims stand on which a notebook's figures bear (data/figures.yaml), as far as they are tested.

    What it has at hand is as `as_evidence` takes it. A row per model and claim: verdict, effect with its ends, unit, n.
    Whether a verdict stands when corrected for all rows is told where all are judged, in notebook 06.
    """
    captions = (row for group in read_yaml(DATA / "figures.yaml").values() for row in group)
    ids = {claim for row in captions if row["notebook"].startswith(notebook) for claim in row["claims"]}
    asked = [claim for claim in load_claims() if claim.id in ids]
    verdicts = judge(asked, as_evidence(run, measured, answers, scores))
    tested = verdicts[verdicts.n > 0]
    told = tested.assign(verdict=[verdict_text(row | {"survives": True}) for row in rows_of(tested)])
    models = list(dict.fromkeys(told.model))
    told = told.sort_values("model", key=lambda names: names.map(models.index), kind="stable")
    return told[["model", "claim", "reading", "verdict", "effect", "low", "high", "unit", "n"]]


def finding(verdicts: pd.DataFrame) -> list[str]:
    """Say what training does to the dilution of layer 1, and how far it reaches into later layers."""
    rows = [row for row in rows_of(verdicts) if row["id"] == "dilution" and row["uniform_verdict"]]
    rows = [row for row in rows if row["control_verdict"]]
    if not rows:
        return []
    even, untrained, trained = (span([row[f"{of}effect"] for row in rows]) for of in ("uniform_", "control_", ""))
    kept = [100 * (row["effect"] - row["control_effect"]) / (1 - row["control_effect"]) for row in rows]
    said = f"Slashes leave layer 1's original tokens {trained} of their attention (λ, mean over heads); "
    said += f"untrained networks {untrained}, evenly spread attention {even}"
    keys = [row["keys_effect"] for row in rows if row["keys_verdict"]]
    said += f", trained heads with another head's keys {span(keys)}. " if keys else ". "
    said += f"So training undoes {span(kept, 0)} % of the dilution." if min(kept) > 0 else ""
    later = [row for row in rows_of(verdicts) if row["id"] == "later-layers" and row["n"]]
    deep = "; ".join(f"{row['model']} {effect_text(row)}" for row in later)
    return [said.strip(), *([f"From layer {later[0]['part'].split()[1]} on mean λ is: {deep}."] if later else [])]


def span(values: Sequence[float], digits: int = 2) -> str:
    """Return the lowest and the highest of some numbers."""
    low, high = (f"{end:.{digits}f}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def inside(verdicts: pd.DataFrame) -> list[str]:
    """Say which literal claims on the inside hold in all, some and none of several models, and what training adds."""
    table = literal(verdicts[(verdicts.n >= ENOUGH) & verdicts.cut.isna() & (verdicts.unit != NATS)])
    several = table.groupby("id", sort=False).filter(lambda part: len(part) > 1)
    if several.empty:
        return []
    held: dict[str, list[str]] = {"all": [], "some": [], "none": []}
    for claim, part in several.groupby("claim", sort=False):
        share = (part.verdict == "supported").mean()
        held["all" if share == 1 else "some" if share else "none"].append(str(claim))
    models = several.model.nunique()
    texts = [
        f"Supported in {which} of {models} models: {'; '.join(some) or 'nothing'}." for which, some in held.items()
    ]
    trained = Counter(several.training.dropna())
    said = ", ".join(f"{trained[how]} {text.removeprefix(', ')}" for how, text in TRAINING.items())
    return [*texts, f"Of {(several.verdict != 'undecided').sum()} verdicts on the inside {said}."]


def accuracies(verdicts: pd.DataFrame) -> list[str]:
    """Return a sentence per claim and model on answers: the effect, and what belongs beside it."""
    table = verdicts[(verdicts.n > 0) & verdicts.cut.notna()]
    return [
        f"{row['claim']}? {row['model']}: {effect_text(row, sign='+')} points, n = {row['n']:.0f}, {verdict_text(row)}"
        f"{_answers_text(row)}."
        for row in rows_of(table)
    ] or ["No model's accuracy was tested."]
