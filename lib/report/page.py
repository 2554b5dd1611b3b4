"""A profile's results as one HTML page that needs no other file and no network.

The page is made from what is stored alone: claims.json, the figures, the measurements and the completions. What a model
wrote is untrusted: jinja2 escapes every text and attribute, embedded JSON holds no `<`, the page's own code writes text
and never HTML, and the page's policy lets no script run but that code, which it knows by its hash.
"""

import base64
import hashlib
import json
import re
import subprocess
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path

import jinja2
from markupsafe import Markup

from lib import paths
from lib.claims import words
from lib.claims.verdict import VERDICTS, read_verdicts
from lib.errors import InputError
from lib.models.names import resolve
from lib.paths import write_whole
from lib.profiles import Accuracy, Attention, Profile
from lib.prompts.problems import describe
from lib.report.parts import FORMULA, TEMPLATES, axis, formulas, read_answers, read_figures, read_heads

SIGNS = dict(zip((*VERDICTS, *words.UNJUDGED), "✓◐✕≈??–", strict=True))
OPENING = ("overview", "fig13")  # the figure that stands first: of these the first that is there
UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})  # what could end a script element


def write_report(profile: Profile) -> Path:
    """Write results/<profile>/report.html from what `reproduce` left there and return its path.

    Raises InputError when there are no claims, or they are damaged, or the page cannot be written. Of anything else
    that is missing or damaged the page says so.
    """
    verdicts = read_verdicts(profile)
    rows = [_told(row) for row in words.rows_of(verdicts)]
    figures, beyond = read_figures(profile)
    answers, revisions, answers_missing = read_answers(profile)
    heads, heads_missing = read_heads(profile)
    claims: dict[str, dict] = {}
    for row in rows:
        claims.setdefault(row["id"], {"first": row, "cells": {}})
        if row["n"]:
            claims[row["id"]]["cells"][row["model"]] = row
    content = {
        "name": profile.name,
        "options": profile.options,
        "finding": next(iter(words.finding(verdicts)), words.lead(verdicts)[0]),
        "opening": next((one for name in OPENING for one in figures + beyond if one["name"] == name), None),
        "facts": _facts(profile, rows, heads, revisions),
        "rows": rows,
        "words": words.lead(verdicts),
        "counts": words.totals(verdicts),
        "signs": SIGNS,
        "models": list(dict.fromkeys(row["model"] for row in rows)),
        "claims": claims,
        "notebooks": {name: _notebooks(profile, name, figures + beyond) for name in claims},
        "figures": figures,
        "beyond": beyond,
        "heads": heads,
        "heads_missing": heads_missing,
        "answers": answers,
        "answers_missing": answers_missing,
    }
    data = {"signs": SIGNS, "answers": answers, "heads": heads}
    data |= {"formula": FORMULA.pattern, "formulas": formulas(answers)}
    path = profile.results / "report.html"
    write_whole(path, _page(content, data, bool(heads)).encode("utf-8", "replace"))  # a lone surrogate
    return path


def _told(row: dict) -> dict:
    """Return a row with where it stands in the page, and how its interval is drawn."""
    anchor = "claim-" + re.sub(r"[^\w.]+", "-", f"{row['id']}-{row['model']}")
    return row | {"anchor": anchor, "axis": axis(row)}


def _page(content: dict, data: dict, charts: bool) -> str:
    scripts = [_template(name) for name in ["report.js", *["heads.js"] * charts]]
    style = _template("report.css")
    policy = {
        "default-src": ["'none'"],
        "img-src": ["data:"],
        "style-src": [_hash(style)],
        "script-src": [_hash(script) for script in scripts],
        "base-uri": ["'none'"],
        "form-action": ["'none'"],
    }
    options = {"autoescape": True, "undefined": jinja2.StrictUndefined, "trim_blocks": True}
    environment = jinja2.Environment(loader=jinja2.FileSystemLoader(TEMPLATES), **options)
    return environment.get_template("report.html.j2").render(
        **content,
        policy="; ".join(" ".join([name, *values]) for name, values in policy.items()),
        css=Markup(style),
        scripts=[Markup(script) for script in scripts],
        data=Markup(json.dumps(data, separators=(",", ":")).translate(UNSAFE)),
    )


def _template(name: str) -> str:
    return (TEMPLATES / name).read_text(encoding="utf-8")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _facts(profile: Profile, rows: list[dict], heads: list[dict], revisions: dict[str, str]) -> dict[str, list[str]]:
    """Return what was run, by the name of the fact; a model has one revision, and the n of its claims."""
    known = {head["name"]: head["revision"] for head in heads} | revisions
    sizes: dict[str, list[int]] = {row["model"]: [] for row in rows}
    for row in rows:
        sizes[row["model"]] += [row["n"]] if row["n"] else []
    attention, accuracy = profile.attention, profile.accuracy
    weights = _weights([*attention.models, *accuracy.models])
    judged = datetime.fromtimestamp((profile.results / "claims.json").stat().st_mtime, UTC)
    decoding = f"temperature {accuracy.temperature:g}" if accuracy.temperature else "greedy"
    models = []
    for name, some in sizes.items():
        revision = f" @ {known[name]}" if name in known else ""
        n = f"n = {min(some):.0f} to {max(some):.0f}" if some else "nothing was measured"
        models.append(f"{name}{revision}{weights.get(name, '')}; {n}")
    return {
        "Models, weights, problems of a claim": models,
        "Problems of attention": [
            f"{_problems(attention)}, {attention.format} prompt, {attention.layers} first layers"
        ],
        "Problems to answer": [f"{_problems(accuracy)}, {accuracy.format} prompt, {decoding}"],
        "Claims judged": [f"{judged:%Y-%m-%d %H:%M} UTC"],
        "Code": [f"version {_version()}, commit {_commit()}"],
    }


def _weights(specs: list[str]) -> dict[str, str]:
    """Return by a model's name what follows it when its weights are not the original ones."""
    try:
        return {found.name: f", {found.weights}" if found.weights else "" for found in map(resolve, specs)}
    except InputError:  # a folder that is not on this machine
        return {}


def _problems(section: Attention | Accuracy) -> str:
    try:
        name = describe(section.problems)
    except InputError:  # a file that is not on this machine
        name = Path(section.problems).name
    return f"{name}, {section.limit or 'all'} problems"


def _version() -> str:
    """Return the installed package's version; a copy of the folder alone has none."""
    try:
        return metadata.version("meaningless-tokens")
    except metadata.PackageNotFoundError:
        return "unknown"


def _commit() -> str:
    """Return the commit of this checkout; a copy without git has none."""
    command = ["git", "-C", str(paths.ROOT), "rev-parse", "--short=12", "HEAD"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def _notebooks(profile: Profile, claim: str, figures: list) -> dict[str, str]:
    """Return the notebooks that draw a claim's figures, with a link to the executed copy, else to the notebook."""
    captions = [one["caption"] for one in figures if one["caption"]]
    names = dict.fromkeys(caption["notebook"] for caption in captions if claim in caption["claims"])
    executed = {name: (profile.results / f"{name}.ipynb").is_file() for name in names}
    return {name: f"{'' if executed[name] else '../../notebooks/'}{name}.ipynb" for name in names}
