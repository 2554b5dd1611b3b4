"""The command line: python -m lib reproduce | evaluate | likelihood | grade | claims | report."""

import contextlib
import io
import json
import os
import re
import shlex
import signal
import sys
import webbrowser
from typing import Any

NOT_HERE = "{} is not installed here: run `make` once, then .venv/bin/python -m lib"

try:
    from lib import progress
    from lib.errors import InputError, PartlyDone, valid
    from lib.options import (
        EvaluateOptions,
        GradeOptions,
        ProfileOptions,
        ReportOptions,
        ReproduceOptions,
        RunOptions,
        given,
        parse_shard,
        parser,
    )
except ModuleNotFoundError as error:
    sys.exit(f"error: {NOT_HERE.format(error.name)}")


def main(arguments: list[str] | None = None) -> int:
    """Run one command; 0 only on success, 2 for bad input in one line, 1 for failed prompts, 130 when interrupted."""
    for stream in (stream for stream in (sys.stdout, sys.stderr) if isinstance(stream, io.TextIOWrapper)):
        stream.reconfigure(errors="replace")  # a console that lacks a character shows a question mark
    typed = sys.argv[1:] if arguments is None else arguments
    debug = "--debug" in typed
    try:
        options = parser(COMMANDS).parse_args(typed or ["--help"])
        with progress.switched_on():
            options.run(options)
        sys.stdout.flush()
    except (InputError, OSError, ModuleNotFoundError) as error:
        if debug:
            raise
        return _told(error, typed)
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # first: a second Ctrl-C may follow at once
        print("\ninterrupted: what is done is kept; run the same command again to continue", file=sys.stderr)
        return 130
    return 0


def _told(error: InputError | OSError | ModuleNotFoundError, typed: list[str]) -> int:
    """Say in one line what is wrong with what was typed, and return the exit code."""
    asked = shlex.join(part for part in typed[1:] if part != "--open")
    message = str(error).replace("with the same options", asked)
    if isinstance(error, ModuleNotFoundError):
        message = NOT_HERE.format(error.name)
    if isinstance(error, OSError):
        # What could not be written must not be tried again, and complained about, when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        if isinstance(error, BrokenPipeError):
            return 128 + signal.SIGPIPE  # `| head` has seen enough: as other programs end then
        message = f"{error.filename or 'the output'}: {error.strerror or error}"
    message = re.sub(r"(\S{60})\S{300,}(\S{10})", r"\1...\2", " ".join(message.split()))
    print(f"error: {message}", file=sys.stderr)
    return 1 if isinstance(error, PartlyDone) else 2


def _profile(options, checked: bool = True):
    """Return the profile that is asked for, and say which folders an overridden one writes into."""
    from lib.generation.interface import check_engine
    from lib.profiles import Overrides, check, run_profile

    asked = given(ProfileOptions, options)
    profile = run_profile(asked.profile, **asked.model_dump(include=set(Overrides.model_fields)))
    if not checked:
        return profile
    check(profile)
    check_engine(profile.accuracy.engine)
    if profile.name != asked.profile:
        print(f"profile {profile.name}: results/{profile.name}, figures/{profile.name}", file=sys.stderr)
    return profile


def _reproduce(options) -> None:
    """Run the notebooks and print what they found."""
    from lib.paths import notebooks

    asked = given(ReproduceOptions, options)
    chosen, profile = notebooks(asked.only), _profile(options)
    from lib.reproduce import reproduce  # torch: only now

    reproduce(profile, chosen, asked.fresh)


def _claims(options) -> None:
    """Judge every claim of the paper on what a profile measures."""
    profile = _profile(options)
    from lib.claims import words
    from lib.claims.asked import gather, load_claims
    from lib.claims.verdict import judge, write_verdicts

    verdicts = judge(load_claims(), gather(profile))
    print(words.listing(verdicts))
    counts = ", ".join(f"{count} {name}" for name, count in words.totals(verdicts).items())
    print(f"{counts}; {write_verdicts(profile, verdicts)}")


def _report(options) -> None:
    """Write the claims and every figure of a profile as one HTML page."""
    from lib.report.page import write_report

    path = write_report(_profile(options, checked=False))
    print(path)
    if given(ReportOptions, options).open and not webbrowser.open(path.as_uri()):
        raise InputError(f"no browser found: open {path} in one")


def _evaluate(options) -> None:
    """Complete and grade problems under several conditions."""
    from lib.generation.interface import check_engine
    from lib.profiles import Accuracy, check_accuracy
    from lib.prompts.conditions import Filler

    run = given(EvaluateOptions, options)
    filler = valid(Filler, {"length": run.filler_length, "position": run.position, "mless": run.filler}, "filler")
    accuracy, shard = given(Accuracy, options, models=[run.model]), parse_shard(run.shard)
    check_accuracy(accuracy, filler)
    check_engine(accuracy.engine)
    from lib.evaluation.run import evaluate  # torch: only now
    from lib.evaluation.tables import as_text, summarise

    answers = evaluate(accuracy, filler, run.seed, run.out, shard, run.shorter)
    print(as_text(summarise(answers, run.seed)))
    print(f"files: {run.out}/completions*.jsonl, run.json, summary.json")


def _likelihood(options) -> None:
    """Score gold solutions under several conditions."""
    from lib.profiles import Likelihood
    from lib.prompts.conditions import Filler

    run = given(RunOptions, options)
    asked = given(Likelihood, options, models=[run.model])
    from lib.evaluation.likelihood import as_text, likelihoods  # torch: only now

    print(as_text(likelihoods(asked, Filler(), run.seed, run.out)))
    print(f"files: {run.out}/scores.jsonl, run.json")


def _grade(options) -> None:
    """Grade a file of answers and responses."""
    from lib.grading.pool import grade_many
    from lib.paths import json_lines
    from lib.statistics import POINTS, interval, told

    asked = given(GradeOptions, options)
    rows = [(f"{asked.file}, line {number}", row) for number, row in json_lines(asked.file)]
    if not rows:
        raise InputError(f"{asked.file}: no lines to grade")
    pairs = [(_text(row, asked.answer, where), _text(row, asked.response, where)) for where, row in rows]
    grades = grade_many(pairs)
    for graded in grades:
        print(json.dumps(vars(graded)))
    share = interval([POINTS * graded.correct for graded in grades], kind="share")
    print(f"{told(share.estimate, share.low, share.high)} % correct, n = {share.n}", file=sys.stderr)


def _text(row: Any, field: str, where: str) -> str:
    """Return what a row has in a field such as resps.0.0, a number as text; an InputError says where there is none."""
    with contextlib.suppress(KeyError, IndexError, TypeError, ValueError):  # the last: a number of thousands of digits
        for step in field.split("."):
            row = row[step if isinstance(row, dict) else int(step)]
        if isinstance(row, str | int | float) and not isinstance(row, bool):
            return str(row)
    raise InputError(f"{where}: no text in field {field!r}")


COMMANDS = {
    "reproduce": _reproduce,
    "claims": _claims,
    "report": _report,
    "evaluate": _evaluate,
    "likelihood": _likelihood,
    "grade": _grade,
}

if __name__ == "__main__":
    sys.exit(main())
