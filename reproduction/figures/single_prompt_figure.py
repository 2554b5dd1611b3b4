"""Draw one prompt in detail: its tokens coloured by received attention, the curves of a
head, and λ of every head.
"""

import html

import numpy as np
from IPython.display import HTML

from reproduction.figures.notebook_tables import preformatted
from reproduction.figures.saved_figures import NO_CHANGE, grid

# The axes depend only on the curve without a filler, and on a λ that few heads exceed,
# so that they stay the same while somebody types another filler.
SPACE_ABOVE = 1.15
HIGHEST_LAMBDA = 1.6
SPREAD = 0.3  # of a layer's dots to either side, in layers
BEFORE_AND_AFTER = ("#0072B2", "#D55E00")  # as for none and mless in every figure


def coloured(tokens, inserted, weights):
    """Return the tokens of a prompt as HTML, coloured by their weights (T,): 1 is
    darkest, NaN has no colour. The tokens of the slice `inserted` are underlined.
    """
    spans = []
    for index, (token, weight) in enumerate(zip(tokens, weights, strict=True)):
        shade = np.nan_to_num(np.clip(weight, 0, 1))
        line = "underline" if index in range(inserted.start, inserted.stop) else "none"
        # JupyterLab drops the newer form `rgb(232 131 58 / 0.8)` from stored outputs.
        colour = f"rgba(232, 131, 58, {shade:.2f})"
        style = f"background: {colour}; text-decoration: {line}"
        text = html.escape(token.replace("\n", "↵\n"))
        spans.append(f'<span style="{style}">{text}</span>')
    return HTML(preformatted("".join(spans)))


def close_up(curves, inserted, ratios, chosen):
    """Return a figure of one prompt: the received attention in the chosen (layer,
    head), and λ (L, H) of every head.

    curves: received attention (T,) by name, NaN where undefined; the first curve
    decides where the axis ends. inserted: the slice of the filler's tokens, which is
    shaded.
    """
    figure, (ax, of_heads) = grid(2, height=2.4, width_ratios=(3, 2))
    _draw_heads(of_heads, ratios, chosen)
    layer, head = chosen
    ax.set_title(f"Layer {layer}, head {head}: λ = {ratios[layer - 1, head - 1]:.2f}")
    first, *_ = curves.values()
    for colour, name in zip(BEFORE_AND_AFTER, curves, strict=True):
        ax.plot(curves[name], color=colour, label=name)
    ends = (inserted.start - 0.5, inserted.stop - 0.5)
    ax.axvspan(*ends, color="0.9", zorder=0, label="the filler")
    ax.set_ylim(0, SPACE_ABOVE * np.nanmax(first[1:]))
    ax.set(xlabel="Position in the complete prompt", ylabel="Received attention")
    # Above the panels, because the curves of some heads fill every corner.
    figure.legend(loc="outside upper left", ncols=3)
    return figure


def _draw_heads(ax, ratios, chosen):
    """Draw λ (L, H) as a dot per head, the heads of a layer from left to right, with
    the chosen (layer, head) in a ring.
    """
    layers = np.arange(1, len(ratios) + 1)
    layer, head = chosen
    _, heads = ratios.shape
    offsets = np.linspace(-SPREAD, SPREAD, heads) if heads > 1 else np.zeros(1)
    x = layers[:, None] + offsets
    ring = x[layer - 1, head - 1], ratios[layer - 1, head - 1]
    ax.set_title("All heads (in a ring: the one at the left)")
    ax.axhline(1, **NO_CHANGE)
    ax.plot(x, ratios, "o", color=BEFORE_AND_AFTER[1], markersize=3)
    ax.plot(*ring, "ko", markersize=7, fillstyle="none")
    highest = max(HIGHEST_LAMBDA, 1.05 * ratios.max())
    ax.set(
        xlabel=f"Layer (dots: heads 1 to {heads}, from left to right)",
        ylabel="λ = received with / without",
        ylim=(0, highest),
        xticks=layers,
    )
