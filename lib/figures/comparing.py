"""Whether two figures say the same: the largest difference of the numbers behind them, and what is drawn.

Processors round differently, so the same run elsewhere differs in the sixth digit and in every byte. Tables are
therefore compared with a tolerance, and drawings by their parts, looks and places instead of by their pixels.
"""

import re

import numpy as np
from matplotlib.axis import Axis
from matplotlib.text import Text

from lib.paths import settings_key

TOLERANCE = 1e-3  # relative
FLOOR = 1e-3  # of a column's largest number: smaller ones count as this large, being zero but for rounding
SHIFT = 0.005  # of the page: how far a part moves at most while the numbers agree
NUMBER = re.compile(r"[-−+]?\d[\d.,]*(e[-+]?\d+)?")
STYLES = ("color", "facecolor", "edgecolor", "linestyle", "linewidth", "marker", "markersize", "hatch", "fontsize")


def largest_difference(old, new):
    """Return (size, where) of the largest relative difference between two DataFrames; inf for rows, columns, texts."""
    if list(old) != list(new):
        return np.inf, f"columns {', '.join(new)}, were {', '.join(old)}"
    if len(old) != len(new):
        return np.inf, f"{len(new)} rows, were {len(old)}"
    largest, where = 0.0, ""
    for name in new:
        apart = _apart(old[name], new[name])
        row = int(apart.argmax()) if len(apart) else 0
        if len(apart) and apart[row] > largest:
            largest, where = float(apart[row]), f"{name} in line {row + 2}: {new[name][row]}, was {old[name][row]}"
    return largest, where


def _apart(old, new):
    """Return how far two columns (n,) are apart in each row: relative for numbers, 0 or inf for texts and gaps."""
    if old.dtype.kind not in "ifb" or new.dtype.kind not in "ifb":
        return np.where((old == new) | (old.isna() & new.isna()), 0, np.inf)
    ends = np.array([old, new], dtype=float)  # (2, n)
    same = (ends[0] == ends[1]) | np.isnan(ends).all(0)
    size = np.maximum(np.abs(ends).max(0), FLOOR * np.nanmax(np.abs(ends), initial=0))
    apart = np.abs(ends[0] - ends[1]) / np.where(same, 1, size)
    return np.where(same, 0, np.nan_to_num(apart, nan=np.inf))


def drawing(figure):
    """Return what is drawn: a digest of its parts, looks and texts, and each part's left, bottom, right and top.

    Places are in fractions of the page. Numbers are taken out of texts, since they are in the table, and the ticks of
    an axis count as one part, since their number follows from the data.
    """
    figure.draw_without_rendering()
    parts = [part for ax in figure.axes for child in ax.get_children() for part in _parts(child)] + figure.texts
    boxes = [part.get_window_extent().transformed(figure.transFigure.inverted()).extents for part in parts]
    scales = [(ax.get_xscale(), ax.get_yscale(), *map(_ticks, (ax.xaxis, ax.yaxis))) for ax in figure.axes]
    looks = settings_key(parts=[_look(part) for part in parts], scales=scales, inches=list(figure.get_size_inches()))
    return {"looks": looks, "places": np.nan_to_num(boxes, posinf=0, neginf=0).round(4).ravel().tolist()}


def _parts(child):
    return [child.label] if isinstance(child, Axis) else child.findobj(lambda part: hasattr(part, "get_window_extent"))


def _ticks(axis):
    return sorted({NUMBER.sub("#", label.get_text()) for label in axis.get_ticklabels()})


def _look(part):
    text = NUMBER.sub("#", part.get_text()) if isinstance(part, Text) else ""
    styles = [str(getattr(part, f"get_{style}")()) for style in STYLES if hasattr(part, f"get_{style}")]
    colours = part.get_cmap().name if hasattr(part, "get_cmap") else ""
    return [type(part).__name__, text, part.get_visible(), colours, *styles]


def same_drawing(old, new):
    """Return whether two results of `drawing` show the same."""
    places = np.array([old["places"], new["places"]]) if len(old["places"]) == len(new["places"]) else [[0], [1]]
    return old["looks"] == new["looks"] and float(np.ptp(places, axis=0).max(initial=0)) <= SHIFT
