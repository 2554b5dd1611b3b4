"""What other numbers, places and depths of the slashes give, as the page steps through
them.
"""

import pandas as pd

from lib.claims.contrasts import differences
from lib.evaluation.answer_tables import summarise
from lib.profiles import Profile
from lib.report.answers import Stored

TITLES = {
    "length": "How many slashes: nats of the worked solution, against none",
    "place": "Where the slashes stand: nats of the worked solution, against none",
    "depth": "Which layers see them: nats of the worked solution, against none",
}
ANSWERED = "Other fillers, lengths and places: points of accuracy, against none"


def courses_of(profile: Profile, stored: Stored) -> list[dict]:
    """Return a course per panel: its title, and a row per setting and model."""
    courses = []
    if stored.scores is not None and len(stored.scores):
        table = differences(stored.scores, "solution", profile.filler)
        for panel, title in TITLES.items():
            rows = table[table.panel == panel]
            # Numbers in their order, places as they come.
            if pd.to_numeric(rows.x, errors="coerce").notna().all():
                rows = rows.sort_values(["curve", "x"], kind="stable")
            if len(rows):
                courses.append(
                    {"title": title, "rows": [*map(_drawn_setting, _dicts(rows))]}
                )

    fillers = stored.parts.get("fillers")
    if fillers is not None and len(fillers):
        names = {"effect_low": "low", "effect_high": "high", "condition": "x"}
        table = summarise(fillers)[["model", "n", "effect", *names]]
        rows = table.dropna(subset="effect_low").rename(columns=names)
        if len(rows):
            courses.append(
                {"title": ANSWERED, "rows": [*map(_drawn_setting, _dicts(rows))]}
            )
    return courses


def _dicts(table: pd.DataFrame) -> list[dict]:
    return table.to_dict("records")


def _drawn_setting(row: dict) -> dict:
    """Return a setting as a row of a drawing."""
    label = str(row["x"])
    curve = str(row.get("curve", ""))
    if curve.endswith("1 to k"):
        label = curve.replace(" to k", f" to {label}")
    elif curve.endswith("to k alone"):
        label = curve.replace("to k alone", f"to {label} alone")
    elif label.isdecimal():
        label = f"{label} slashes"
    low, effect, high = (
        float(f"{row[name]:.5g}") for name in ("low", "effect", "high")
    )
    text = f"{effect:+.2f} [{low:+.2f}, {high:+.2f}]"
    about = {"label": label, "model": row["model"], "n": int(row["n"]), "text": text}
    return about | {"x": effect, "low": low, "high": high}
