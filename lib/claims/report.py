"""One HTML page per profile, without other files: the claims, what each notebook found, and every figure."""

import base64
import csv
import json
from html import escape
from pathlib import Path

from lib.claims.page import measured_text
from lib.errors import InputError
from lib.profiles import Profile

STYLE = """
body { font: 15px/1.45 sans-serif; max-width: 60em; margin: 2em auto; padding: 0 1em; color: #222 }
table { border-collapse: collapse } td, th { text-align: left; vertical-align: top; padding: .3em .8em .3em 0 }
tr { border-bottom: 1px solid #ddd } img { max-width: 100% }
.supported { color: #0072b2 } .contradicted { color: #b34700 }
small { color: #555 }
"""


def write_report(profile: Profile) -> Path:
    """Write results/<profile>/report.html from what `reproduce` left there and return its path.

    Raises InputError when the profile has no claims yet, or the page cannot be written.
    """
    results, figures = profile.results, profile.figures
    if not (results / "claims.json").is_file():
        raise InputError(f"no claims of profile {profile.name} yet: python -m lib reproduce --profile {profile.name}")
    parts = [
        f"<h1>Meaningless Tokens, Meaningful Gains: {escape(profile.name)}</h1>",
        f"<p>{escape(profile.description)}. Claims of arXiv 2510.01032, each with the rule that was fixed before.</p>",
        _claims(json.loads((results / "claims.json").read_text())),
        *(_figure(path) for path in sorted(figures.glob("*.png"))),
    ]
    page = f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(profile.name)}</title>"
    path = results / "report.html"
    try:
        path.write_text(f"{page}<style>{STYLE}</style>{''.join(parts)}</html>", encoding="utf-8")
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return path


def _claims(rows: list[dict]) -> str:
    lines = ["<table><tr><th>verdict<th>claim<th>source<th>model<th>measured"]
    for row in rows:
        cells = (row["claim"], row["source"], row["model"], measured_text(row))
        text = "".join(f"<td>{escape(cell)}" for cell in cells)
        lines.append(f"<tr><td class={row['verdict']}><b>{row['verdict']}</b>{text}")
    return "\n".join([*lines, "</table>"])


def _figure(path: Path) -> str:
    """Return a figure with its picture inside the page; its name says the paper's number, its csv how many rows."""
    with open(path.with_suffix(".csv"), newline="") as file:
        rows = sum(1 for _ in csv.reader(file)) - 1
    data = base64.b64encode(path.read_bytes()).decode()
    return f'<h2>{escape(path.stem)}</h2><img alt="{escape(path.stem)}" src="data:image/png;base64,{data}">' + (
        f"<p><small>{rows} rows behind it: {escape(path.stem)}.csv</small></p>"
    )
