"""Drawing alone: every function takes axes and arrays, returns artists, and neither loads, saves nor shows."""

from lib.figures.accuracy import draw_accuracy_bars, draw_accuracy_points, fig10_layout
from lib.figures.activations import (
    draw_arm_map,
    draw_change_by_layer,
    draw_changes,
    draw_classes,
    draw_effects,
    draw_histograms,
    draw_pass_at_k,
)
from lib.figures.claims import draw_claims
from lib.figures.dilution import (
    draw_by_condition,
    draw_causes,
    draw_lambda_by_head,
    draw_lambda_by_layer,
    draw_lambda_map,
)
from lib.figures.received import draw_received
from lib.figures.saving import caption, save_figure
from lib.figures.style import (
    CONDITION_STYLES,
    figure_with_rows,
    integer_axis,
    intervals,
    legend_above,
    look_of,
    shade_span,
    style,
)

__all__ = [
    "CONDITION_STYLES",
    "caption",
    "draw_accuracy_bars",
    "draw_accuracy_points",
    "draw_arm_map",
    "draw_by_condition",
    "draw_causes",
    "draw_change_by_layer",
    "draw_changes",
    "draw_claims",
    "draw_classes",
    "draw_effects",
    "draw_histograms",
    "draw_lambda_by_head",
    "draw_lambda_by_layer",
    "draw_lambda_map",
    "draw_pass_at_k",
    "draw_received",
    "fig10_layout",
    "figure_with_rows",
    "integer_axis",
    "intervals",
    "legend_above",
    "look_of",
    "save_figure",
    "shade_span",
    "style",
]
