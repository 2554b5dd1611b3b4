"""The fields that all sections of a profile have, and the section `attention`."""

import os
from typing import Annotated, Literal

from pydantic import AfterValidator, Field, PositiveInt, ValidationInfo, model_validator

from lib.errors import Settings
from lib.models.name_resolution import Dtype, known_models
from lib.prompts.conditions import Format

# Descriptions of fields that several sections have; the command line's help and
# docs/profiles.md show them.
LIMIT = "size of a seeded sample of the problems, stratified by level; all if null"
DTYPE = (
    "type of the weights: float32, bfloat16, float16, or auto: float32 on a CPU, else"
    " bfloat16"
)
FORMAT = "format of the prompt: plain, or chat if the model has a chat template"
CONDITIONS_HELP = (
    "none, mless, mful, random, question, letters; mless:25, mless@end; arm, mless+arm,"
    " arm:c=0.1:p1=95"
)
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
        " or last heads of the first model",
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
