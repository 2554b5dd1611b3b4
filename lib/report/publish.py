"""What stands beside the page in its folder, so that it can be published as it is: the
notebooks as HTML pages that need nothing else.
"""

from pathlib import Path

import jinja2
from markupsafe import Markup

from lib import paths
from lib.profiles import Profile

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


def _as_html(notebook: Path) -> str:
    """Return a notebook as a page of its own, without any script."""
    # nbconvert takes a second to import, which a page without new notebooks saves.
    from nbconvert import HTMLExporter
    from pygments.formatters import HtmlFormatter

    exporter = HTMLExporter(template_name="basic", exclude_anchor_links=True)
    body, _ = exporter.from_filename(str(notebook))
    return (
        environment()
        .get_template("notebook.html.j2")
        .render(
            title=notebook.stem,
            body=Markup(body),
            css=Markup(template("notebook.css")),
            code_css=Markup(
                HtmlFormatter(nobackground=True).get_style_defs(".highlight")
            ),
        )
    )
