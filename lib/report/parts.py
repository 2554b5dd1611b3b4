"""What the report shows beside the claims: their axes, figures with captions, any head, any answer, formulas."""

import base64
import math
import re
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import xarray as xr

from lib import evaluation, paths
from lib.errors import InputError
from lib.measurement.store import TRAINED, read
from lib.measurement.tables import estimates
from lib.paths import read_yaml
from lib.profiles import Profile
from lib.prompts.problems import load_problems

TEMPLATES = Path(__file__).parent / "templates"
WIDTH, EDGE = 360, 14  # of the drawing of an axis, and what it leaves free on either side, for half a number
CAPTIONS = paths.DATA / "figures.yaml"
KINDS = {"png": "image/png", "pdf": "application/pdf", "csv": "text/csv"}
SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}
TEXT_LIMIT = 2_000_000  # characters of answers in a page that people mail to each other
FORMULA = re.compile(
    r"\$\$(.+?)\$\$|\$([^$\n]+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)  # the page's code reads it, too
FORMULAS, LONGEST = 3000, 400  # drawn in one page, and characters of one
UNKNOWN = "\N{MIDDLE DOT}"  # a token whose text is not stored: of a problem of MATH-500
PART_NAMES = {
    "main": "accuracy",
    "fillers": "fillers: lengths, places, kinds",
    "sampling": "several samples",
    "interventions": "ARM and tokens",
    "arm_map": "ARM under other settings",
}
# What is read of a completion; a problem's text is in none.
ANSWER = ["key", "model", "revision", "condition", "problem_id", "level", "answer", "sample", "response", "extracted"]
ANSWER += ["finish_reason", "completion_tokens", "correct", "correct_authors"]


def axis(row: dict) -> dict | None:
    """Return where a claim's interval stands from left to right, in units of the drawing; None without an interval.

    `shade`: the claimed range; `bar`, `control`: (low, effect, high); `paper`; `ticks`: (place, text).
    """
    if row["effect"] is None or row["low"] is None:
        return None
    prefixes = {"bar": "", "control": "control_"}
    bars = {name: [row[f"{of}{end}"] for end in ("low", "effect", "high")] for name, of in prefixes.items()}
    shown = (*bars["bar"], *bars["control"], row["low_end"], row["high_end"], row["paper"])
    low, high = (end(value for value in shown if value is not None) for end in (min, max))
    room = 0.08 * (high - low) or 0.1 * abs(low) or 1
    low, high = low - room, high + room

    def place(value: float | None) -> float | None:
        return None if value is None else round(EDGE + (WIDTH - 2 * EDGE) * (value - low) / (high - low), 1)

    ends = (low if row["low_end"] is None else row["low_end"], high if row["high_end"] is None else row["high_end"])
    power = 10 ** math.floor(math.log10((high - low) / 4))  # two to six round numbers between low and high
    step = next(power * factor for factor in (1, 2, 5, 10) if power * factor >= (high - low) / 4)
    ticks = [round(step * i, 12) for i in range(math.ceil(low / step), math.floor(high / step) + 1)]
    found: dict = {name: None if None in bar else tuple(map(place, bar)) for name, bar in bars.items()}
    found |= {"shade": tuple(map(place, ends)), "paper": place(row["paper"])}
    return found | {"ticks": [(place(value), f"{value:g}") for value in ticks]}


def read_figures(profile: Profile) -> tuple[list[dict], list[dict]]:
    """Return the figures that the profile's folder holds: of the paper in its order, then those that go beyond it.

    `caption`: what data/figures.yaml says of it, if anything; `files`: data URIs by kind; `rows` of its csv; `missing`:
    what cannot be shown and why.
    """
    captions = read_yaml(CAPTIONS)
    present = {path.stem: path for path in sorted(profile.figures.glob("*.png"))}
    paper, beyond = (
        [_figure(present.pop(caption["id"]), caption) for caption in captions[group] if caption["id"] in present]
        for group in ("paper", "beyond")
    )
    return paper, beyond + [_figure(path, None) for path in present.values()]


def _figure(path: Path, caption: dict | None) -> dict:
    found: dict = {"name": path.stem, "caption": caption, "files": {}, "rows": None, "missing": []}
    for kind, mime in KINDS.items():
        file = path.with_suffix(f".{kind}")
        try:
            content = file.read_bytes()
            if not content.startswith(SIGNATURES.get(kind, b"")):
                raise ValueError(f"no {kind} file")
            if kind == "csv":
                found["rows"] = len(pd.read_csv(file))
        except OSError as error:
            found["missing"].append(f"{file.name}: {error.strerror}")
        except ValueError as error:
            found["missing"].append(f"{file.name} cannot be read: {' '.join(str(error).split())}")
        else:
            found["files"][kind] = f"data:{mime};base64,{base64.b64encode(content).decode()}"
    return found


def read_heads(profile: Profile) -> tuple[list[dict], list[str]]:
    """Return a JSON object per model for the page's map of heads, and what is missing of it and why.

    What was measured here comes before what the repository has, which holds no texts.
    """
    found, missing = [], []
    folders = (paths.DATA / profile.name, profile.results)
    for path in {path.name: path for folder in folders for path in sorted(folder.glob("*.nc"))}.values():
        try:
            measured = read(path)
            if "lambda" in measured:
                found.append(_packed(measured))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            missing.append(f"{path.name} cannot be read: {' '.join(str(error).split())}")
    if not found:
        missing.append(f"No heads of this profile yet: python -m lib reproduce {profile.options} --only 02")
    return found, missing


def _packed(measured: xr.Dataset) -> dict:
    """Return what the page draws of one model; what a head gives the tokens is a text, None where it is not stored."""

    def per_head(one: xr.Dataset) -> list[str | None]:
        received = one.received.values[..., one.part.values != ""]  # (L, H, T)
        return [None if np.isnan(head).all() else _half(head) for layer in received for head in layer]

    if "received" not in measured:  # the repository has the tokens of those heads that a figure draws
        sizes = [measured.sizes[dim] for dim in ("condition", "layer", "head")]
        measured = measured.assign(received=(("condition", "layer", "head", "token"), np.empty((*sizes, 0))))
        measured = measured.assign(even=measured.received[:, 0, 0], part=measured.received[:, 0, 0].astype(str))
    lam = measured["lambda"].sel(network=TRAINED).dropna("condition", how="all").dropna("layer", how="all")
    drawn, changes = measured[["received", "even", "part"]].sel(layer=lam.layer), {}
    places = pd.MultiIndex.from_product([lam["layer"].values.tolist(), lam["head"].values.tolist()])
    table = estimates(lam).set_index(["layer", "head"])  # of each condition
    for condition in lam.condition.values:
        one, rows = drawn.sel(condition=condition), table[table.condition == condition].reindex(places)
        real = one.part != ""
        packed = {"ratio": rows["mean"], "low": rows.low, "high": rows.high, "n": rows.n}
        packed = {name: _half(values.to_numpy()) for name, values in packed.items()}
        packed |= {"received": per_head(one), "even": _half(one.even.values[real])}
        texts = measured.text.sel(condition=condition) if "text" in measured else xr.full_like(one.part, UNKNOWN)
        packed |= {"tokens": texts.values[real].tolist(), "parts": one.part.values[real].tolist()}
        changes[str(condition)] = packed
    names = {"name": "model", "revision": "revision", "dtype": "dtype", "problem": "example"}
    known = {name: str(measured.attrs[attribute]) for name, attribute in names.items()}
    known |= {"layers": drawn.layer.values.tolist(), "heads": drawn.sizes["head"], "texts": "text" in measured}
    return known | {"received": per_head(drawn.sel(condition="none")), "changes": changes}


def _half(values: np.ndarray) -> str:
    return base64.b64encode(np.asarray(values, dtype="<f2").tobytes()).decode()


def read_answers(profile: Profile) -> tuple[dict, dict[str, str], list[str]]:
    """Return what the page's table of answers needs, as JSON, the models' revisions, and what is missing and why.

    `runs` are parts and models: `conditions`, `problems` (id, level, gold answer, text or None) and `cells`
    [problem][condition], a list of samples (right, right by the authors' rule, extracted, index in `texts` or None,
    finish reason, tokens). Only the project's own problems have a text.
    """
    texts, runs, revisions, missing = _Texts(), [], {}, []
    own = {item.id: item.problem for item in load_problems("embedded")}
    own = own if profile.accuracy.problems == "embedded" else {}
    for part, name in PART_NAMES.items():
        try:
            answers = _stored(profile, part)
        except InputError as error:
            missing.append(f"{name}: {error}")
            continue
        revisions |= dict(zip(answers.model, answers.revision, strict=True))
        for model in answers.model.unique():
            mine = answers[answers.model == model].sort_values("sample", kind="stable")
            runs.append({"part": name, "model": model} | _run(mine, texts, own))
    if texts.left_out:
        missing.append(f"{texts.left_out} texts are left out, so that the page stays small: completions.jsonl has all")
    return {"texts": list(texts.index), "runs": runs}, revisions, missing


class _Texts:
    """Each answer once, as long as there is room."""

    def __init__(self):
        self.index: dict[str, int] = {}
        self.room = TEXT_LIMIT
        self.left_out = 0

    def place(self, text: str) -> int | None:
        """Return where the text stands, None when it found no room."""
        if text not in self.index:
            if len(text) > self.room:
                self.left_out += 1
                return None
            self.room -= len(text)
            self.index[text] = len(self.index)
        return self.index[text]


def _stored(profile: Profile, part: str) -> pd.DataFrame:
    """Return a part's answers from results/, or those stored with the repository; none where there are none."""
    found = evaluation.at_hand(profile, part)
    if missing := [name for name in ANSWER if name != "extracted" and found[name].isna().any()]:
        raise InputError(f"completions.jsonl: {missing[0]}: missing field")
    return found[ANSWER]


def _run(answers: pd.DataFrame, texts: _Texts, own: dict[str, str]) -> dict:
    conditions = sorted(answers.condition.unique(), key=lambda name: name != "none")
    first = answers.drop_duplicates("problem_id")[["problem_id", "level", "answer"]].values.tolist()
    problems = [[*row, own.get(row[0])] for row in first]
    cells: dict[str, list] = {row[0]: [[] for _ in conditions] for row in first}
    for one in answers.to_dict("records"):
        judged = [one["correct"], one["correct_authors"], one["extracted"]]
        sample = [*judged, texts.place(one["response"]), one["finish_reason"], one["completion_tokens"]]
        cells[one["problem_id"]][conditions.index(one["condition"])].append(sample)
    return {"conditions": conditions, "problems": problems, "cells": list(cells.values())}


def formulas(answers: dict) -> dict[str, str]:
    """Return MathML by LaTeX of the formulas in `read_answers`: of problems, of what was extracted, then of texts.

    What cannot be converted stays as it was written; so does what comes after the first FORMULAS.
    """
    short = [row[3] for run in answers["runs"] for row in run["problems"] if row[3]]
    bare = [row[2] for run in answers["runs"] for row in run["problems"]]
    bare += [sample[2] for run in answers["runs"] for row in run["cells"] for cell in row for sample in cell]
    short += [f"${text}$" for text in bare if text and "\\" in text]
    matches = (match for text in [*short, *answers["texts"]] for match in FORMULA.finditer(text))
    latex = dict.fromkeys(match[match.lastindex or 0] for match in matches)
    some = [text for text in latex if len(text) <= LONGEST][:FORMULAS]
    return dict(zip(some, map(_mathml, some), strict=True))


def _mathml(latex: str) -> str:
    from latex2mathml.converter import convert  # only where there is a formula

    try:
        found = convert(latex)
        ElementTree.fromstring(found)  # it leaves a `<` in a text as it is
        return found
    except Exception:  # whatever a model wrote: the converter's errors have no class in common
        return ""
