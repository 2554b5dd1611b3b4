"""What the verdicts say, in words that follow from their numbers alone; `verdicts` is
the frame of lib.claims.verdict.

The literal readings are what is counted and told.
"""

from collections import Counter

import pandas as pd

from lib.claims.claim import by_model, load_claims
from lib.claims.verdict import VERDICTS, judge
from lib.paths import DATA, read_yaml
from lib.profiles import Profile
from lib.statistics import ALPHA, ENOUGH, format_interval, rounded

UNJUDGED = TOO_FEW, NOT_TESTED = (
    "too few",
    "not tested",
)  # what is said of a claim with fewer problems, or none
LOST = " †"  # marks a verdict that does not stand when corrected for all rows
TRAINING = {"also": ", also without training"}
TRAINING |= {how: f", {how} than without training" for how in ("stronger", "weaker")}


def rows_of(verdicts: pd.DataFrame) -> list[dict]:
    """Return the rows as dicts, None where nothing is known, with what is said of each.

    stands: one of VERDICTS or UNJUDGED; lost: whether it does not when corrected for
    all rows (Holm); told: both, in how many parts, and what untrained networks have of
    it; measured: the numbers; answers: of an accuracy alone.
    """
    rows = []
    for known in verdicts.to_dict("records"):
        row: dict = {
            name: None if pd.isna(value) else value for name, value in known.items()
        }
        stands = (
            row["verdict"]
            if (row["n"] or 0) >= ENOUGH
            else TOO_FEW
            if row["n"]
            else NOT_TESTED
        )
        lost = stands not in (*UNJUDGED, "undecided") and not row["survives"]
        parts = (
            f" ({row['held']:.0f} of {row['parts']:.0f})" if stands == "in part" else ""
        )
        row |= {"stands": stands, "lost": lost, "answers": _answers_text(row)}
        row["told"] = (
            stands + parts + (LOST if lost else "") + TRAINING.get(row["training"], "")
        )
        row["measured"] = (
            _measured_text(row) if row["n"] else f"Not tested: {row['reason']}"
        )
        rows.append(row)
    return rows


def _measured_text(row: dict) -> str:
    """Return in one line what was measured and claimed, the parts, the controls, and
    what belongs beside answers.
    """
    low, high = row["low_end"], row["high_end"]
    claimed = (
        f"< {high:g}"
        if low is None
        else f"> {low:g}"
        if high is None
        else f"{low:g} to {high:g}"
    )
    text = (
        f"{row['part']}: {effect_text(row)} {row['unit']}, claimed {claimed}, n ="
        f" {row['n']:.0f}"
    )
    text += (
        f" of {row['clusters']:.0f} templates"
        if row["clusters"] and row["clusters"] < row["n"]
        else ""
    )
    if row["heads"]:
        text += f"; as claimed in {row['heads_held']:.0f} of {row['heads']:.0f} heads"
    if row["held"] == row["parts"] > 1:
        text += f"; all {row['parts']:.0f} parts hold"
    elif row["parts"] > 1:
        text += (
            f"; of {row['parts']:.0f} parts hold: {row['holds'] or 'none'}; refuted:"
            f" {row['refuted'] or 'none'}"
        )
    text += (
        ""
        if row["paper"] is None
        else f"; the paper {row['paper']:g} ({row['paper_of']})"
    )
    text += f"; {_untrained_text(row)}" if row["control_verdict"] else ""
    for of, control in (
        ("keys_", "with other heads' keys"),
        ("uniform_", "evenly spread attention"),
    ):
        text += f"; {control} {effect_text(row, of)}" if row[f"{of}verdict"] else ""
    return text + row["answers"]


def _answers_text(row: dict) -> str:
    """Return what belongs beside an accuracy: answers that were cut, the effect on the
    others, the n that decides.
    """
    text = ""
    if row["cut"] is not None:
        text += (
            f"; {row['cut']:.0f} and {row['cut_less']:.0f} % of answers were cut at the"
            " token limit"
        )
    if row["finished_n"]:
        finished = format_interval(
            row["finished"], row["finished_low"], row["finished_high"], "+"
        )
        text += f"; {finished} where both ended (n = {row['finished_n']:.0f})"
    if row["needed"]:
        ends = (
            f" ({row['needed_low']:,.0f} to {row['needed_high']:,.0f})"
            if row["needed_low"]
            else ""
        )
        text += (
            f"; an effect of {abs(row['paper']):g}, the paper's for {row['paper_of']}, "
        )
        text += f"needs n = {row['needed']:,.0f}{ends}"
    return text


def _untrained_text(row: dict) -> str:
    ends = row["control_low"], row["control_high"]
    return f"untrained {' to '.join(rounded(end, *ends) for end in ends)}"


def effect_text(row: dict, of: str = "", sign: str = "") -> str:
    """Return an effect with its interval; `of` is the prefix of other columns."""
    return format_interval(row[f"{of}effect"], row[f"{of}low"], row[f"{of}high"], sign)


def cell_text(row: dict) -> str:
    """Return what stands in a cell of the matrix: part and unit; effect; controls; n
    and what of several holds.
    """
    (row,) = rows_of(pd.DataFrame([row]))
    lines = [
        f"{row['part']}, {row['unit']}",
        effect_text(row) + (LOST if row["lost"] else ""),
    ]
    lines += [_untrained_text(row)] if row["control_verdict"] else []
    if row["finished_n"]:
        lines.append(
            f"cut {row['cut']:.0f}, {row['cut_less']:.0f} %; both ended"
            f" {row['finished']:+.1f}"
        )
    counted = (
        f"; {row['held']:.0f} of {row['parts']:.0f} parts" if row["parts"] > 1 else ""
    )
    counted += (
        f"; {row['heads_held']:.0f} of {row['heads']:.0f} heads" if row["heads"] else ""
    )
    return "\n".join(
        [
            *lines,
            f"n = {row['n']:.0f}{', too few' if row['n'] < ENOUGH else ''}{counted}",
        ]
    )


def closing(verdicts: pd.DataFrame) -> list[str]:
    """Return how many wrong verdicts so many rows lead one to expect, and which do not
    stand corrected for all rows.
    """
    tested = [row for row in rows_of(verdicts) if row["stands"] not in UNJUDGED]
    decided = [row for row in tested if row["stands"] != "undecided"]
    several = verdicts.model.nunique() > 1
    names = [
        row["id"] + (f" ({row['model']})" if several else "")
        for row in decided
        if row["lost"]
    ]
    return [
        (
            f"{len(tested)} rows were tested, each wrong with a chance of"
            f" {100 * ALPHA / 2:g} % where the truth lies at the edge of what is"
            f" claimed: at most {len(tested) * ALPHA / 2:.1f} wrong verdicts are to be"
            " expected."
        ),
        (
            f"Corrected for all rows (Holm) {len(decided) - len(names)} of"
            f" {len(decided)} verdicts stand; not ({LOST.strip()}):"
            f" {', '.join(names) or 'none'}."
        ),
    ]


def lead(verdicts: pd.DataFrame) -> list[str]:
    """Return how many literal claims stand how, what was found, and what so many
    verdicts are worth.
    """
    stand, models = totals(verdicts), verdicts.model.nunique()
    said = ", ".join(f"{count} {name}" for name, count in stand.items())
    claims = verdicts[verdicts.reading == "literal"].id.nunique()
    on = (
        f"{models} models ({sum(stand.values())} cells)"
        if models > 1
        else verdicts.model.iloc[0]
    )
    return [
        f"{claims} claims, as the paper words them, on {on}: {said}.",
        *finding(verdicts),
        *closing(verdicts),
    ]


def counts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model: how many literal claims stand how; what was not tested
    counts too.
    """
    some = verdicts[verdicts.reading == "literal"]
    tested = pd.DataFrame(
        [row for row in rows_of(some) if row["n"]], columns=["model", "stands"]
    )
    table = pd.crosstab(tested.model, tested.stands).reindex(
        verdicts.model.unique(), fill_value=0
    )
    table[NOT_TESTED] = some.id.nunique() - table.sum(axis=1)
    used = [
        name for name in (*VERDICTS, *UNJUDGED) if name in table and table[name].any()
    ]
    return table[used].rename_axis(index="model", columns=None).reset_index()


def totals(verdicts: pd.DataFrame) -> dict[str, int]:
    """Return how many literal claims stand how, over all models."""
    return counts(verdicts).set_index("model").sum().to_dict()


def listing(verdicts: pd.DataFrame) -> str:
    """Return the claims as lines: verdict, statement, what was measured; then what the
    number of rows means.
    """
    lines = []
    for row in rows_of(verdicts):
        lines.append(
            f"{row['told'].upper()}: {row['id']} ({row['source']}, {row['reading']}),"
            f" {row['model']}"
        )
        lines += [f"    {row['claim']}.", f"    {row['measured']}."]
    return "\n".join([*lines, *closing(verdicts)])


def found(run: Profile, notebook: str, **at_hand) -> pd.DataFrame:
    """Return how the claims stand on which a notebook's figures bear
    (data/figures.yaml), as far as they are tested.

    What it has at hand is as `by_model` takes it. A row per model and claim:
    verdict, effect with its ends, unit, n. Whether a verdict stands when corrected for
    all rows is told where all are judged, in notebook 06.
    """
    captions = (
        row for group in read_yaml(DATA / "figures.yaml").values() for row in group
    )
    ids = {
        claim
        for row in captions
        if row["notebook"].startswith(notebook)
        for claim in row["claims"]
    }
    verdicts = judge(
        [claim for claim in load_claims() if claim.id in ids],
        by_model(run, **at_hand),
    )
    tested = verdicts[verdicts.n > 0].assign(survives=True)
    tested["verdict"] = [row["told"] for row in rows_of(tested)]
    ordered = pd.concat(
        [tested[:0], *(one for _, one in tested.groupby("model", sort=False))]
    )
    return ordered[
        ["model", "claim", "reading", "verdict", "effect", "low", "high", "unit", "n"]
    ]


def finding(verdicts: pd.DataFrame) -> list[str]:
    """Say what training does to the dilution of layer 1, and how far it reaches into
    later layers.
    """
    known = verdicts.uniform_verdict.notna() & verdicts.control_verdict.notna()
    rows = verdicts[(verdicts.id == "dilution") & known]
    if rows.empty:
        return []
    kept = 100 * (rows.effect - rows.control_effect) / (1 - rows.control_effect)
    said = (
        f"Slashes leave layer 1's original tokens {span(rows.effect)} of their"
        " attention (λ, mean over heads); "
    )
    said += (
        f"untrained networks {span(rows.control_effect)}, evenly spread attention"
        f" {span(rows.uniform_effect)}"
    )
    keys = rows.keys_effect.dropna()
    said += (
        f", trained heads with another head's keys {span(keys)}. "
        if len(keys)
        else ". "
    )
    said += (
        f"So training undoes {span(kept, 0)} % of the dilution."
        if min(kept) > 0
        else ""
    )
    later = rows_of(verdicts[(verdicts.id == "later-layers") & (verdicts.n > 0)])
    deep = "; ".join(f"{row['model']} {effect_text(row)}" for row in later)
    return [
        said.strip(),
        *(
            [f"From layer {later[0]['part'].split()[1]} on mean λ is: {deep}."]
            if later
            else []
        ),
    ]


def span(values: pd.Series, digits: int = 2) -> str:
    """Return the lowest and the highest of some numbers."""
    low, high = (f"{end:.{digits}f}" for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def inside(verdicts: pd.DataFrame) -> list[str]:
    """Say which literal claims on the inside hold in all, some and none of several
    models, and what training adds.
    """
    answered = verdicts.cut.notna() | (verdicts.unit == "nats")
    table = verdicts[
        (verdicts.reading == "literal") & (verdicts.n >= ENOUGH) & ~answered
    ]
    several = table.groupby("id", sort=False).filter(lambda part: len(part) > 1)
    if several.empty:
        return []
    held = several.groupby("claim", sort=False).verdict.agg(
        lambda some: (some == "supported").mean()
    )
    shares = {
        "all": held[held == 1],
        "some": held[(held > 0) & (held < 1)],
        "none": held[held == 0],
    }
    on, trained = (
        f"of {several.model.nunique()} models",
        Counter(several.training.dropna()),
    )
    texts = [
        f"Supported in {which} {on}: {'; '.join(some.index) or 'nothing'}."
        for which, some in shares.items()
    ]
    said = ", ".join(
        f"{trained[how]} {text.removeprefix(', ')}" for how, text in TRAINING.items()
    )
    return [
        *texts,
        f"Of {(several.verdict != 'undecided').sum()} verdicts on the inside {said}.",
    ]


def accuracies(verdicts: pd.DataFrame) -> list[str]:
    """Return a sentence per claim and model on answers: the effect, and what belongs
    beside it.
    """
    return [
        f"{row['claim']}? {row['model']}: {effect_text(row, sign='+')} points, n ="
        f" {row['n']:.0f}, {row['told']}{row['answers']}."
        for row in rows_of(verdicts[(verdicts.n > 0) & verdicts.cut.notna()])
    ] or ["No model's accuracy was tested."]
