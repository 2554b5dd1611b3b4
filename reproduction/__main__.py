"""The command line: python -m reproduction COMMAND, with the commands in COMMANDS.

A command is a function. The pydantic models of its parameters define its options
(`reproduction.profiles.command_options`), and its docstring is its help.
"""

import io
import json
import os
import re
import signal
import sys
from collections import Counter

NOT_HERE = (
    "{} is not installed here: run `make install` once, then .venv/bin/python -m"
    " reproduction"
)
NO_UNIX = "this system lacks {}, which Unix has: on Windows run it in WSL"

try:
    from lib import progress
    from lib.errors import InputError, PartlyDone
    from lib.prompts.conditions import Filler
    from reproduction import paths
    from reproduction.profiles import (
        SAMPLING_CONDITIONS,
        Accuracy,
        Likelihood,
        Overrides,
        Profile,
        check,
        check_accuracy,
        profile_with_overrides,
    )
    from reproduction.profiles.command_options import (
        EvaluateOptions,
        GradeOptions,
        LikelihoodOptions,
        NotebookOptions,
        Parser,
        arguments_of,
        parser_of,
    )
except ModuleNotFoundError as error:
    template = NO_UNIX if error.name == "fcntl" else NOT_HERE
    sys.exit(f"error: {template.format(error.name)}")
except ImportError as error:  # the repository's data is missing
    sys.exit(f"error: {error}")
except KeyboardInterrupt:
    sys.exit(130)  # as `main` does; nothing has begun


def reproduce(overrides: Overrides, options: NotebookOptions) -> None:
    """Run the notebooks, and print the accuracy of notebook 03 and the verdicts of
    notebook 06.
    """
    notebooks = paths.notebooks(options.only)
    profile = _checked(overrides)
    # Imported only now, because plotting libraries take long to import and the checks
    # above do not need them.
    from reproduction import run

    run.reproduce(profile, notebooks, options.fresh)


def plan(overrides: Overrides) -> None:
    """Show how many prompts a profile will compute, and how many are stored; nothing
    runs.
    """
    profile = _checked(overrides)
    from reproduction.plan import as_text, tasks_of

    print(as_text(tasks_of(profile)))


def _checked(overrides: Overrides) -> Profile:
    """Return the profile with its overrides, after checking that it can run; print the
    folders of an overridden one.
    """
    profile = profile_with_overrides(**dict(overrides))
    check(profile)
    name = profile.name
    if name != overrides.profile:
        print(f"profile {name}: results/{name}, figures/{name}", file=sys.stderr)
    return profile


def evaluate(options: EvaluateOptions, accuracy: Accuracy) -> None:
    """Generate and grade answers to problems under several conditions."""
    shard = _shard(options.shard)
    check_accuracy(accuracy, Filler())
    # Imported only now, because torch takes long to import and the checks above do not
    # need it.
    from reproduction.evaluation import answer_run, answer_tables

    answers = answer_run.evaluate(accuracy, Filler(), options.seed, options.out, shard)
    answer_tables.print_accuracy(answers)
    print(f"files: {options.out}/completions*.jsonl, run.json")


def _shard(text: str) -> tuple[int, int]:
    """Return the numbers i and n of the text i/n; raise InputError for another text."""
    match = re.fullmatch(r"(\d{1,15})/(\d{1,15})", text)
    if not match or not 1 <= int(match[1]) <= int(match[2]):
        raise InputError(f"shard {text!r}: give i/n with i from 1 to n, such as 2/8")
    return int(match[1]), int(match[2])


def likelihood(options: LikelihoodOptions, likelihood: Likelihood) -> None:
    """Score reference solutions, or sampled answers, under several conditions."""
    # Imported only now, so that the help and errors in options need not wait for torch.
    from reproduction.evaluation.likelihood_tables import nat_table
    from reproduction.evaluation.pass_rate_tables import pass_rate_table
    from reproduction.evaluation.scored_texts import score_drawn, score_solutions
    from reproduction.figures.notebook_tables import rounded

    if options.answers is None:
        scores = score_solutions(likelihood, Filler(), options.seed, options.out)
        table = nat_table(scores)
    else:
        first, *others = map(str, likelihood.conditions)
        if not {first, *others}.issuperset(SAMPLING_CONDITIONS):
            both = " and ".join(SAMPLING_CONDITIONS)
            raise InputError(
                f"importance weights need scores under {both}: name both in"
                " --conditions"
            )
        draws = score_drawn(likelihood, options.answers, options.out)
        table = pass_rate_table(draws, [(condition, first) for condition in others])
    if table.empty:
        print("nothing to compare")
    else:
        # Each pair has a column, because a row of answers is wider than a terminal.
        print(rounded(table).T if options.answers else rounded(table))
    print(f"files: {options.out}/scores.jsonl, run.json")


def grade(options: GradeOptions) -> None:
    """Grade the responses of a file by its gold answers."""
    from lib.grading.answer_file import read_pairs
    from lib.grading.extraction import STATUSES
    from lib.grading.worker_pool import grade_many
    from lib.statistics.intervals import POINTS, format_interval, interval

    grades = grade_many(read_pairs(options.file, options.answer, options.response))
    for graded in grades:
        print(json.dumps(vars(graded)))
    share = interval([POINTS * graded.correct for graded in grades], kind="share")
    percent = format_interval(share.estimate, share.low, share.high)
    methods = Counter(graded.method for graded in grades)
    ungraded = [f"{methods[name]} {name}" for name in sorted(STATUSES & set(methods))]
    counts = ", ".join([f"n = {share.n}", *ungraded])
    print(f"{percent} % correct, {counts}", file=sys.stderr)


COMMANDS = (plan, reproduce, evaluate, likelihood, grade)


def parser() -> Parser:
    """Return the parser of COMMANDS."""
    return parser_of(
        COMMANDS,
        "python -m reproduction",
        "Reproduce Meaningless Tokens, Meaningful Gains (arXiv 2510.01032).",
    )


def main(arguments: list[str] | None = None) -> int:
    """Run one command and return its exit code.

    arguments: those of the command line; None: of this process. The exit code is 0 only
    on success, 2 for invalid input (reported in one line), 1 if some prompts failed,
    and 130 after an interruption.
    """
    typed = sys.argv[1:] if arguments is None else arguments
    try:
        options = vars(parser().parse_args(typed or ["--help"]))
        run = options["run"]
        run(*arguments_of(run, options))
        if sys.stdout:  # None if it was closed by >&-
            sys.stdout.flush()
        return 0
    except KeyboardInterrupt:
        # Before anything else, because a second Ctrl-C may follow at once.
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        advice = "finished work is stored; run the same command again to continue"
        if typed[:1] in (["grade"], ["plan"]):
            advice = "nothing is stored"
        print(f"\ninterrupted: {advice}", file=sys.stderr)
        return 130
    except (InputError, OSError, ModuleNotFoundError) as error:
        if "--debug" in typed:
            raise
        return _report_error(error)


def _report_error(error: Exception) -> int:
    """Print the error in one line, and return the exit code."""
    message = str(error)
    if isinstance(error, ModuleNotFoundError):
        message = NOT_HERE.format(error.name)
    elif isinstance(error, OSError):
        if isinstance(error, BrokenPipeError):
            # `| head` closed the pipe: exit as other programs do.
            return 128 + signal.SIGPIPE
        message = f"{error.filename or 'the output'}: {error.strerror or error}"

    print("error:", *message.split(), file=sys.stderr)
    return 1 if isinstance(error, PartlyDone) else 2


if __name__ == "__main__":
    progress.shown = True
    if isinstance(sys.stdout, io.TextIOWrapper):
        # Tables have characters, such as λ, that not every terminal's encoding has.
        sys.stdout.reconfigure(errors="backslashreplace")
    code = main()
    try:
        if sys.stdout:
            sys.stdout.flush()
    except OSError:
        # Otherwise Python would write the rest of its output when it exits, and report
        # another error.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(code)
