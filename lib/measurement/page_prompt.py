"""One of the project's prompts with more and more of a filler, for the page.

    part = PromptPart(profile)
    part.complete()                # a file for each model that has none
    part.files()["gemma-3-270m"]

The file is results/PROFILE/prompt/MODEL.json.gz, or the repository's in
data/PROFILE/prompt. Received attention is stored in a byte on a logarithmic scale: 0
means unknown, 1 means 2 to the power of -16 or less, and 255 means 1. Neighbouring
values differ by 4 %, which is not visible in a bar.
"""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from lib.errors import InputError
from lib.files.atomic import write_atomically
from lib.models.names import resolve
from lib.profiles import Attention, Profile
from lib.profiles.profile import file_name
from lib.prompts.conditions import RANDOM_SENTENCE, Filler
from lib.prompts.problems import load_problems

FOLDER = "prompt"
PROBLEM = "embedded/draw/159"  # written for this project, so that it may be shown
FILLERS = {"slashes": "/", "he": "he", "sentence": RANDOM_SENTENCE}
FILLERS |= {"blank": " ", "dots": "."}
LENGTHS = range(11, 111, 11)  # tokens; the paper's 55 are among them
OCTAVES = 16  # range of a byte, below 1
LARGEST_BYTE = 255  # largest value of a byte


class PromptPart:
    """The prompt on each model of a profile, and where its files are stored.

    Without `stored`, only those in the profile's results count.
    """

    def __init__(self, profile: Profile, stored: bool = True) -> None:
        self.attention = profile.attention
        self.folders = [profile.results / FOLDER]
        if stored:
            self.folders.append(profile.shipped_results / FOLDER)
        if stored and profile.larger:
            # The prompt does not depend on the problems that were measured.
            self.folders.append(profile.larger.results / FOLDER)

    def files(self) -> dict[str, Path]:
        """Return the stored file of each model that has one, by the model's name."""
        found = {}
        for spec in self.attention.models:
            name = resolve(spec).name
            for folder in reversed(self.folders):
                file = folder / f"{file_name(name)}.json.gz"
                if file.is_file():
                    found[name] = file
        return found

    def complete(self) -> None:
        """Measure the prompt on each model that has no file of it."""
        for spec in self.attention.models:
            name = resolve(spec).name
            if name in self.files():
                continue
            measured = measure_prompt(self.attention, spec)
            if measured["fillers"]:  # else there is nothing to watch
                text = json.dumps(measured, separators=(",", ":"))
                path = self.folders[0] / f"{file_name(name)}.json.gz"
                write_atomically(path, gzip.compress(text.encode(), mtime=0))


def measure_prompt(attention: Attention, spec: str) -> dict[str, Any]:
    """Return the attention that the tokens of PROBLEM receive in layer 1 of a model, as
    JSON.

    `plain` are the bytes of the prompt without an insertion, (head, token). For each
    filler, `received` are the bytes with it, in the order of `lengths` without the
    first (0), and `inserted` the texts that begin at `place`. `lambda` is, by length
    and head, the mean attention that the original tokens receive with the filler
    divided by the mean without it, without the first and the last token. A filler is
    left out if it merges with its neighbours in the model's vocabulary, or does not fit
    into its context.
    """
    # Imports torch, which readers of the file do not need.
    from lib.measurement.attention import changes_in_prompt, received_by
    from lib.measurement.networks import load_cached
    from lib.prompts.building import build_prompt

    loaded = load_cached(spec, attention.layers, attention.dtype, None)
    (problem,) = (one.problem for one in load_problems("embedded") if one.id == PROBLEM)
    format = attention.format
    plain = build_prompt(loaded.tokenizer, problem, "none", format=format)
    measured = {
        "model": loaded.name,
        "revision": str(loaded.revision),
        "heads": loaded.heads,
        "lengths": [0, *LENGTHS],
        "tokens": plain.texts,
        "plain": coded(received_by(loaded, plain, [1])),
        "fillers": {},
    }
    for name, text in FILLERS.items():
        fillers = [Filler(mless=text, length=length) for length in LENGTHS]
        try:
            seen = [
                changes_in_prompt(loaded, problem, one, [1], format) for one in fillers
            ]
        except InputError:
            continue
        inserted = [one.prompt.spans["inserted"] for one in seen]
        measured["place"] = inserted[0].start
        measured["fillers"][name] = {
            "received": [coded(one.after) for one in seen],
            "inserted": [
                one.prompt.texts[span] for one, span in zip(seen, inserted, strict=True)
            ],
            "lambda": [one.ratios[0].round(4).tolist() for one in seen],
        }
    return measured


def coded(received: np.ndarray) -> str:
    """Return received attention as bytes in base64, in the array's order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        octaves = np.log2(received) + OCTAVES
    places = np.clip(1 + (LARGEST_BYTE - 1) * octaves / OCTAVES, 1, LARGEST_BYTE)
    known = np.where(np.isfinite(received), places, 0)
    return base64.b64encode(np.round(known).astype("uint8").tobytes()).decode()
