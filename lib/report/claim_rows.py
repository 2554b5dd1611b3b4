"""The claims as the page lists them: in groups, one row each, with what is behind."""

import re
from typing import Any

from lib.claims.claim import load_claims
from lib.claims.verdict import UNJUDGED, VERDICTS, Verdict
from lib.report.axis import axis
from lib.sentences import one_verdict

SIGNS = dict(zip((*VERDICTS, *UNJUDGED), "✓◐✕≈??–", strict=True))
# By the function that measures a claim.
ATTENTION = "Attention"
ACTIVATIONS = "Activations of the first MLP"
HELP = "Likelihood of the worked solution, and weighted answers"
ANSWERS = "Accuracy and ARM"
CHECKS_GROUP = "Checks of the measures, and claims of other papers"
GROUP_OF = {
    "activation_changes": ACTIVATIONS,
    "class_differences": ACTIVATIONS,
    "class_falls": ACTIVATIONS,
    "likeness": ACTIVATIONS,
    "likelihood_differences": HELP,
    "mean_likelihood_differences": HELP,
    "pass_rates": HELP,
    "accuracy_differences": ANSWERS,
    "accuracy_unaided": ANSWERS,
    "largest_gain": ANSWERS,
    "sampling_differences": ANSWERS,
    "pass_differences": ANSWERS,
}


def grouped_claims(
    verdicts: list[Verdict], figures: list[dict], notebooks: dict[str, str]
) -> dict[str, list[dict]]:
    """Return by group its claims: the first verdict, and a row per model that tests it,
    in their order and by model.

    `figures` are those that bear on the claim, `notebooks` the places of the notebooks
    that draw them.
    """
    measures = {claim.id: claim.measure for claim in load_claims()}
    claims: dict[str, dict[str, Any]] = {}
    for verdict in verdicts:
        new = {
            "first": verdict,
            "rows": [],
            "anchor": f"claim-{_in_address(verdict.id)}",
        }
        claims.setdefault(verdict.id, new)["rows"].append(_told_row(verdict))

    names = (ATTENTION, ACTIVATIONS, HELP, ANSWERS, CHECKS_GROUP)
    groups: dict[str, list[dict]] = {name: [] for name in names}
    for name, claim in claims.items():
        own = [
            figure
            for figure in figures
            if figure["caption"] and name in figure["caption"]["claims"]
        ]
        claim["figures"] = own
        claim["by_model"] = {row["verdict"].model: row for row in claim["rows"]}
        stems = dict.fromkeys(figure["caption"]["notebook"] for figure in own)
        claim["notebooks"] = {
            stem: notebooks[stem] for stem in stems if stem in notebooks
        }
        group = GROUP_OF.get(measures.get(name, ""), ATTENTION)
        if claim["first"].reading in ("other", "control"):
            group = CHECKS_GROUP
        groups[group].append(claim)
    return {name: rows for name, rows in groups.items() if rows}


def _told_row(verdict: Verdict) -> dict[str, Any]:
    """Return what the page says of a claim on one model."""
    return {
        "verdict": verdict,
        "told": one_verdict.verdict_text(verdict),
        "measured": one_verdict.measured_text(verdict),
        "anchor": f"claim-{_in_address(verdict.id)}-{_in_address(verdict.model)}",
        "axis": axis(verdict),
    }


def _in_address(text: str) -> str:
    """Return a text as a part of an address."""
    return re.sub(r"[^\w.]+", "-", text)
