"""One of the project's prompts with more and more of a filler, for the page.

    measure_prompts(profile)  # a file for each model that has none
    prompt_file(profile, "gemma-3-270m")

The file is results/PROFILE/prompt/MODEL.json.gz, or the repository's in
data/PROFILE/prompt. Received attention is stored in a byte on a logarithmic scale: 0
means unknown, 1 means 2 to the power of -16 or less, and 255 means 1. Neighbouring
values differ by 4 %, which is not visible in a bar.
"""

import base64
import functools
import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np

from lib.errors import InputError
from lib.files.whole import write_whole
from lib.models.names import resolve
from lib.profiles import Profile
from lib.profiles.profile import file_name
from lib.prompts.conditions import RANDOM_SENTENCE, Filler
from lib.prompts.problems import load_problems

PROBLEM = "embedded/draw/159"  # written for this project, so that it may be shown
FILLERS = {"slashes": "/", "he": "he", "sentence": RANDOM_SENTENCE}
FILLERS |= {"blank": " ", "dots": "."}
LENGTHS = range(11, 111, 11)  # tokens; the paper's 55 are among them
OCTAVES = 16  # range of a byte, below 1
MOST = 255  # largest value of a byte


def prompt_file(profile: Profile, model: str) -> Path | None:
    """Return the file of a model's prompt, in the results or else in the repository;
    None if there is none.
    """
    folders = [profile.results, profile.kept]
    if profile.larger:
        folders.append(profile.larger.results)  # whatever problems were measured
    for folder in folders:
        file = _file_in(folder, profile, model)
        if file.is_file():
            return file
    return None


def measure_prompts(profile: Profile, stored: bool = True) -> None:
    """Measure the prompt on each model of a profile that has no file of it.

    Without `stored`, the repository's file does not count.
    """
    for spec in profile.attention.models:
        name = resolve(spec).name
        path = _file_in(profile.results, profile, name)
        if path.is_file() or (stored and prompt_file(profile, name)):
            continue
        measured = measured_prompt(profile, spec)
        if not measured["fillers"]:
            continue  # there is nothing to watch
        text = json.dumps(measured, separators=(",", ":"))
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, gzip.compress(text.encode(), mtime=0))


def _file_in(folder: Path, profile: Profile, model: str) -> Path:
    """Return the path of a model's prompt in a folder."""
    return folder / "prompt" / f"{file_name(model)}.json.gz"


def measured_prompt(profile: Profile, spec: str) -> dict[str, Any]:
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
    from lib.measurement.attention import on_one_prompt, received_by
    from lib.measurement.networks import load_cached
    from lib.prompts.building import build_prompt

    settings = profile.attention
    loaded = load_cached(spec, settings.layers, settings.dtype, None)
    problems = {problem.id: problem.problem for problem in load_problems("embedded")}
    build = functools.partial(
        build_prompt,
        loaded.tokenizer,
        problems[PROBLEM],
        format=settings.format,
    )
    plain = build("none")
    measured = {
        "model": loaded.name,
        "revision": str(loaded.revision),
        "heads": loaded.heads,
        "lengths": [0, *LENGTHS],
        "tokens": _texts(plain),
        "plain": coded(received_by(loaded, plain, [1])),
        "fillers": {},
    }
    for name, text in FILLERS.items():
        try:
            filled = [
                build("mless", filler=Filler(mless=text, length=length))
                for length in LENGTHS
            ]
            seen = [on_one_prompt(loaded, plain, prompt, [1]) for prompt in filled]
        except InputError:
            continue
        received = [coded(one.after) for one in seen]
        inserted = [_texts(prompt)[prompt.spans["inserted"]] for prompt in filled]
        ratios = [one.ratios[0].astype(float).round(4).tolist() for one in seen]
        told = {"received": received, "inserted": inserted, "lambda": ratios}
        measured["place"] = filled[0].spans["inserted"].start
        measured["fillers"][name] = told
    return measured


def coded(received: np.ndarray) -> str:
    """Return received attention as bytes in base64, in the array's order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        octaves = np.log2(received) + OCTAVES
    places = np.clip(1 + (MOST - 1) * octaves / OCTAVES, 1, MOST)
    known = np.where(np.isfinite(received), places, 0)
    return base64.b64encode(np.round(known).astype("uint8").tobytes()).decode()


def _texts(prompt) -> list[str]:
    return [prompt.text[start:stop] for start, stop in prompt.offsets]
