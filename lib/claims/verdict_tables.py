"""Verdicts as a table with a row each, and the files that keep it.

They are results/<profile>/claims.json and, for the repository's own profiles,
data/<profile>/verdicts.csv, from which the README is written. `counts` and `totals`
say how many of them stand how.
"""

import io
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from lib import paths
from lib.claims.verdict import (
    CONTROLS,
    NOT_TESTED,
    UNJUDGED,
    VERDICTS,
    Answers,
    Control,
    Estimate,
    Power,
    Verdict,
    literal,
    models_of,
)
from lib.errors import InputError
from lib.figures.compare import difference
from lib.paths import write_whole
from lib.profiles import Profile

VERDICT_COLUMNS = [  # NaN or None: no such number
    *("id", "claim", "reading", "source", "model", "verdict"),
    # The part that decides, and the ends of the claimed range.
    *("part", "effect", "low", "high", "unit", "low_end", "high_end"),
    # Problems and templates; how many parts hold, and which.
    *("n", "clusters", "parts", "held", "holds", "refuted"),
    # What a mean is over, and how many of them lie in the range.
    *("heads", "heads_held"),
    # The last two are corrected for all rows.
    *("p", "p_holm", "survives"),
    # In the same part.
    *("control_verdict", "control_effect", "control_low", "control_high"),
    *("keys_verdict", "keys_effect", "keys_low", "keys_high"),
    *("uniform_verdict", "uniform_effect", "uniform_low", "uniform_high"),
    # To the nearest of the untrained networks.
    *("difference", "difference_low", "difference_high"),
    *("training", "paper", "paper_of"),
    # Problems for an effect of the paper's size, as far as that is known.
    *("needed", "needed_low", "needed_high"),
    "equivalence",
    # Of answers: % that a limit cut, and the effect over problems that both ended.
    *("cut", "cut_less"),
    *("finished_n", "finished", "finished_low", "finished_high"),
    *("written", "reason"),
]
# The fields of a verdict that are a column each, as they are.
UNCHANGED = ("id", "claim", "reading", "source", "model", "unit", "written", "verdict")
UNCHANGED += ("reason", "paper", "paper_of", "p", "p_holm", "survives")
UNCHANGED += ("training", "equivalence")


def verdict_table(verdicts: Iterable[Verdict]) -> pd.DataFrame:
    """Return a row of VERDICT_COLUMNS per verdict."""
    rows = [_row_of(verdict) for verdict in verdicts]
    return pd.DataFrame(rows, columns=VERDICT_COLUMNS)


def _row_of(verdict: Verdict) -> dict[str, Any]:
    """Return a verdict as a row, with None for what it lacks."""
    fields = vars(verdict)
    row = {name: fields.get(name) for name in VERDICT_COLUMNS}
    row["low_end"], row["high_end"] = verdict.range
    row["n"] = verdict.n
    row["part"] = row["holds"] = row["refuted"] = row["difference"] = None
    if verdict.n:
        row |= _columns(verdict.estimate, "effect")
        row["part"] = verdict.part
        row["held"] = len(verdict.holds)
        row["holds"] = ", ".join(verdict.holds)
        row["refuted"] = ", ".join(verdict.refuted)

    for name, control in verdict.controls.items():
        row |= _columns(control.estimate, f"{name}_effect", f"{name}_")
        row[f"{name}_verdict"] = control.verdict
    if verdict.difference:
        row |= _columns(verdict.difference, "difference", "difference_")

    if verdict.power:
        row["needed"] = verdict.power.needed
        row["needed_low"] = verdict.power.low
        row["needed_high"] = verdict.power.high
    if verdict.answers:
        row["cut"] = verdict.answers.cut
        row["cut_less"] = verdict.answers.cut_less
        if finished := verdict.answers.finished:
            row |= _columns(finished, "finished", "finished_")
            row["finished_n"] = finished.n
    return row


def _columns(estimate: Estimate, effect: str, prefix: str = "") -> dict[str, Any]:
    """Return an estimate as three columns: `effect`, and the prefix's low and high."""
    return {
        effect: estimate.effect,
        f"{prefix}low": estimate.low,
        f"{prefix}high": estimate.high,
    }


def verdicts_of(table: pd.DataFrame) -> list[Verdict]:
    """Return the rows of a table as verdicts: what `verdict_table` made them from."""
    return [verdict_of(row) for row in table.to_dict("records")]


def verdict_of(row: Mapping[Any, Any]) -> Verdict:
    """Return a row of a table as the verdict that it was made from."""
    row = {name: None if pd.isna(value) else value for name, value in row.items()}
    fields = {name: row[name] for name in UNCHANGED}
    verdict = Verdict(**fields, range=(row["low_end"], row["high_end"]))
    verdict.parts = _as_count(row["parts"]) or 0
    verdict.clusters = _as_count(row["clusters"])
    verdict.heads = _as_count(row["heads"])
    verdict.heads_held = _as_count(row["heads_held"])
    n = int(row["n"] or 0)
    if n == 0:
        return verdict

    verdict.part = row["part"]
    verdict.estimate = Estimate(row["effect"], row["low"], row["high"], n)
    verdict.holds = _names(row["holds"])
    verdict.refuted = _names(row["refuted"])
    for name in CONTROLS:
        estimate = _estimate(row, f"{name}_effect", f"{name}_", n)
        if estimate:
            verdict.controls[name] = Control(row[f"{name}_verdict"], estimate)
    verdict.difference = _estimate(row, "difference", "difference_", n)

    if row["needed"]:
        verdict.power = Power(row["needed"], row["needed_low"], row["needed_high"])
    if row["cut"] is not None:
        finished_n = _as_count(row["finished_n"]) or 0
        finished = _estimate(row, "finished", "finished_", finished_n)
        verdict.answers = Answers(row["cut"], row["cut_less"], finished)
    return verdict


def _estimate(row: dict[str, Any], effect: str, prefix: str, n: int) -> Estimate | None:
    """Return what `_columns` made three columns of; None where they are empty."""
    if row[effect] is None:
        return None
    return Estimate(row[effect], row[f"{prefix}low"], row[f"{prefix}high"], n)


def _as_count(value: float | None) -> int | None:
    return None if value is None else int(value)


def _names(text: str | None) -> tuple[str, ...]:
    return tuple(text.split(", ")) if text else ()


def stored_verdicts(name: str) -> Path:
    """Return where the repository keeps the verdicts of a profile of its own."""
    return paths.DATA / name / "verdicts.csv"


def write_verdicts(profile: Profile, verdicts: Sequence[Verdict]) -> Path:
    """Write results/<profile>/claims.json, a row per claim and model; return its path.

    The repository's own table of these verdicts is renewed, if it has one.
    """
    table = verdict_table(verdicts)
    profile.results.mkdir(parents=True, exist_ok=True)
    path = profile.results / "claims.json"
    text = table.to_json(orient="records", indent=1, force_ascii=False)
    write_whole(path, f"{text}\n".encode())
    kept = stored_verdicts(profile.name)
    if kept.is_file():
        _renew_stored(kept, table)
    return path


def _renew_stored(path: Path, table: pd.DataFrame) -> None:
    """Write a table where it is kept, unless what is there says the same.

    Processors round differently: the same run elsewhere differs in the sixth digit.
    """
    csv = table.to_csv(index=False, float_format="%.6g", lineterminator="\n")
    before = pd.read_csv(path)
    now = pd.read_csv(io.StringIO(csv))
    if difference(before, now):
        write_whole(path, csv.encode())


def read_verdicts(profile: Profile) -> list[Verdict]:
    """Return what `write_verdicts` wrote.

    Raises InputError when there are no claims, or they are damaged.
    """
    path = profile.results / "claims.json"
    again = f"python -m lib claims {profile.options}"
    if not path.exists():
        raise InputError(f"no claims of profile {profile.name} yet: {again}")
    try:
        table = pd.DataFrame(json.loads(path.read_bytes()))
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error
    except (ValueError, RecursionError):
        table = pd.DataFrame()

    wrong = [name for name in VERDICT_COLUMNS if name not in table]
    if not wrong and not table.verdict.isin(VERDICTS).all():
        wrong = ["verdict"]
    if wrong:
        raise InputError(
            f"{path} holds no claims ({wrong[0]} is missing or wrong); make it anew"
            f" with {again}"
        )
    return verdicts_of(table)


def counts(verdicts: Sequence[Verdict]) -> pd.DataFrame:
    """Return a row per model: how many literal claims stand how.

    What was not tested counts too.
    """
    claims = {verdict.id for verdict in literal(verdicts)}
    rows = []
    for model in models_of(verdicts):
        own = [row for row in literal(verdicts) if row.model == model and row.n]
        stands = Counter(verdict.stands for verdict in own)
        stands[NOT_TESTED] = len(claims) - len(own)
        rows.append({"model": model, **stands})

    names = [*VERDICTS, *UNJUDGED]
    table = pd.DataFrame(rows, columns=["model", *names])
    table[names] = table[names].fillna(0).astype(int)
    used = [name for name in names if table[name].any()]
    return table[["model", *used]]


def totals(verdicts: Sequence[Verdict]) -> dict[str, int]:
    """Return how many literal claims stand how, over all models."""
    return counts(verdicts).set_index("model").sum().to_dict()
