"""Whether two figures say the same: how far the numbers behind them are apart, and what is drawn.

Processors round differently, so the same run elsewhere differs in the sixth digit and in every byte. Numbers are
therefore compared by what they mean: an estimate and its ends by the interval's width, a p-value by what it decides,
other numbers by their size; and drawings by their parts, looks and places instead of by their pixels.
"""

import re

import numpy as np
from matplotlib.axis import Axis
from matplotlib.text import Text

from lib.paths import settings_key

TOLERANCE = 0.01  # of an interval's width, or of a number: what no reader sees
FLOOR = 0.01  # of a column's largest number: smaller ones count as this large, being zero but for rounding
NARROWEST = 1e-3  # of a column's largest number: an interval counts as this wide at least
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")
LEVEL, SMALLEST, FACTOR = 0.05, 1e-3, 3.0  # of p-values: what decides, what is told, and an order of magnitude's half
SHIFT = 0.005  # of the page: how far a part moves at most while the numbers agree
NUMBER = re.compile(r"[-−+]?\d[\d.,]*(e[-+]?\d+)?")
STYLES = ("color", "facecolor", "edgecolor", "linestyle", "linewidth", "marker", "markersize", "hatch", "fontsize")


def largest_difference(old, new):
    """Return (size, where) of the largest difference between two DataFrames, at most TOLERANCE when they say the same.

    An estimate is what stands before two columns whose names end in low and high. Whole numbers are counts, which have
    to be equal as texts have: inf where they are not, and for other rows or columns.
    """
    if list(old) != list(new):
        return np.inf, f"columns {', '.join(new)}, were {', '.join(old)}"
    if len(old) != len(new):
        return np.inf, f"{len(new)} rows, were {len(old)}"
    largest, where, widths = 0.0, "", _widths(old, new)
    for name in new:
        apart = _apart(name, old[name], new[name], widths.get(name))
        row = int(apart.argmax()) if len(apart) else 0
        if len(apart) and apart[row] > largest:
            largest, where = float(apart[row]), f"{name} in line {row + 2}: {new[name][row]}, was {old[name][row]}"
    return largest, where


def _widths(old, new):
    """Return by the name of an estimate and of its ends how wide its interval is in each row, (n,)."""
    found, names = {}, list(new)
    for estimate, low, high in zip(names, names[1:], names[2:], strict=False):
        if low.endswith("low") and high == f"{low[:-3]}high" and _numbers(estimate, old, new):
            ends = np.array([table[[low, high]].to_numpy(float) for table in (old, new)])  # (2, n, 2)
            largest = np.nanmax(np.abs(ends), initial=0)
            width = np.fmax(np.fmax(*np.ptp(ends, axis=2)), NARROWEST * largest)
            found |= dict.fromkeys((estimate, low, high), width)
    return found


def _numbers(name, *tables):
    return all(table[name].dtype.kind in "if" for table in tables)


def _apart(name, old, new, width):
    """Return how far two columns (n,) are apart in each row; 0 or inf for texts, counts, gaps and p-values."""
    exact = np.where((old == new) | (old.isna() & new.isna()), 0, np.inf)
    if not {old.dtype.kind, new.dtype.kind} <= set("if") or (width is None and old.dtype.kind == new.dtype.kind == "i"):
        return exact
    ends = np.array([old, new], dtype=float)  # (2, n)
    if P_VALUE.fullmatch(name):
        told = np.log(np.fmax(ends, SMALLEST))
        same = ((ends < LEVEL).all(0) | (ends >= LEVEL).all(0)) & (np.ptp(told, axis=0) < np.log(FACTOR))
        return np.where(same, 0, exact)
    size = np.maximum(np.abs(ends).max(0), FLOOR * np.nanmax(np.abs(ends), initial=0)) if width is None else width
    apart = np.abs(ends[0] - ends[1]) / np.where(exact == 0, 1, size)
    return np.where(exact == 0, 0, np.nan_to_num(apart, nan=np.inf))


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
