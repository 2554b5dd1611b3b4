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
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

from lib import paths
from lib.claims import summary, words
from lib.claims.verdict import UNJUDGED, VERDICTS, Verdict, read_verdicts
from lib.profiles import Profile
from lib.report.answers import read_answers
from lib.report.axis import axis
from lib.report.facts import facts
from lib.report.formulas import FORMULA, formulas
from lib.report.gallery import read_figures
from lib.report.heads import read_heads

TEMPLATE_FOLDER = Path(__file__).parent / "templates"
SIGNS = dict(zip((*VERDICTS, *UNJUDGED), "✓◐✕≈??–", strict=True))
# The figure that stands first: of these the first that is there.
OPENING = ("overview", "fig13")
# What could end a script element.
UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


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
    revisions = {head["name"]: head["revision"] for head in heads} | revisions

    rows = [_report_row(verdict) for verdict in verdicts]
    claims = _claims_of(rows)
    drawn = figures + beyond
    lead = summary.lead(verdicts)
    content = {
        "name": profile.name,
        "options": profile.options,
        "signs": SIGNS,
        "rows": rows,
        "claims": claims,
        "words": lead,
        "counts": summary.totals(verdicts),
        "finding": next(iter(summary.finding(verdicts)), lead[0]),
        "models": summary.models_of(verdicts),
        "notebooks": {claim: _notebooks_of(claim, drawn, profile) for claim in claims},
        "facts": facts(profile, verdicts, revisions),
        "figures": figures,
        "beyond": beyond,
        "opening": _opening_of(drawn),
        "heads": heads,
        "heads_missing": heads_missing,
        "answers": answers,
        "answers_missing": answers_missing,
    }

    path = profile.results / "report.html"
    # What a model wrote may hold a lone surrogate, which UTF-8 cannot say.
    paths.write_whole(path, _page(content).encode("utf-8", "replace"))
    return path


def _report_row(verdict: Verdict) -> dict[str, Any]:
    """Return what the table of claims shows of a verdict."""
    name = re.sub(r"[^\w.]+", "-", f"{verdict.id}-{verdict.model}")
    return {
        "verdict": verdict,
        "told": words.verdict_text(verdict),
        "measured": words.measured_text(verdict),
        "anchor": f"claim-{name}",
        "axis": axis(verdict),
    }


def _claims_of(rows: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return by claim its first row, and the rows of the models that test it."""
    claims: dict[str, dict[str, Any]] = {}
    for row in rows:
        verdict = row["verdict"]
        claim = claims.setdefault(verdict.id, {"first": row, "cells": {}})
        if verdict.n:
            claim["cells"][verdict.model] = row
    return claims


def _notebooks_of(claim: str, drawn: list[dict], profile: Profile) -> dict[str, str]:
    """Return by name where the notebooks are that draw a claim's figures: the executed
    copies, where they are.
    """
    places = {}
    for figure in drawn:
        caption = figure["caption"]
        if not caption or claim not in caption["claims"]:
            continue
        name = caption["notebook"]
        executed = (profile.results / f"{name}.ipynb").is_file()
        folder = "" if executed else "../../notebooks/"
        places[name] = f"{folder}{name}.ipynb"
    return places


def _opening_of(drawn: list[dict]) -> dict | None:
    """Return the figure that opens the page, None where there is none of OPENING."""
    by_name = {figure["name"]: figure for figure in drawn}
    present = [by_name[name] for name in OPENING if name in by_name]
    return present[0] if present else None


def _page(content: dict) -> str:
    """Return the page, whose policy lets nothing run but its own style and scripts."""
    answers = content["answers"]
    heads = content["heads"]
    data = {
        "signs": SIGNS,
        "answers": answers,
        "heads": heads,
        "formula": FORMULA.pattern,
        "formulas": formulas(answers),
    }
    style = _template("report.css")
    scripts = [_template("report.js")]
    if heads:
        scripts.append(_template("heads.js"))
    policy = (
        f"default-src 'none'; img-src data:; style-src {_policy_hash(style)};"
        f" script-src {' '.join(_policy_hash(script) for script in scripts)};"
        " base-uri 'none'; form-action 'none'"
    )
    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )
    return environment.get_template("report.html.j2").render(
        **content,
        policy=policy,
        css=Markup(style),
        scripts=[Markup(script) for script in scripts],
        data=Markup(json.dumps(data, separators=(",", ":")).translate(UNSAFE)),
    )


def _template(name: str) -> str:
    return (TEMPLATE_FOLDER / name).read_text(encoding="utf-8")


def _policy_hash(text: str) -> str:
    """Return how a content security policy names an embedded style or script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
