"""Draw the figure of simulations in docs/weighted_pass_rates.md.

    python -m studies.weights_figure

Reads weights_rivals.csv and weights_checks.csv in studies/results and writes
weighted_pass_rates.png into the same folder: the root mean squared error and the bias
of each estimator at equal cost, and how often each check detects answers that were not
drawn as they are scored.
"""

import pandas as pd
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from lib.figures.saved_figures import bytes_of, grid
from lib.files.atomic import write_atomically
from studies.keeping import RESULTS

RIVALS = {"rmse": ("root mean squared error", "o"), "bias": ("bias", "s")}
CHECKS = {
    "slope_excludes_1": ("slope", "o"),
    "second_excludes_1": ("mean weight of a\nprompt that drew", "^"),
    "third_excludes_1": ("mean weight of\na third prompt", "s"),
    "withheld": ("the rule", "D"),
}


def rows(ax: Axes, table: pd.DataFrame, names: pd.Series, series: dict) -> None:
    """Draw a row per name from the top, and a mark for each column of `series`."""
    heights = range(len(table))
    for column, (label, marker) in series.items():
        ax.plot(table[column], heights, marker, label=label)
    ax.set_yticks(heights, names)
    ax.invert_yaxis()
    ax.legend(loc="center left", bbox_to_anchor=(1.0, 0.5))


def drawn(rivals: pd.DataFrame, checks: pd.DataFrame) -> Figure:
    """Return the figure of both tables."""
    figure, (upper, lower) = grid(2, columns=1, height=2.6)
    sizes = rivals["answers"].astype(str)
    rows(upper, rivals, rivals["way"] + ", " + sizes + " answers", RIVALS)
    upper.axvline(0, color="0.6", linewidth=0.8)
    upper.set_xlabel("Points, at a true difference of 2.5 and equal cost")
    rows(lower, checks, checks["drawn"], CHECKS)
    lower.set(xlabel="Simulations in which the check fails, %", xlim=(-3, 103))
    return figure


def main() -> None:
    """Write the figure."""
    tables = (
        pd.read_csv(RESULTS / f"weights_{name}.csv") for name in ("rivals", "checks")
    )
    figure = drawn(*tables)
    write_atomically(RESULTS / "weighted_pass_rates.png", bytes_of(figure, "png"))


if __name__ == "__main__":
    main()
