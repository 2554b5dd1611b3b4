"""The command line: python -m lib reproduce | claims | report | evaluate | likelihood |
grade.

A command is a function of pydantic models. Their fields are its options, and their
descriptions the help.
"""

import argparse
import contextlib
import inspect
import io
import json
import os
import re
import signal
import sys
import webbrowser
from collections.abc import Callable
from pathlib import Path
from typing import Any, get_origin

NOT_HERE = "{} is not installed here: run `make` once, then .venv/bin/python -m lib"

try:
    from pydantic import BaseModel, Field, NonNegativeInt, PositiveInt

    from lib import paths, progress
    from lib.errors import InputError, PartlyDone, Settings, validated
    from lib.profiles import (
        PARTS,
        Accuracy,
        Likelihood,
        Overrides,
        Profile,
        check,
        check_accuracy,
        run_profile,
    )
    from lib.prompts.conditions import Filler, Position
except ModuleNotFoundError as error:
    sys.exit(f"error: {NOT_HERE.format(error.name)}")

NO_OPTIONS = ("levels", "examples", *PARTS)  # fields that a profile alone has


class NotebookOptions(Settings):
    """Which notebooks run."""

    only: list[str] = Field([], description="notebooks by number or name, such as 1,2")
    fresh: bool = Field(False, description="start over instead of continuing")


class ReportOptions(Settings):
    """How a report is shown."""

    open: bool = Field(False, description="show it in the browser")


class RunOptions(Settings):
    """Where a single run lies, and what decides its draws."""

    out: Path = Field(
        description=(
            "folder of completions.jsonl or scores.jsonl; run again, it continues"
        )
    )
    seed: NonNegativeInt = Field(
        0, description="random draws repeat with the same seed"
    )


class EvaluateOptions(RunOptions):
    """What `evaluate` takes beside the fields of Accuracy."""

    shard: str = Field(
        "1/1", description="i/n: the i-th of n equal parts, for job arrays"
    )
    shorter: Path | None = Field(
        None,
        description="folder of a run with fewer new tokens, whose cut answers go on",
    )
    filler: str = Field("/", description="the text that mless repeats")
    filler_length: PositiveInt = Field(55, description="inserted tokens")
    position: Position = Field("between", description="before, between, end or random")


class GradeOptions(Settings):
    """Where what is graded lies."""

    file: Path = Field(description="JSONL, a row per completion")
    answer: str = Field(
        "answer", description="field of the gold answer: doc.answer of lm-eval"
    )
    response: str = Field(
        "response", description="field of the response: resps.0.0 of lm-eval"
    )


def reproduce(asked: Overrides, which: NotebookOptions) -> None:
    """Run the notebooks and print what they found."""
    notebooks, profile = paths.notebooks(which.only), _checked(asked)
    from lib import (
        reproduce,
    )  # with the libraries that draw: a refusal does not wait for them

    reproduce.reproduce(profile, notebooks, which.fresh)


def claims(asked: Overrides) -> None:
    """Judge every claim of the paper on what a profile measures."""
    profile = _checked(asked)
    from lib.claims import words
    from lib.claims.claim import gather, load_claims
    from lib.claims.verdict import judge, write_verdicts

    verdicts = judge(load_claims(), gather(profile))
    print(words.listing(verdicts))
    counts = ", ".join(
        f"{count} {name}" for name, count in words.totals(verdicts).items()
    )
    print(f"{counts}; {write_verdicts(profile, verdicts)}")


def _checked(asked: Overrides) -> Profile:
    """Return a profile that can run, and say which folders an overridden one writes
    into.
    """
    profile = run_profile(**dict(asked))
    check(profile)
    if profile.name != asked.profile:
        print(
            f"profile {profile.name}: results/{profile.name}, figures/{profile.name}",
            file=sys.stderr,
        )
    return profile


def report(asked: Overrides, how: ReportOptions) -> None:
    """Write the claims and every figure of a profile as one HTML page."""
    from lib.report.page import write_report

    path = write_report(run_profile(**dict(asked)))
    print(path)
    if how.open and not webbrowser.open(path.as_uri()):
        raise InputError(f"no browser found: open {path} in one")


def evaluate(asked: EvaluateOptions, accuracy: Accuracy) -> None:
    """Complete and grade problems under several conditions."""
    shard = re.fullmatch(r"(\d{1,15})/(\d{1,15})", asked.shard)
    if not shard or not 1 <= int(shard[1]) <= int(shard[2]):
        raise InputError(
            f"shard {asked.shard!r}: give i/n with i from 1 to n, such as 2/8"
        )
    filler = Filler(
        length=asked.filler_length, position=asked.position, mless=asked.filler
    )
    check_accuracy(accuracy, filler)
    from lib.evaluation import answer_tables, run  # torch: only now

    answers = run.evaluate(
        accuracy,
        filler,
        asked.seed,
        asked.out,
        (int(shard[1]), int(shard[2])),
        asked.shorter,
    )
    print(answer_tables.as_text(answer_tables.summarise(answers)))
    print(f"files: {asked.out}/completions*.jsonl, run.json, summary.json")


def likelihood(asked: RunOptions, likelihood: Likelihood) -> None:
    """Score gold solutions under several conditions."""
    from lib.evaluation.likelihood import as_text, likelihoods

    print(as_text(likelihoods(likelihood, Filler(), asked.seed, asked.out)))
    print(f"files: {asked.out}/scores.jsonl, run.json")


def grade(asked: GradeOptions) -> None:
    """Grade a file of answers and responses."""
    from lib.grading.pool import grade_many
    from lib.statistics import POINTS, format_interval, interval

    rows = list(paths.json_lines(asked.file))
    if not rows:
        raise InputError(f"{asked.file}: no lines to grade")

    def text(row: Any, field: str, line: int) -> str:
        with contextlib.suppress(
            KeyError, IndexError, TypeError, ValueError
        ):  # the last: thousands of digits
            for step in field.split("."):
                row = row[step if isinstance(row, dict) else int(step)]
            if isinstance(row, str | int | float) and not isinstance(row, bool):
                return str(row)
        raise InputError(f"{asked.file}, line {line}: no text in field {field!r}")

    grades = grade_many(
        [
            (text(row, asked.answer, line), text(row, asked.response, line))
            for line, row in rows
        ]
    )
    for graded in grades:
        print(json.dumps(vars(graded)))
    share = interval([POINTS * graded.correct for graded in grades], kind="share")
    print(
        f"{format_interval(share.estimate, share.low, share.high)} % correct, n = {share.n}",
        file=sys.stderr,
    )


COMMANDS: tuple[Callable[..., None], ...] = (
    reproduce,
    claims,
    report,
    evaluate,
    likelihood,
    grade,
)


class Parser(argparse.ArgumentParser):
    """A parser that complains in one line, as the rest does."""

    def error(self, message: str):
        raise InputError(f"{message} ({self.prog} --help says more)")


def parser() -> Parser:
    """Return the parser of COMMANDS: it gives the texts of the options that were typed,
    and `run`, the command.
    """
    top = Parser(
        prog="python -m lib",
        description=(
            "Reproduce Meaningless Tokens, Meaningful Gains (arXiv 2510.01032)."
        ),
    )
    added = top.add_subparsers(required=True, metavar="command")
    for run in COMMANDS:
        about = {"help": run.__doc__, "description": run.__doc__}
        command = added.add_parser(
            run.__name__, argument_default=argparse.SUPPRESS, **about
        )
        command.add_argument(
            "--debug", action="store_true", help="show the traceback of an error"
        )
        command.set_defaults(run=run)
        for name, field in [
            field for kind in _kinds(run) for field in kind.model_fields.items()
        ]:
            text, default = (field.description or "").replace("%", "%%"), field.default
            if default and not field.is_required():
                text += (
                    " (default:"
                    f" {','.join(default) if isinstance(default, list) else default})"
                )
            how: dict[str, Any] = (
                {"action": "store_const", "const": "true"}
                if field.annotation is bool
                else {}
            )
            if name == "file":
                command.add_argument(name, help=text)
            elif name not in NO_OPTIONS:
                flag = "--model" if name == "models" else f"--{name.replace('_', '-')}"
                command.add_argument(
                    flag, dest=name, required=field.is_required(), help=text, **how
                )
    return top


def _kinds(run: Callable[..., None]) -> list[type[BaseModel]]:
    return [
        argument.annotation for argument in inspect.signature(run).parameters.values()
    ]


def _given(kind: type[BaseModel], typed: dict[str, Any]) -> BaseModel:
    """Return a model of the typed options that are its fields: "none,mless" is a list,
    "tensor_parallel=2" a dict.
    """
    found: dict[str, Any] = {}
    for name, field in kind.model_fields.items():
        if text := typed.get(name):
            parts = (
                [text]
                if name == "models"
                else [part.strip() for part in text.split(",") if part.strip()]
            )
            shapes: dict[Any, Any] = {
                list: parts,
                dict: dict(part.partition("=")[::2] for part in parts),
            }
            found[name] = shapes.get(get_origin(field.annotation), text)
            if field.annotation in (Path, Path | None):
                found[name] = os.path.expanduser(
                    text
                )  # a shell leaves --out=~/runs as it is
        elif name in typed:
            raise InputError(f"options: {name}: must not be empty")
    return validated(kind, found, "options", strict=False)


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 only on success, 2 for bad input in one line, 1 for failed
    prompts, 130 when interrupted.
    """
    for stream in (
        stream
        for stream in (sys.stdout, sys.stderr)
        if isinstance(stream, io.TextIOWrapper)
    ):
        stream.reconfigure(
            errors="replace"
        )  # a console that lacks a character shows a question mark
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        options = vars(parser().parse_args(typed or ["--help"]))
        options["run"](*[_given(kind, options) for kind in _kinds(options["run"])])
        sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        signal.signal(
            signal.SIGINT, signal.SIG_IGN
        )  # first: a second Ctrl-C may follow at once
        print(
            "\ninterrupted: what is done is kept; run the same command again to"
            " continue",
            file=sys.stderr,
        )
        return 130
    except (InputError, OSError, ModuleNotFoundError) as error:
        if "--debug" in typed:
            raise
        message = (
            NOT_HERE.format(error.name)
            if isinstance(error, ModuleNotFoundError)
            else str(error)
        )
        if isinstance(error, OSError):
            # What could not be written must not be tried again, and complained about,
            # when Python ends.
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            if isinstance(error, BrokenPipeError):
                return (
                    128 + signal.SIGPIPE
                )  # `| head` has seen enough: as other programs end then
            message = f"{error.filename or 'the output'}: {error.strerror or error}"
        message = re.sub(
            r"(\S{60})\S{300,}(\S{10})", r"\1...\2", " ".join(message.split())
        )
        print(f"error: {message}", file=sys.stderr)
        return 1 if isinstance(error, PartlyDone) else 2


if __name__ == "__main__":
    progress.shown = True
    sys.exit(main())
