"""A small profile's results and figures, made by hand, from which a page is made."""

import base64
import gzip
import json
import shutil

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from lib import paths
from lib.claims.verdict import Verdict, write_verdicts
from lib.profiles import Profile, load_profile

# A picture of one pixel.
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
)
MODELS = ("demo", "gemma-3-270m")  # whose stored prompts the page shows
ANSWERED = "SmolLM2-135M-Instruct"  # as the demo model is called
# as a model's text
EVIL = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned ="
    " 1'>\"'\u2028"
)


def verdict(id: str = "dilution", model: str = ANSWERED, **changes) -> Verdict:
    """Return a verdict, supported by 40 problems unless changed."""
    fields = {
        "claim": "Every head drops",
        "reading": "literal",
        "source": "Fig. 2",
        "unit": "λ",
        "range": (None, 1),
        "written": "after",
        "verdict": "supported",
        "effect": 0.8,
        "low": 0.7,
        "high": 0.9,
        "n": 40,
        "survives": True,
    }
    return Verdict(id=id, model=model, **fields | changes)


def answer(problem: str, condition: str, correct: bool, **changes) -> dict:
    """Return a record of a completion."""
    record = {
        "key": f"{problem}-{condition}-{changes.get('sample', 0)}",
        "model": ANSWERED,
        "condition": condition,
        "problem_id": problem,
        "sample": 0,
        "response": f"{problem} under {condition}",
        "correct": correct,
    }
    return record | changes


@pytest.fixture
def made_profile(tmp_path, monkeypatch):
    """A profile with results of its own: a verdict, what is stored of the prompt on two
    models, two figures and a notebook.
    """
    for name in ("RESULTS", "FIGURES", "NOTEBOOKS"):
        monkeypatch.setattr(paths, name, tmp_path / name.lower())
    demo = load_profile("demo")
    attention = demo.attention.model_copy(update={"models": [*MODELS]})
    profile = demo.model_copy(update={"name": "made", "attention": attention})
    write_verdicts(profile, [verdict()])
    prompts = profile.results / "prompt"
    prompts.mkdir()
    for name in (ANSWERED, MODELS[1]):
        shutil.copy(paths.DATA / "families" / "prompt" / f"{name}.json.gz", prompts)
    profile.figures.mkdir(parents=True)
    for name in ("fig13", "fig09"):
        (profile.figures / f"{name}.png").write_bytes(PIXEL)
    paths.NOTEBOOKS.mkdir()
    notebook = new_notebook(cells=[new_markdown_cell("# One prompt")])
    nbformat.write(notebook, paths.NOTEBOOKS / "01_attention_maps.ipynb")
    return profile


def write_answers(profile: Profile, *records: dict) -> None:
    """Write completions into the profile's results."""
    lines = [json.dumps(record) + "\n" for record in records]
    (profile.results / "completions.jsonl").write_text("".join(lines))


def make_evil(profile: Profile) -> None:
    """Let every text of a model try to get out of its place on the page."""
    write_verdicts(profile, [verdict(EVIL, EVIL, claim=EVIL, reading=EVIL)])
    pair = [answer("a", "none", False), answer("a", "mless", True)]
    write_answers(profile, *(record | {"response": f"{EVIL}\ud800"} for record in pair))
    (profile.figures / "<img src=x onerror=alert(1)>.png").write_bytes(PIXEL)
    file = profile.results / "prompt" / f"{ANSWERED}.json.gz"
    prompt = json.loads(gzip.decompress(file.read_bytes()))
    prompt["tokens"][0] = EVIL
    file.write_bytes(gzip.compress(json.dumps(prompt).encode()))
