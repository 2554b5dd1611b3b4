"""Everything that a profile measured, for the claims to ask."""

from lib.claims.evidence import UNIFORM, Evidence
from lib.evaluation.of_profile import completions_for, variation_for
from lib.evaluation.records import outcome_of
from lib.measurement.controls import SEEDS, Controls, measure_controls
from lib.measurement.run import measure_activations, measure_attention
from lib.profiles import PARTS, Profile


def gather(profile: Profile, completions: str | None = None) -> dict[str, Evidence]:
    """Return by model what the profile measures, computing only what results/ lacks; attention's models come first."""
    folder = profile.results / "measurements"
    attention = measure_attention(profile, folder)
    activations = measure_activations(profile, folder)
    controls = measure_controls(profile, folder)
    records = {"main": completions_for(profile, completions)[0]}
    records |= {part: variation_for(profile, part)[0] for part in PARTS}
    answering = [record["model"] for part in records.values() for record in part]
    return {
        name: Evidence(
            name,
            attention.get(name),
            activations.get(name),
            {part: [r for r in some if r["model"] == name] for part, some in records.items()},
            plain=profile.accuracy.format == "plain" and not profile.accuracy.elicit,
            outcome=outcome_of(profile.accuracy.problems),
            controls=_evidence_of(controls[name]) if name in controls else {},
        )
        for name in dict.fromkeys([*attention, *answering])
    }


def _evidence_of(controls: Controls) -> dict[str, Evidence]:
    """Return what the claims ask of each untrained network, and of uniform attention."""
    found = {
        f"seed {seed}": Evidence(f"an untrained network, seed {seed}", attention, activations)
        for seed, attention, activations in zip(SEEDS, controls.attention, controls.activations, strict=True)
    }
    return found | {UNIFORM: Evidence("uniform attention", controls.uniform)}
