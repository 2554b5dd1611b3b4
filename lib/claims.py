"""Every claim of the paper beside an effect, an interval, an n and a verdict, for the models of a profile.

claims = load_claims()                              # data/claims.yaml: statements and the rules that decide
rows = judge(claims, gather(profile, ...))          # a row per claim and model that can test it
"""

import inspect
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import asdict, fields
from pathlib import Path

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from lib import paths
from lib.activation_measurement import measure_activations
from lib.errors import InputError
from lib.evaluate import completions_for, silent, variation_for
from lib.evidence import MEASURES, Evidence, Untestable
from lib.measurement import measure_attention
from lib.profiles import PARTS, Profile
from lib.results import write_json
from lib.verdicts import Decision, decide

CLAIMS = paths.DATA / "claims.yaml"


class Reported(BaseModel):
    """What the paper reports for the quantity that a claim is about."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    value: float
    of: str


class Claim(BaseModel):
    """A statement of the paper and the rule that decides it; `range` holds an end or None below and above."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)
    id: str = Field(min_length=1)
    claim: str = Field(min_length=1)
    source: str = Field(min_length=1)
    measure: str
    arguments: dict = Field(default={}, alias="with")
    range: tuple[float | None, float | None]
    unit: str
    paper: Reported | None = None

    @model_validator(mode="after")
    def _agrees(self):
        if self.measure not in MEASURES:
            raise ValueError(f"unknown measure {self.measure!r}: choose from {', '.join(MEASURES)}")
        wanted = list(inspect.signature(MEASURES[self.measure]).parameters)[1:]
        if sorted(wanted) != sorted(self.arguments):
            raise ValueError(f"measure {self.measure} takes {', '.join(wanted) or 'nothing'} in `with`")
        low, high = self.range
        if (low is None and high is None) or (low is not None and high is not None and low >= high):
            raise ValueError(f"range {list(self.range)} claims nothing: give [low, high], null where it has no end")
        return self


def load_claims(path: Path = CLAIMS) -> list[Claim]:
    """Return the claims of a YAML file; raises InputError naming the claim and what is wrong with it."""
    try:
        content = yaml.safe_load(Path(path).read_text(encoding="utf-8"))
        entries = content["claims"]
    except (OSError, ValueError, KeyError, TypeError, yaml.YAMLError) as error:
        raise InputError(f"{path}: no list of claims: {' '.join(str(error).split())}") from error
    claims = []
    for number, entry in enumerate(entries, 1):
        try:
            claims.append(Claim.model_validate(entry))
        except ValidationError as error:
            first = error.errors()[0]
            name = entry.get("id", number) if isinstance(entry, dict) else number
            place = "".join(f"{part}: " for part in first["loc"])
            raise InputError(f"{path}: claim {name}: {place}{first['msg'].removeprefix('Value error, ')}") from error
    if repeated := {c.id for c in claims if [other.id for other in claims].count(c.id) > 1}:
        raise InputError(f"{path}: claim {min(repeated)} stands there twice")
    return claims


def gather(
    profile: Profile,
    overridden: bool,
    completions: str | None = None,
    measuring: Callable[[str, int, int], None] = lambda what, done, total: None,
    completing: Callable = silent,
) -> dict[str, Evidence]:
    """Return by model what the profile measures, computing only what results/ lacks; attention's models come first."""
    folder = paths.RESULTS / profile.name / "attention"
    attention = measure_attention(profile, folder, measuring)
    activations = measure_activations(profile, folder, measuring)
    records = {"main": completions_for(profile, overridden, completions, completing)[0]}
    records |= {part: variation_for(profile, overridden, part, completing)[0] for part in PARTS}
    answering = [record["model"] for part in records.values() for record in part]
    return {
        name: Evidence(
            name,
            attention.get(name),
            activations.get(name),
            {part: [r for r in some if r["model"] == name] for part, some in records.items()},
        )
        for name in dict.fromkeys([*attention, *answering])
    }


def judge(claims: Sequence[Claim], evidence: dict[str, Evidence]) -> list[dict]:
    """Return a row per claim and model that can test it; one row that says why not where none can."""
    rows = []
    for claim in claims:
        judged = [_row(claim, one) for one in evidence.values()]
        tested = [row for row in judged if row["n"]]
        rows += tested or judged[:1]
    return rows


def _row(claim: Claim, evidence: Evidence) -> dict:
    row = {"id": claim.id, "claim": claim.claim, "source": claim.source, "model": evidence.model}
    paper = claim.paper.value if claim.paper else None
    row |= {"unit": claim.unit, "range": list(claim.range), "paper": claim.paper and claim.paper.model_dump()}
    try:
        components = MEASURES[claim.measure](evidence, **claim.arguments)
        decision = asdict(decide(components, *claim.range, paper))
    except (Untestable, ValueError) as reason:
        nothing = dict.fromkeys(field.name for field in fields(Decision))
        return row | nothing | {"verdict": "undecided", "n": 0, "components": 0, "reason": str(reason)}
    return row | decision | {"reason": None}


def write_claims(profile: Profile, rows: list[dict]) -> Path:
    """Write results/<profile>/claims.json and return its path."""
    folder = paths.RESULTS / profile.name
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "claims.json", rows)
    return folder / "claims.json"


def page(rows: Sequence[dict], width: int = 118) -> str:
    """Return the claims as text: verdict, effect with interval, claimed range and n, the statement below."""
    lines = []
    for row in rows:
        lines.append(f"{row['verdict'].upper():12} {row['id']} ({row['source']}), {row['model']}")
        lines += textwrap.wrap(row["claim"] + ".", width, initial_indent=" " * 13, subsequent_indent=" " * 13)
        lines += textwrap.wrap(measured_text(row), width, initial_indent=" " * 13, subsequent_indent=" " * 13)
    return "\n".join(lines)


def measured_text(row: dict) -> str:
    """Return in one line what was measured, what was claimed, and the n that would decide."""
    if row["reason"]:
        return f"Not tested: {row['reason']}."
    text = f"{row['component']}: {_number(row['effect'])} [{_number(row['low'])}, {_number(row['high'])}] {row['unit']}"
    text += f", claimed {_range_text(*row['range'])}, n = {row['n']}"
    if row["components"] > 1:
        text += f", the least favourable of {row['components']}"
    if row["paper"]:
        text += f"; the paper {_number(row['paper']['value'])} ({row['paper']['of']})"
    if row["verdict"] == "undecided":
        size = "an effect of the paper's size" if row["paper"] else "an effect of this size"
        text += f"; {size} needs n = {row['needed']:,}" if row["needed"] else "; no n decides an effect at the edge"
    return text


def _number(value: float) -> str:
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.1f}" if abs(value) < 100 else f"{value:.0f}"


def _range_text(low: float | None, high: float | None) -> str:
    if low is None:
        return f"< {high:g}"
    return f"> {low:g}" if high is None else f"{low:g} to {high:g}"
