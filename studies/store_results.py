"""Add the results of runs to data/PROFILE, from which figures and verdicts are made
without weights.

    python -m studies.store_results families                      # measurements
    python -m studies.store_results families main FOLDER...       # answers of a part
    python -m studies.store_results authors likelihood FOLDER...  # scores of a part

A FOLDER is that of a run, or one of its files. Rows that the profile does not want,
because they were made with other settings, are left out. Stored rows stay, and new ones
follow them. A run that has not finished its problems is refused, because short answers
end first. Answers, stored and new, are graded by the present code. The scores of draws
are the part draw_scores, which is stored after draws.

Without a part, the script stores what the profile measures. What results/PROFILE lacks
is measured, which takes an hour for the families and needs the wheels of
requirements/families.txt. `make scores` also renews the notebooks and documents that
show the scores.
"""

import argparse
import gzip
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from lib import progress
from lib.errors import InputError, unknown
from lib.files.atomic import write_atomically
from lib.files.text_files import read
from lib.grading.authors_grader import is_correct_by_authors, is_exact_match
from lib.grading.worker_pool import grade_many
from lib.paths import DATA
from lib.prompts.problems import listed_problems, sampling_order
from reproduction.evaluation.profile_parts import Part, parts_of_profile
from reproduction.measurement.dataset import encoded
from reproduction.measurement.measurement_run import measure
from reproduction.profiles import Profile, load_profile

MANTISSA_BITS = 12  # of a stored number: a relative error of at most 0.00025
GRADE_FIELDS = ("extracted", "method", "correct", "evaluated", "run_on")


def store_measurements(profile: Profile) -> None:
    """Write a file per model with its measurements for figures and claims."""
    for name, measured in measure(profile, stored=False).items():
        path = DATA / profile.name / f"{name}.nc"
        write_atomically(path, encoded(measured.map(rounded, keep_attrs=True)))


def rounded(values: xr.DataArray) -> xr.DataArray:
    """Return numbers with fewer bits, which zlib compresses better; counts and names
    are unchanged.
    """
    if values.dtype.kind != "f" or values.name == "counts":
        return values
    mantissa, exponent = np.frexp(values.values)
    short = np.round(mantissa * 2**MANTISSA_BITS) / 2**MANTISSA_BITS
    return values.copy(data=np.ldexp(short, exponent).astype("float32"))


def store_rows(profile: Profile, name: str, folders: Sequence[Path]) -> None:
    """Add the rows that a part of a profile wants to its stored ones, and print how
    many are new.

    Raises InputError if the profile lacks the part, and for an unfinished run.
    """
    parts = parts_of_profile(profile)
    if name not in parts:
        raise unknown("part", name, list(parts))
    part = parts[name]
    for path, rows in _rows_by_file(part, folders).items():
        stored = {row["key"]: row for row in read(path)} if path.is_file() else {}
        new = [row for row in rows if row["key"] not in stored]
        kept = [*stored.values(), *new]
        if part.stem == "completions":
            kept = _graded(kept)
        _write(path, kept)
        print(f"{path}: {len(new)} rows beside the stored {len(stored)}")


def _rows_by_file(part: Part, folders: Sequence[Path]) -> dict[Path, list[dict]]:
    """Return the rows that a part wants, of all files with its rows in folders and of
    other files, by the file in data/ to which they belong.
    """
    files = []
    for folder in folders:
        of_part = sorted(folder.glob(f"{part.stem}*.jsonl*"))
        files += of_part if folder.is_dir() else [folder]
    rows = read(*files)
    wanted = part.wanted_among({row["key"]: row for row in rows})
    _require_finished(part, wanted)
    if others := len(rows) - len(wanted):
        print(f"{others} rows have other settings than the profile")

    by_file = defaultdict(list)
    for row in wanted:
        # Answers have a file per part, scores one per part and model.
        file = part.shipped.format(part.name).replace("*", row["model"])
        by_file[DATA / part.profile.name / f"{file}.jsonl.gz"].append(row)
    return by_file


def _require_finished(part: Part, rows: Sequence[dict]) -> None:
    """Raise InputError unless the rows of answers under a condition are those of the
    first problems of the sample, equally many of each, and unless all texts of a kind
    are scored under the same conditions.
    """
    groups = defaultdict(lambda: defaultdict(list))
    if part.stem == "completions":
        section, seed = part.section, part.profile.seed
        listed = listed_problems(section.problems, seed=seed, levels=section.levels)
        order = [problem.id for problem in sampling_order(listed, seed)]
        for row in rows:
            group = row["model"], row["condition"]
            groups[group][row["problem_id"]].append(row["sample"])
    else:
        order = None
        for row in rows:
            text = row.get("answer", row["problem_id"])
            groups[row["model"], row["target"]][text].append(row["condition"])
    for group, found in groups.items():
        is_first = order is None or found.keys() == set(order[: len(found)])
        if not is_first or len({frozenset(one) for one in found.values()}) > 1:
            raise InputError(
                f"{', '.join(group)}: let the run finish, rows are missing"
            )


def _write(path: Path, rows: Sequence[dict]) -> None:
    """Write rows as a file whose bytes depend only on them."""
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    write_atomically(path, gzip.compress(lines.encode(), mtime=0))


def _graded(rows: Sequence[dict]) -> list[dict]:
    """Return the rows of answers with the grades of the present code, and print the
    fields that changed.

    The authors' rule as published would need the prompt.
    """
    graded = []
    grades = grade_many([(row["answer"], row["response"]) for row in rows])
    for row, grade in zip(rows, grades, strict=True):
        answer, response = row["answer"], row["response"]
        by_authors = is_correct_by_authors(answer, "", response)
        new = row | {name: getattr(grade, name) for name in GRADE_FIELDS}
        new["correct_authors_on_completion"] = by_authors
        new["correct_exact"] = is_exact_match(answer, grade.extracted)
        if changed := [name for name in row if new[name] != row[name]]:
            answer_of = f"{row['problem_id']}, {row['condition']}"
            print(f"{answer_of}: {', '.join(changed)} changed by grading again")
        graded.append(new)
    return graded


def main() -> None:
    """Store the part that the command line names."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("profile", help="name of a file of data/profiles")
    parser.add_argument("part", nargs="?", help="main, fillers, likelihood, draws ...")
    parser.add_argument(
        "folders", nargs="*", type=Path, help="folders of runs, or files of them"
    )
    options = parser.parse_args()
    progress.shown = True
    profile = load_profile(options.profile)
    if options.part:
        store_rows(profile, options.part, options.folders)
    else:
        store_measurements(profile)


if __name__ == "__main__":
    try:
        main()
    except InputError as error:
        sys.exit(f"error: {error}")
