"""A profile's results as a story on one HTML page that needs no network.

The page is made from what is stored alone: claims.json, the measurements, the
completions and the figures. What a model wrote is untrusted: jinja2 escapes every text
and attribute, embedded JSON holds no `<`, the page's own code writes text and never
HTML, and the page's policy lets no script run but that code, which it knows by its
hash.
"""

import base64
import gzip
import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
from markupsafe import Markup

from lib import paths
from lib.claims.evidence import by_model
from lib.claims.verdict import Verdict, models_of
from lib.claims.verdict_tables import read_verdicts
from lib.evaluation.answer_tables import graders
from lib.figures.looks import look_of_model
from lib.profiles import Profile
from lib.report import forest_plots
from lib.report.answers import (
    GRADER_FIELDS,
    Stored,
    answers_by_problem,
    flipped,
    read_stored,
)
from lib.report.claim_rows import SIGNS, grouped_claims
from lib.report.courses import courses_of
from lib.report.facts import addresses, facts
from lib.report.formulas import FORMULA, formulas
from lib.report.gallery import publish_figures
from lib.report.glossary import Glossary
from lib.report.heads import read_heads
from lib.report.prompt import read_prompts
from lib.report.publish import (
    environment,
    publish_notebooks,
    publish_report,
    template,
)
from lib.sentences import page_sections
from lib.sentences.all_verdicts import closing
from lib.sentences.conclusion import shares_drawn
from lib.statistics import format_interval

SCRIPTS = ("base.js", "charts.js", "watch.js", "sections.js", "answers.js")
# What could end a script element.
UNSAFE = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def write_report(profile: Profile) -> Path:
    """Write results/<profile>/report, a folder that can be published as it is, and
    return its index.html.

    Raises InputError when there are no claims, or they are damaged, or the page cannot
    be written. Of anything else that is missing the page says so.
    """
    verdicts = read_verdicts(profile)
    folder = profile.results / "report"
    figures = publish_figures(profile, folder)
    notebooks = publish_notebooks(profile, folder)
    content, data = _contents(profile, verdicts)
    content |= {
        "figures": figures,
        "notebooks": notebooks,
        "report": publish_report(profile, folder, content["addresses"]["Repository"]),
        "groups": grouped_claims(verdicts, figures, notebooks),
    }

    path = folder / "index.html"
    path.parent.mkdir(parents=True, exist_ok=True)
    # What a model wrote may hold a lone surrogate, which UTF-8 cannot say.
    paths.write_whole(path, _page(content, data).encode("utf-8", "replace"))
    return path


def _contents(
    profile: Profile, verdicts: list[Verdict]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return what the template fills in, and what the page's code draws."""
    heads, heads_missing = read_heads(profile)
    heads.sort(key=_place_among(models_of(verdicts)))
    stored = read_stored(profile)
    answers, revisions, answers_missing = answers_by_problem(profile, stored)
    revisions = {head["name"]: head["revision"] for head in heads} | revisions
    flips = flipped(profile, stored)
    courses = courses_of(profile, stored)
    opening = forest_plots.opening(verdicts)
    forests = forest_plots.forests(verdicts)
    shares = shares_drawn(profile)
    graded = None if stored.main is None else graders(stored.main)

    data = {
        "looks": _looks(verdicts, heads),
        "opening": opening,
        "prompts": read_prompts(profile),
        "heads": heads,
        "forests": forests,
        "clouds": _clouds(profile, stored, [*opening, *forests]),
        "checks": forest_plots.failed_checks(verdicts),
        "graders": _graders(graded),
        "courses": courses,
        "formula": FORMULA.pattern,
    }
    content = {
        "name": profile.name,
        "options": profile.options,
        "signs": SIGNS,
        "models": models_of(verdicts),
        "story": {
            "help": page_sections.answer(verdicts, shares),
            "watch": [],
            "any": page_sections.any_text(verdicts, shares),
            "layers": page_sections.layers(verdicts),
            "gain": page_sections.helps(verdicts),
            "trust": page_sections.trust(verdicts, graded),
            "writes": page_sections.writes(flips),
            "settings": page_sections.settings(courses),
            "undone": page_sections.undone(verdicts),
            "claims": page_sections.claimed(verdicts),
        },
        "closing": closing(verdicts),
        "facts": facts(profile, verdicts, revisions),
        "addresses": addresses(),
        "flips": flips,
        "grader_names": list(GRADER_FIELDS.values()),
        "answers": _packed(answers) if answers["runs"] else "",
        "missing": {"heads": heads_missing, "answers": answers_missing},
    }
    return content, data


def _place_among(models: list[str]) -> Callable[[dict], int]:
    """Return the key that sorts heads by model; other models come last."""
    places = {name: place for place, name in enumerate(models)}
    return lambda head: places.get(head["name"], len(places))


def _clouds(
    profile: Profile, stored: Stored, panels: list[dict]
) -> dict[str, list[float]]:
    """Return the effects on single problems behind the rows of panels."""
    evidence = by_model(
        profile,
        answers=[] if stored.main is None else [stored.main],
        scores=stored.scores,
        draws=stored.draws,
    )
    return forest_plots.clouds(evidence, panels)


def _packed(answers: dict) -> str:
    """Return the answers with their formulas as compressed JSON, which the page's code
    reads when somebody opens them.
    """
    text = json.dumps({"answers": answers, "formulas": formulas(answers)})
    return base64.b64encode(gzip.compress(text.encode(), mtime=0)).decode()


def _looks(verdicts: list[Verdict], heads: list[dict]) -> dict[str, list[str]]:
    """Return colour and marker of every model, as the figures have them."""
    names = [*models_of(verdicts), *(head["name"] for head in heads)]
    looks = {name: look_of_model(name) for name in names}
    return {name: [look.colour, look.marker] for name, look in looks.items()}


def _graders(table: pd.DataFrame | None) -> dict[str, list[dict]]:
    """Return what share of the same answers each grader finds right, in %, and what the
    slashes change under it, in points.
    """
    right: list[dict] = []
    changes: list[dict] = []
    rows = [] if table is None else table.to_dict("records")
    for row in rows:
        drawn = {"model": row["model"], "label": row["grader"]}
        if row["condition"] == "none":
            accuracy = round(row["accuracy"], 1)
            right.append(drawn | {"x": accuracy, "text": f"{accuracy} %"})
        elif row["condition"] == "mless" and pd.notna(row["effect_low"]):
            ends = (row["effect"], row["effect_low"], row["effect_high"])
            x, low, high = (round(number, 2) for number in ends)
            text = f"{format_interval(*ends, '+')} points"
            changes.append(drawn | {"x": x, "low": low, "high": high, "text": text})
    return {"right": right, "changes": changes}


def _page(content: dict, data: dict) -> str:
    """Return the page, whose policy lets nothing run but its own style and scripts."""
    style = template("report.css")
    scripts = [template(name) for name in SCRIPTS]
    policy = (
        f"default-src 'none'; img-src data:; style-src {_policy_hash(style)};"
        f" script-src {' '.join(_policy_hash(script) for script in scripts)};"
        " base-uri 'none'; form-action 'none'"
    )
    pages = environment()
    pages.filters["glossed"] = Glossary().marked
    return pages.get_template("report.html.j2").render(
        **content,
        policy=policy,
        css=Markup(style),
        scripts=[Markup(script) for script in scripts],
        data=Markup(json.dumps(data, separators=(",", ":")).translate(UNSAFE)),
        shown={name: bool(part) for name, part in data.items()},
    )


def _policy_hash(text: str) -> str:
    """Return how a content security policy names an embedded style or script."""
    digest = hashlib.sha256(text.encode()).digest()
    return f"'sha256-{base64.b64encode(digest).decode()}'"
