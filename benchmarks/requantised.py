"""What another rounding of the weights would change: the first layers measured again
after quantising once more.

    python benchmarks/requantised.py [--models demo ...] [--limit 24]

The models of data/profiles/families.yaml come with 4-bit weights, which nothing here
can compare with the original ones. So their matrices are quantised once more, to Q4_0,
and every claim on the inside is judged on both, on the same problems. Writes
benchmarks/results/requantised.csv, a row as each model is done, and prints it: the
largest change of lambda in layer 1, heads that cross 1, the largest change of a log
ratio of activations, and the claims whose verdict moves. Needs
requirements/families.txt.
"""

import argparse

import gguf
import numpy as np
import pandas as pd
import torch
import xarray as xr
from measuring import keep

from lib import progress
from lib.claims import judge, load_claims
from lib.measurement.activations import measure_activations
from lib.measurement.attention import measure_attention, prompts_of
from lib.measurement.causes import measure_causes
from lib.measurement.plan import CHANGES, INSERTIONS
from lib.measurement.store import joined
from lib.models.loading import Loaded, load
from lib.models.names import arm_for
from lib.profiles import Profile, load_profile
from lib.prompts.problems import Problem, load_problems

KIND = gguf.GGMLQuantizationType.Q4_0


def quantise(loaded: Loaded) -> None:
    """Round the matrices of the loaded layers to Q4_0, in place."""
    for module in loaded.model.modules():
        if isinstance(module, torch.nn.Linear) and module.in_features % 32 == 0:
            rounded = gguf.dequantize(
                gguf.quantize(module.weight.detach().numpy(), KIND), KIND
            )
            module.weight.data = torch.from_numpy(rounded.astype(np.float32))


def measured(loaded: Loaded, problems: list[Problem], profile: Profile) -> xr.Dataset:
    """Return what the claims on the inside of the trained network ask for."""
    found = xr.Dataset()
    prompts = prompts_of(
        loaded, problems, CHANGES, profile.attention.format, profile.filler
    )
    inserted = {name: prompts[name] for name in ("none", *INSERTIONS)}
    pieces = [*measure_attention(loaded, inserted), measure_causes(loaded, prompts)]
    pieces.append(
        measure_activations(
            loaded, prompts, arm=arm_for(loaded.spec), seed=profile.seed
        )
    )
    for piece in pieces:
        found = joined(found, piece.expand_dims(network=["trained"]))
    return found


def compared(spec: str, profile: Profile, limit: int) -> dict:
    """Return a model's row."""
    problems = load_problems(profile.attention.problems, limit=limit, seed=profile.seed)
    loaded = load(spec, layers=profile.attention.layers, dtype="float32", head=False)
    before = measured(loaded, problems, profile)
    quantise(loaded)
    after = measured(loaded, problems, profile)
    first, again = (
        some["lambda"]
        .sel(network="trained", layer=1, condition="mless")
        .mean("problem")
        for some in (before, after)
    )
    logs = [
        np.log(some.measures / some.measures.sel(condition="none")).mean("problem")
        for some in (before, after)
    ]
    verdicts = []
    for some in (before, after):
        rows = judge(load_claims(), {loaded.name: {"measured": some}})
        verdicts.append(rows[rows.n > 0].set_index("id").verdict)
    moved = [
        name for name in verdicts[0].index if verdicts[0][name] != verdicts[1][name]
    ]
    return {
        "model": loaded.name,
        "n": len(problems),
        "lambda_largest_change": float(abs(again - first).max()),
        "heads": first.size,
        "heads_crossing_1": int(((first < 1) != (again < 1)).sum()),
        "log_ratio_largest_change": float(abs(logs[1] - logs[0]).max()),
        "claims": len(verdicts[0]),
        "verdicts_moved": " ".join(moved),
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
        keep("requantised", pd.DataFrame(rows))
    print(pd.DataFrame(rows).to_string(index=False))


if __name__ == "__main__":
    main()
