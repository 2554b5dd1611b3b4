"""Whether a figure still shows the numbers of its files, to a reader's eye.

Processors round differently: the same run on another machine differs in the sixth
digit, and no file should be written anew for that.
"""

import json
import re
from pathlib import Path

import numpy as np

from lib.statistics import ALPHA

RECORD = "figures.json"  # in a run's results: why each figure was drawn, "" if kept
NO_TABLE = "no table was there"
NO_PICTURE = "no picture was there"
# What no reader sees: of a number, and of the largest number of its column.
SAME = 0.01
SAME_OF_COLUMN = 0.001
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")


def difference(old, new):
    """Return where two DataFrames first differ to a reader, "" if nowhere.

    Texts and counts have to be equal. A fraction may move by a hundredth of itself or
    by a thousandth of the largest of its column, a p-value on its side of ALPHA.
    """
    if list(old) != list(new):
        return f"columns {', '.join(new)}, were {', '.join(old)}"
    if len(old) != len(new):
        return f"{len(new)} rows, were {len(old)}"
    for name in new:
        same = _same(name, old[name], new[name])
        if not same.all():
            row = int(np.argmin(same))
            return f"{name} in line {row + 2}: {new[name][row]}, was {old[name][row]}"
    return ""


def _same(name, was, now):
    """Return of each row of a column whether a reader sees no difference."""
    gaps = was.isna() & now.isna()
    kinds = {was.dtype.kind, now.dtype.kind}
    if P_VALUE.fullmatch(name):
        both = was.notna() & now.notna()
        return gaps | (both & ((was < ALPHA) == (now < ALPHA)))
    if kinds in ({"f"}, {"f", "i"}):
        size = was.abs()
        room = np.maximum(SAME * size, SAME_OF_COLUMN * size.max())
        return gaps | ((now - was).abs() <= room)
    return gaps | (was == now)


def recorded(results):
    """Return why each figure of a run was drawn, "" where its files were kept.

    What a killed run left of the record is no figure.
    """
    try:
        return json.loads((Path(results) / RECORD).read_text())
    except (OSError, ValueError):
        return {}


def agreement(results):
    """Return the last words of a run: how many figures agree with the files that were
    there, how many are new, and which were drawn anew and why.
    """
    reasons = recorded(results)
    new = [name for name, reason in reasons.items() if reason == NO_TABLE]
    same = [name for name, reason in reasons.items() if not reason]
    lines = []
    if same:
        compared = len(reasons) - len(new)
        lines.append(
            f"{len(same)} of {compared} figures agree with the files that were there."
        )
    if new:
        plural = "s were" if len(new) > 1 else " was"
        lines.append(f"{len(new)} new figure{plural} drawn.")
    for name, reason in reasons.items():
        if reason and reason != NO_TABLE:
            lines.append(f"{name} was drawn anew: {reason}.")
    return "\n".join(lines)
