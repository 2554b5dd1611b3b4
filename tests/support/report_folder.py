"""A small profile's results and figures, made by hand, from which a page is made."""

import base64
import gzip
import json
import shutil

import pytest

from lib import paths
from lib.claims.verdict import Verdict, write_verdicts
from lib.profiles import Profile, load_profile

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAAAAAA6fptVAAAACklEQVR42mNgAAAAAgAB5Sfe/AAAAABJRU5ErkJggg=="
)
NOTEBOOK = {
    "cells": [{"cell_type": "markdown", "metadata": {}, "source": ["# One prompt"]}],
    "metadata": {},
    "nbformat": 4,
    "nbformat_minor": 4,
}
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


def make_profile(folder, patch: pytest.MonkeyPatch) -> Profile:
    """Return a profile whose results and figures lie in the folder: a verdict, what is
    stored of one prompt, two figures and a notebook.
    """
    patch.setattr(paths, "RESULTS", folder / "results")
    patch.setattr(paths, "FIGURES", folder / "figures")
    patch.setattr(paths, "NOTEBOOKS", folder / "notebooks")
    demo = load_profile("demo")
    attention = demo.attention.model_copy(update={"models": [*MODELS]})
    profile = demo.model_copy(update={"name": "made", "attention": attention})
    write_verdicts(profile, [verdict()])
    for name in (ANSWERED, MODELS[1]):
        file = paths.DATA / "families" / "prompt" / f"{name}.json.gz"
        (profile.results / "prompt").mkdir(exist_ok=True)
        shutil.copy(file, profile.results / "prompt")
    profile.figures.mkdir(parents=True)
    for name in ("fig13", "fig09"):
        (profile.figures / f"{name}.png").write_bytes(PIXEL)
    paths.NOTEBOOKS.mkdir()
    (paths.NOTEBOOKS / "01_attention_maps.ipynb").write_text(json.dumps(NOTEBOOK))
    return profile


@pytest.fixture
def made_profile(tmp_path, monkeypatch):
    """`make_profile` in the test's folder."""
    return make_profile(tmp_path, monkeypatch)


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
