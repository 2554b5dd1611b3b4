"""ARM's settings, their ranges, and their textual form: c=0.1:p1=95."""

from typing import Annotated, Any, Literal

from pydantic import (
    Field,
    PositiveInt,
    ValidatorFunctionWrapHandler,
    WrapValidator,
)

from lib.errors import InputError, Settings, validated

Mode = Literal["text", "code"]
# Settings that a text may contain; the statistics follow from the mode.
NAMED_SETTINGS = ("c", "p1", "fraction", "layer", "mode")


def _as_given(value: Any, check: ValidatorFunctionWrapHandler) -> Any:
    """Keep an integer an integer, because completions are stored under the settings as
    given.
    """
    checked = check(value)
    return value if checked == value else checked


Number = Annotated[float, WrapValidator(_as_given)]


class Arm(Settings):
    """Settings of ARM; the defaults are the paper's for Qwen2.5-Math-1.5B on MATH-500.

    `fraction` replaces the share that follows from c, as in the paper's runs of Gemma.
    `statistics` None: the default of the mode.
    """

    c: Number = Field(0.13, ge=0)
    p1: Number = Field(99.5, ge=0, le=100)  # a percentile
    mode: Mode = "text"
    layer: PositiveInt = 1
    fraction: Number | None = Field(None, ge=0, le=1)
    statistics: Literal["sequence", "tensor"] | None = None

    @property
    def per_tensor(self) -> bool:
        """Whether all sequences of a batch share their statistics."""
        of_mode = "tensor" if self.mode == "code" else "sequence"
        return (self.statistics or of_mode) == "tensor"

    def over(self, base: "Arm") -> "Arm":
        """Return `base`, updated with the settings that were given explicitly."""
        settings = self.model_dump(exclude_unset=True)
        if "c" in settings:
            # Otherwise the fraction of the base would override c.
            settings.setdefault("fraction", None)
        return base.model_copy(update=settings)


def parse_arm(text: str) -> Arm:
    """Return the settings of a text such as c=0.1:p1=95:layer=2:mode=code, which may be
    empty.

    Raises InputError for an unknown setting or a value out of range.
    """
    settings: dict[str, str] = {}
    for part in filter(None, text.split(":")):
        name, _, value = part.partition("=")
        if name not in NAMED_SETTINGS or not value:
            raise InputError(
                f"ARM setting {part!r}: give {', '.join(NAMED_SETTINGS)}, such as"
                " c=0.1:p1=95"
            )
        if name in settings:
            raise InputError(f"ARM setting {name} is given twice")
        settings[name] = value
    return validated(Arm, settings, "ARM's settings", strict=False)
