"""The sections of a profile that measure log-likelihoods: of reference solutions and
gold answers, and of sampled answers for importance weighting.
"""

from typing import Annotated

from pydantic import AfterValidator, Field, PositiveInt, model_validator

from lib.models.name_resolution import Dtype
from lib.profiles.accuracy_section import Accuracy
from lib.profiles.sections import CONDITIONS_HELP, DTYPE, Section
from lib.prompts.conditions import Condition, ConditionField

# The conditions under which answers are sampled for weighting.
SAMPLING_CONDITIONS = ("none", "mless")


def _require_text_mode(condition: Condition) -> Condition:
    """Return a condition unchanged; raise ValueError if its ARM has the mode code,
    which would change the text that is scored.
    """
    if condition.arm and condition.arm.mode != "text":
        raise ValueError(
            f"{condition}: log-likelihoods require ARM's mode text, which does not"
            " change the scored text"
        )
    return condition


# A condition under which the log-likelihood of a text can be measured.
ScoredCondition = Annotated[ConditionField, AfterValidator(_require_text_mode)]


class Likelihood(Section):
    """The measurement of log-likelihoods: the conditions under which reference
    solutions, or gold answers, are scored.
    """

    conditions: list[ScoredCondition] = Field(
        ["none", "gap", "dilution", "mless"],
        min_length=1,
        validate_default=True,
        description=CONDITIONS_HELP + "; gap, dilution, layer-1-only, example, bare",
    )
    at_once: list[ScoredCondition] = Field(
        [],
        description="conditions under which the gold answer is scored without its"
        " solution",
    )
    max_solution_tokens: PositiveInt = Field(
        512, description="problems with a longer reference solution are left out"
    )
    next_token: bool = Field(
        False,
        description="also measure the entropy of the next token, and its divergence"
        " from condition none",
    )
    dtype: Dtype = Field("float32", description=DTYPE)

    @model_validator(mode="after")
    def _check_fields(self):
        lists = self.conditions, self.at_once
        lacking = [names for names in lists if names and "none" not in map(str, names)]
        if self.next_token and lacking:
            raise ValueError("next_token needs none among the conditions, its baseline")
        return self


class PassRates(Section):
    """The sampling of answers for importance weighting
    (`lib.evaluation.weighted_pass_rates`): how answers are drawn, and the conditions
    under which their log-likelihoods are measured.
    """

    conditions: list[ScoredCondition] = Field(
        [*SAMPLING_CONDITIONS, "hidden-from-layer-1"],
        validate_default=True,
        description="conditions under which each answer is scored; they must include"
        " none and mless, under which the answers are drawn",
    )
    samples: int = Field(
        2,
        ge=2,
        le=10_000,
        description="answers per problem under none, and equally many under mless",
    )
    temperature: float = Field(
        0.6, gt=0, description="temperature at which answers are drawn and scored"
    )
    max_new_tokens: PositiveInt = Field(512, description="token limit of an answer")
    batch_size: PositiveInt | None = Field(
        64,
        description="number of answers that are drawn at once; as many as fit into"
        " memory if null",
    )
    dtype: Dtype = Field("float32", description=DTYPE)

    @model_validator(mode="after")
    def _check_fields(self):
        missing = [
            half
            for half in SAMPLING_CONDITIONS
            if half not in map(str, self.conditions)
        ]
        if missing:
            raise ValueError(
                f"conditions must include {' and '.join(missing)}: importance weights"
                " need the likelihood of an answer under both conditions under which"
                " answers are drawn"
            )
        return self

    @property
    def drawing_settings(self) -> Accuracy:
        """The settings under which answers are drawn: SAMPLING_CONDITIONS, top_p 1."""
        shared = self.model_dump(exclude={"conditions"})
        return Accuracy.model_validate(
            shared | {"conditions": list(SAMPLING_CONDITIONS)}
        )

    @property
    def scoring_settings(self) -> Likelihood:
        """The settings under which the drawn answers are scored."""
        shared = self.model_dump(include=set(Section.model_fields) | {"conditions"})
        return Likelihood.model_validate(shared)
