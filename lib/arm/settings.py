"""ARM's settings, their ranges, and how a condition names them: arm, mless+arm, arm:c=0.1:p1=95."""

import re
from dataclasses import dataclass, replace

from lib.errors import InputError

MODES = ("text", "code")
STATISTICS = ("sequence", "tensor")
# A condition may be one of a prompt, ARM, or both: mless, arm, mless+arm, arm:c=0.1:p1=95.
CONDITION = re.compile(r"((?P<prompt>[^+]+)\+)?arm(:(?P<settings>.*))?")
SETTING = re.compile(r"(?P<name>c|p1|mode|layer|fraction)=(?P<value>[-+\w.]+)")


@dataclass(frozen=True)
class Arm:
    """Settings of ARM; the defaults are the paper's for Qwen2.5-Math-1.5B on MATH-500.

    `fraction` replaces the share that c gives, as in the paper's runs of Gemma; `statistics` None: as the mode has it.
    """

    c: float = 0.13
    p1: float = 99.5
    mode: str = "text"
    layer: int = 1
    fraction: float | None = None
    statistics: str | None = None

    def __post_init__(self):
        """Raise InputError for a setting out of its range."""
        ranges = {
            "c": (self.c, self.c >= 0, "at least 0"),
            "p1": (self.p1, 0 <= self.p1 <= 100, "a percentile from 0 to 100"),
            "fraction": (self.fraction, self.fraction is None or 0 <= self.fraction <= 1, "from 0 to 1"),
            "mode": (self.mode, self.mode in MODES, f"one of {', '.join(MODES)}"),
            "layer": (self.layer, self.layer >= 1, "at least 1"),
            "statistics": (self.statistics, self.statistics in (None, *STATISTICS), f"one of {', '.join(STATISTICS)}"),
        }
        for name, (value, fine, expected) in ranges.items():
            if not fine:
                raise InputError(f"ARM's {name} is {value}: it must be {expected}")

    @property
    def per_tensor(self) -> bool:
        return (self.statistics or ("tensor" if self.mode == "code" else "sequence")) == "tensor"


def uses_arm(condition: str) -> bool:
    """Say whether a condition changes the model by ARM."""
    return CONDITION.fullmatch(condition) is not None


def arm_text(condition: str) -> str:
    """Return the settings that a condition with ARM names, such as c=0.1:p1=95; empty without any."""
    match = CONDITION.fullmatch(condition)
    return (match["settings"] or "") if match else ""


def without_arm(condition: str) -> str:
    """Return the condition of the prompt alone: none for `arm`."""
    match = CONDITION.fullmatch(condition)
    return (match["prompt"] or "none") if match else condition


def parse_arm(text: str, base: Arm) -> Arm:
    """Return `base` with the settings of a text such as c=0.1:p1=95:layer=2:mode=code, which may be empty.

    Raises InputError for an unknown setting or a value out of its range.
    """
    changes = {}
    for part in filter(None, text.split(":")):
        match = SETTING.fullmatch(part)
        if not match:
            raise InputError(f"ARM setting {part!r}: give c, p1, fraction, layer or mode, such as c=0.1:p1=95")
        try:
            number = {"mode": str, "layer": int}.get(match["name"], float)
            changes[match["name"]] = number(match["value"])
        except ValueError as error:
            raise InputError(f"ARM setting {part!r} has no number") from error
    if "c" in changes:
        changes.setdefault("fraction", None)  # which would otherwise overrule c
    return replace(base, **changes)
