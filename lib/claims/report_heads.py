"""The report's heads: what lib.measurement.explorer kept, packed for the page, and the code that draws it."""

import base64
import contextlib
import json
from pathlib import Path

import numpy as np
import vl_convert
import xarray as xr

from lib.errors import InputError
from lib.paths import cache_folder, write_whole
from lib.profiles import Profile

CHART = Path(__file__).parent / "templates" / "received.json"  # a Vega-Lite chart; a test keeps it current
ATTRIBUTES = {"name": "model", "revision": "revision", "dtype": "dtype", "problem": "problem"}


def read_heads(profile: Profile) -> tuple[list[dict], list[str]]:
    """Return a JSON object per model for the page's map of heads, and what is missing of it and why."""
    newest, missing = {}, []
    files = (profile.results / "measurements").glob("explorer-*.nc")
    for path in sorted(files, key=lambda path: path.stat().st_mtime):
        try:
            packed = _packed(xr.load_dataset(path, engine="h5netcdf"))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            missing.append(f"{path.name} cannot be read: {' '.join(str(error).split())}")
        else:
            newest[packed["name"]] = packed
    if not newest:
        missing.append(f"No heads of this profile yet: python -m lib reproduce {profile.options} --only 02")
    return list(newest.values()), missing


def _packed(explorer: xr.Dataset) -> dict:
    """Return what the page draws of one model; received attention is a text per head, layer after layer."""
    none = explorer.sel(condition="none")
    changes = {}
    for condition in explorer.condition.values[explorer.condition.values != "none"]:
        one = explorer.sel(condition=condition)
        real = one.part != ""
        packed = {name: _half(one[name].values) for name in ("ratio", "low", "high")}
        packed |= {"received": _per_head(one), "even": _half(one.even.values[real])}
        changes[str(condition)] = packed | {
            "tokens": one.text.values[real].tolist(),
            "parts": one.part.values[real].tolist(),
        }
    names = {name: str(explorer.attrs[at]) for name, at in ATTRIBUTES.items()}
    sizes = {"layers": explorer.layer.values.tolist(), "heads": explorer.sizes["head"], "n": int(explorer.attrs["n"])}
    return names | sizes | {"received": _per_head(none), "changes": changes}


def _per_head(one: xr.Dataset) -> list[str]:
    received = one.received.values[..., one.part.values != ""]  # (L, H, T)
    return [_half(head) for layer in received for head in layer]


def _half(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values, dtype="<f2").tobytes()).decode()


def vega() -> str:
    """Return Vega, Vega-Lite and Vega-Embed as one script, bundled once per version, since that takes seconds."""
    path = cache_folder() / f"vega-{vl_convert.__version__}.js"
    with contextlib.suppress(OSError, UnicodeDecodeError):
        return path.read_text(encoding="utf-8")
    bundle = f"(() => {{{vl_convert.javascript_bundle()}}})();"  # its names stay its own
    with contextlib.suppress(OSError, InputError):  # a page can be made without a cache
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, bundle.encode())
    return bundle


def received_spec() -> dict:
    """Return the chart of one head, as lib.figures.heads draws it: stored, since Altair takes seconds to import."""
    return json.loads(CHART.read_text(encoding="utf-8"))
