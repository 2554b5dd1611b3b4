"""Write data/families: the results of the profile families, without the problems.

    python -m studies.make_families FOLDER...                    # answers
    python -m studies.make_families --part direct FOLDER...      # without reasoning
    python -m studies.make_families --part likelihood FOLDER...  # scores of solutions
    python -m studies.make_families --part draws FOLDER...       # answers with scores

A FOLDER is that of a run, or one of its files. Without any, the script measures what
results/families lacks, which takes an hour and needs the wheels of
requirements/families.txt. Rows that the profile does not want, because they were made
with other settings, are left out. Only problems with an answer or score under every
condition of a model are written, except for ablations, whose contrasts each have their
own n. Completions are graded again by the present code. Fewer problems than are stored
are refused.
`make scores` also renews the notebooks and documents that show the scores.
"""

import argparse
import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from lib import progress
from lib.errors import InputError
from lib.files.atomic import write_atomically
from lib.files.text_files import read
from lib.grading.authors_grader import is_correct_by_authors, is_exact_match
from lib.grading.extraction import Grade
from lib.grading.worker_pool import grade_many
from lib.models.sources import resolve
from lib.paths import DATA
from lib.statistics.intervals import ENOUGH
from reproduction.evaluation.profile_parts import parts_of_profile
from reproduction.evaluation.rows import FIELDS, SCORE_FIELDS, frame
from reproduction.evaluation.weighted_pass_rates import is_mixed, scored_draws
from reproduction.measurement.dataset import save_measured
from reproduction.measurement.measurement_run import measure
from reproduction.profiles import SAMPLING_CONDITIONS, Profile, load_profile

FOLDER = DATA / "families"
MANTISSA_BITS = 12  # of a stored number: a relative error of at most 0.00025
GRADE_FIELDS = ("extracted", "method", "correct", "evaluated", "run_on")
# The conditions under which solutions were scored on the same problems; others have
# fewer.
SAME_PROBLEMS = (
    *("none", "mless", "hidden-from-layer-1", "dilution", "gap", "layer-1-only"),
    *("example", "bare", "arm"),
)
# Fields of a score, without those that no table needs.
STORED_FIELDS = [
    name
    for name in SCORE_FIELDS
    if name not in ("subject", "prompt_tokens", "processor")
]


def write_measurements(profile: Profile) -> None:
    """Write a file per model with its measurements for figures and claims."""
    for name, measured in measure(profile, stored=False).items():
        save_measured(FOLDER / f"{name}.nc", measured.map(rounded, keep_attrs=True))


def rounded(values: xr.DataArray) -> xr.DataArray:
    """Return numbers with fewer bits, which zlib compresses better; counts and names
    are unchanged.
    """
    if values.dtype.kind != "f" or values.name == "counts":
        return values
    mantissa, exponent = np.frexp(values.values)
    short = np.round(mantissa * 2**MANTISSA_BITS) / 2**MANTISSA_BITS
    return values.copy(data=np.ldexp(short, exponent).astype("float32"))


def write_answers(stores: list[Path], part: str = "main") -> None:
    """Replace the stored completions of a part by those of the folders, for each of
    their models.
    """
    path = FOLDER / "answers" / f"{part}.jsonl.gz"
    by_model = defaultdict(list)
    for record in read(path) if path.is_file() else []:
        by_model[record["model"]].append(record)

    new = defaultdict(list)
    for record in _records(stores, part):
        new[record["model"]].append(record)
    for name, records in new.items():
        by_model[name] = _graded(_complete(records))
        problems = {record["problem_id"] for record in by_model[name]}
        print(f"{name}: {len(by_model[name])} completions of {len(problems)} problems")

    kept = [record for name in sorted(by_model) for record in by_model[name]]
    _require_no_loss(part, path, kept)
    _write(path, kept)


def write_scores(stores: list[Path]) -> None:
    """Write a file per model with the scores of all folders, sorted.

    Three kinds of scores are each limited to complete problems: solutions under
    SAME_PROBLEMS, solutions under other conditions, and answers without reasoning.
    """
    models = defaultdict(lambda: defaultdict(list))
    for row in _records(stores, "likelihood"):
        if row["target"] == "answer" or row["condition"] in SAME_PROBLEMS:
            kind = row["target"]
        else:
            kind = "other solution"
        score = {name: row[name] for name in STORED_FIELDS}
        models[row["model"]][kind].append(score)

    for name, kinds in models.items():
        kept = []
        for kind, scores in kinds.items():
            complete = _complete(_without_rare_conditions(scores))
            kept += complete
            print(f"{name}: {kind}s of {_extent(complete)}, {_extent(scores)} begun")
        kept.sort(key=lambda row: (row["target"], row["problem_id"], row["condition"]))
        path = FOLDER / "likelihood" / f"{name}.jsonl.gz"
        _require_no_loss("likelihood", path, kept)
        _write(path, kept)


def write_ablations(stores: list[Path]) -> None:
    """Write a file per model with the scores of ablations of all folders, sorted."""
    by_model = defaultdict(list)
    for row in _records(stores, "ablations"):
        score = {name: row[name] for name in STORED_FIELDS}
        by_model[row["model"]].append(score)
    for name, rows in by_model.items():
        rows.sort(key=lambda row: (row["problem_id"], row["condition"]))
        path = FOLDER / "ablations" / f"{name}.jsonl.gz"
        _require_no_loss("ablations", path, rows)
        _write(path, rows)
        print(f"{name}: ablations of {_extent(rows)}")


def write_draws(stores: list[Path]) -> None:
    """Write the sampled answers of all folders, and a file per model with their scores.

    Raises InputError if a problem lacks an answer, or if an answer to a problem with
    both right and wrong answers lacks its score under none or mless: the other problems
    alone would be a biased selection.
    """
    drawn = _graded(_records(stores, "draws"))
    scores = _records(stores, "draw_scores")
    draws = scored_draws(frame(drawn), pd.DataFrame(scores))
    for name, of_model in draws.groupby("model"):
        sizes = of_model.groupby(["problem_id", "drawn_under"]).size().unstack()
        incomplete = (sizes != sizes.max(axis=None)).any(axis=1).sum()
        unscored = is_mixed(of_model) & of_model[[*SAMPLING_CONDITIONS]].isna().any(
            axis=1
        )
        if incomplete or unscored.any():
            raise InputError(
                f"{name}: {incomplete} problems lack answers, {unscored.sum()} answers"
                " that decide lack scores: let the run finish"
            )

    by_model = defaultdict(list)
    for row in scores:
        by_model[row["model"]].append(row)
    path = FOLDER / "answers" / "draws.jsonl.gz"
    _require_no_loss("draws", path, drawn)
    for name, rows in by_model.items():
        _require_no_loss("draws", FOLDER / "draws" / f"{name}.jsonl.gz", rows)
    _write(path, drawn)
    for name, rows in by_model.items():
        rows.sort(key=lambda row: (row["answer"], row["condition"]))
        _write(FOLDER / "draws" / f"{name}.jsonl.gz", rows)
        print(f"{name}: scores of drawn answers to {_extent(rows)}")


def _extent(rows: list[dict]) -> str:
    problems = {row["problem_id"] for row in rows}
    conditions = {row["condition"] for row in rows}
    return f"{len(problems)} problems under {len(conditions)} conditions"


def _records(stores: list[Path], part: str) -> list[dict]:
    """Return the rows that a part of the profile wants, of all files with its rows in
    folders, and of other files.
    """
    wanting = parts_of_profile(load_profile("families"))[part]
    files = []
    for store in stores:
        of_part = store.glob(f"{wanting.stem}*.jsonl*")
        files += sorted(of_part) if store.is_dir() else [store]
    rows = read(*files)
    wanted = wanting.wanted_among({row["key"]: row for row in rows})
    if others := len(rows) - len(wanted):
        print(f"{others} rows have other settings than the profile")
    return wanted


def _write(path: Path, records: Sequence[dict]) -> None:
    """Write records as a file whose bytes depend only on them."""
    lines = "".join(json.dumps(record) + "\n" for record in records)
    write_atomically(path, gzip.compress(lines.encode(), mtime=0))


def _require_no_loss(part: str, path: Path, records: Sequence[dict]) -> None:
    """Raise InputError for records of a model that the profile does not name, and for
    fewer problems under a condition than the file has.
    """
    section = load_profile("families").parts[part]
    names = {resolve(spec).name for spec in section.models}
    new = _problems(records)
    for name, *_ in new:
        if name not in names:
            raise InputError(
                f"{name} is no model of families, {part}: add it to the profile, or"
                " leave its store out"
            )
    stored = _problems(read(path) if path.is_file() else [])
    for group, problems in stored.items():
        if len(new[group]) < len(problems):
            name, _, condition = group
            raise InputError(
                f"{name}: {len(new[group])} problems under {condition}, where"
                f" {len(problems)} are stored: give all stores, and let a run that was"
                " begun finish"
            )


def _problems(records: Sequence[dict]) -> defaultdict[tuple, set[str]]:
    """Return the problems of each model, target and condition."""
    problems = defaultdict(set)
    for record in records:
        group = record["model"], record.get("target"), record["condition"]
        problems[group].add(record["problem_id"])
    return problems


def _complete(records: list[dict]) -> list[dict]:
    """Return the records of problems that were answered under every condition."""
    answered = defaultdict(set)
    for record in records:
        answered[record["problem_id"]].add(record["condition"])
    every = set().union(*answered.values())
    return [record for record in records if answered[record["problem_id"]] == every]


def _without_rare_conditions(rows: list[dict]) -> list[dict]:
    """Return the scores without conditions that a run has only begun, under which few
    problems would be complete.
    """
    counts = Counter(row["condition"] for row in rows)
    return [row for row in rows if counts[row["condition"]] >= ENOUGH]


def _graded(records: list[dict]) -> list[dict]:
    """Return records with the grades of the present code."""
    pairs = [(record["answer"], record["response"]) for record in records]
    grades = grade_many(pairs)
    return [_regraded(*both) for both in zip(records, grades, strict=True)]


def _regraded(record: dict, grade: Grade) -> dict:
    """Return a record with this grade and the present fields of a row.

    The authors' rule as published would need the prompt.
    """
    answer = record["answer"]
    response = record["response"]
    new = record | {
        "correct_authors_on_completion": is_correct_by_authors(answer, "", response),
        "correct_exact": is_exact_match(answer, grade.extracted),
    }
    new |= {name: getattr(grade, name) for name in GRADE_FIELDS}
    changed = [name for name in record if new[name] != record[name]]
    if changed:
        answer_of = f"{record['problem_id']}, {record['condition']}"
        print(f"{answer_of}: {', '.join(changed)} changed by grading again")
    return {name: new[name] for name in new if name in FIELDS}


def main() -> None:
    """Write the part that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "folders", nargs="*", type=Path, help="folders of runs, or files of them"
    )
    parser.add_argument(
        "--part",
        default="main",
        choices=load_profile("families").parts.keys() - {"draw_scores"},
        help="of the profile, to which the runs belong; draws include their scores",
    )
    options = parser.parse_args()
    progress.shown = True
    part, folders = options.part, options.folders
    if not folders:
        write_measurements(load_profile("families"))
    elif part == "draws":
        write_draws(folders)
    else:
        writers = {"likelihood": write_scores, "ablations": write_ablations}
        if part in writers:
            writers[part](folders)
        else:
            write_answers(folders, part)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
