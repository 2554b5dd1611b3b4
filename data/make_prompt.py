"""Write data/families/prompt: what the tokens of one prompt receive, with more and more
filler.

    python data/make_prompt.py [MODEL...]

The prompt is one of the project's own problems, so that its words can be shown; the
page of the profile draws it (lib/report/prompt.py says how the numbers are kept).
Without names the models are the families', whose weights requirements/families.txt
installs. A model takes half a minute.
"""

import argparse
import gzip
import json

import numpy as np

from lib.attention import received_attention
from lib.errors import InputError
from lib.measurement.networks import load_cached
from lib.paths import DATA, write_whole
from lib.profiles import load_profile
from lib.prompts.building import Prompt, build_prompt
from lib.prompts.conditions import RANDOM_SENTENCE, Filler
from lib.prompts.problems import load_problems
from lib.report.prompt import coded

FOLDER = DATA / "families" / "prompt"
PROBLEM = "embedded/draw/159"
FILLERS = {"slashes": "/", "he": "he", "sentence": RANDOM_SENTENCE}
FILLERS |= {"blank": " ", "dots": "."}
LENGTHS = range(11, 111, 11)  # tokens; the paper's 55 are among them


def measured_prompt(spec: str) -> dict:
    """Return what the tokens of PROBLEM receive in layer 1 of a model, as JSON.

    `plain` are the bytes of the prompt without an insertion, (head, token), and
    `received` those with so many tokens of a filler, in the order of `lengths`.
    `lambda` is, by length and head, what the original tokens receive on average with
    the filler over the same without it, the first and the last left out. A filler that
    merges with its neighbours in the model's vocabulary is left out.
    """
    loaded = load_cached(spec, 1)
    problems = {problem.id: problem for problem in load_problems("embedded")}
    text = problems[PROBLEM].problem
    plain = build_prompt(loaded.tokenizer, text, "none")
    before = _received(loaded, plain)
    fillers = {}
    for name, filler_text in FILLERS.items():
        try:
            prompts = [
                build_prompt(
                    loaded.tokenizer,
                    text,
                    "mless",
                    filler=Filler(mless=filler_text, length=length),
                )
                for length in LENGTHS
            ]
        except InputError as error:
            print(f"{loaded.name}: no {name}: {error}")
            continue
        fillers[name] = {"received": [], "inserted": [], "lambda": []}
        for prompt in prompts:
            after = _received(loaded, prompt)
            original = prompt.original.numpy()[1:-1]
            ratios = after[:, original].mean(1) / before[:, 1:-1].mean(1)
            fillers[name]["received"].append(coded(after))
            fillers[name]["inserted"].append(_texts(prompt)[prompt.spans["inserted"]])
            fillers[name]["lambda"].append([round(float(one), 4) for one in ratios])
    return {
        "model": loaded.name,
        "revision": str(loaded.revision),
        "problem": PROBLEM,
        "lengths": [0, *LENGTHS],
        "heads": loaded.heads,
        "tokens": _texts(plain),
        "parts": plain.parts,
        "place": prompt.spans["inserted"].start,
        "plain": coded(before),
        "fillers": fillers,
    }


def _received(loaded, prompt: Prompt) -> np.ndarray:
    """Return what the tokens of a prompt receive in layer 1, (head, token)."""
    return received_attention(loaded.model, prompt.input_ids, [1])[0, 0].cpu().numpy()


def _texts(prompt: Prompt) -> list[str]:
    return [prompt.text[start:stop] for start, stop in prompt.offsets]


def main() -> None:
    """Measure the models of the command line and write a file each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*")
    models = parser.parse_args().models or load_profile("families").attention.models
    for spec in models:
        measured = measured_prompt(spec)
        content = json.dumps(measured, ensure_ascii=False, separators=(",", ":"))
        path = FOLDER / f"{measured['model']}.json.gz"
        path.parent.mkdir(parents=True, exist_ok=True)
        write_whole(path, gzip.compress(content.encode(), mtime=0))
        print(f"{path.name}: {len(measured['tokens'])} tokens, {path.stat().st_size} B")


if __name__ == "__main__":
    main()
