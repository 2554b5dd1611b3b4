"""The sections of a profile: `attention`, `accuracy` with its smaller runs,
`likelihood`, `ablations` and `pass_rates`.
"""

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
from lib.models.sources import Dtype, known_models
from lib.prompts.conditions import (
    AnsweredField,
    Condition,
    ConditionField,
    Example,
    Format,
    known_conditions,
)

# Descriptions of fields that several sections have; the command line's help and
# docs/profiles.md show them.
LIMIT = "size of a seeded sample of the problems, stratified by level; all if null"
DTYPE = (
    "type of the weights: float32, bfloat16, float16, or auto: that of stored results,"
    " else float32 on a CPU and bfloat16 on a GPU"
)
FORMAT = "format of the prompt: plain, chat, authors or authors-chat"
EXAMPLES = "; also with settings, as in mless:25, mless@end or arm:c=0.1:p1=95"
# The figures of the paper that show single heads.
Figure = Literal["fig09", "fig10", "fig11", "fig13", "fig18"]


def _absolute(text: str, info: ValidationInfo) -> str:
    """Return the absolute path of a file or folder that exists; another text, which is
    a name, is returned unchanged.

    Paths are relative to the folder in the context of the validation (`info`).
    """
    names = {"demo", "embedded", "math500", *known_models()}
    if info.context is None or text in names:
        return text
    path = os.path.join(info.context, os.path.expanduser(text))
    return os.path.abspath(path) if os.path.exists(path) else text


def _require_each_once(models: list[str]) -> list[str]:
    """Return the models of a section unchanged; raise ValueError for a repeated one,
    whose rows would be counted twice.
    """
    for model in models:
        if models.count(model) > 1:
            raise ValueError(f"{model} is given twice")
    return models


# The name of a model or of a set of problems, or an absolute path.
NameOrPath = Annotated[str, AfterValidator(_absolute)]
Models = Annotated[list[NameOrPath], AfterValidator(_require_each_once)]


class Panel(Settings):
    """One head of a model, shown in a figure; layers and heads count from 1."""

    model: NameOrPath
    layer: PositiveInt
    head: PositiveInt


class Section(Settings):
    """The fields that all sections have: models, problems, prompt format and dtype."""

    models: Models = Field(
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
    """The measurement of attention: the first layers that are loaded and measured, and
    the heads that figures show.
    """

    layers: PositiveInt = Field(
        3, description="number of first layers that are loaded and measured"
    )
    format: Format = Field("plain", description=FORMAT)
    map_problems: PositiveInt | None = Field(
        None,
        description="number of problems for which all layers are measured; none if"
        " null",
    )
    example: str | None = Field(
        None,
        description="id of the problem that figures show; the first one of the sample"
        " if null",
    )
    panels: dict[Figure, list[Panel]] = Field(
        {},
        description="by figure, a list of model, layer and head; without them, first"
        " or last heads of the model, or one of each model",
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


# Descriptions that the command line's help shows, too.
ENGINE = "the library that generates: transformers, or vllm, which does not run ARM"
WORKERS = "number of Ray processes, each with an engine (docs/cluster.md); 0: none"
# The fields of Accuracy that hold a Variation: smaller runs besides the main one.
VARIATIONS = (
    "fillers",
    "sampling",
    "interventions",
    "arm_map",
    "comparisons",
    "direct",
)
# Settings under which a model answers without reasoning.
WITHOUT_REASONING = {"max_new_tokens": 0, "elicit": True}
Engine = Literal["transformers", "vllm"]


class Variation(Settings):
    """A smaller run besides the main one of `accuracy`.

    All fields of `accuracy` that this class lacks, such as models, are the same, and so
    is a limit that is not set. Another field of this class that is not set has its
    default here, not accuracy's value.
    """

    limit: PositiveInt | None = Field(None, description=LIMIT)
    conditions: list[AnsweredField]
    temperature: float = Field(
        0.0, ge=0, description="sampling temperature; 0: greedy decoding"
    )
    top_p: float = Field(
        1.0,
        gt=0,
        le=1,
        description="tokens are drawn from the most probable ones, which together have"
        " this probability",
    )
    samples: int = Field(
        1, ge=1, le=10_000, description="answers per problem and condition"
    )


class Direct(Variation):
    """A run of answers without reasoning, with a separate list of models."""

    models: Models = Field(
        min_length=1, description="the models that answer without reasoning"
    )


class Accuracy(Variation, Section):
    """The generation of answers: conditions, decoding, engine, and the smaller runs."""

    levels: list[NonNegativeInt] | None = Field(
        None, min_length=1, description="the levels of the problems; all if null"
    )
    examples: list[Example] = Field(
        [],
        description="worked examples (problem, solution) that precede the problem as"
        " turns of the chat",
    )
    conditions: list[AnsweredField] = Field(
        ["none", "mless", "mful"],
        validate_default=True,
        description=", ".join(known_conditions(answered=True)) + EXAMPLES,
    )
    max_new_tokens: NonNegativeInt = Field(
        1024,
        description="token limit of an answer; 0 with elicit: an answer without"
        " reasoning",
    )
    elicit: bool = Field(
        False,
        description="if an answer has no box, append a text that asks for one and"
        " continue",
    )
    elicit_tokens: PositiveInt = Field(
        12, description="token limit of the continuation that elicit adds"
    )
    batch_size: PositiveInt | None = Field(
        64,
        description="number of prompts that run at once; as many as fit into memory if"
        " null",
    )
    engine: Engine = Field("transformers", description=ENGINE)
    workers: NonNegativeInt = Field(0, description=WORKERS)
    gpus_per_worker: NonNegativeInt | None = Field(
        None,
        description="number of GPUs of each worker, over which vllm spreads the model;"
        " if null, 1 on a machine with a GPU",
    )
    fillers: Variation | None = Field(
        None,
        description="lengths, positions and kinds of filler: Fig. 8, Tables 4 and 5",
    )
    sampling: Variation | None = Field(
        None, description="several samples per problem: pass@k"
    )
    interventions: Variation | None = Field(
        None, description="ARM with and without slashes: Tables 2 and 3"
    )
    arm_map: Variation | None = Field(
        None, description="ARM with other settings and in other layers: Fig. 12"
    )
    comparisons: Variation | None = Field(
        None,
        description="the effect of a worked example and of other known changes",
    )
    direct: Direct | None = Field(None, description="answers without reasoning")

    @property
    def variations(self) -> dict[str, "Accuracy"]:
        """The settings of the smaller runs that the profile has, by the names of
        VARIATIONS.
        """
        shared = self.model_dump(exclude=set(VARIATIONS))
        runs = {}
        for part in VARIATIONS:
            if variation := getattr(self, part):
                changes = variation.model_dump()
                changes["limit"] = variation.limit or self.limit
                if part == "direct":
                    changes |= WITHOUT_REASONING
                runs[part] = validated(Accuracy, shared | changes, f"accuracy.{part}")
        return runs

    @model_validator(mode="after")
    def _check_fields(self):
        names = [str(condition) for condition in self.conditions]
        if names.count("none") != 1 or len(set(names)) != len(names):
            raise ValueError(
                "conditions must include 'none', the baseline of the others, and each"
                " condition only once"
            )
        if self.samples > 1 and self.temperature == 0:
            raise ValueError(
                f"samples is {self.samples} at temperature 0, where every sample is the"
                " same"
            )
        if self.max_new_tokens == 0 and not self.elicit:
            raise ValueError(
                "max_new_tokens is 0, so nothing is answered: set elicit, or allow at"
                " least 1 token"
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
        description=", ".join(known_conditions(answered=False)) + EXAMPLES,
    )
    at_once: list[ScoredCondition] = Field(
        [],
        description="conditions under which the gold answer is scored without its"
        " solution",
    )
    max_solution_tokens: PositiveInt = Field(
        512, description="problems with a longer reference solution are left out"
    )
    dtype: Dtype = Field("float32", description=DTYPE)


class PassRates(Section):
    """The sampling of answers for importance weighting
    (`reproduction.evaluation.weighted_pass_rates`): how answers are drawn, and the
    conditions under which their log-likelihoods are measured.
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
