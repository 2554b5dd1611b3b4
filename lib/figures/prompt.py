"""One prompt seen from close: its tokens on the colour of what they receive, the curve
of a head, λ of every head.
"""

import io

import matplotlib.pyplot as plt
import numpy as np
from IPython.display import Image
from matplotlib import colors
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from lib.figures.draw import EVEN, LAMBDA, LOOKS, RECEIVED, STYLE, WIDTH, integer_axis

# Of a line of a prompt: its letters, their size in points, and in inches the width of
# one and the height of all.
LETTERS, SIZE, LETTER, LINE = 138, 6, 6 * 1233 / 2048 / 72, 0.14
SIGNS = {
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
COLOURS = colors.LinearSegmentedColormap.from_list(
    "received", ["white", "#F9C9A3", "#E8833A"]
)
UNDEFINED = "0.85"
CLOSE = STYLE | {
    "text.hinting": "none"
}  # letters are as wide as the font says, as the grounds of the tokens are
ABOVE = {
    "loc": "lower left",
    "bbox_to_anchor": (0, 1),
    "borderaxespad": 0.1,
    "columnspacing": 1,
}


def one_prompt(prompt, received, place="layer 1, head 1"):
    """Return an Image of a prompt on the colour of what its tokens receive (T,) in one
    head, above that as a curve.
    """
    tokens, picture = (
        [prompt.text[start:stop] for start, stop in prompt.offsets],
        io.BytesIO(),
    )
    received = np.asarray(received)
    with plt.rc_context(CLOSE):
        figure, (curve,) = _page(tokens, received, place, 6.6)
        _curves(curve, {"mless": ("received", received)}, prompt.spans.get("inserted"))
        figure.savefig(picture, dpi=200)
        plt.close(figure)
    return Image(picture.getvalue(), retina=True)


def draw_close(tokens, inserted, without, after, ratios, references, chosen):
    """Return a figure of one prompt with a filler, to be made under CLOSE: what its
    tokens receive, λ of every head.

    tokens: texts (T,), of which the slice `inserted` is the filler; without, after:
    received attention (T,) of the `chosen` (layer, head), NaN where undefined; ratios:
    λ (L, H); references: mean λ (L,) by name of REFERENCES.
    """
    (layer, head), (layers, heads) = chosen, ratios.shape
    figure, (curve, dots) = _page(
        tokens, after, f"layer {layer}, head {head}", 3.8, 2.25
    )
    _curves(
        curve,
        {"none": ("without the filler", without), "mless": ("with it", after)},
        inserted,
    )
    curve.set_title(
        f"Layer {layer}, head {head}: λ = {ratios[layer - 1, head - 1]:.2f}",
        loc="left",
        pad=14,
    )
    places = np.arange(1, layers + 1)[:, None]
    x = places + (np.arange(heads) - (heads - 1) / 2) * 0.7 / heads  # (L, H)
    dots.axhline(1, **EVEN)
    for name, means in references.items():
        colour, line = REFERENCES[name]
        dots.hlines(
            means,
            places[:, 0] - 0.42,
            places[:, 0] + 0.42,
            color=colour,
            linestyle=line,
            linewidth=1.2,
            label=name,
        )
    dots.plot(x.ravel(), ratios.ravel(), "o", color=LOOKS["mless"].colour, markersize=3)
    at = layer - 1, head - 1
    dots.plot(x[at], ratios[at], "o", markersize=7, fillstyle="none", color="black")
    dots.set(ylabel=LAMBDA, xlim=(0.5, layers + 0.5))
    integer_axis(dots.xaxis, "Layer (a dot per head)")
    dots.grid(False, axis="x")
    dots.legend(ncols=3, handlelength=1.2, **ABOVE)
    dots.set_title("λ of every head", loc="left", pad=14)
    return figure


def _page(tokens, weights, place, *widths):
    """Return (figure, axes): a prompt, each token on the colour of its weight (T,),
    below it axes of these widths.

    The first token, which takes most of the mass, does not decide the scale; what is
    undefined is grey.
    """
    lines, room = [], 0
    for text in (_visible(token)[:LETTERS] for token in tokens):
        if len(text) > room:
            lines.append([])
            room = LETTERS
        lines[-1].append(text)
        room -= len(text)
    text, below, left = LINE * len(lines), 2.6, 0.5
    height = text + below + 0.4
    figure = plt.figure(figsize=(WIDTH, height), layout="none")

    def axes(left, bottom, width, tall):
        return figure.add_axes(
            (left / WIDTH, bottom / height, width / WIDTH, tall / height)
        )

    prompt, grounds, others = (
        axes(0.1, height - text - 0.22, LETTERS * LETTER, text),
        [],
        [],
    )
    for row, line in enumerate(lines):
        starts = np.cumsum([0, *map(len, line)])
        grounds += [
            Rectangle((at, row + 0.06), len(text), 0.88)
            for at, text in zip(starts, line, strict=False)
        ]
        look = {
            "family": "monospace",
            "size": SIZE,
            "va": "center_baseline",
            "parse_math": False,
        }
        prompt.text(0, row + 0.55, "".join(line), **look)
    norm = colors.PowerNorm(0.6, 0, np.nanmax(weights[1:]), clip=True)
    shades = COLOURS.with_extremes(bad=UNDEFINED)(norm(np.ma.masked_invalid(weights)))
    prompt.add_collection(PatchCollection(grounds, facecolors=shades, linewidths=0))
    prompt.set(xlim=(0, LETTERS), ylim=(len(lines), 0))
    prompt.axis("off")
    prompt.set_title(
        f"What each token receives in {place}: the darker, the more", loc="left", pad=4
    )
    for width in widths:
        others.append(axes(left, 0.4, width, below - 0.65))
        left += width + 0.55
    return figure, others


def _visible(token):
    """Return a token's text with signs for what cannot be seen, and how many of it
    where the token holds several.
    """
    if token and not token.strip():
        return SIGNS.get(token[-1], SIGNS[" "]) + (
            f"×{len(token)}" if len(token) > 1 else ""
        )
    return (
        token.replace("\n", SIGNS["\n"]).replace("\t", SIGNS["\t"]) or "\N{MIDDLE DOT}"
    )


def _curves(ax, weights, inserted):
    """Draw what the tokens after the first receive, by condition (name, (T,)), and
    shade the filler's positions.
    """
    for condition, (name, values) in weights.items():
        ax.plot(
            range(1, len(values)), values[1:], color=LOOKS[condition].colour, label=name
        )
    if inserted is not None:
        ends = inserted.start - 0.5, inserted.stop - 0.5
        ax.axvspan(*ends, color="0.9", linewidth=0, zorder=0, label="the filler")
    ax.set(ylabel=f"{RECEIVED} (received)", xlim=(0, len(values)), ylim=(0, None))
    integer_axis(ax.xaxis, "Token position")
    ax.legend(ncols=3, **ABOVE)
