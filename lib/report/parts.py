"""What the report shows beside the claims: their axes, figures with captions, any head,
any answer, formulas.
"""

import base64
import math
import re
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import xarray as xr
from latex2mathml.converter import convert

from lib import evaluation, paths
from lib.errors import InputError
from lib.measurement.measured_tables import means_table
from lib.measurement.plan import TRAINED
from lib.measurement.store import read_measured
from lib.profiles import Profile
from lib.prompts.problems import load_problems

WIDTH, EDGE = (
    360,
    14,
    # of the drawing of an axis, and what it leaves free on either side, for half a number
)
CAPTIONS = paths.DATA / "figures.yaml"
KINDS = {"png": "image/png", "pdf": "application/pdf", "csv": "text/csv"}
SIGNATURES = {"png": b"\x89PNG\r\n\x1a\n", "pdf": b"%PDF-"}
TEXT_LIMIT = 2_000_000  # characters of answers in a page that people mail to each other
# The page's code reads it, too.
FORMULA = re.compile(
    r"\$\$(.+?)\$\$|\$([^$\n]+?)\$|\\\((.+?)\\\)|\\\[(.+?)\\\]", re.DOTALL
)
FORMULAS, LONGEST = 3000, 400  # drawn in one page, and characters of one
UNKNOWN = "\N{MIDDLE DOT}"  # a token whose text is not stored: of a problem of MATH-500
PART_NAMES = {
    "main": "accuracy",
    "fillers": "fillers: lengths, places, kinds",
    "sampling": "several samples",
    "interventions": "ARM and tokens",
    "arm_map": "ARM under other settings",
}
# What is told of a sample of an answer, and what else is read of it; a problem's text
# is in none.
SAMPLE = [
    "correct",
    "correct_authors",
    "extracted",
    "text",
    "finish_reason",
    "completion_tokens",
]
NEEDED = [
    "key",
    "model",
    "revision",
    "condition",
    "problem_id",
    "level",
    "answer",
    "sample",
    "response",
]
NEEDED += ["finish_reason", "completion_tokens", "correct", "correct_authors"]


def axis(row: dict) -> dict | None:
    """Return where a claim's interval stands from left to right, in units of the
    drawing; None without an interval.

    `shade`: the claimed range; `bar`, `control`: (low, effect, high); `paper`; `ticks`:
    (place, text).
    """
    if row["effect"] is None or row["low"] is None:
        return None
    bars = {"bar": [row["low"], row["effect"], row["high"]]}
    bars["control"] = [row["control_low"], row["control_effect"], row["control_high"]]
    shown = [
        *bars["bar"],
        *bars["control"],
        row["low_end"],
        row["high_end"],
        row["paper"],
    ]
    low, high = (
        end(value for value in shown if value is not None) for end in (min, max)
    )
    room = 0.08 * (high - low) or 0.1 * abs(low) or 1
    low, high = low - room, high + room

    def place(value: float | None) -> float | None:
        return (
            None
            if value is None
            else round(EDGE + (WIDTH - 2 * EDGE) * (value - low) / (high - low), 1)
        )

    ends = (
        low if row["low_end"] is None else row["low_end"],
        high if row["high_end"] is None else row["high_end"],
    )
    power = 10 ** math.floor(
        math.log10((high - low) / 4)
    )  # two to six round numbers between low and high
    step = next(
        power * factor for factor in (1, 2, 5, 10) if power * factor >= (high - low) / 4
    )
    ticks = [
        round(step * i, 12)
        for i in range(math.ceil(low / step), math.floor(high / step) + 1)
    ]
    found: dict = {
        name: None if None in bar else tuple(map(place, bar))
        for name, bar in bars.items()
    }
    found |= {"shade": tuple(map(place, ends)), "paper": place(row["paper"])}
    return found | {"ticks": [(place(value), f"{value:g}") for value in ticks]}


def read_figures(profile: Profile) -> tuple[list[dict], list[dict]]:
    """Return the figures that the profile's folder holds: of the paper in its order,
    then those that go beyond it.

    `caption`: what data/figures.yaml says of it, if anything; `files`: data URIs by
    kind; `rows` of its csv; `missing`: files that cannot be shown, and why.
    """
    present = {}
    for path in sorted(profile.figures.glob("*.png")):
        found: dict = {
            "name": path.stem,
            "caption": None,
            "files": {},
            "rows": None,
            "missing": [],
        }
        present[path.stem] = found
        for kind, mime in KINDS.items():
            file = path.with_suffix(f".{kind}")
            try:
                content = file.read_bytes()
            except OSError as error:
                found["missing"].append(f"{file.name}: {error.strerror}")
                continue
            if not content.startswith(SIGNATURES.get(kind, b"")):
                found["missing"].append(f"{file.name}: no {kind} file")
                continue
            found["files"][kind] = (
                f"data:{mime};base64,{base64.b64encode(content).decode()}"
            )
            found["rows"] = content.count(b"\n") - 1 if kind == "csv" else None
    captions = paths.read_yaml(CAPTIONS)
    paper, beyond = (
        [
            present.pop(one["id"]) | {"caption": one}
            for one in captions[group]
            if one["id"] in present
        ]
        for group in ("paper", "beyond")
    )
    return paper, beyond + list(present.values())


def read_heads(profile: Profile) -> tuple[list[dict], list[str]]:
    """Return a JSON object per model for the page's map of heads, and what is missing
    of it and why.

    What was measured here comes before what the repository has, which holds no texts.
    """
    found, missing = [], []
    folders = (paths.DATA / profile.name, profile.results)
    for path in {
        path.name: path for folder in folders for path in sorted(folder.glob("*.nc"))
    }.values():
        try:
            measured = read_measured(path)
            if "lambda" in measured:
                found.append(_packed(measured))
        except (OSError, ValueError, KeyError, AttributeError) as error:
            missing.append(
                f"{path.name} cannot be read: {' '.join(str(error).split())}"
            )
    if not found:
        missing.append(
            f"No heads of this profile yet: python -m lib reproduce {profile.options}"
            " --only 02"
        )
    return found, missing


def _packed(measured: xr.Dataset) -> dict:
    """Return what the page draws of one model; what a head gives the tokens is a text,
    None where it is not stored.
    """
    lam = (
        measured["lambda"]
        .sel(network=TRAINED)
        .dropna("condition", how="all")
        .dropna("layer", how="all")
    )
    places = pd.MultiIndex.from_product(
        [lam["layer"].values.tolist(), lam["head"].values.tolist()]
    )
    table = means_table(lam).set_index(["layer", "head"])  # of each condition
    tokens = measured[
        [name for name in ("received", "even", "part", "text") if name in measured]
    ]
    changes = {}
    for condition in ("none", *map(str, lam.condition.values)):
        rows = table[table.condition == condition].reindex(places)
        packed = {
            "ratio": _half(rows["mean"]),
            "low": _half(rows.low),
            "high": _half(rows.high),
            "n": _half(rows.n),
        }
        packed |= {
            "received": [None] * len(places),
            "even": "",
            "tokens": [],
            "parts": [],
        }
        if "received" in tokens:
            one = tokens.sel(condition=condition, layer=lam.layer)
            one = one.isel(token=one.part.values != "")
            heads = one.received.values.reshape(len(places), -1)
            packed["received"] = [
                None if np.isnan(head).all() else _half(head) for head in heads
            ]
            texts = one.text if "text" in one else xr.full_like(one.part, UNKNOWN)
            packed |= {
                "even": _half(one.even.values),
                "tokens": texts.values.tolist(),
                "parts": one.part.values.tolist(),
            }
        changes[condition] = packed
    known = {
        "name": measured.model,
        "revision": str(measured.revision),
        "problem": measured.example,
    }
    known |= {
        "layers": lam["layer"].values.tolist(),
        "heads": lam.sizes["head"],
        "texts": "text" in measured,
    }
    return known | {"received": changes.pop("none")["received"], "changes": changes}


def _half(values: np.ndarray | pd.Series) -> str:
    return base64.b64encode(np.asarray(values, dtype="<f2").tobytes()).decode()


def read_answers(profile: Profile) -> tuple[dict, dict[str, str], list[str]]:
    """Return what the page's table of answers needs, as JSON, the models' revisions,
    and what is missing and why.

    `runs` are parts and models: `conditions`, `problems` (id, level, gold answer, text
    or None) and `cells` [problem][condition], a list of samples (SAMPLE, where `text`
    is the index in `texts` or None). Only the project's own problems have a text.
    """
    parts, missing = [], []
    for part, name in PART_NAMES.items():
        try:
            found = evaluation.stored_answers(profile, part)
        except InputError as error:
            missing.append(f"{name}: {error}")
            continue
        if lacking := [field for field in NEEDED if found[field].isna().any()]:
            missing.append(f"{name}: completions.jsonl: {lacking[0]}: missing field")
            continue
        parts.append(found.sort_values("sample", kind="stable").assign(part=name))
    answers = (
        pd.concat(parts) if parts else pd.DataFrame(columns=["part", *NEEDED, *SAMPLE])
    )
    codes, texts = pd.factorize(answers.response)
    kept = int((np.cumsum([len(text) for text in texts]) <= TEXT_LIMIT).sum())
    answers["text"] = pd.Series(
        [int(code) if code < kept else None for code in codes],
        answers.index,
        dtype=object,
    )
    if left_out := int((codes >= kept).sum()):
        missing.append(
            f"{left_out} texts are left out, so that the page stays small:"
            " completions.jsonl has all"
        )
    own = {item.id: item.problem for item in load_problems("embedded")}
    own = own if profile.accuracy.problems == "embedded" else {}
    runs = []
    for part, model in dict.fromkeys(zip(answers.part, answers.model, strict=True)):
        mine = answers[(answers.part == part) & (answers.model == model)]
        conditions = sorted(mine.condition.unique(), key=lambda name: name != "none")
        problems = mine.drop_duplicates("problem_id")[
            ["problem_id", "level", "answer"]
        ].values.tolist()
        cells: dict[tuple, list] = {}
        for problem, condition, *sample in mine[
            ["problem_id", "condition", *SAMPLE]
        ].values.tolist():
            cells.setdefault((problem, condition), []).append(sample)
        run = {"part": part, "model": model, "conditions": conditions}
        run["problems"] = [[*problem, own.get(problem[0])] for problem in problems]
        run["cells"] = [
            [cells.get((problem, name), []) for name in conditions]
            for problem, *_ in problems
        ]
        runs.append(run)
    revisions = dict(zip(answers.model, answers.revision, strict=True))
    return {"texts": texts[:kept].tolist(), "runs": runs}, revisions, missing


def formulas(answers: dict) -> dict[str, str]:
    """Return MathML by LaTeX of the formulas in `read_answers`: of problems, of what
    was extracted, then of texts.

    What cannot be converted stays as it was written; so does what comes after the first
    FORMULAS.
    """
    problems = [row for run in answers["runs"] for row in run["problems"]]
    samples = [
        sample
        for run in answers["runs"]
        for row in run["cells"]
        for cell in row
        for sample in cell
    ]
    bare = [gold for _, _, gold, _ in problems] + [
        extracted for _, _, extracted, *_ in samples
    ]
    texts = [problem for *_, problem in problems if problem] + [
        f"${text}$" for text in bare if text and "\\" in text
    ]
    matches = (
        match
        for text in [*texts, *answers["texts"]]
        for match in FORMULA.finditer(text)
    )
    latex = dict.fromkeys(match[match.lastindex or 0] for match in matches)
    found = {}
    for text in [text for text in latex if len(text) <= LONGEST][:FORMULAS]:
        try:
            drawn = convert(text)
            ElementTree.fromstring(drawn)  # it leaves a `<` in a text as it is
            found[text] = drawn
        except (
            Exception
        ):  # whatever a model wrote: the converter's errors have no class in common
            found[text] = ""
    return found
