"""What the commands take: every text, number and path of the command line, checked as it is read."""

import argparse
import functools
import os
import re
import reprlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from lib.errors import InputError, whole

SOURCES = ("lib", "lm-eval", "lighteval")  # as in lib.grading.sample_files, which takes a second to import


class Parser(argparse.ArgumentParser):
    """A parser that complains in one line, as the rest does."""

    def error(self, message: str):
        raise InputError(f"{message} ({self.prog} --help says more)")


def _value(read: Callable[[str], Any], text: str) -> Any:
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    try:
        return read(text)
    except ValueError as error:
        reason = error if isinstance(error, InputError) else f"must be a number, not {reprlib.repr(text)}"
        raise argparse.ArgumentTypeError(str(reason)) from error


def _path(text: str) -> Path:
    return Path(os.path.expanduser(text))


def parser(commands: dict[str, Callable]) -> Parser:
    """Return the parser of these commands: its options hold the function to call as `run`."""
    top = Parser(prog="python -m lib", description="Reproduce Meaningless Tokens, Meaningful Gains (arXiv 2510.01032).")
    added = top.add_subparsers(required=True, metavar="command")
    run = _command(added, "reproduce", commands["reproduce"], "run the notebooks and print what they found")
    _profile_options(run)
    run.add_argument("--only", help="notebooks by number or name, such as 1,2")
    run.add_argument("--fresh", action="store_true", help="start over instead of continuing")

    run = _command(added, "claims", commands["claims"], "judge every claim of the paper on what a profile measures")
    _profile_options(run)

    run = _command(
        added, "report", commands["report"], "write the claims and every figure of a profile as one HTML page"
    )
    _profile_options(run)
    run.add_argument("--open", action="store_true", help="show it in the browser")

    run = _command(added, "evaluate", commands["evaluate"], "complete and grade problems under several conditions")
    _task_options(run)
    _decoding_options(run)

    run = _command(added, "grade", commands["grade"], "grade a file of answers and responses")
    run.add_argument("file", type=Path, help="JSONL, JSON or parquet, a row per completion")
    run.add_argument("--from", dest="source", default="lib", choices=SOURCES, help="what wrote it (default: lib)")
    run.add_argument("--answer", help="field of the gold answer instead, as a path such as doc.answer")
    run.add_argument("--response", help="field of the response instead, as a path such as resps.0.0")
    return top


def _command(commands, name: str, function, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    command.set_defaults(run=function)
    for kind, read in {None: str, int: whole, float: float, Path: _path}.items():
        command.register("type", kind, functools.partial(_value, read))
    return command


def _profile_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--profile", default="demo", help="a file of data/profiles, or a path to one (default: demo)")
    command.add_argument("--model", help="this model everywhere: demo, a name of data/models.yaml, a hub id, a folder")
    command.add_argument("--problems", help="embedded, math500 or a JSONL file, instead of the profile's")
    command.add_argument("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    command.add_argument("--dtype", help="of the weights, instead of the profile's: float32, bfloat16, float16 or auto")
    command.add_argument("--name", help="of the folders in results and figures, instead of one derived from these")


def _task_options(run: argparse.ArgumentParser) -> None:
    """What `evaluate` asks of which model, and where its answers go."""
    run.add_argument("--model", help="demo, a name of data/models.yaml, a hub id or a folder")
    run.add_argument(
        "--merge",
        nargs="+",
        type=Path,
        metavar="FOLDER",
        help="only join what these folders of one run hold, into --out",
    )
    run.add_argument("--problems", default="embedded", help="embedded, math500 or a JSONL file")
    run.add_argument("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    run.add_argument("--out", required=True, type=Path, help="folder of completions.jsonl; run again, it continues")
    run.add_argument("--shard", default="1/1", help="i/n: the i-th of n equal parts, for job arrays (default: 1/1)")
    run.add_argument(
        "--conditions",
        default="none,mless,mful",
        help="among none, mless, mful, random, question, letters; mless:25 has 25 tokens, mless@end another place; "
        "arm, mless+arm or arm:c=0.1:p1=95 move the model's activations",
    )
    run.add_argument("--arm", metavar="SETTINGS", help="of ARM, such as c=0.13:p1=99.5:layer=1:mode=text")
    run.add_argument("--filler", help="the text that mless repeats instead of /")
    run.add_argument("--filler-length", type=int, default=55, help="inserted tokens (default: 55)")
    run.add_argument("--position", default="between", help="before, between, end or random (default: between)")
    run.add_argument("--format", default="chat", help="of the prompt: plain or chat (default: chat)")
    run.add_argument("--elicit", action="store_true", help="ask for a boxed answer in a second step")


def _decoding_options(run: argparse.ArgumentParser) -> None:
    """How `evaluate` has its answers generated."""
    run.add_argument("--engine", default="transformers", help="what generates (default: transformers)")
    run.add_argument(
        "--engine-option",
        action="append",
        default=[],
        metavar="NAME=N",
        help="such as tensor_parallel=2 or data_parallel=4 of engine vllm; may be repeated",
    )
    run.add_argument(
        "--workers", type=int, default=0, metavar="N", help="processes with an engine each, on RAY_ADDRESS or here"
    )
    run.add_argument("--gpus-per-worker", type=int, metavar="G", help="default: 1 where this machine has any")
    run.add_argument("--max-new-tokens", type=int, default=1024, help="token limit (default: 1024)")
    run.add_argument("--dtype", default="auto", help="of the weights: float32, bfloat16, float16 (default: auto)")
    run.add_argument("--batch-size", type=int, default=64, help="prompts at once (default: 64)")
    run.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (default: 0)")
    run.add_argument("--top-p", type=float, default=1.0, help="nucleus to draw from (default: 1)")
    run.add_argument("--samples", type=int, default=1, help="answers per problem and condition (default: 1)")
    run.add_argument("--seed", type=int, default=0, help="of every random draw (default: 0)")


def listed(text: str | None) -> list[str]:
    """Return the parts of a list such as "none, mless"."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def engine_option(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"(\w+)=(\d{1,15})", text)
    if not match:
        raise InputError(f"engine option {text!r}: give NAME=N, such as tensor_parallel=2")
    return match[1], int(match[2])


def parse_shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d{1,15})/(\d{1,15})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard {text!r}: give i/n with i from 1 to n, such as 2/8")
    return int(match[1]), int(match[2])
