"""The command line's options: those of a run are the fields of the same models that a profile has, with their help."""

import argparse
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar, get_origin

from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

from lib.errors import InputError, Settings, valid
from lib.profiles import PARTS, Accuracy, Likelihood, Overrides
from lib.prompts.conditions import Position

MODEL = "demo, a name of data/models.yaml, a hub id, a folder or a .gguf file"


class ProfileOptions(Overrides):
    """Which profile, and what to put in its place."""

    profile: str = Field("demo", description="a file of data/profiles, or a path to one")


class ReproduceOptions(ProfileOptions):
    """Which notebooks of a profile."""

    only: list[str] = Field([], description="notebooks by number or name, such as 1,2")
    fresh: bool = Field(False, description="start over instead of continuing")


class ReportOptions(ProfileOptions):
    """How a report is shown."""

    open: bool = Field(False, description="show it in the browser")


class RunOptions(Settings):
    """What a single run needs beside the fields of a profile's section."""

    model: str = Field(description=MODEL)
    out: Path = Field(description="folder of completions.jsonl or scores.jsonl; run again, it continues")
    seed: NonNegativeInt = Field(0, description="random draws repeat with the same seed")


class EvaluateOptions(RunOptions):
    """What `evaluate` takes beside the fields of Accuracy."""

    shard: str = Field("1/1", description="i/n: the i-th of n equal parts, for job arrays")
    shorter: Path | None = Field(None, description="folder of a run with fewer new tokens, whose cut answers go on")
    filler: str = Field("/", description="the text that mless repeats")
    filler_length: PositiveInt = Field(55, description="inserted tokens")
    position: Position = Field("between", description="before, between, end or random")


class GradeOptions(Settings):
    """Where what is graded lies."""

    file: Path = Field(description="JSONL, a row per completion")
    answer: str = Field("answer", description="field of the gold answer: doc.answer of lm-eval")
    response: str = Field("response", description="field of the response: resps.0.0 of lm-eval")


# What each command takes: the fields of these models but some. A single model stands for `models`.
TAKEN: dict[str, list[tuple[type[BaseModel], tuple[str, ...]]]] = {
    "reproduce": [(ReproduceOptions, ())],
    "claims": [(ProfileOptions, ())],
    "report": [(ReportOptions, ())],
    "evaluate": [(EvaluateOptions, ()), (Accuracy, ("models", "levels", "examples", *PARTS))],
    "likelihood": [(RunOptions, ()), (Likelihood, ("models",))],
    "grade": [(GradeOptions, ())],
}


class Parser(argparse.ArgumentParser):
    """A parser that complains in one line, as the rest does."""

    def error(self, message: str):
        raise InputError(f"{message} ({self.prog} --help says more)")


def parser(commands: dict[str, Callable]) -> Parser:
    """Return the parser of these commands, each described by its docstring: the function to call is `run`.

    It returns texts, of what was given alone: types and defaults are the models', see `given`.
    """
    top = Parser(prog="python -m lib", description="Reproduce Meaningless Tokens, Meaningful Gains (arXiv 2510.01032).")
    added = top.add_subparsers(required=True, metavar="command")
    for name, run in commands.items():
        text = (run.__doc__ or "").strip().splitlines()[0]
        command = added.add_parser(name, help=text, description=text, argument_default=argparse.SUPPRESS)
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.set_defaults(run=run)
        for model, left_out in TAKEN[name]:
            for field in [field for field in model.model_fields if field not in left_out]:
                _add_field(command, field, model.model_fields[field])
    return top


def _add_field(command: argparse.ArgumentParser, name: str, field: Any) -> None:
    flag = name if name == "file" else f"--{name.replace('_', '-')}"
    text = field.description.replace("%", "%%")
    if field.annotation is bool:
        command.add_argument(flag, action="store_const", const="true", help=text)
        return
    default = None if field.is_required() else field.default
    text += f" (default: {','.join(default) if isinstance(default, list) else default})" if default else ""
    needs: dict[str, Any] = {} if flag == name else {"required": field.is_required()}
    command.add_argument(flag, help=text, **needs)


Kind = TypeVar("Kind", bound=BaseModel)


def given(kind: type[Kind], options: argparse.Namespace, **more: object) -> Kind:
    """Return a model of the options that were given and are its fields; raises InputError naming what is wrong."""
    texts = {name: text for name, text in vars(options).items() if name in kind.model_fields}
    parts = {name: _parts(kind.model_fields[name].annotation, text, name) for name, text in texts.items()}
    return valid(kind, parts | more, "options", texts=True)


def _parts(annotation: Any, text: str, name: str) -> Any:
    """Return the text, as a list or a dict where the field is one: "none,mless", "tensor_parallel=2"."""
    if not text:
        raise InputError(f"options: {name}: must not be empty")
    if annotation in (Path, Path | None):
        return os.path.expanduser(text)
    if get_origin(annotation) not in (list, dict):
        return text
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if get_origin(annotation) is list:
        return parts
    if wrong := [part for part in parts if not re.fullmatch(r"\w+=\d+", part)]:
        raise InputError(f"options: {name}: {wrong[0]!r}: give NAME=N, such as tensor_parallel=2")
    return dict(part.split("=") for part in parts)


def parse_shard(text: str) -> tuple[int, int]:
    """Return (i, n) of "i/n"; raises InputError."""
    match = re.fullmatch(r"(\d{1,15})/(\d{1,15})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard {text!r}: give i/n with i from 1 to n, such as 2/8")
    return int(match[1]), int(match[2])
