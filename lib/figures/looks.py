"""How a condition, a cause, a model or an outcome looks, and axes that several figures
share.
"""

import re
import zlib
from typing import NamedTuple

from matplotlib import ticker

# Inches: a printed page, and a panel on it.
WIDTH = 7.2
HEIGHT = 1.9
STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlesize": 7,
    "figure.constrained_layout.use": True,
    "font.size": 6.5,
    "grid.color": "0.9",
    "grid.linewidth": 0.5,
    "legend.frameon": False,
    "lines.linewidth": 1.0,
    "lines.markersize": 3.5,
    "patch.linewidth": 0.7,
    "pdf.fonttype": 42,  # TrueType: text stays selectable, and publishers refuse Type 3
}
LAMBDA = "λ = received with / without"
RECEIVED = "Average attention weight"
# The line at which nothing changes.
EVEN = {"color": "0.35", "linestyle": "--", "linewidth": 0.8, "zorder": 1}
INTERVAL = {"marker": "_", "markersize": 4, "linewidth": 0.9}
NO_EFFECT = "#D5E8E1"  # what is too small to count
PAPER_HATCH = "/////"  # of bars that the paper reports


class Look(NamedTuple):
    """How a series looks, and what it is called; of an outcome also the colour of
    its cell.
    """

    colour: str
    marker: str
    name: str = ""
    tint: str = ""
    fill: str = "full"  # of the marker, as matplotlib calls it


# Okabe and Ito's palette, but for a lighter green, in an order whose grey values
# differ: 0.34, 0.47, 0.62, 0, 0.59.
LOOKS = {
    "none": Look("#0072B2", "o", "None"),
    "mless": Look("#D55E00", "s", "Mless"),
    "mful": Look("#5FBF9B", "^", "Mful"),
    "random": Look("#000000", "D", "Random sentence"),
    "arm": Look("#CC79A7", "v", "ARM"),
    "both": Look("#D55E00", "s", "both: as inserted"),
    "terms": Look("#0072B2", "o", "terms: inserted at the old distance"),
    "distance": Look("#000000", "D", "distance: moved on, nothing inserted"),
}
# Models have colours and markers of their own, so that no model is taken for a
# condition: a model looks the same in every figure.
MODEL_LOOKS = {
    "Qwen2.5-Coder-1.5B-Instruct": Look("#332288", ">"),
    "Qwen2.5-Coder-0.5B-Instruct": Look("#9F86C0", "<"),
    "gemma-3-270m": Look("#999933", "p"),
    "SmolLM2-135M-Instruct": Look("#882255", "P"),
    "Qwen2.5-Math-7B": Look("#4B6A88", "h"),
    "Qwen2.5-Math-1.5B": Look("#661100", "8"),
    "Llama-3.1-8B-Instruct": Look("#DDAA33", "*"),
    "Gemma-3-4b-it": Look("#117733", "X"),
}
# Of a claim on a model, from the best to the worst. Each has a mark and a grey of its
# own.
OUTCOME_LOOKS = {
    "holds": Look("#0072B2", "o", tint="#BFDDEE"),
    "holds in part": Look("#0072B2", "o", tint="#E6F1F8", fill="left"),
    "undecided": Look("0.4", "$?$", tint="#F4F4F4"),
    "does not hold": Look("#D55E00", "X", tint="#F2C4A5"),
}

# Ticks of an axis of ratios, and those of them that stay where there are too many.
RATIO_TICKS = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 0.6, 0.7, 0.8, 0.9]
RATIO_TICKS += [1, 1.1, 1.2, 1.5, 2, 3, 5, 10, 20, 50]
COARSE_TICKS = {0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 50}
MOST_TICKS = 8


def look_of(label):
    """Return (Look, text for the legend) of a condition or cause; mless:25 looks like
    mless. Raises ValueError.
    """
    key = re.split("[:@+]", label)[0]
    if key not in LOOKS:
        raise ValueError(f"unknown condition {label!r}: use one of {', '.join(LOOKS)}")
    look = LOOKS[key]
    return look, look.name if label == key else label


def look_of_model(name):
    """Return the Look of a model; one that is not listed borrows always the same."""
    listed = list(MODEL_LOOKS.values())
    own = zlib.crc32(name.encode()) % len(listed)
    return MODEL_LOOKS.get(name, listed[own])


def from_zero(ax):
    """Let the y axis begin at 0, and leave room above the highest mark."""
    ax.set_ylim(0, 1.08 * ax.dataLim.y1)


def integer_axis(axis, name):
    """Label an axis that counts tokens, layers or heads."""
    axis.set_label_text(name)
    steps = [1, 2, 5, 10]
    locator = ticker.MaxNLocator(10, integer=True, min_n_ticks=1, steps=steps)
    axis.set_major_locator(locator)


def ratio_axis(ax, low, high, axis="y", most=MOST_TICKS):
    """Make an axis one of ratios, from low to high with room, with ticks in plain
    numbers, few enough to read.
    """
    low = min(0.9, low)
    high = max(1.1, high)
    room = (high / low) ** 0.08
    low, high = low / room, high * room
    ticks = [tick for tick in RATIO_TICKS if low <= tick <= high]
    if len(ticks) > most:
        ticks = [tick for tick in ticks if tick in COARSE_TICKS]
    labels = [f"{tick:g}" for tick in ticks]
    if axis == "y":
        ax.set(yscale="log", ylim=(low, high))
        ax.set_yticks(ticks, labels)
    else:
        ax.set(xscale="log", xlim=(low, high))
        ax.set_xticks(ticks, labels)
    ax.minorticks_off()
