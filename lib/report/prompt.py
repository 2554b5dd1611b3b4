"""One prompt of the project's own, as the page lets a reader explore it.

What a token receives is kept in a byte, on a logarithmic scale: 0 stands for nothing
known, 1 for 2 to the power of -16 or less, 255 for 1. Two neighbours are 4 % apart,
which no eye tells in a colour or a curve.
"""

import base64
import gzip
import json

import numpy as np

from lib import paths
from lib.models.names import resolve
from lib.profiles import Profile

OCTAVES = 16  # below 1, that a byte reaches
MOST = 255  # of a byte


def coded(received: np.ndarray) -> str:
    """Return what tokens receive as bytes in base64, in the array's order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        octaves = np.log2(received) + OCTAVES
    places = 1 + (MOST - 1) * octaves / OCTAVES
    kept = np.clip(places, 1, MOST)
    known = np.where(np.isfinite(received), kept, 0)
    as_bytes = np.round(known).astype("uint8").tobytes()
    return base64.b64encode(as_bytes).decode()


def read_prompts(profile: Profile) -> list[dict]:
    """Return what is stored of a profile's models, in their order, as JSON objects."""
    names = [resolve(spec).name for spec in profile.attention.models]
    stored = {}
    for path in sorted(paths.DATA.glob("*/prompt/*.json.gz")):
        prompt = json.loads(gzip.decompress(path.read_bytes()))
        stored[prompt["model"]] = prompt
    return [stored[name] for name in names if name in stored]
