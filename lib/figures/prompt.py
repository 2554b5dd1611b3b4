"""One prompt seen from close: its tokens on the colour of what they receive, the curve
of a head, λ of every head.
"""

import io
import math

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image
from matplotlib import colors
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from lib.figures.draw import shade_positions
from lib.figures.looks import (
    EVEN,
    LAMBDA,
    LOOKS,
    RECEIVED,
    STYLE,
    WIDTH,
    integer_axis,
)

# A line of a prompt: its letters, their size in points, and in inches the width of one
# and the height of all.
LETTERS = 138
SIZE = 6
LETTER = SIZE * 1233 / 2048 / 72
LINE = 0.14
# Inches below the prompt, of which the axes take all but what stands above and below
# them.
BELOW = 2.6
# Axes end at a multiple of so many positions, above the highest curve, and at a λ that
# few heads exceed: they stay where they are while somebody types.
POSITIONS_STEP = 60
ROOM_ABOVE = 1.15
HIGHEST_LAMBDA = 1.6
VISIBLE_SIGNS = {
    " ": "\N{OPEN BOX}",
    "\n": "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}",
    "\t": "\N{RIGHTWARDS ARROW}",
}
# What λ of a filler is compared with: the mean over heads in each layer.
REFERENCES = {
    "slashes": ("#009E73", "-"),
    "a sentence": ("#000000", "-"),
    "even attention": ("0.45", ":"),
}
SHADES = ["white", "#F9C9A3", "#E8833A"]
SHADE_OF_WEIGHT = colors.LinearSegmentedColormap.from_list("received", SHADES)
UNDEFINED = "0.85"
# Letters are as wide as the font says, as the grounds of the tokens are.
CLOSE = STYLE | {"text.hinting": "none"}
LETTER_STYLE = {
    "family": "monospace",
    "size": SIZE,
    "va": "center_baseline",
    "parse_math": False,
}
LEGEND_ABOVE = {
    "loc": "lower left",
    "bbox_to_anchor": (0, 1),
    "borderaxespad": 0.1,
    "columnspacing": 1,
}


def one_prompt(prompt, received):
    """Return an Image of a prompt on the colour of what its tokens receive (T,) in the
    first head of layer 1, above that as a curve.
    """
    tokens = [prompt.text[start:stop] for start, stop in prompt.offsets]
    received = np.asarray(received)
    picture = io.BytesIO()
    with plt.rc_context(CLOSE):
        most = np.nanmax(received[1:])
        place = "layer 1, head 1"
        figure, (curve,) = _prompt_page(tokens, received, place, most, 6.6)
        curves = {"mless": ("received", received)}
        _draw_curves(curve, curves, prompt.spans.get("inserted"))
        figure.savefig(picture, dpi=200)
        plt.close(figure)
    return Image(picture.getvalue(), retina=True)


def draw_close(tokens, inserted, without, after, ratios, references, chosen):
    """Return a figure of one prompt with a filler, to be made under CLOSE: what its
    tokens receive, λ of every head.

    The axes and the colours depend on the prompt without the filler alone, so that what
    falls under another filler is seen to fall.

    tokens: texts (T,), of which the slice `inserted` is the filler; without, after:
    received attention (T,) of the `chosen` (layer, head), NaN where undefined; ratios:
    λ (L, H); references: mean λ (L,) by name of REFERENCES.
    """
    layer, head = chosen
    place = f"layer {layer}, head {head}"
    most = np.nanmax(without[1:])
    figure, (curve, dots) = _prompt_page(tokens, after, place, most, 3.8, 2.25)
    curves = {"none": ("without the filler", without), "mless": ("with it", after)}
    _draw_curves(curve, curves, inserted)
    steps = math.ceil(len(tokens) / POSITIONS_STEP)
    curve.set(xlim=(0, steps * POSITIONS_STEP), ylim=(0, ROOM_ABOVE * most))
    ratio = ratios[layer - 1, head - 1]
    curve.set_title(f"{place.capitalize()}: λ = {ratio:.2f}", loc="left", pad=14)
    _draw_ratios_of_heads(dots, ratios, references, chosen)
    return figure


def _draw_ratios_of_heads(ax, ratios, references, chosen):
    """Draw λ (L, H) as a dot per head, the chosen one in a ring, among the layers'
    means of the references.
    """
    layers, heads = ratios.shape
    places = np.arange(1, layers + 1)
    steps = np.arange(heads) - (heads - 1) / 2
    x = places[:, None] + steps * 0.7 / heads  # (L, H)

    ax.axhline(1, **EVEN)
    for name, means in references.items():
        colour, line = REFERENCES[name]
        ends = (places - 0.42, places + 0.42)
        style = {"color": colour, "linestyle": line, "linewidth": 1.2}
        ax.hlines(means, *ends, label=name, **style)
    ax.plot(x.ravel(), ratios.ravel(), "o", color=LOOKS["mless"].colour, markersize=3)
    layer, head = chosen
    ring = {"markersize": 7, "fillstyle": "none", "color": "black"}
    ax.plot(x[layer - 1, head - 1], ratios[layer - 1, head - 1], "o", **ring)

    highest = max(HIGHEST_LAMBDA, 1.05 * ratios.max())
    ax.set(ylabel=LAMBDA, xlim=(0.5, layers + 0.5), ylim=(0, highest))
    integer_axis(ax.xaxis, "Layer (a dot per head)")
    ax.grid(False, axis="x")
    ax.legend(ncols=3, handlelength=1.2, **LEGEND_ABOVE)
    ax.set_title("λ of every head", loc="left", pad=14)


def _prompt_page(tokens, weights, place, most, *widths):
    """Return (figure, axes): a prompt, each token on the colour of its weight (T,), the
    darkest for `most`, below it axes of these widths.
    """
    lines = _lines(tokens)
    text = LINE * len(lines)
    height = text + BELOW + 0.4
    figure = plt.figure(figsize=(WIDTH, height), layout="none")

    def axes_at(left, bottom, width, tall):
        """Return axes at a place that is measured in inches."""
        place = (left / WIDTH, bottom / height, width / WIDTH, tall / height)
        return figure.add_axes(place)

    prompt = axes_at(0.1, height - text - 0.22, LETTERS * LETTER, text)
    _draw_prompt(prompt, lines, weights, most)
    title = f"What each token receives in {place}: the darker, the more"
    prompt.set_title(title, loc="left", pad=4)
    axes = []
    left = 0.5
    for width in widths:
        axes.append(axes_at(left, 0.4, width, BELOW - 0.65))
        left += width + 0.55
    return figure, axes


def _lines(tokens):
    """Return tokens as they are written, broken into lines of at most LETTERS."""
    lines = []
    room = 0
    for token in tokens:
        text = _visible(token)[:LETTERS]
        if len(text) > room:
            lines.append([])
            room = LETTERS
        lines[-1].append(text)
        room -= len(text)
    return lines


def _draw_prompt(ax, lines, weights, most):
    """Write the tokens of a prompt, each on the colour of its weight (T,), the darkest
    for `most`; what is undefined is grey.
    """
    grounds = []
    for row, line in enumerate(lines):
        ax.text(0, row + 0.55, "".join(line), **LETTER_STYLE)
        start = 0
        for text in line:
            grounds.append(Rectangle((start, row + 0.06), len(text), 0.88))
            start += len(text)
    norm = colors.PowerNorm(0.6, 0, most, clip=True)
    shade_of = SHADE_OF_WEIGHT.with_extremes(bad=UNDEFINED)
    shades = shade_of(norm(np.ma.masked_invalid(weights)))
    ax.add_collection(PatchCollection(grounds, facecolors=shades, linewidths=0))
    ax.set(xlim=(0, LETTERS), ylim=(len(lines), 0))
    ax.axis("off")


def _visible(token):
    """Return a token's text with signs for what cannot be seen, and how many of it
    where the token holds several.
    """
    if token and not token.strip():
        sign = VISIBLE_SIGNS.get(token[-1], VISIBLE_SIGNS[" "])
        return sign + (f"×{len(token)}" if len(token) > 1 else "")
    text = token.replace("\n", VISIBLE_SIGNS["\n"]).replace("\t", VISIBLE_SIGNS["\t"])
    return text or "\N{MIDDLE DOT}"


def _draw_curves(ax, curves, inserted):
    """Draw what the tokens after the first receive, by condition (name, (T,)), and
    shade the filler's positions.
    """
    for condition, (name, values) in curves.items():
        positions = range(1, len(values))
        colour = LOOKS[condition].colour
        ax.plot(positions, values[1:], color=colour, label=name)
    if inserted is not None:
        positions = np.arange(inserted.start, inserted.stop)
        shade_positions(ax, positions, grey="0.9", label="the filler")
    ax.set(ylabel=f"{RECEIVED} (received)", xlim=(0, len(values)), ylim=(0, None))
    integer_axis(ax.xaxis, "Token position")
    ax.legend(ncols=3, **LEGEND_ABOVE)
