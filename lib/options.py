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


class Parser(argparse.ArgumentParser):
    """A parser that complains in one line, as the rest does."""

    def error(self, message: str):
        raise InputError(f"{message} ({self.prog} --help says more)")


def parser(commands: dict[str, Callable]) -> Parser:
    """Return the parser of these commands: its options hold the function to call as `run`."""
    top = Parser(prog="python -m lib", description="Reproduce Meaningless Tokens, Meaningful Gains (arXiv 2510.01032).")
    added = top.add_subparsers(required=True, metavar="command")
    for name, (text, options) in TAKEN.items():
        command = added.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
        command.add_argument("--debug", action="store_true", help="show the traceback of an error")
        command.set_defaults(run=commands[name])
        for kind, read in {None: str, int: whole, float: float, Path: lambda x: Path(os.path.expanduser(x))}.items():
            command.register("type", kind, functools.partial(_value, read))
        options(command.add_argument)
    return top


def _value(read: Callable[[str], Any], text: str) -> Any:
    if not text.strip():
        raise argparse.ArgumentTypeError("must not be empty")
    try:
        return read(text)
    except ValueError as error:
        reason = error if isinstance(error, InputError) else f"must be a number, not {reprlib.repr(text)}"
        raise argparse.ArgumentTypeError(str(reason)) from error


def _profile(add: Callable) -> None:
    add("--profile", default="demo", help="a file of data/profiles, or a path to one (default: demo)")
    add("--model", help="this model everywhere: demo, a name of data/models.yaml, a hub id, a folder")
    add("--problems", help="embedded, math500 or a JSONL file, instead of the profile's")
    add("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    add("--dtype", help="of the weights, instead of the profile's: float32, bfloat16, float16 or auto")
    add("--name", help="of the folders in results and figures, instead of one derived from these")


def _reproduce(add: Callable) -> None:
    _profile(add)
    add("--only", help="notebooks by number or name, such as 1,2")
    add("--fresh", action="store_true", help="start over instead of continuing")


def _report(add: Callable) -> None:
    _profile(add)
    add("--open", action="store_true", help="show it in the browser")


def _evaluate(add: Callable) -> None:
    conditions = "among none, mless, mful, random, question, letters; mless:25 has 25 tokens, mless@end another place; "
    conditions += "arm, mless+arm or arm:c=0.1:p1=95 move the model's activations"
    engines = "such as tensor_parallel=2 or data_parallel=4 of engine vllm; may be repeated"
    processes = "processes with an engine each, on RAY_ADDRESS or here"
    add("--model", required=True, help="demo, a name of data/models.yaml, a hub id or a folder")
    add("--problems", default="embedded", help="embedded, math500 or a JSONL file")
    add("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    add("--out", required=True, type=Path, help="folder of completions.jsonl; run again, it continues")
    add("--shard", default="1/1", help="i/n: the i-th of n equal parts, for job arrays (default: 1/1)")
    add("--shorter", type=Path, help="folder of a run with fewer new tokens, whose cut answers go on here")
    add("--conditions", default="none,mless,mful", help=conditions)
    add("--arm", metavar="SETTINGS", help="of ARM, such as c=0.13:p1=99.5:layer=1:mode=text")
    add("--filler", help="the text that mless repeats instead of /")
    add("--filler-length", type=int, default=55, help="inserted tokens (default: 55)")
    add("--position", default="between", help="before, between, end or random (default: between)")
    add("--format", default="chat", help="of the prompt: plain or chat (default: chat)")
    add("--elicit", action="store_true", help="ask for a boxed answer in a second step")
    add("--engine", default="transformers", help="what generates (default: transformers)")
    add("--engine-option", action="append", default=[], metavar="NAME=N", help=engines)
    add("--workers", type=int, default=0, metavar="N", help=processes)
    add("--gpus-per-worker", type=int, metavar="G", help="default: 1 where this machine has any")
    add("--max-new-tokens", type=int, default=1024, help="token limit (default: 1024)")
    add("--dtype", default="auto", help="of the weights: float32, bfloat16, float16 (default: auto)")
    add("--batch-size", type=int, default=64, help="prompts at once (default: 64)")
    add("--temperature", type=float, default=0.0, help="0 is greedy (default: 0)")
    add("--top-p", type=float, default=1.0, help="nucleus to draw from (default: 1)")
    add("--samples", type=int, default=1, help="answers per problem and condition (default: 1)")
    add("--seed", type=int, default=0, help="of every random draw (default: 0)")


def _likelihood(add: Callable) -> None:
    conditions = "as of evaluate, and gap, dilution, layer-1-only, hidden-from-layer-1, layers-1-to-4-only, "
    conditions += "hidden-from-layers-1-to-4, example, bare"
    add("--model", required=True, help="demo, a name of data/models.yaml, a hub id or a folder")
    add("--problems", default="embedded", help="embedded, math500 or a JSONL file, each with a solution")
    add("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    add("--out", required=True, type=Path, help="folder of scores.jsonl; run again, it continues")
    add("--conditions", default="none,gap,dilution,mless", help=conditions)
    add("--at-once", help="conditions under which the gold answer is scored without its solution")
    add("--format", default="chat", help="of the prompt: plain or chat (default: chat where the model has it)")
    add("--max-solution-tokens", type=int, default=512, help="longer solutions are left out (default: 512)")
    add("--dtype", default="float32", help="of the weights: float32, bfloat16, float16 (default: float32)")
    add("--seed", type=int, default=0, help="of the sample (default: 0)")


def _grade(add: Callable) -> None:
    add("file", type=Path, help="JSONL, a row per completion")
    add("--answer", default="answer", help="field of the gold answer: doc.answer of lm-eval (default: answer)")
    add("--response", default="response", help="field of the response: resps.0.0 of lm-eval (default: response)")


# What each command does, and what it takes.
TAKEN = {
    "reproduce": ("run the notebooks and print what they found", _reproduce),
    "claims": ("judge every claim of the paper on what a profile measures", _profile),
    "report": ("write the claims and every figure of a profile as one HTML page", _report),
    "evaluate": ("complete and grade problems under several conditions", _evaluate),
    "likelihood": ("score gold solutions under several conditions", _likelihood),
    "grade": ("grade a file of answers and responses", _grade),
}


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
