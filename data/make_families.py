"""Write data/families: what the profile measured and answered, small enough to keep,
without a problem's text.

    python data/make_families.py STORE...            # folders or files of completions, as `evaluate` wrote them
    python data/make_families.py --scores STORE...   # or of scores, as `likelihood` wrote them

Without a store it measures what results/families lacks, which takes an hour and the
wheels of requirements/families.txt. Only problems that were answered, or scored, under
every condition of a model are kept; completions are graded as the code grades now.
`make scores` draws anew what shows the scores.
"""

import argparse
import gzip
import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import xarray as xr

from lib import progress
from lib.grading.answer import cut_run_on
from lib.grading.authors import correct_authors, correct_exact
from lib.grading.pool import grade_many
from lib.measurement.store import measure, save
from lib.paths import DATA, write_whole
from lib.profiles import Profile, load_profile
from lib.statistics import ENOUGH

FOLDER = DATA / "families"
BITS = 12  # of a number's mantissa: exact to 0.00025 of it
FIELDS = ("extracted", "method", "correct", "evaluated")  # of a grade
SCORE = (
    "key",
    "model",
    "revision",
    "condition",
    "target",
    "problem_id",
    "level",
    "tokens",
    "nats",
    "dtype",
)


def write_measurements(profile: Profile) -> None:
    """Write a file per model with everything that figures and claims ask of its
    attention and activations.
    """
    for name, measured in measure(profile, stored=False).items():
        save(
            FOLDER / f"{name}.nc",
            measured.drop_vars("text").map(rounded, keep_attrs=True),
        )


def rounded(values: xr.DataArray) -> xr.DataArray:
    """Return numbers with BITS of their mantissa, for zlib to find little in; counts
    and names as they are.
    """
    if values.dtype.kind != "f" or values.name == "counts":
        return values
    mantissa, exponent = np.frexp(values.values)
    return values.copy(
        data=np.ldexp(np.round(mantissa * 2**BITS) / 2**BITS, exponent).astype(
            "float32"
        )
    )


def write_answers(stores: list[Path], about: dict[str, str]) -> None:
    """Write a file per model with the completions of all its stores; `about` is what
    older records do not say.
    """
    models = defaultdict(list)
    for record in _records(stores, "completions"):
        models[record["model"]].append(about | record)
    for name, records in models.items():
        whole = [
            _regraded(record, graded)
            for record, graded in zip(*_graded(_complete(records)), strict=True)
        ]
        _write(FOLDER / f"{name}.jsonl.gz", whole)
        print(
            f"{name}: {len(whole)} completions of"
            f" {len({r['problem_id'] for r in whole})} problems"
        )


def write_scores(stores: list[Path]) -> None:
    """Write a file per model with its SCOREs of all its stores, sorted.

    The solutions under the profile's conditions, those under others (lengths, places,
    layers), which fewer problems may have, and the answers at once are each kept where
    they are complete.
    """
    asked = load_profile("families").likelihood.conditions
    models = defaultdict(lambda: defaultdict(dict))
    for row in _records(stores, "scores"):
        kind = (
            row["target"]
            if row["target"] == "answer" or row["condition"] in asked
            else "other solution"
        )
        models[row["model"]][kind].setdefault(
            row["key"], {name: row[name] for name in SCORE}
        )
    (FOLDER / "likelihood").mkdir(exist_ok=True)
    for name, kinds in models.items():
        whole = {
            kind: _complete(_begun(list(rows.values()))) for kind, rows in kinds.items()
        }
        kept = [row for rows in whole.values() for row in rows]
        kept.sort(key=lambda row: (row["target"], row["problem_id"], row["condition"]))
        _write(FOLDER / "likelihood" / f"{name}.jsonl.gz", kept)
        for kind, rows in whole.items():
            problems, conditions = (
                {row[field] for row in rows} for field in ("problem_id", "condition")
            )
            begun = len({row["problem_id"] for row in kinds[kind].values()})
            print(
                f"{name}: {kind}s of {len(problems)} problems under {len(conditions)}"
                f" conditions, {begun} begun"
            )


def _records(stores: list[Path], stem: str) -> Iterator[dict]:
    """Yield the records of files, and of the files of this name in folders, as far as
    their lines are whole.
    """
    for file in (
        file
        for store in stores
        for file in sorted(store.glob(f"{stem}*.jsonl*")) or [store]
    ):
        content = (
            gzip.decompress(file.read_bytes())
            if file.suffix == ".gz"
            else file.read_bytes()
        )
        yield from map(
            json.loads, content[: content.rfind(b"\n") + 1].splitlines()
        )  # a run may be writing the last


def _write(path: Path, records: Sequence[dict]) -> None:
    lines = "".join(json.dumps(record) + "\n" for record in records)
    write_whole(path, gzip.compress(lines.encode(), mtime=0))


def _complete(records: list[dict]) -> list[dict]:
    """Return the records of problems that were answered under every condition."""
    answered = defaultdict(set)
    for record in records:
        answered[record["problem_id"]].add(record["condition"])
    conditions = set.union(*answered.values())
    return [
        record for record in records if answered[record["problem_id"]] == conditions
    ]


def _begun(rows: list[dict]) -> list[dict]:
    """Return the scores without conditions that a run has only just come to: they would
    leave few problems complete.
    """
    counts = Counter(row["condition"] for row in rows)
    return [row for row in rows if counts[row["condition"]] >= ENOUGH]


def _graded(records: list[dict]):
    return records, grade_many(
        [(record["answer"], record["response"]) for record in records]
    )


def _regraded(record: dict, graded) -> dict:
    """Return a record with the grades of the present code; the authors' rule as
    published would need the prompt.
    """
    answer, response = record["answer"], record["response"]
    rules = {
        "run_on": cut_run_on(response)[1],
        "correct_authors_on_completion": correct_authors(answer, "", response),
        "correct_exact": correct_exact(answer, response),
    }
    new = record | rules | {name: getattr(graded, name) for name in FIELDS}
    if changed := [name for name in record if new[name] != record[name]]:
        print(
            f"{record['problem_id']}, {record['condition']}: {', '.join(changed)}"
            " graded anew"
        )
    return new


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument(
        "stores",
        nargs="*",
        type=Path,
        help="folders or files of completions, or of scores",
    )
    parser.add_argument(
        "--scores", action="store_true", help="the stores hold scores of `likelihood`"
    )
    parser.add_argument(
        "--about",
        default="{}",
        type=json.loads,
        help="JSON of fields that older records lack",
    )
    options = parser.parse_args()
    FOLDER.mkdir(exist_ok=True)
    progress.shown = True
    if options.scores:
        write_scores(options.stores)
    elif options.stores:
        write_answers(options.stores, options.about)
    else:
        write_measurements(load_profile("families"))


if __name__ == "__main__":
    main()
