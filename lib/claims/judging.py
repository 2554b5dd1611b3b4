"""Every claim of the paper beside an effect, an interval, an n and a verdict, for the models of a profile.

claims = load_claims()                              # data/claims.yaml: statements and the rules that decide
rows = judge(claims, gather(profile, ...))          # a row per claim and model that can test it
"""

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from lib.claims.evidence import MEASURES, Evidence, Untestable
from lib.claims.statements import Claim
from lib.claims.verdicts import Decision, decide
from lib.paths import write_json
from lib.profiles import Profile


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
    folder = profile.results
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "claims.json", rows)
    return folder / "claims.json"
