"""Write a profile's results as one HTML page that needs no network.

The page needs only stored results: verdicts, the attention in one prompt, a pair of
answers and figures. Names of models and their answers are untrusted: jinja2 escapes
every text, the page's code writes text and never HTML, and the page's policy allows no
script except that code, which it identifies by its hash. The notebooks next to the page
are those that the profile's run executed, or else the repository's.
"""

import base64
import hashlib
import re
import tomllib
from collections.abc import Sequence
from pathlib import Path

import jinja2
import pandas as pd
from markupsafe import Markup

from lib import paths
from lib.claims.verdict_files import read_verdicts
from lib.claims.verdicts import Verdict, models_of, verdicts_on
from lib.errors import InputError
from lib.evaluation.profile_parts import parts_of_profile
from lib.files.atomic import write_atomically
from lib.files.text_and_yaml import read_text, read_yaml
from lib.measurement.animated_prompt import FILLERS, AnimatedPromptPart
from lib.profiles import Profile
from lib.statistics.intervals import ENOUGH


def write_report(profile: Profile) -> Path:
    """Write results/<profile>/report, a folder that can be published unchanged, and
    return its index.html.

    Raises InputError if the profile's verdicts are missing or damaged, if a notebook is
    incomplete, and if the page cannot be written.
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
    pages.filters["unbroken"] = unbroken
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
    """Return how many models tested one of these claims on enough problems ("tested"),
    and how many of them had a significant gain ("gain") or loss ("loss") in one.

    A change is significant after Holm's correction for all verdicts.
    """
    tested = [row for claim in claims for row in verdicts_on(verdicts, claim, ENOUGH)]
    significant = [row for row in tested if row.survives]
    gains = [row for row in significant if row.estimate.lies_above(0)]
    losses = [row for row in significant if row.estimate.lies_below(0)]
    rows = {"tested": tested, "gain": gains, "loss": losses}
    return {name: len(models_of(some)) for name, some in rows.items()}


def packed_prompts(profile: Profile) -> dict[str, str]:
    """Return, by model, the file with the measurements of one prompt, in base64."""
    return {
        model: base64.b64encode(file.read_bytes()).decode()
        for model, file in AnimatedPromptPart(profile).files().items()
    }


def turned_pair(profile: Profile) -> pd.Series | None:
    """Return the shortest pair of answers, without and with slashes, of which only one
    is right; None if there is no such pair.

    Columns of the answer with slashes end in "_with".
    """
    answers = parts_of_profile(profile)["main"].stored()
    first = answers[answers["sample"] == 0]
    without = first[first.condition == "none"]
    slashes = first[first.condition == "mless"]
    same = ["model", "revision", "dtype", "problem_id"]
    pairs = without.merge(slashes, on=same, suffixes=("", "_with"))
    turned = pairs[pairs.right != pairs.right_with]
    lengths = (turned.response + turned.response_with).str.len()
    return None if turned.empty else turned.iloc[lengths.argmin()]


def embedded(name: str) -> Markup:
    """Return a style sheet or script of the templates, for the page unescaped."""
    return Markup(read_text(TEMPLATE_FOLDER / name))


def policy_hash(name: str) -> str:
    """Return the hash by which the page's content security policy allows an embedded
    style sheet or script.
    """
    hashed = hashlib.sha256(embedded(name).encode()).digest()
    return f"'sha256-{base64.b64encode(hashed).decode()}'"


TEMPLATE_FOLDER = Path(__file__).parent / "templates"
REPORTED = "families"  # the profile that docs/report.md is about
NUMBERS = re.compile(r"[np] = \d|\[[^] ]+, [^] ]+\]|(?<=\d) %| †")
LOCAL_LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?!https:)([^)]*)\)")


def addresses() -> dict[str, str]:
    """Return the URLs in pyproject.toml, such as Repository, by name; empty before
    `make address` has set them.
    """
    text = read_text(paths.ROOT / "pyproject.toml")
    urls = tomllib.loads(text)["project"]["urls"]
    return {} if "OWNER" in urls["Repository"] else urls


def publish_figures(profile: Profile, folder: Path) -> dict[str, dict]:
    """Copy a profile's figures into the folder, and return their entries of
    data/figures.yaml, with captions, by name and in that order.
    """
    for path in filter(Path.is_file, profile.figures.glob("*")):
        write_atomically(folder / path.name, path.read_bytes())
    groups = read_yaml(paths.DATA / "figures.yaml").values()
    captions = {entry["id"]: entry for group in groups for entry in group}
    drawn = {path.stem for path in profile.figures.glob("*.png")}
    return {name: caption for name, caption in captions.items() if name in drawn}


def publish_notebooks(profile: Profile, folder: Path) -> list[str]:
    """Write the notebooks into the folder as HTML without scripts, and return their
    names.

    A copy that the profile's run executed has precedence over the repository's
    notebook. Raises InputError for an incomplete one.
    """
    # Imported here, because this takes a second.
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(
        template_name="basic",
        template_file="notebook.html.j2",
        extra_template_paths=[str(TEMPLATE_FOLDER)],
        exclude_anchor_links=True,
    )
    folder.mkdir(parents=True, exist_ok=True)
    names = []
    for notebook in sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        executed = profile.results / notebook.name
        source = executed if executed.is_file() else notebook
        try:
            page, _ = exporter.from_filename(str(source))
        except ValueError as error:  # a killed run may have written only a part
            raise InputError(
                f"{paths.relative_path(source)} is no complete notebook: delete it, or"
                f" run again: python -m lib reproduce {profile.options}"
            ) from error
        path = folder / f"{notebook.stem}.html"
        write_atomically(path, page.encode("utf-8", "replace"))
        names.append(notebook.stem)
    return names


def unbroken(text: str) -> str:
    """Return a text in which no line ends within an interval, "n = 9", "p = 0.2" or
    "95 %".
    """
    return NUMBERS.sub(lambda found: found[0].replace(" ", "\N{NO-BREAK SPACE}"), text)


def report_of(profile: Profile) -> Markup:
    """Return docs/report.md as HTML, with headings one level deeper; empty for a
    profile that it does not describe.

    Its figures are those next to the page. Links to other files lead to the
    repository's URL, and become plain text if that is unknown.
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
    # The page's policy allows no style attribute, and a header cell must not be empty.
    html = html.replace('style="text-align:', 'align="')
    html = unbroken(html.replace("<th></th>", "<td></td>"))
    # With a tabindex, tables that scroll sideways on a phone can be reached by
    # keyboard.
    html = html.replace("<table>", '<table tabindex="0">')
    return Markup(html.replace("<p><img", '<p tabindex="0"><img'))
