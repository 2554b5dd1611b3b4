"""What numbers over problems say.

`intervals` has the one rule for the interval of a number, `rounding` how it is told,
`p_values` tests and their correction, `power` how many problems decide, and
`prediction` how well a number tells which problems are answered right.
"""

from lib.statistics.intervals import (
    ALPHA,
    ENOUGH,
    POINTS,
    Interval,
    clopper_pearson,
    clusters_of,
    interval,
    mcnemar_exact,
    ratio,
    tango,
)
from lib.statistics.p_values import holm, signed_rank, smallest_level
from lib.statistics.power import n_deciding, smallest_effect
from lib.statistics.prediction import logistic_slopes, roc_values
from lib.statistics.rounding import format_interval, rounded

__all__ = [
    "ALPHA",
    "ENOUGH",
    "POINTS",
    "Interval",
    "clopper_pearson",
    "clusters_of",
    "format_interval",
    "holm",
    "interval",
    "logistic_slopes",
    "mcnemar_exact",
    "n_deciding",
    "ratio",
    "roc_values",
    "rounded",
    "signed_rank",
    "smallest_effect",
    "smallest_level",
    "tango",
]
