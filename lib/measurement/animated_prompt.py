"""Measure one prompt with fillers of increasing length, which the web page animates.

    part = AnimatedPromptPart(profile)
    part.complete()                # measures each model that has no file
    part.files()["gemma-3-270m"]

The file is results/PROFILE/prompt/MODEL-KEY.json.gz, or the shipped one in
data/PROFILE/prompt. Its key is a digest of all settings that decide its numbers, so
that measurements under other settings, or of other weights, are not found. Received
attention is stored as a byte on a logarithmic scale: 0 means unknown, 1 means 2 to the
power of -16 or less, and 255 means 1. Neighbouring values differ by 4 %, which is not
visible in a bar.
"""

import base64
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from lib.errors import InputError
from lib.files.atomic import write_atomically
from lib.files.run_json import settings_key
from lib.models.availability import named_revision
from lib.models.name_resolution import resolve
from lib.profiles import Attention, Profile
from lib.profiles.profile import file_name
from lib.prompts.fillers import RANDOM_SENTENCE, Filler
from lib.prompts.problem_sets import load_problems

FOLDER = "prompt"
PROBLEM = "embedded/draw/159"  # written for this project, so its text may be published
FILLERS = {"slashes": "/", "he": "he", "sentence": RANDOM_SENTENCE}
FILLERS |= {"blank": " ", "dots": "."}
LENGTHS = range(11, 111, 11)  # of fillers in tokens, including the paper's 55
OCTAVES = 16  # a byte represents values from 2**-16 to 1
LARGEST_BYTE = 255  # largest value of a byte


class AnimatedPromptPart:
    """The measured prompt of each model of a profile, and the folders of its files.

    stored: False to ignore the shipped files and those of the larger run, so that the
    prompt is measured again.
    """

    def __init__(self, profile: Profile, stored: bool = True) -> None:
        self.attention = profile.attention
        self.folders = [profile.results / FOLDER]
        if stored:
            self.folders.append(profile.shipped_results / FOLDER)
        if stored and profile.larger:
            # The prompt is the same, whatever problems the larger run measures.
            self.folders.append(profile.larger.results / FOLDER)

    def files(self) -> dict[str, Path]:
        """Return the stored file of each model that has one, by the model's name."""
        found = {}
        for spec in self.attention.models:
            file = self.file_of(spec)
            for folder in reversed(self.folders):
                if (folder / file).is_file():
                    found[resolve(spec).name] = folder / file
        return found

    def file_of(self, spec: str) -> str:
        """Return the name of the file of a model, which ends in its key."""
        key = settings_key(
            problem=_problem(),
            fillers=FILLERS,
            lengths=list(LENGTHS),
            octaves=OCTAVES,
            format=self.attention.format,
            dtype=self.attention.dtype,
            # Two folders or revisions of a repository may have the same name.
            revision=named_revision(spec),
        )
        return f"{file_name(resolve(spec).name)}-{key}.json.gz"

    def complete(self) -> None:
        """Measure the prompt on each model that has no file of it, and store it in
        results/.
        """
        for spec in self.attention.models:
            if resolve(spec).name in self.files():
                continue
            measured = measure_prompt(self.attention, spec)
            if measured["fillers"]:  # without fillers there is nothing to animate
                text = json.dumps(measured, separators=(",", ":"))
                path = self.folders[0] / self.file_of(spec)
                write_atomically(path, gzip.compress(text.encode(), mtime=0))


def measure_prompt(attention: Attention, spec: str) -> dict[str, Any]:
    """Return the attention that the tokens of the prompt of PROBLEM receive in layer 1
    of a model, in a form that JSON can store.

    - plain: received attention (head, token) without an insertion, as by `coded`
    - lengths: of the fillers in tokens; the first is 0, for plain
    - place: index of the first inserted token
    - fillers: by name, each with three lists over the lengths after the first:
      - received: received attention (head, token) with the filler, as by `coded`
      - inserted: texts of the inserted tokens
      - lambda: by head (lib.measurement.attention_changes)

    A filler is left out if its tokens merge with their neighbours, or if it exceeds the
    model's context.
    """
    # Imported here, because readers of the file need no torch.
    from lib.measurement.networks import load_cached
    from lib.measurement.single_prompt import changes_in_prompt, received_by
    from lib.prompts.building import build_prompt

    loaded = load_cached(spec, attention.layers, attention.dtype, None)
    problem, format = _problem(), attention.format
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
            changes = [
                changes_in_prompt(loaded, problem, one, [1], format) for one in fillers
            ]
        except InputError:
            continue
        inserted = [one.prompt.spans["inserted"] for one in changes]
        measured["place"] = inserted[0].start
        measured["fillers"][name] = {
            "received": [coded(one.after) for one in changes],
            "inserted": [
                one.prompt.texts[span]
                for one, span in zip(changes, inserted, strict=True)
            ],
            "lambda": [one.ratios[0].round(4).tolist() for one in changes],
        }
    return measured


def _problem() -> str:
    """Return the text of the problem that is measured."""
    (text,) = (one.problem for one in load_problems("embedded") if one.id == PROBLEM)
    return text


def coded(received: np.ndarray) -> str:
    """Return received attention on the logarithmic scale of a byte, in base64 and in
    the array's order; NaN becomes 0.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        octaves = np.log2(received) + OCTAVES
    levels = np.clip(1 + (LARGEST_BYTE - 1) * octaves / OCTAVES, 1, LARGEST_BYTE)
    known = np.where(np.isfinite(received), levels, 0)
    return base64.b64encode(np.round(known).astype("uint8").tobytes()).decode()
