"""What the page draws of any head: λ of all of them, and what each gives the tokens of
one prompt.
"""

import base64

import numpy as np
import pandas as pd
import xarray as xr

from lib import paths
from lib.measurement.measured_tables import means_table
from lib.measurement.plan import TRAINED
from lib.measurement.store import read_measured
from lib.profiles import Profile

# A token whose text is not stored: those of MATH-500 are not given away.
HIDDEN_TEXT = "\N{MIDDLE DOT}"


def read_heads(profile: Profile) -> tuple[list[dict], list[str]]:
    """Return a JSON object per model for the page's map of heads, and what is missing
    of it and why.

    What was measured here comes before what the repository has, which holds no texts.
    """
    files = {}
    for folder in (paths.DATA / profile.name, profile.results):
        files |= {path.name: path for path in sorted(folder.glob("*.nc"))}
    models: list[dict] = []
    missing: list[str] = []
    for name, path in files.items():
        try:
            measured = read_measured(path)
            if "lambda" in measured:
                models.append(_packed(measured))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            reason = " ".join(str(error).split())
            missing.append(f"{name} cannot be read: {reason}")
    if not models:
        command = f"python -m lib reproduce {profile.options} --only 02"
        missing.append(f"No heads of this profile yet: {command}")
    return models, missing


def _packed(measured: xr.Dataset) -> dict:
    """Return what the page draws of one model, heads in the order of layers."""
    ratios = measured["lambda"].sel(network=TRAINED)
    ratios = ratios.dropna("condition", how="all").dropna("layer", how="all")
    layers = ratios.layer.values.tolist()
    places = pd.MultiIndex.from_product([layers, ratios["head"].values.tolist()])
    table = means_table(ratios).set_index(["layer", "head"])
    changes = {}
    for condition in map(str, ratios.condition.values):
        rows = table[table.condition == condition].reindex(places)
        changes[condition] = {
            "ratio": _half(rows["mean"]),
            "low": _half(rows.low),
            "high": _half(rows.high),
            "n": _half(rows.n),
            **_packed_tokens(measured, condition, layers),
        }
    return {
        "name": measured.model,
        "revision": str(measured.revision),
        "problem": measured.example,
        "layers": layers,
        "heads": ratios.sizes["head"],
        "texts": "text" in measured,
        "received": _packed_tokens(measured, "none", layers)["received"],
        "changes": changes,
    }


def _packed_tokens(measured: xr.Dataset, condition: str, layers: list[int]) -> dict:
    """Return the tokens of the drawn prompt and what each head gives them: a text, None
    where it is not stored.
    """
    if "received" not in measured:
        nothing = [None] * (len(layers) * measured.sizes["head"])
        return {"received": nothing, "even": "", "tokens": [], "parts": []}
    names = [name for name in ("received", "even", "part", "text") if name in measured]
    prompt = measured[names].sel(condition=condition, layer=layers)
    prompt = prompt.isel(token=prompt.part.values != "")
    heads = prompt.received.values.reshape(-1, prompt.sizes["token"])
    texts = xr.full_like(prompt.part, HIDDEN_TEXT)
    if "text" in prompt:
        texts = prompt.text
    return {
        "received": [
            None if np.isnan(weights).all() else _half(weights) for weights in heads
        ],
        "even": _half(prompt.even.values),
        "tokens": texts.values.tolist(),
        "parts": prompt.part.values.tolist(),
    }


def _half(values: np.ndarray | pd.Series) -> str:
    """Return numbers as half-precision floats, which the page's code reads."""
    return base64.b64encode(np.asarray(values, dtype="<f2").tobytes()).decode()
