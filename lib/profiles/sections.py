"""A profile's sections: what is measured, answered and scored, and how."""

import os
from typing import Annotated, Literal

from pydantic import (
    AfterValidator,
    Field,
    NonNegativeInt,
    PositiveInt,
    ValidationInfo,
    model_validator,
)

from lib.errors import Settings, validated
from lib.models.names import Dtype, known_models
from lib.prompts.conditions import (
    AnsweredField,
    Condition,
    ConditionField,
    Example,
    Format,
)

# Descriptions that several settings share, in the command line's help and documents.
LIMIT = "a seeded sample of so many problems, stratified by level; all if null"
DTYPE = "of the weights: float32, bfloat16, float16, or auto, which goes by the device"
FORMAT = "of the prompt: plain, or chat where the model has a template"
ENGINE = (
    "what generates: transformers, vllm, or auto, which is vllm where it is installed"
    " for CUDA and no condition has ARM, else transformers"
)
WORKERS = "Ray processes with an engine each (docs/cluster.md); 0: none"
CONDITIONS_HELP = (
    "none, mless, mful, random, question, letters; mless:25, mless@end; arm, mless+arm,"
    " arm:c=0.1:p1=95"
)
# The conditions under which answers are sampled for weighting.
SAMPLING_CONDITIONS = ("none", "mless")
# The fields of Accuracy that are a Variation.
VARIATIONS = (
    "fillers",
    "sampling",
    "interventions",
    "arm_map",
    "comparisons",
    "direct",
)
# Settings of an answer without reasoning.
WITHOUT_REASONING = {"max_new_tokens": 0, "elicit": True}
Engine = Literal["transformers", "vllm", "auto"]
# The figures of single heads.
Figure = Literal["fig09", "fig10", "fig11", "fig13", "fig18"]


def _absolute(text: str, info: ValidationInfo) -> str:
    """Return a path as an absolute one, relative to the folder in the validation's
    context; a text that is no file there is a name.
    """
    names = {"demo", "embedded", "math500", *known_models()}
    if info.context is None or text in names:
        return text
    path = os.path.join(info.context, os.path.expanduser(text))
    return os.path.abspath(path) if os.path.exists(path) else text


def _require_text_mode(condition: Condition) -> Condition:
    """Refuse a mode of ARM that would change a text while it is scored."""
    if condition.arm and condition.arm.mode != "text":
        raise ValueError(
            f"{condition}: likelihoods take ARM in mode text, which leaves the scored"
            " text alone"
        )
    return condition


# A condition under which a text may be scored.
ScoredCondition = Annotated[ConditionField, AfterValidator(_require_text_mode)]
# A name, or a file or folder.
NameOrPath = Annotated[str, AfterValidator(_absolute)]


class Panel(Settings):
    """One head of one layer of one model; both count from 1."""

    model: NameOrPath
    layer: PositiveInt
    head: PositiveInt


class Section(Settings):
    """The fields that sections share: the models, the problems, and the prompt."""

    models: list[NameOrPath] = Field(
        min_length=1,
        description="names of data/models.yaml, hub ids, folders or .gguf files",
    )
    problems: NameOrPath = Field(
        "embedded", description="embedded, math500 or a JSONL file"
    )
    limit: PositiveInt | None = Field(None, description=LIMIT)
    format: Format = Field("chat", description=FORMAT)
    dtype: Dtype = Field("auto", description=DTYPE)


class Attention(Section):
    """The first layers that are loaded and measured, and the heads that are drawn."""

    layers: PositiveInt = Field(3, description="how many first layers are loaded")
    format: Format = Field("plain", description=FORMAT)
    map_problems: PositiveInt | None = Field(
        None, description="how many problems go through all layers; none if null"
    )
    example: str | None = Field(
        None,
        description="id of the problem that the figures draw; the sample's first if"
        " null",
    )
    panels: dict[Figure, list[Panel]] = Field(
        {},
        description="model, layer and head of a curve; else first or last heads of the"
        " first model",
    )

    @model_validator(mode="after")
    def _check_fields(self):
        for figure, row in self.panels.items():
            for panel in row:
                if panel.layer > self.layers or panel.model not in self.models:
                    raise ValueError(
                        f"panels.{figure}: layer {panel.layer} of {panel.model} is not"
                        " loaded"
                    )
        return self


class Variation(Settings):
    """A second, smaller run that differs from `accuracy` in these settings."""

    limit: PositiveInt | None = Field(None, description=LIMIT)
    conditions: list[AnsweredField]
    temperature: float = Field(0.0, ge=0, description="0 is greedy")
    top_p: float = Field(
        1.0, gt=0, le=1, description="share of the probability to draw from"
    )
    samples: int = Field(
        1, ge=1, le=10_000, description="answers per problem and condition"
    )


class Direct(Variation):
    """Answers without reasoning, with a separate list of models."""

    models: list[NameOrPath] = Field(
        min_length=1, description="as in accuracy, of answers without reasoning alone"
    )


class Accuracy(Variation, Section):
    """The conditions under which models answer, and their decoding."""

    levels: list[NonNegativeInt] | None = Field(
        None, description="only problems of these levels; of all if null"
    )
    examples: list[Example] = Field(
        [], description="worked problems that are shown first, in chat form"
    )
    conditions: list[AnsweredField] = Field(
        ["none", "mless", "mful"], validate_default=True, description=CONDITIONS_HELP
    )
    max_new_tokens: NonNegativeInt = Field(
        1024,
        description="an answer is cut after so many tokens; with elicit 0 is an answer"
        " without reasoning",
    )
    elicit: bool = Field(False, description="ask for a boxed answer in a second step")
    elicit_tokens: PositiveInt = Field(12, description="tokens of that second step")
    batch_size: PositiveInt | None = Field(
        64, description="prompts that are answered at once; as many as fit if null"
    )
    engine: Engine = Field("transformers", description=ENGINE)
    workers: NonNegativeInt = Field(0, description=WORKERS)
    gpus_per_worker: NonNegativeInt | None = Field(
        None,
        description="of each worker, over which vllm spreads its model; 1 where there"
        " is a GPU if null",
    )
    fillers: Variation | None = Field(
        None, description="lengths, places and kinds of filler: Fig. 8, Tables 4 and 5"
    )
    sampling: Variation | None = Field(
        None, description="several samples: pass@k and diversity"
    )
    interventions: Variation | None = Field(
        None, description="ARM with and without the tokens: Tables 2 and 3"
    )
    arm_map: Variation | None = Field(
        None, description="ARM under other settings, in other layers: Fig. 12"
    )
    comparisons: Variation | None = Field(
        None,
        description="what a worked example and other known changes are worth",
    )
    direct: Direct | None = Field(
        None, description="answers without reasoning, elicited at once"
    )

    @property
    def variations(self) -> dict[str, "Accuracy"]:
        """The settings of the requested smaller runs, by the names of VARIATIONS."""
        shared = self.model_dump(exclude=set(VARIATIONS))
        runs = {}
        for part in VARIATIONS:
            if changes := getattr(self, part):
                own = changes.model_dump()
                if part == "direct":
                    own |= WITHOUT_REASONING
                where = f"accuracy.{part}"
                runs[part] = validated(Accuracy, shared | own, where)
        return runs

    @model_validator(mode="after")
    def _check_fields(self):
        names = [str(condition) for condition in self.conditions]
        if names.count("none") != 1 or len(set(names)) != len(names):
            raise ValueError(
                "conditions must hold 'none', the baseline of the others, and each only"
                " once"
            )
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(
                f"samples is {self.samples} at temperature 0, where every sample is the"
                " same"
            )
        if self.max_new_tokens == 0 and not self.elicit:
            raise ValueError(
                "max_new_tokens is 0: nothing is answered unless elicit asks for it"
            )
        if self.examples and self.format != "chat":
            raise ValueError("examples are turns of a chat: format must be chat")
        scored = [str(c) for c in self.conditions if c.for_likelihood]
        if scored:
            raise ValueError(
                f"{', '.join(scored)}: only likelihoods are measured under it, no"
                " answers"
            )
        return self


class Likelihood(Section):
    """Under which conditions gold solutions are scored."""

    conditions: list[ScoredCondition] = Field(
        ["none", "gap", "dilution", "mless"],
        min_length=1,
        validate_default=True,
        description=CONDITIONS_HELP + "; gap, dilution, layer-1-only, example, bare",
    )
    at_once: list[ScoredCondition] = Field(
        [], description="where the gold answer is scored without its solution"
    )
    max_solution_tokens: PositiveInt = Field(
        512, description="a problem with a longer solution is left out"
    )
    next_token: bool = Field(
        False,
        description="score the entropy of the next token, and its divergence from"
        " none, too",
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
    """Which answers are drawn, and under which conditions they are scored, to be
    weighted (`lib.evaluation.weighted_pass_rates`).
    """

    conditions: list[ScoredCondition] = Field(
        [*SAMPLING_CONDITIONS, "hidden-from-layer-1"],
        validate_default=True,
        description="under which each answer is scored; none and mless, under which"
        " they are drawn, must be among them",
    )
    samples: int = Field(
        2,
        ge=2,
        le=10_000,
        description="answers per problem under none, and as many under mless",
    )
    temperature: float = Field(
        0.6, gt=0, description="at which answers are drawn and scored"
    )
    max_new_tokens: PositiveInt = Field(
        512, description="an answer is cut after so many tokens"
    )
    batch_size: PositiveInt | None = Field(
        64, description="answers that are drawn at once; as many as fit if null"
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
                f"conditions must hold {' and '.join(missing)}: weights need how likely"
                " an answer is under both conditions that it may be drawn under"
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
