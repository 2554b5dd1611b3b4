"""The section `accuracy` of a profile: the settings of answers and of smaller runs."""

from typing import Literal

from pydantic import Field, NonNegativeInt, PositiveInt, model_validator

from lib.errors import Settings, validated
from lib.profiles.sections import CONDITIONS_HELP, LIMIT, Models, Section
from lib.prompts.conditions import AnsweredField, Example

# Descriptions that the command line's help shows, too.
ENGINE = (
    "the library that generates: transformers, vllm, or auto: vllm if it is installed"
    " for CUDA and no condition has ARM, else transformers"
)
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
Engine = Literal["transformers", "vllm", "auto"]


class Variation(Settings):
    """A smaller run besides the main one of `accuracy`.

    All fields of `accuracy` that this class lacks, such as models, are the same. A
    field of this class that is not set has its default here, not accuracy's value.
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
        ["none", "mless", "mful"], validate_default=True, description=CONDITIONS_HELP
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
        None, description="several samples per problem: pass@k and diversity"
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
