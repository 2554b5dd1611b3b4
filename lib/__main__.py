"""The command line: python -m lib reproduce | evaluate | grade | claims | report."""

import argparse
import json
import re
import signal
import sys
import webbrowser
from collections import Counter
from pathlib import Path

from lib import progress
from lib.errors import InputError, PartlyDone

SOURCES = ("lib", "lm-eval", "lighteval")  # as in lib.grading.sample_files, which takes a second to import


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 only on success, 2 for bad input in one line, 1 for failed prompts, 130 when interrupted."""
    options = parser().parse_args(arguments)
    try:
        with progress.switched_on():
            options.run(options)
    except InputError as error:
        if options.debug:
            raise
        print(f"error: {error}", file=sys.stderr)
        return 1 if isinstance(error, PartlyDone) else 2
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # first: a second Ctrl-C may follow at once
        print("\ninterrupted: what is done is kept; run the same command again to continue", file=sys.stderr)
        return 130
    return 0


def parser() -> argparse.ArgumentParser:
    """Describe the commands; modules that load torch are imported only by the command that needs them."""
    top = argparse.ArgumentParser(
        prog="python -m lib", description="Reproduce Meaningless Tokens, Meaningful Gains (arXiv 2510.01032)."
    )
    commands = top.add_subparsers(required=True, metavar="command")

    run = _command(commands, "reproduce", _reproduce, "run the notebooks and print what they found")
    _profile_options(run)
    run.add_argument("--only", default="", help="notebooks by number or name, such as 01,02")
    run.add_argument("--fresh", action="store_true", help="start over instead of continuing")

    run = _command(commands, "claims", _claims, "judge every claim of the paper on what a profile measures")
    _profile_options(run)

    run = _command(commands, "report", _report, "write the claims and every figure of a profile as one HTML page")
    _profile_options(run)
    run.add_argument("--open", action="store_true", help="show it in the browser")

    run = _command(commands, "evaluate", _evaluate, "complete and grade problems under several conditions")
    run.add_argument("--model", required=True, help="demo, a name of data/models.yaml, a hub id or a folder")
    run.add_argument("--problems", default="embedded", help="embedded, math500 or a JSONL file")
    run.add_argument(
        "--conditions",
        default="none,mless,mful",
        help="among none, mless, mful, random, question, letters; mless:25 has 25 tokens, mless@end another place; "
        "arm, mless+arm or arm:c=0.1:p1=95 move the model's activations",
    )
    run.add_argument("--arm", metavar="SETTINGS", help="of ARM, such as c=0.13:p1=99.5:layer=1:mode=text")
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
    run.add_argument("--out", required=True, type=Path, help="folder of completions.jsonl; run again, it continues")
    run.add_argument("--format", default="chat", help="of the prompt: plain or chat (default: chat)")
    run.add_argument("--max-new-tokens", type=int, default=1024, help="token limit (default: 1024)")
    run.add_argument("--elicit", action="store_true", help="ask for a boxed answer in a second step")
    run.add_argument("--filler", help="the text that mless repeats instead of /")
    run.add_argument("--filler-length", type=int, default=55, help="inserted tokens (default: 55)")
    run.add_argument("--position", default="between", help="before, between, end or random (default: between)")
    run.add_argument("--temperature", type=float, default=0.0, help="0 is greedy (default: 0)")
    run.add_argument("--top-p", type=float, default=1.0, help="nucleus to draw from (default: 1)")
    run.add_argument("--samples", type=int, default=1, help="answers per problem and condition (default: 1)")
    run.add_argument("--shard", default="1/1", help="i/n: the i-th of n equal parts, for job arrays (default: 1/1)")
    run.add_argument("--batch-size", type=int, default=64, help="prompts at once (default: 64)")
    run.add_argument("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    run.add_argument("--seed", type=int, default=0, help="of every random draw (default: 0)")

    run = _command(commands, "grade", _grade, "grade a file of answers and responses")
    run.add_argument("file", type=Path, help="JSONL, JSON or parquet, a row per completion")
    run.add_argument("--from", dest="source", default="lib", choices=SOURCES, help="what wrote it (default: lib)")
    run.add_argument("--answer", help="field of the gold answer instead, as a path such as doc.answer")
    run.add_argument("--response", help="field of the response instead, as a path such as resps.0.0")
    return top


def _command(commands, name: str, function, text: str) -> argparse.ArgumentParser:
    command = commands.add_parser(name, help=text, description=text[0].upper() + text[1:] + ".")
    command.add_argument("--debug", action="store_true", help="show the traceback of an error")
    command.set_defaults(run=function)
    return command


def _profile_options(command: argparse.ArgumentParser) -> None:
    command.add_argument("--profile", default="demo", help="a file of data/profiles, or a path to one (default: demo)")
    command.add_argument("--model", help="this model everywhere: demo, a name of data/models.yaml, a hub id, a folder")
    command.add_argument("--problems", help="embedded, math500 or a JSONL file, instead of the profile's")
    command.add_argument("--limit", type=int, help="a seeded sample of so many problems, stratified by level")
    command.add_argument("--name", help="of the folders in results and figures, instead of one derived from these")


def _profile(options):
    """Return the profile that is asked for, and say which folders an overridden one writes into."""
    from lib.profiles import run_profile

    profile = run_profile(options.profile, options.model, options.problems, options.limit, options.name)
    if profile.name != options.profile:
        print(f"profile {profile.name}: results/{profile.name}, figures/{profile.name}", file=sys.stderr)
    return profile


def _reproduce(options) -> None:
    from lib.generation.engines import check_engine
    from lib.paths import notebooks
    from lib.profiles import check

    chosen, profile = notebooks([name for name in options.only.split(",") if name]), _profile(options)
    check(profile)
    check_engine(profile.accuracy.engine)
    from lib.reproduce import reproduce  # torch: only now

    reproduce(profile, chosen, options.fresh)


def _claims(options) -> None:
    from lib.profiles import check

    profile = _profile(options)
    check(profile)
    from lib.claims.gathering import gather
    from lib.claims.judging import judge, write_claims
    from lib.claims.page import page
    from lib.claims.statements import load_claims

    rows = judge(load_claims(), gather(profile))
    print(page(rows))
    verdicts = Counter(row["verdict"] for row in rows)
    print(", ".join(f"{count} {name}" for name, count in verdicts.most_common()) + f"; {write_claims(profile, rows)}")


def _report(options) -> None:
    from lib.claims.report import write_report

    path = write_report(_profile(options))
    print(path)
    if options.open and not webbrowser.open(path.as_uri()):
        raise InputError(f"no browser found: open {path} in one")


def _evaluate(options) -> None:
    from lib.arm.settings import parse_arm
    from lib.errors import valid
    from lib.generation.engines import check_engine
    from lib.profiles import Accuracy, check_accuracy
    from lib.prompts.conditions import Filler

    texts = {} if options.filler is None else {"mless": options.filler}
    filler = valid(Filler, {"length": options.filler_length, "position": options.position, **texts}, "filler")
    names = ("problems", "limit", "format", "max_new_tokens", "elicit", "batch_size", "engine")
    names += ("temperature", "top_p", "samples", "workers", "gpus_per_worker")
    given = {name: getattr(options, name) for name in names}
    given |= {"models": [options.model], "conditions": options.conditions.split(",")}
    given["engine_options"] = dict(_engine_option(text) for text in options.engine_option)
    given["arm"] = parse_arm(options.arm) if options.arm else None
    accuracy, shard = valid(Accuracy, given, "options"), _shard(options.shard)
    check_accuracy(accuracy)
    check_engine(accuracy.engine)
    from lib.evaluation.records import outcome_of
    from lib.evaluation.run import evaluate
    from lib.evaluation.summary import as_text, summarise

    records = evaluate(accuracy, filler, options.seed, options.out, shard)
    print(as_text(summarise(records, options.seed, outcome_of(options.problems))))
    print(f"files: {options.out}/completions*.jsonl, run.json, summary.json")


def _engine_option(text: str) -> tuple[str, int]:
    match = re.fullmatch(r"(\w+)=(\d+)", text)
    if not match:
        raise InputError(f"engine option {text!r}: give NAME=N, such as tensor_parallel=2")
    return match[1], int(match[2])


def _shard(text: str) -> tuple[int, int]:
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard {text!r}: give i/n with i from 1 to n, such as 2/8")
    return int(match[1]), int(match[2])


def _grade(options) -> None:
    from lib.grading.pool import grade_many
    from lib.grading.sample_files import FORMATS, read_pairs
    from lib.statistics import wilson

    answer, response = FORMATS[options.source]
    grades = grade_many(read_pairs(options.file, options.answer or answer, options.response or response))
    for graded in grades:
        print(json.dumps(vars(graded)))
    share = wilson(sum(graded.correct for graded in grades), len(grades))
    print(f"{share.estimate:.1%} correct [{share.low:.1%}, {share.high:.1%}], n = {share.n}", file=sys.stderr)
    restated = sum(graded.correct and not graded.evaluated for graded in grades)
    print(f"{restated} of them leave an operation to be carried out", file=sys.stderr)
    methods = Counter(graded.method for graded in grades)
    print("decided by " + ", ".join(f"{name} {count}" for name, count in methods.most_common()), file=sys.stderr)


if __name__ == "__main__":
    sys.exit(main())
