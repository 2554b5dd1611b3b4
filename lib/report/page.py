"""A profile's results on one HTML page that needs no network.

The page is made from what is stored alone: verdicts, one prompt as each model sees it,
a pair of answers and figures. What a model is called or wrote is untrusted: jinja2
escapes every text, the page's code writes text and never HTML, and the page's policy
lets no script run but that code, which it knows by its hash.
"""

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from lib.claims.verdict import Verdict, about, models_of
from lib.claims.verdict_tables import read_verdicts
from lib.evaluation.of_profile import stored_rows
from lib.files import read_text, write_whole
from lib.measurement.page_prompt import FILLERS, prompt_file
from lib.models.names import resolve
from lib.profiles import Profile
from lib.report import publish
from lib.statistics.intervals import ENOUGH


def write_report(profile: Profile) -> Path:
    """Write results/<profile>/report, a folder that can be published as it is, and
    return its index.html.

    Raises InputError when there are no claims, or they are damaged, or the page cannot
    be written.
    """
    verdicts = read_verdicts(profile)
    folder = profile.results / "report"
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(publish.TEMPLATE_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = pages.get_template("page.html.j2").render(
        profile=profile,
        addresses=publish.addresses(),
        enough=ENOUGH,
        answered=certain(verdicts, "accuracy-mless", "points-slashes"),
        scored=certain(verdicts, "likelihood-gain"),
        prompts=packed_prompts(profile),
        fillers=FILLERS,
        report=publish.report_of(profile),
        verdicts=verdicts,
        models=models_of(verdicts),
        pair=turned_pair(profile),
        figures=publish.publish_figures(profile, folder / "figures"),
        notebooks=publish.publish_notebooks(profile, folder / "notebooks"),
        embedded=embedded,
        policy_hash=policy_hash,
    )
    path = folder / "index.html"
    # What a model is called or wrote may hold a lone surrogate, which UTF-8 cannot say.
    write_whole(path, page.encode("utf-8", "replace"))
    return path


def certain(verdicts: Sequence[Verdict], *claims: str) -> dict[str, int]:
    """Return how many models tested some claims on enough problems, and how many have a
    certain gain or a certain loss by any of them.

    Certain is what also stands when corrected for the number of all verdicts.
    """
    tested = [row for claim in claims for row in about(verdicts, claim, ENOUGH)]
    sure = [row for row in tested if row.survives]
    gains = [row for row in sure if row.estimate.lies_above(0)]
    losses = [row for row in sure if row.estimate.lies_below(0)]
    rows = {"tested": tested, "gain": gains, "loss": losses}
    return {name: len(models_of(some)) for name, some in rows.items()}


def packed_prompts(profile: Profile) -> dict[str, str]:
    """Return what is measured of one prompt by model, packed and in base64."""
    prompts = {}
    for spec in profile.attention.models:
        name = resolve(spec).name
        if file := prompt_file(profile, name):
            prompts[name] = base64.b64encode(file.read_bytes()).decode()
    return prompts


def turned_pair(profile: Profile) -> pd.Series | None:
    """Return the shortest pair of answers that the slashes turned right or wrong."""
    answers = stored_rows(profile)
    first = answers[answers["sample"] == 0]
    without = first[first.condition == "none"]
    slashes = first[first.condition == "mless"]
    pairs = without.merge(slashes, on=["model", "problem_id"], suffixes=("", "_with"))
    turned = pairs[pairs.correct != pairs.correct_with]
    lengths = (turned.response + turned.response_with).str.len()
    return None if turned.empty else turned.iloc[lengths.argmin()]


def embedded(name: str) -> Markup:
    """Return a style or a script of the templates as it is."""
    return Markup(read_text(publish.TEMPLATE_FOLDER / name))


def policy_hash(name: str) -> str:
    """Return how a content security policy names an embedded style or script."""
    hashed = hashlib.sha256(embedded(name).encode()).digest()
    return f"'sha256-{base64.b64encode(hashed).decode()}'"
