"""Build the parser of the command line from classes of options, and their instances
from the options that a user typed.

A command is a function whose parameters are annotated with option classes. These are
pydantic classes, those of this module or of a profile. Their fields become the
command's options, and the descriptions of the fields its help.

    parser = parser_of([evaluate, grade], "python -m reproduction", "...")
    options = vars(parser.parse_args())
    run = options["run"]  # the command
    run(*arguments_of(run, options))
"""

import argparse
import inspect
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, get_origin

from pydantic import AfterValidator, BaseModel, Field, NonNegativeInt
from pydantic.fields import FieldInfo

from lib.errors import InputError, Settings, validated
from reproduction.profiles.sections import VARIATIONS

Command = Callable[..., None]
# Fields that are no options: lists that a command line cannot express, and sections.
ONLY_IN_PROFILES = ("levels", "examples", *VARIATIONS)
# A path whose ~ is expanded, because a shell does not expand it in --out=~/runs.
AnyPath = Annotated[Path, AfterValidator(lambda path: Path(os.path.expanduser(path)))]


class NotebookOptions(Settings):
    """The notebooks to run."""

    only: list[str] = Field([], description="notebooks by number, such as 01,02")
    fresh: bool = Field(
        False,
        description="measure again what the repository has stored, but use its answers"
        " and scores",
    )


class RunOptions(Settings):
    """The folder of a run without a profile, and the seed of its random draws."""

    out: AnyPath = Field(
        description="folder for completions.jsonl or scores.jsonl; what it has is not"
        " computed again, and other settings are computed beside it"
    )
    seed: NonNegativeInt = Field(
        0, description="random draws repeat with the same seed"
    )


class EvaluateOptions(RunOptions):
    """The options of `evaluate` in addition to the fields of Accuracy."""

    shard: str = Field(
        "1/1",
        description="i/n: complete only the i-th of n equal parts, for job arrays",
    )


class LikelihoodOptions(RunOptions):
    """The options of `likelihood` in addition to the fields of Likelihood."""

    answers: AnyPath | None = Field(
        None,
        description="folder of a run of `evaluate` whose sampled answers are scored"
        " instead of the reference solutions, at the temperature of that run",
    )


class GradeOptions(Settings):
    """The file to grade, and the names of its fields."""

    file: AnyPath = Field(description="JSONL file with a row per completion")
    answer: str = Field(
        "answer", description="field of the gold answer, LaTeX: doc.answer of lm-eval"
    )
    response: str = Field(
        "response", description="field of the response: resps.0.0 of lm-eval"
    )


class Parser(argparse.ArgumentParser):
    """A parser that raises InputError, with one line, for an error of the user."""

    def error(self, message: str):
        raise InputError(f"{message} ({self.prog} --help says more)")


def parser_of(commands: Sequence[Command], program: str, description: str) -> Parser:
    """Return the parser of some commands.

    Its namespace has the options that were typed, flags as True and others as text, and
    the function of the command as `run`. Options that were not typed are absent.
    """
    top = Parser(prog=program, description=description)
    by_name = top.add_subparsers(required=True, metavar="command")
    for run in commands:
        command = by_name.add_parser(
            run.__name__,
            argument_default=argparse.SUPPRESS,
            help=run.__doc__,
            description=run.__doc__,
        )
        command.add_argument(
            "--debug", action="store_true", help="show the traceback of an error"
        )
        command.set_defaults(run=run)
        for option_class in _option_classes(run):
            for name, field in option_class.model_fields.items():
                if name not in ONLY_IN_PROFILES:
                    _add_option(command, name, field)
    return top


def arguments_of(run: Command, options: dict[str, Any]) -> list[BaseModel]:
    """Return the arguments of a command: instances of its option classes, built from
    the typed options.

    Raises InputError for an option whose value is invalid.
    """
    arguments = []
    for option_class in _option_classes(run):
        values = {
            name: _value(name, field, options[name])
            for name, field in option_class.model_fields.items()
            if name in options
        }
        arguments.append(validated(option_class, values, "options", strict=False))
    return arguments


def _option_classes(run: Command) -> Iterator[type[BaseModel]]:
    for argument in inspect.signature(run).parameters.values():
        yield argument.annotation


def _add_option(command: Parser, name: str, field: FieldInfo) -> None:
    """Add a field as an option, or `file` as the positional argument.

    A bool becomes a flag that sets it, so its default has to be False.
    """
    text = (field.description or "").replace("%", "%%")
    is_required, is_flag = field.is_required(), field.annotation is bool
    default = field.default
    if isinstance(default, list):
        default = ",".join(map(str, default))
    if not is_required and not is_flag and default not in (None, ""):
        text = f"{text} (default: {default})"

    flag = _flag(name)
    if name == "file":
        command.add_argument(name, help=text)
    elif is_flag:
        command.add_argument(flag, dest=name, action="store_true", help=text)
    else:
        value = flag.removeprefix("--").upper()
        command.add_argument(
            flag, dest=name, metavar=value, required=is_required, help=text
        )


def _flag(name: str) -> str:
    # A single run has one model, because it has one folder.
    return "--model" if name == "models" else f"--{name.replace('_', '-')}"


def _value(name: str, field: FieldInfo, typed: Any) -> Any:
    """Return the typed text as the value of a field: as a list if the field is one.

    Validation converts numbers later. Raises InputError for an empty text.
    """
    if typed == "":
        option = _flag(name).removeprefix("--")
        raise InputError(f"options: {option}: must not be empty")
    if name == "models":
        return [typed]
    if get_origin(field.annotation) is list:
        return [part.strip() for part in typed.split(",")]
    return typed
