"""One prompt from close: its tokens on the colour of what they receive, the curves of a
head, λ of every head.
"""

import io
import math
import re

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image
from matplotlib.colors import LinearSegmentedColormap, PowerNorm

from lib.figures.drawing import NO_CHANGE, PAGE_WIDTH, tell_apart

# A line of a prompt: its letters, and its height in inches beside that of the curves.
LETTERS = 126
LINE = 0.14
CURVES = 2.2
# Axes end at a multiple of so many positions, above the highest curve, and at a λ that
# few heads exceed: they stay where they are while somebody types.
POSITIONS_STEP = 60
ROOM_ABOVE = 1.15
HIGHEST_LAMBDA = 1.6
BREAKS = {"\n": "↵", "\t": "→"}
# A vocabulary may join up to a hundred spaces into one token.
LONG_RUN = re.compile(r"(.)\1{7,}")
TYPE = {"family": "monospace", "size": 6, "parse_math": False, "va": "center_baseline"}
SHADES = LinearSegmentedColormap.from_list("received", ["white", "#F9C9A3", "#E8833A"])
UNDEFINED = "0.85"
WORDS = {"none": "without the filler", "mless": "with the filler"}
FILLER_INK = "#0B5D1E"  # no other text and no ground has it


def one_prompt(prompt, received):
    """Return an Image of a prompt on the colour of what its tokens receive (T,) in the
    first head of layer 1, above that as a curve.
    """
    tokens = [prompt.text[start:stop] for start, stop in prompt.offsets]
    curves = {"mless": np.asarray(received)}
    inserted = prompt.spans["inserted"]
    figure, _ = close_up("P;C", tokens, inserted, curves, "layer 1, head 1")
    return Image(png_of(figure), retina=True)


def close_up(mosaic, tokens, inserted, curves, place):
    """Return a figure of one prompt and its axes by letter: P has the prompt, C the
    curves of a head; others that the mosaic names are empty.

    tokens: texts (T,), of which the slice `inserted` is the filler. curves: what the
    tokens receive (T,) by condition, NaN where undefined; the last one colours the
    prompt, the first one decides where axes and colours end.
    """
    first, *_ = curves.values()
    *_, last = curves.values()
    most = np.nanmax(first[1:])
    signs = [_visible(token) for token in tokens]
    places = _places(signs)
    heights = (LINE * (places[-1][0] + 1) + 0.1, CURVES)
    size = (PAGE_WIDTH, sum(heights))
    figure, axes = plt.subplot_mosaic(mosaic, figsize=size, height_ratios=heights)
    _write_prompt(axes["P"], signs, places, last / most, inserted)
    title = f"What each token receives in {place}: the darker, the more"
    axes["P"].set_title(title, loc="left")
    _draw_curves(axes["C"], curves, inserted)
    steps = math.ceil(len(tokens) / POSITIONS_STEP)
    axes["C"].set(xlim=(-1, steps * POSITIONS_STEP), ylim=(0, ROOM_ABOVE * most))
    return figure, axes


def _draw_curves(ax, curves, inserted):
    """Draw what the tokens receive (T,) by condition, and shade the filler."""
    looks = tell_apart(curves)
    for condition, values in curves.items():
        ax.plot(values, color=looks[condition]["color"], label=WORDS[condition])
    ends = (inserted.start - 0.5, inserted.stop - 0.5)
    ax.axvspan(*ends, color="0.9", zorder=0, label="the filler")
    ax.set(xlabel="Token position", ylabel="Average attention weight")
    ax.legend(loc="upper right")


def head_dots(ax, ratios, chosen):
    """Draw λ (L, H) as a dot per head, the chosen (layer, head) in a ring."""
    layers, heads = ratios.shape
    places = np.arange(1, layers + 1)
    x = places[:, None] + 0.8 * ((np.arange(heads) + 0.5) / heads - 0.5)  # (L, H)
    ax.axhline(1, **NO_CHANGE)
    ax.plot(x.ravel(), ratios.ravel(), "o", color="#D55E00", markersize=3)
    place = (chosen[0] - 1, chosen[1] - 1)
    ax.plot(x[place], ratios[place], "ko", markersize=7, fillstyle="none")
    highest = max(HIGHEST_LAMBDA, 1.05 * ratios.max())
    ax.set(xlabel="Layer (a dot per head)", ylabel="λ = received with / without")
    ax.set(xlim=(0.5, layers + 0.5), ylim=(0, highest), xticks=places)


def png_of(figure):
    """Return a figure as the bytes of a png, and close it."""
    picture = io.BytesIO()
    figure.savefig(picture)
    plt.close(figure)
    return picture.getvalue()


def _visible(token):
    """Return a token's text with signs for breaks, and for spaces where it has nothing
    else; a long run of one letter is counted.
    """
    signs = BREAKS if token.strip() else BREAKS | {" ": "␣"}
    signed = token.translate(str.maketrans(signs))
    counted = LONG_RUN.sub(lambda run: f"{run[1]}×{len(run[0])}", signed)
    return counted[:LETTERS] or "·"


def _places(texts):
    """Return the row and the column where each text begins, in rows of LETTERS."""
    places = []
    row = column = 0
    for text in texts:
        if column + len(text) > LETTERS:
            row += 1
            column = 0
        places.append((row, column))
        column += len(text)
    return places


def _write_prompt(ax, texts, places, weights, inserted):
    """Write the tokens of a prompt, those of the filler in ink of their own, each on
    the colour of its weight (T,), of which 1 is the darkest; NaN is grey.
    """
    norm = PowerNorm(0.6, 0, 1, clip=True)
    shades = SHADES.with_extremes(bad=UNDEFINED)(norm(np.ma.masked_invalid(weights)))
    rows, columns = zip(*places, strict=True)
    widths = [len(text) for text in texts]
    ax.barh(rows, widths, 0.9, columns, align="edge", color=shades)
    inks = ["black"] * len(texts)
    inks[inserted] = [FILLER_INK] * len(texts[inserted])
    for row, column, text, ink in zip(rows, columns, texts, inks, strict=True):
        ax.text(column, row + 0.45, text, color=ink, **TYPE)
    ax.set(xlim=(0, LETTERS), ylim=(rows[-1] + 1, 0))
    ax.axis("off")
