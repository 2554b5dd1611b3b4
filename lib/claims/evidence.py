"""What was measured on each model, which the functions of internals.py and answers.py turn into a claim's numbers.

Each takes the evidence and the claim's arguments and returns components, or raises Untestable, which says why not.
"""

from dataclasses import dataclass, field

from lib.evaluation.of_profile import completions_for, scores_for, variation_for
from lib.evaluation.records import Record, outcome_of
from lib.measurement.measured import SEEDS, Controls, Measured
from lib.measurement.run import measure_activations, measure_attention, measure_controls
from lib.profiles import PARTS, Profile

UNIFORM = "uniform"  # names the control without a network, whose queries attend equally to all they may see


class Untestable(Exception):
    """Says why these measurements cannot test a claim."""


@dataclass(frozen=True)
class Evidence:
    """All that a profile measured on one model."""

    model: str
    attention: Measured | None = None
    activations: Measured | None = None
    records: dict[str, list[Record]] = field(default_factory=dict)  # by part: main, and those of PARTS
    scores: list[dict] = field(default_factory=list)  # likelihoods: lib.evaluation.likelihood
    plain: bool = False  # the prompts of the answers are the paper's, and nothing is elicited
    outcome: str = "correct"  # what counts as solved: `lib.evaluation.records.outcome_of`
    # By seed or name, without training, on the same problems in the same order.
    controls: "dict[str, Evidence]" = field(default_factory=dict)


def gather(profile: Profile, completions: str | None = None) -> dict[str, Evidence]:
    """Return by model what the profile measures, computing only what results/ lacks; attention's models come first."""
    folder = profile.results / "measurements"
    attention, activations = measure_attention(profile, folder), measure_activations(profile, folder)
    controls = measure_controls(profile, folder)
    records = {"main": completions_for(profile, completions)[0]}
    records |= {part: variation_for(profile, part)[0] for part in PARTS}
    answering = [record["model"] for part in records.values() for record in part]
    scores = scores_for(profile)
    return {
        name: Evidence(
            name,
            attention.get(name),
            activations.get(name),
            {part: [r for r in some if r["model"] == name] for part, some in records.items()},
            [row for row in scores if row["model"] == name],
            plain=profile.accuracy.format == "plain" and not profile.accuracy.elicit,
            outcome=outcome_of(profile.accuracy.problems),
            controls=_evidence_of(controls[name]) if name in controls else {},
        )
        for name in dict.fromkeys([*attention, *answering])
    }


def _evidence_of(controls: Controls) -> dict[str, Evidence]:
    found = {
        f"seed {seed}": Evidence(f"an untrained network, seed {seed}", attention, activations)
        for seed, attention, activations in zip(SEEDS, controls.attention, controls.activations, strict=True)
    }
    return found | {UNIFORM: Evidence("uniform attention", controls.uniform)}
