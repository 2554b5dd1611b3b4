"""A profile's results as one HTML page that needs no other file and no network.

The page is made from what is stored alone: claims.json, the figures, the measurements
and the completions. What a model wrote is untrusted: jinja2 escapes every text and
attribute, embedded JSON holds no `<`, the page's own code writes text and never HTML,
and the page's policy lets no script run but that code, which it knows by its hash.
"""

import base64
import hashlib
import json
import re
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import jinja2
from markupsafe import Markup

from lib import paths
from lib.claims import summary, words
from lib.claims.verdict import UNJUDGED, VERDICTS, Verdict, read_verdicts
from lib.errors import InputError
from lib.models.names import resolve
from lib.profiles import Accuracy, Attention, Profile
from lib.prompts.problems import describe
from lib.report.answers import read_answers
from lib.report.formulas import FORMULA, formulas
from lib.report.gallery import read_figures
from lib.report.heads import read_heads
from lib.report.parts import axis

TEMPLATES = Path(__file__).parent / "templates"
SIGNS = dict(zip((*VERDICTS, *UNJUDGED), "✓◐✕≈??–", strict=True))
OPENING = (
    "overview",
    "fig13",
)  # the figure that stands first: of these the first that is there
UNSAFE = str.maketrans(
    {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}
)  # what could end a script element


def write_report(profile: Profile) -> Path:
    """Write results/<profile>/report.html from what `reproduce` left there and return
    its path.

    Raises InputError when there are no claims, or they are damaged, or the page cannot
    be written. Of anything else that is missing the page says so.
    """
    verdicts = read_verdicts(profile)
    figures, beyond = read_figures(profile)
    answers, revisions, answers_missing = read_answers(profile)
    heads, heads_missing = read_heads(profile)
    lead, rows, claims, notebooks = summary.lead(verdicts), [], {}, {}
    for verdict in verdicts:
        name = re.sub(r"[^\w.]+", "-", f"{verdict.id}-{verdict.model}")
        row = {
            "verdict": verdict,
            "told": words.verdict_text(verdict),
            "measured": words.measured_text(verdict),
            "anchor": f"claim-{name}",
            "axis": axis(verdict),
        }
        rows.append(row)
        claim = claims.setdefault(verdict.id, {"first": row, "cells": {}})
        if verdict.n:
            claim["cells"][verdict.model] = row
    for claim in (
        claims
    ):  # which notebooks draw its figures: the executed copies, where they are
        captions = (
            one["caption"]
            for one in figures + beyond
            if one["caption"] and claim in one["caption"]["claims"]
        )
        names = dict.fromkeys(caption["notebook"] for caption in captions)
        here = {
            name: (
                ""
                if (profile.results / f"{name}.ipynb").is_file()
                else "../../notebooks/"
            )
            for name in names
        }
        notebooks[claim] = {
            name: f"{folder}{name}.ipynb" for name, folder in here.items()
        }
    content = {
        "name": profile.name,
        "options": profile.options,
        "signs": SIGNS,
        "rows": rows,
        "claims": claims,
    }
    content |= {"words": lead, "counts": summary.totals(verdicts)}
    content |= {"finding": next(iter(summary.finding(verdicts)), lead[0])}
    content |= {
        "models": summary.models_of(verdicts),
        "notebooks": notebooks,
    }
    content |= {
        "facts": _facts(
            profile,
            verdicts,
            {head["name"]: head["revision"] for head in heads} | revisions,
        )
    }
    content |= {"figures": figures, "beyond": beyond}
    content |= {
        "opening": next(
            (
                one
                for name in OPENING
                for one in figures + beyond
                if one["name"] == name
            ),
            None,
        )
    }
    content |= {"heads": heads, "heads_missing": heads_missing}
    content |= {"answers": answers, "answers_missing": answers_missing}
    data = {"signs": SIGNS, "answers": answers, "heads": heads}
    data |= {"formula": FORMULA.pattern, "formulas": formulas(answers)}
    path = profile.results / "report.html"
    paths.write_whole(
        path, _page(content, data).encode("utf-8", "replace")
    )  # a lone surrogate
    return path


def _page(content: dict, data: dict) -> str:
    names = ["report.css", "report.js", *["heads.js"] * bool(data["heads"])]
    style, *scripts = [(TEMPLATES / name).read_text(encoding="utf-8") for name in names]
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        for text in (style, *scripts)
    ]
    style_hash, *script_hashes = [f"'sha256-{digest}'" for digest in hashes]
    policy = (
        f"default-src 'none'; img-src data:; style-src {style_hash}; script-src"
        f" {' '.join(script_hashes)}"
    )
    options = {
        "autoescape": True,
        "undefined": jinja2.StrictUndefined,
        "trim_blocks": True,
    }
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), **options
    )
    return environment.get_template("report.html.j2").render(
        **content,
        policy=f"{policy}; base-uri 'none'; form-action 'none'",
        css=Markup(style),
        scripts=[Markup(script) for script in scripts],
        data=Markup(json.dumps(data, separators=(",", ":")).translate(UNSAFE)),
    )


def _facts(
    profile: Profile, verdicts: list[Verdict], revisions: dict[str, str]
) -> dict[str, list[str]]:
    """Return what was run, by the name of the fact; a model has one revision, and the n
    of its claims.
    """
    attention, accuracy = profile.attention, profile.accuracy
    try:
        weights = {
            source.name: source.weights
            for source in map(resolve, [*attention.models, *accuracy.models])
        }
    except InputError:  # a folder that is not on this machine
        weights = {}
    models = []
    for name in summary.models_of(verdicts):
        sizes = [row.n for row in verdicts if row.model == name and row.n]
        label = f"{name} @ {revisions[name]}" if name in revisions else name
        label += f", {weights[name]}" if weights.get(name) else ""
        n = f"n = {min(sizes)} to {max(sizes)}" if sizes else "nothing was measured"
        models.append(f"{label}; {n}")
    judged = datetime.fromtimestamp(
        (profile.results / "claims.json").stat().st_mtime, UTC
    )
    decoding = (
        f"temperature {accuracy.temperature:g}" if accuracy.temperature else "greedy"
    )
    command = ["git", "-C", str(paths.ROOT), "rev-parse", "--short=12", "HEAD"]
    try:
        commit = subprocess.run(
            command, capture_output=True, text=True, check=True
        ).stdout.strip()
    except (OSError, subprocess.CalledProcessError):  # a copy without git
        commit = "unknown"
    return {
        "Models, weights, problems of a claim": models,
        "Problems of attention": [
            f"{_problems(attention)}, {attention.layers} first layers"
        ],
        "Problems to answer": [f"{_problems(accuracy)}, {decoding}"],
        "Claims judged": [f"{judged:%Y-%m-%d %H:%M} UTC"],
        "Code": [f"commit {commit}"],
    }


def _problems(section: Attention | Accuracy) -> str:
    try:
        name = describe(section.problems)
    except InputError:  # a file that is not on this machine
        name = Path(section.problems).name
    return f"{name}, {section.limit or 'all'} problems, {section.format} prompt"
