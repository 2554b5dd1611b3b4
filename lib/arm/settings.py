"""The settings of ARM, their ranges, and their form as text: c=0.1:p1=95."""

from typing import Literal

from pydantic import Field, PositiveInt

from lib.errors import InputError, Settings, validated

Mode = Literal["text", "code"]


class Arm(Settings):
    """Settings of ARM (see `lib.arm.redistribution`); the defaults are the paper's for
    Qwen2.5-Math-1.5B on MATH-500.

    `str` returns the text of the settings that were set explicitly, in this order.
    """

    c: float = Field(0.13, ge=0)  # factor of the near-zero bound eps
    p1: float = Field(99.5, ge=0, le=100)  # percentile up to which elements are moved
    # The share of elements that are moved, as in the paper's runs of Gemma; None: the
    # share within eps, clipped.
    fraction: float | None = Field(None, ge=0, le=1)
    layer: PositiveInt = 1  # counts from 1
    mode: Mode = "text"

    def __str__(self) -> str:
        settings = self.model_dump(exclude_unset=True)
        return ":".join(
            f"{name}={str(value).removesuffix('.0')}"
            for name, value in settings.items()
        )

    def over(self, base: "Arm") -> "Arm":
        """Return `base`, updated with the settings that were set explicitly here."""
        settings = self.model_dump(exclude_unset=True)
        if "c" in settings:
            # Otherwise the fraction of `base` would have precedence over c.
            settings.setdefault("fraction", None)
        return base.model_copy(update=settings)


def parse_arm(text: str) -> Arm:
    """Return the settings that a text such as c=0.1:p1=95:layer=2:mode=code names, in
    any order; "" names none.

    Raises InputError for an unknown setting or a value out of range.
    """
    settings: dict[str, str] = {}
    for part in filter(None, text.split(":")):
        name, _, value = part.partition("=")
        if name not in Arm.model_fields or not value:
            raise InputError(
                f"ARM setting {part!r}: give {', '.join(Arm.model_fields)}, such as"
                " c=0.1:p1=95"
            )
        if name in settings:
            raise InputError(f"ARM setting {name} is given twice")
        settings[name] = value
    return validated(Arm, settings, "ARM's settings", strict=False)
