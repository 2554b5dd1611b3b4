"""What stands on the page and beside it from files that the repository keeps: figures,
notebooks, and the report of the families.
"""

import re
import shutil
import tomllib
from pathlib import Path

from markupsafe import Markup

from lib import paths
from lib.files import read_text, read_yaml, write_whole
from lib.profiles import Profile

TEMPLATE_FOLDER = Path(__file__).parent / "templates"
REPORTED = "families"  # the profile that docs/report.md is about
LOCAL_LINK = re.compile(r"(?<!!)\[([^]]*)\]\((?!https:)([^)]*)\)")


def addresses() -> dict[str, str]:
    """Return where the repository and its page are published, by name; nothing before
    `make address` has set it.
    """
    text = read_text(paths.ROOT / "pyproject.toml")
    urls = tomllib.loads(text)["project"]["urls"]
    return {} if "OWNER" in urls["Repository"] else urls


def publish_figures(profile: Profile, folder: Path) -> dict[str, dict]:
    """Copy a profile's figures into the folder and return by name what
    data/figures.yaml says of those that it lists, in its order.
    """
    if profile.figures.is_dir():
        shutil.copytree(profile.figures, folder, dirs_exist_ok=True)
    groups = read_yaml(paths.DATA / "figures.yaml").values()
    captions = {entry["id"]: entry for group in groups for entry in group}
    drawn = {path.stem for path in profile.figures.glob("*.png")}
    return {name: caption for name, caption in captions.items() if name in drawn}


def publish_notebooks(profile: Profile, folder: Path) -> list[str]:
    """Write the notebooks into the folder as HTML without a script, and return their
    names.

    A profile's executed copy comes before the repository's own.
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
        write_whole(path, page.encode("utf-8", "replace"))
        names.append(kept.stem)
    return names


def report_of(profile: Profile) -> Markup:
    """Return docs/report.md as HTML below the page's own heading; nothing for a profile
    that it is not about.

    Its figures are those beside the page; links to other files of the repository lead
    to its address, and are text as long as it has none.
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
    # What scrolls sideways on a phone can be reached by keys as well.
    html = html.replace("<table>", '<table tabindex="0">')
    return Markup(html.replace("<p><img", '<p tabindex="0"><img'))
