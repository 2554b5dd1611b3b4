"""ARM's settings, their ranges, and how a text names them: c=0.1:p1=95."""

from typing import Annotated, Literal, get_args

from pydantic import Field, PositiveInt, WrapValidator

from lib.errors import InputError, Settings, validated

Mode = Literal["text", "code"]
MODES = get_args(Mode)
NAMED = (
    "c",
    "p1",
    "fraction",
    "layer",
    "mode",
)  # what a text may name; the statistics belong to the mode
# A whole number stays one: completions are kept under the settings as they were given.
Number = Annotated[
    float,
    WrapValidator(
        lambda value, check: value if check(value) == value else check(value)
    ),
]


class Arm(Settings):
    """Settings of ARM; the defaults are the paper's for Qwen2.5-Math-1.5B on MATH-500.

    `fraction` replaces the share that c gives, as in the paper's runs of Gemma;
    `statistics` None: as the mode has it.
    """

    c: Number = Field(0.13, ge=0)
    p1: Number = Field(99.5, ge=0, le=100)  # a percentile
    mode: Mode = "text"
    layer: PositiveInt = 1
    fraction: Number | None = Field(None, ge=0, le=1)
    statistics: Literal["sequence", "tensor"] | None = None

    @property
    def per_tensor(self) -> bool:
        return (
            self.statistics or ("tensor" if self.mode == "code" else "sequence")
        ) == "tensor"

    def over(self, base: "Arm") -> "Arm":
        """Return `base` with the settings that were given here, defaults aside."""
        given = self.model_dump(exclude_unset=True)
        cleared = (
            {"fraction": None} if "c" in given else {}
        )  # which would otherwise overrule c
        return base.model_copy(update=cleared | given)


def parse_arm(text: str) -> Arm:
    """Return the settings of a text such as c=0.1:p1=95:layer=2:mode=code, which may be
    empty.

    Raises InputError for an unknown setting or a value out of its range.
    """
    given: dict[str, str] = {}
    for part in filter(None, text.split(":")):
        name, _, value = part.partition("=")
        if name not in NAMED or not value:
            raise InputError(
                f"ARM setting {part!r}: give {', '.join(NAMED)}, such as c=0.1:p1=95"
            )
        if name in given:
            raise InputError(f"ARM setting {name} is given twice")
        given[name] = value
    return validated(Arm, given, "ARM's settings", strict=False)
