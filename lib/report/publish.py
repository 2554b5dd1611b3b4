"""What stands beside the page in its folder, so that it can be published as it is: the
notebooks and the report of two pages as HTML that needs nothing else.
"""

import re
from pathlib import Path

import jinja2
from markupsafe import Markup

from lib import paths
from lib.profiles import Profile

REPORTED = "families"  # the profile that docs/report.md is about
TEMPLATE_FOLDER = Path(__file__).parent / "templates"


def environment() -> jinja2.Environment:
    """Return what fills the templates: texts are escaped, nothing may lack."""
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATE_FOLDER),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
    )


def template(name: str) -> str:
    """Return a file of the templates as it is."""
    return (TEMPLATE_FOLDER / name).read_text(encoding="utf-8")


def publish_notebooks(profile: Profile, folder: Path) -> dict[str, str]:
    """Write the notebooks as HTML into `notebooks` of the folder; return their places
    by name.

    A profile's executed copy comes before the repository's own. What is there and no
    older than the notebook stays.
    """
    places = {}
    for path in sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb")):
        executed = profile.results / path.name
        source = executed if executed.is_file() else path
        page = folder / "notebooks" / f"{path.stem}.html"
        places[path.stem] = f"notebooks/{page.name}"
        if page.is_file() and page.stat().st_mtime >= source.stat().st_mtime:
            continue
        page.parent.mkdir(parents=True, exist_ok=True)
        paths.write_whole(page, _as_html(source).encode("utf-8", "replace"))
    return places


def publish_report(profile: Profile, folder: Path, repository: str) -> str | None:
    """Write docs/report.md as report.html into the folder and return its name; None for
    a profile that it is not about.

    Its figures are those beside the page; other files are linked in the repository.
    """
    if profile.name != REPORTED:
        return None
    from nbconvert.filters.markdown_mistune import markdown2html_mistune

    text = paths.read_text(paths.ROOT / "docs" / "report.md")
    text = text.replace(f"../figures/{profile.name}/", "figures/")
    text = re.sub(r"<!--.*?-->", "", text)
    text = re.sub(r"\]\(\.\./([\w./-]+)\)", rf"]({repository}/blob/main/\1)", text)
    page = _framed("The report of two pages", markdown2html_mistune(text), "index.html")
    paths.write_whole(folder / "report.html", page.encode())
    return "report.html"


def _as_html(notebook: Path) -> str:
    """Return a notebook as a page of its own, without any script."""
    # nbconvert takes a second to import, which a page without new notebooks saves.
    from nbconvert import HTMLExporter

    exporter = HTMLExporter(template_name="basic", exclude_anchor_links=True)
    body, _ = exporter.from_filename(str(notebook))
    title = f"Notebook {notebook.stem}, as it ran"
    return _framed(title, body, "../index.html")


def _framed(title: str, body: str, home: str) -> str:
    """Return HTML in the frame of a page of its own."""
    from pygments.formatters import HtmlFormatter

    code_css = HtmlFormatter(nobackground=True).get_style_defs(".highlight")
    frame = environment().get_template("notebook.html.j2")
    return frame.render(
        title=title,
        home=home,
        body=Markup(body),
        css=Markup(template("notebook.css")),
        code_css=Markup(code_css),
    )
