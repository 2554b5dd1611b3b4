"""A profile's results on one HTML page that needs no network.

The page needs stored results alone: verdicts, the attention in one prompt, a pair of
answers and figures. Names of models and their answers are untrusted: jinja2 escapes
every text, the page's code writes text and never HTML, and the page's policy allows no
script except that code, which it identifies by its hash. The figures and notebooks in
the page's folder are the profile's, or else the repository's.
"""

import base64
import hashlib
import re
import shutil
import tomllib
from collections.abc import Sequence
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from lib import paths
from lib.claims.verdicts import Verdict, models_of, read_verdicts, verdicts_on
from lib.evaluation.profile_parts import parts_of_profile
from lib.files.atomic import read_text, read_yaml, write_atomically
from lib.measurement.page_prompt import FILLERS, PromptPart
from lib.profiles import Profile
from lib.statistics.intervals import ENOUGH


def write_report(profile: Profile) -> Path:
    """Write results/<profile>/report, a folder that can be published unchanged, and
    return its index.html.

    Raises InputError if there are no claims, if they are damaged, or if the page cannot
    be written.
    """
    verdicts = read_verdicts(profile)
    folder = profile.results / "report"
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    page = pages.get_template("page.html.j2").render(
        profile=profile,
        addresses=addresses(),
        enough=ENOUGH,
        answered=significant_changes(verdicts, "accuracy-mless", "points-slashes"),
        scored=significant_changes(verdicts, "likelihood-gain"),
        prompts=packed_prompts(profile),
        fillers=FILLERS,
        report=report_of(profile),
        verdicts=verdicts,
        models=models_of(verdicts),
        pair=turned_pair(profile),
        figures=publish_figures(profile, folder / "figures"),
        notebooks=publish_notebooks(profile, folder / "notebooks"),
        embedded=embedded,
        policy_hash=policy_hash,
    )
    path = folder / "index.html"
    # A model's name or answer may contain a lone surrogate, which UTF-8 cannot encode.
    write_atomically(path, page.encode("utf-8", "replace"))
    return path


def significant_changes(verdicts: Sequence[Verdict], *claims: str) -> dict[str, int]:
    """Count the models that tested one of these claims on enough problems (`tested`),
    and those with a significant gain (`gain`) or loss (`loss`) in one of them.

    Significant changes survive Holm's correction for the number of all verdicts.
    """
    tested = [row for claim in claims for row in verdicts_on(verdicts, claim, ENOUGH)]
    significant = [row for row in tested if row.survives]
    gains = [row for row in significant if row.estimate.lies_above(0)]
    losses = [row for row in significant if row.estimate.lies_below(0)]
    rows = {"tested": tested, "gain": gains, "loss": losses}
    return {name: len(models_of(some)) for name, some in rows.items()}


def packed_prompts(profile: Profile) -> dict[str, str]:
    """Return the measurements of one prompt by model, compressed and in base64."""
    return {
        model: base64.b64encode(file.read_bytes()).decode()
        for model, file in PromptPart(profile).files().items()
    }


def turned_pair(profile: Profile) -> pd.Series | None:
    """Return the shortest pair of answers that the slashes turned right or wrong."""
    answers = parts_of_profile(profile)["main"].stored()
    first = answers[answers["sample"] == 0]
    without = first[first.condition == "none"]
    slashes = first[first.condition == "mless"]
    of_one = ["model", "revision", "dtype", "problem_id"]
    pairs = without.merge(slashes, on=of_one, suffixes=("", "_with"))
    turned = pairs[pairs.correct != pairs.correct_with]
    lengths = (turned.response + turned.response_with).str.len()
    return None if turned.empty else turned.iloc[lengths.argmin()]


def embedded(name: str) -> Markup:
    """Return a style or script of the templates, unescaped."""
    return Markup(read_text(TEMPLATE_FOLDER / name))


def policy_hash(name: str) -> str:
    """Return the hash by which a content security policy allows an embedded style or
    script.
    """
    hashed = hashlib.sha256(embedded(name).encode()).digest()
    return f"'sha256-{base64.b64encode(hashed).decode()}'"


TEMPLATE_FOLDER = Path(__file__).parent / "templates"
REPORTED = "families"  # the profile that docs/report.md is about
LOCAL_LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?!https:)([^)]*)\)")


def addresses() -> dict[str, str]:
    """Return the addresses of the repository and its page by name; empty before `make
    address` has set them.
    """
    text = read_text(paths.ROOT / "pyproject.toml")
    urls = tomllib.loads(text)["project"]["urls"]
    return {} if "OWNER" in urls["Repository"] else urls


def publish_figures(profile: Profile, folder: Path) -> dict[str, dict]:
    """Copy a profile's figures into the folder, and return the captions of
    data/figures.yaml by name, in its order.
    """
    if profile.figures.is_dir():
        shutil.copytree(profile.figures, folder, dirs_exist_ok=True)
    groups = read_yaml(paths.DATA / "figures.yaml").values()
    captions = {entry["id"]: entry for group in groups for entry in group}
    drawn = {path.stem for path in profile.figures.glob("*.png")}
    return {name: caption for name, caption in captions.items() if name in drawn}


def publish_notebooks(profile: Profile, folder: Path) -> list[str]:
    """Write the notebooks into the folder as HTML without scripts, and return their
    names.

    A profile's executed copy has precedence over the repository's notebook.
    """
    # It takes a second to import.
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        template_name="basic",
        template_file="notebook.html.j2",
        extra_template_paths=[str(TEMPLATE_FOLDER)],
        exclude_anchor_links=True,
    )
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for kept in sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        executed = profile.results / kept.name
        source = executed if executed.is_file() else kept
        page, _ = exporter.from_filename(str(source))
        path = folder / f"{kept.stem}.html"
        write_atomically(path, page.encode("utf-8", "replace"))
        names.append(kept.stem)
    return names


def report_of(profile: Profile) -> Markup:
    """Return docs/report.md as HTML below the page's heading; nothing for a profile
    that it does not describe.

    Its figures are those next to the page. Links to other files lead to the
    repository's address, and become plain text if it is unknown.
    """
    if profile.name != REPORTED:
        return Markup()
    from nbconvert.filters import markdown2html

    text = read_text(paths.ROOT / "docs" / "report.md")
    text = text.replace(f"../figures/{profile.name}/", "figures/")
    files = addresses().get("Repository")
    linked = rf"[\1]({files}/blob/main/docs/\2)" if files else r"\1"
    text = re.sub("^#", "##", LOCAL_LINK.sub(linked, text), flags=re.MULTILINE)
    html = markdown2html(text)
    # The page's policy allows no style within a tag, and a header has to say something.
    html = html.replace('style="text-align:', 'align="')
    html = html.replace("<th></th>", "<td></td>")
    # A table that scrolls sideways on a phone can be reached by keys as well.
    html = html.replace("<table>", '<table tabindex="0">')
    return Markup(html.replace("<p><img", '<p tabindex="0"><img'))
