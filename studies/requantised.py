"""How much another rounding of the weights changes measurements and verdicts.

    python -m studies.requantised [--models demo ...] [--limit 24]

The models of data/profiles/families.yaml come with 4-bit weights, and the original
weights are not available for a comparison. So the matrices of their first layers are
quantised a second time, and every claim on attention and activations is judged with
both weights, on the same problems. Writes studies/results/requantised.csv, a row as
soon as a
model is done, and prints it: the largest change of lambda in layer 1 and of a log ratio
of activations, and the claims whose verdict changes. Needs requirements/families.txt.
"""

import argparse

import gguf
import numpy as np
import pandas as pd
import torch
import xarray as xr

from lib import progress
from lib.models.loading import Loaded, load
from lib.prompts.problems import Problem, load_problems
from reproduction.claims import judge, load_claims
from reproduction.measurement.activation_changes import measure_activations
from reproduction.measurement.affine_map import measure_affine
from reproduction.measurement.attention_changes import measure_attention, prompts_of
from reproduction.measurement.dataset import CHANGES, INSERTIONS, merged
from reproduction.profiles import Profile, load_profile
from studies.keeping import RESULTS, keep

KIND = gguf.GGMLQuantizationType.Q4_0


def quantise(loaded: Loaded) -> None:
    """Round the matrices of the loaded layers to Q4_0, in place."""
    for module in loaded.model.modules():
        if isinstance(module, torch.nn.Linear) and module.in_features % 32 == 0:
            weights = module.weight.detach().numpy()
            rounded = gguf.dequantize(gguf.quantize(weights, KIND), KIND)
            module.weight.data = torch.from_numpy(rounded.astype(np.float32))


def measured(loaded: Loaded, problems: list[Problem], profile: Profile) -> xr.Dataset:
    """Return the measurements that claims on the trained network need."""
    prompts = prompts_of(
        loaded, problems, CHANGES, profile.attention.format, profile.filler
    )
    inserted = {name: prompts[name] for name in ("none", *INSERTIONS)}
    arm = loaded.source.arm
    steps = [
        measure_attention(loaded, inserted),
        measure_affine(loaded, prompts),
        measure_activations(loaded, prompts, arm=arm, seed=profile.seed),
    ]
    return merged([step.expand_dims(network=["trained"]) for step in steps])


def mean_lambda(dataset: xr.Dataset) -> xr.DataArray:
    """Return lambda of the heads of layer 1 under slashes."""
    labels = {"network": "trained", "layer": 1, "condition": "mless"}
    return dataset["lambda"].sel(labels).mean("problem")


def mean_log_ratio(dataset: xr.Dataset) -> xr.DataArray:
    """Return the mean log ratio of the measures of activations to none."""
    none = dataset.measures.sel(condition="none")
    return np.log(dataset.measures / none).mean("problem")


def verdict_by_claim(dataset: xr.Dataset, model: str) -> dict[str, str]:
    """Return the verdicts on a model's measurements, by claim."""
    verdicts = judge(load_claims(), {model: {"measured": dataset}})
    return {verdict.id: verdict.verdict for verdict in verdicts if verdict.n}


def compared(spec: str, profile: Profile, limit: int) -> dict:
    """Return a model's row."""
    problems = load_problems(profile.attention.problems, limit=limit, seed=profile.seed)
    loaded = load(spec, layers=profile.attention.layers, dtype="float32")
    before = measured(loaded, problems, profile)
    quantise(loaded)
    after = measured(loaded, problems, profile)

    lambda_change = mean_lambda(after) - mean_lambda(before)
    log_change = mean_log_ratio(after) - mean_log_ratio(before)
    old = verdict_by_claim(before, loaded.name)
    new = verdict_by_claim(after, loaded.name)
    return {
        "model": loaded.name,
        "n": len(problems),
        "lambda_largest_change": float(abs(lambda_change).max()),
        "log_ratio_largest_change": float(abs(log_change).max()),
        "claims": len(old),
        "verdicts_moved": ", ".join(name for name in old if old[name] != new[name]),
    }


def main() -> None:
    """Compare every model and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    profile = load_profile("families")
    parser.add_argument("--models", nargs="+", default=profile.attention.models)
    parser.add_argument("--limit", type=int, default=24)
    options = parser.parse_args()
    rows = []
    progress.shown = True
    for spec in options.models:
        rows.append(compared(spec, profile, options.limit))
        keep(RESULTS / "requantised.csv", pd.DataFrame(rows))


if __name__ == "__main__":
    main()
