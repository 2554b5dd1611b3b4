"""One prompt of the project's own under more and more of a filler, for the page.

    measure_prompts(profile)  # a file for each model that has none
    prompt_file(profile, "gemma-3-270m")

The file is results/PROFILE/prompt/MODEL.json.gz, or the repository's own in
data/PROFILE/prompt. What a token receives is kept in a byte, on a logarithmic scale: 0
stands for nothing known, 1 for 2 to the power of -16 or less, 255 for 1. Two neighbours
are 4 % apart, which no eye tells in a bar.
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

PROBLEM = "embedded/draw/159"  # whose words may be shown
FILLERS = {"slashes": "/", "he": "he", "sentence": RANDOM_SENTENCE}
FILLERS |= {"blank": " ", "dots": "."}
LENGTHS = range(11, 111, 11)  # tokens; the paper's 55 are among them
OCTAVES = 16  # below 1, that a byte reaches
MOST = 255  # of a byte


def prompt_file(profile: Profile, model: str) -> Path | None:
    """Return what was measured of the prompt on a model: here, else what the repository
    has. It is None where neither is.
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

    Without `stored` what the repository has is measured anew.
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
    """Return where a folder keeps what was measured of the prompt on a model."""
    return folder / "prompt" / f"{file_name(model)}.json.gz"


def measured_prompt(profile: Profile, spec: str) -> dict[str, Any]:
    """Return what the tokens of PROBLEM receive in layer 1 of a model, as JSON.

    `plain` are the bytes of the prompt without an insertion, (head, token). Of a filler
    `received` are those with it, in the order of `lengths` after the first, which is 0,
    and `inserted` the texts that begin at `place`. `lambda` is, by length and head,
    what the original tokens receive on average with the filler over the same without
    it, the first and the last left out. A filler that merges with its neighbours in the
    model's vocabulary, or does not fit into its context, is left out.
    """
    # With torch, which whoever reads the file does without.
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
    """Return what tokens receive as bytes in base64, in the array's order."""
    with np.errstate(divide="ignore", invalid="ignore"):
        octaves = np.log2(received) + OCTAVES
    places = np.clip(1 + (MOST - 1) * octaves / OCTAVES, 1, MOST)
    known = np.where(np.isfinite(received), places, 0)
    return base64.b64encode(np.round(known).astype("uint8").tobytes()).decode()


def _texts(prompt) -> list[str]:
    return [prompt.text[start:stop] for start, stop in prompt.offsets]
