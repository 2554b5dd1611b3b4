"""One prompt seen from close: its tokens on the colour of what they receive, the curve of a head, λ of every head."""

import matplotlib.pyplot as plt
import numpy as np
from matplotlib import colors
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from lib.figures.style import CONDITION_STYLES, FULL_WIDTH, ROW_HEIGHT, even_line, integer_axis

# Of a line of a prompt: its letters, their size in points, and in inches the width of one and the height of all.
LETTERS, SIZE, LETTER, LINE = 138, 6, 6 * 1233 / 2048 / 72, 0.14
SIGNS = {" ": "\N{OPEN BOX}", "\n": "\N{DOWNWARDS ARROW WITH CORNER LEFTWARDS}", "\t": "\N{RIGHTWARDS ARROW}"}
# What λ of a filler is compared with: the mean over heads in each layer.
REFERENCES = {"slashes": ("#009E73", "-"), "a sentence": ("#000000", "-"), "even attention": ("0.45", ":")}
COLOURS = colors.LinearSegmentedColormap.from_list("received", ["white", "#F9C9A3", "#E8833A"])
UNDEFINED = "0.85"
ABOVE = {"loc": "lower left", "bbox_to_anchor": (0, 1), "frameon": False, "borderaxespad": 0.1, "columnspacing": 1}


def draw_close(tokens, inserted, without, after, ratios, references, chosen):
    """Return a figure of one prompt with a filler: what its tokens receive of one head, and λ of every head.

    tokens: texts (T,), of which the slice `inserted` is the filler; without, after: received attention (T,) of the
    `chosen` (layer, head), NaN where undefined; ratios: λ (L, H); references: mean λ (L,) by name of REFERENCES.
    """
    lines = _in_lines(tokens)
    text, (layer, head) = LINE * len(lines), chosen
    height = text + ROW_HEIGHT + 0.4
    figure = plt.figure(figsize=(FULL_WIDTH, height), layout="none")

    def axes(left, bottom, width, tall):
        return figure.add_axes((left / FULL_WIDTH, bottom / height, width / FULL_WIDTH, tall / height))

    prompt = axes(0.1, height - text - 0.22, LETTERS * LETTER, text)
    draw_tokens(prompt, lines, after)
    prompt.set_title(f"What each token receives in layer {layer}, head {head}: the darker, the more", loc="left", pad=4)
    curve, dots = (axes(left, 0.4, width, ROW_HEIGHT - 0.65) for left, width in ((0.5, 3.8), (4.85, 2.25)))
    _draw_with_and_without(curve, without, after, inserted)
    curve.set_title(f"Layer {layer}, head {head}: λ = {ratios[layer - 1, head - 1]:.2f}", loc="left", pad=14)
    _draw_ratios(dots, ratios, references, chosen)
    dots.set_title("λ of every head", loc="left", pad=14)
    return figure


def draw_tokens(ax, lines, weights):
    """Write a prompt in `lines`, each token on the colour of what it receives (T,), on grey where that is undefined.

    The first token, which takes most of the mass, does not decide the scale.
    """
    norm = colors.PowerNorm(0.6, 0, np.nanmax(weights[1:]), clip=True)
    grounds = [
        Rectangle((left, row + 0.06), len(text), 0.88)
        for row, line in enumerate(lines)
        for left, text in zip(np.cumsum([0, *map(len, line)]), line, strict=False)
    ]
    look = {"facecolors": COLOURS.with_extremes(bad=UNDEFINED)(norm(np.ma.masked_invalid(weights))), "linewidths": 0}
    ax.add_collection(PatchCollection(grounds, **look))
    for row, line in enumerate(lines):
        ax.text(0, row + 0.55, "".join(line), family="monospace", size=SIZE, va="center_baseline", parse_math=False)
    ax.set(xlim=(0, LETTERS), ylim=(len(lines), 0))
    ax.axis("off")


def _in_lines(tokens):
    """Return the tokens' texts in lines of at most LETTERS."""
    lines, room = [], 0
    for text in (_visible(token)[:LETTERS] for token in tokens):
        if len(text) > room:
            lines.append([])
            room = LETTERS
        lines[-1].append(text)
        room -= len(text)
    return lines


def _visible(token):
    """Return a token's text with signs for what cannot be seen, and how many of it where the token holds several."""
    if token and not token.strip():
        return SIGNS.get(token[-1], SIGNS[" "]) + (f"×{len(token)}" if len(token) > 1 else "")
    return token.replace("\n", SIGNS["\n"]).replace("\t", SIGNS["\t"]) or "\N{MIDDLE DOT}"


def _draw_with_and_without(ax, without, after, inserted):
    for condition, weights, name in (("none", without, "without the filler"), ("mless", after, "with it")):
        ax.plot(np.arange(1, len(weights)), weights[1:], color=CONDITION_STYLES[condition].colour, label=name)
    ax.axvspan(inserted.start - 0.5, inserted.stop - 0.5, color="0.9", linewidth=0, zorder=0, label="the filler")
    ax.set(ylabel="Average attention weight (received)", xlim=(0, len(after)), ylim=(0, None))
    integer_axis(ax.xaxis, "Token position")
    ax.legend(ncols=3, **ABOVE)


def _draw_ratios(ax, ratios, references, chosen):
    """Draw λ (L, H) as a dot per head, the chosen one ringed, and the mean λ (L,) of each reference as lines."""
    layers, heads = ratios.shape
    x = np.arange(1, layers + 1)[:, None] + (np.arange(heads) - (heads - 1) / 2) * 0.7 / heads  # (L, H)
    even_line(ax)
    for name, means in references.items():
        colour, line = REFERENCES[name]
        ends = np.arange(1, layers + 1)[:, None] + [-0.42, 0.42]
        ax.hlines(means, *ends.T, color=colour, linestyle=line, linewidth=1.2, label=name)
    ax.plot(x.ravel(), ratios.ravel(), "o", color=CONDITION_STYLES["mless"].colour, markersize=3)
    at = chosen[0] - 1, chosen[1] - 1
    ax.plot(x[at], ratios[at], "o", markersize=7, fillstyle="none", color="black")
    ax.set(ylabel="λ = received with / without", xlim=(0.5, layers + 0.5))
    integer_axis(ax.xaxis, "Layer (a dot per head)")
    ax.grid(False, axis="x")
    ax.legend(ncols=3, handlelength=1.2, **ABOVE)
