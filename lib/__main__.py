"""The command line: python -m lib reproduce | evaluate | grade."""

import argparse
import json
import os
import signal
import sys
from pathlib import Path

from lib.errors import InputError


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 only on success, 2 for bad input in one line, 130 when interrupted."""
    options = parser().parse_args(arguments)
    try:
        options.run(options)
    except InputError as error:
        if options.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\ninterrupted: what is done is kept; run the same command again to continue", file=sys.stderr)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """Describe the commands; modules that load torch are imported only by the command that needs them."""
    top = argparse.ArgumentParser(
        prog="python -m lib", description="Reproduce Meaningless Tokens, Meaningful Gains (arXiv 2510.01032)."
    )
    commands = top.add_subparsers(required=True, metavar="command")

    run = _command(commands, "reproduce", _reproduce, "run the notebooks and print what they found")
    run.add_argument("--profile", default="demo", help="a file of data/profiles (default: demo)")
    run.add_argument("--only", default="", help="notebooks by number or name, such as 01,02")
    run.add_argument("--model", help="this model everywhere: demo, a name of data/models.yaml, a hub id, a folder")
    run.add_argument("--problems", help="embedded, math500 or a JSONL file, instead of the profile's")
    run.add_argument("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    run.add_argument("--fresh", action="store_true", help="start over instead of continuing")

    run = _command(commands, "evaluate", _evaluate, "complete and grade problems under several conditions")
    run.add_argument("--model", required=True, help="demo, a name of data/models.yaml, a hub id or a folder")
    run.add_argument("--problems", default="embedded", help="embedded, math500 or a JSONL file")
    run.add_argument("--conditions", default="none,mless,mful", help="among none, mless, mful, random")
    run.add_argument("--engine", default="transformers", help="what generates (default: transformers)")
    run.add_argument("--out", required=True, type=Path, help="folder of completions.jsonl; run again, it continues")
    run.add_argument("--format", default="chat", choices=("plain", "chat"), help="prompt form (default: chat)")
    run.add_argument("--max-new-tokens", type=int, default=1024, help="token limit (default: 1024)")
    run.add_argument("--elicit", action="store_true", help="ask for a boxed answer in a second step")
    run.add_argument("--batch-size", type=int, default=64, help="prompts at once (default: 64)")
    run.add_argument("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    run.add_argument("--seed", type=int, default=0, help="of every random draw (default: 0)")

    run = _command(commands, "grade", _grade, "grade a JSONL file of answers and responses")
    run.add_argument("file", type=Path, help="a line per completion")
    run.add_argument("--answer", default="answer", help="field of the gold answer (default: answer)")
    run.add_argument("--response", default="response", help="field of the response (default: response)")
    return top


def _command(commands, name: str, function, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    command.set_defaults(run=function)
    return command


def _reproduce(options) -> None:
    from lib.reproduce import reproduce, run_profile

    problems = options.problems
    if problems and problems not in ("embedded", "math500"):
        problems = os.path.abspath(problems)  # notebooks run in their own folder
    overrides = {"model": options.model, "problems": problems, "limit": options.limit}
    overrides = {name: value for name, value in overrides.items() if value is not None}
    if options.model and os.path.isdir(options.model):
        overrides["model"] = os.path.abspath(options.model)
    profile = run_profile(options.profile, **overrides)
    reproduce(profile, [name for name in options.only.split(",") if name], overrides, options.fresh)


def _evaluate(options) -> None:
    from pydantic import ValidationError

    from lib.evaluate import evaluate, summarise
    from lib.profiles import Accuracy
    from lib.prompts import CONDITIONS, Filler
    from lib.reproduce import completion_bar

    conditions = options.conditions.split(",")
    unknown = [name for name in conditions if name not in CONDITIONS]
    if unknown:
        raise InputError(f"unknown condition {unknown[0]!r}: choose from {', '.join(CONDITIONS)}")
    names = ("problems", "limit", "format", "max_new_tokens", "elicit", "batch_size", "engine")
    given = {name: getattr(options, name) for name in names}
    greedy = {"temperature": 0.0, "top_p": 1.0, "samples": 1, "elicit_tokens": 12}
    try:
        accuracy = Accuracy(models=[options.model], conditions=conditions, **given, **greedy)
    except ValidationError as error:
        first = error.errors()[0]
        raise InputError(f"{'.'.join(map(str, first['loc'])) or 'options'}: {first['msg']}") from error
    records = evaluate(accuracy, Filler(), options.seed, options.out, completion_bar())
    for row in summarise(records, options.seed):
        print(f"{row['condition']:8} {row['accuracy']:5.1f} %  [{row['low']:.1f}, {row['high']:.1f}]  n = {row['n']}")


def _grade(options) -> None:
    from lib.grading import grade_many
    from lib.statistics import wilson

    rows = _json_lines(options.file)
    for number, row in enumerate(rows, 1):
        for field in (options.answer, options.response):
            if not isinstance(row, dict) or not isinstance(row.get(field), str):
                raise InputError(f"{options.file}: line {number}: no text in field {field!r}")
    if not rows:
        raise InputError(f"{options.file}: no lines to grade")
    grades = grade_many([(row[options.answer], row[options.response]) for row in rows])
    for graded in grades:
        print(json.dumps(vars(graded)))
    share = wilson(sum(graded.correct for graded in grades), len(grades))
    print(f"{share.estimate:.1%} correct [{share.low:.1%}, {share.high:.1%}], n = {share.n}", file=sys.stderr)


def _json_lines(path: Path) -> list:
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read {path}: {error}") from error
    rows = []
    for number, line in enumerate(lines, 1):
        try:
            rows.append(json.loads(line))
        except json.JSONDecodeError as error:
            raise InputError(f"{path}: line {number} is not JSON: {error.msg}") from error
    return rows


if __name__ == "__main__":
    sys.exit(main())
