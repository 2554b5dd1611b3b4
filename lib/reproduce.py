"""Run the notebooks end to end with papermill: what each needs first, with bars, then
how the claims stand.
"""

import os
import shutil
import sys
import time
from pathlib import Path

import papermill
import yaml

from lib import evaluation, paths
from lib.claims.verdict import read_verdicts
from lib.claims.words import counts
from lib.errors import InputError
from lib.figures.page import RECORD, agreement
from lib.measurement import store as measurement
from lib.profiles import PARTS, Profile, profile_names

# What a notebook finds computed when it starts, by its number: parts of measurements,
# of answers, likelihoods.
NEEDS = {
    "01": ("tokens",),
    "02": ("tokens", "attention", "controls"),
    "03": ("main", "fillers", "sampling"),
    "04": ("activations",),
    "05": ("interventions", "arm_map", "sampling"),
    "06": ("attention", "controls", "activations", "main", *PARTS, "likelihood"),
    "07": ("main", "likelihood"),
}
# problems of the demo whose stored answers are made again: a minute of the six that a
# run takes
CHECKED = 32


def reproduce(profile: Profile, notebooks: list[Path], fresh: bool) -> None:
    """Run these notebooks under `profile` and print how the claims stand; what is
    finished is reused unless `fresh`.

    The demo's answers are those stored with the repository, checked on CHECKED
    problems, unless `fresh`. Raises InputError for a notebook that stops.
    """
    if profile.likelihood is None:  # 07 would have nothing to show
        notebooks = [notebook for notebook in notebooks if notebook.stem[:2] != "07"]
        if not notebooks:
            raise InputError(
                f"profile {profile.name} has no section `likelihood`, which notebook 07"
                " shows"
            )
    results, started, prepared = profile.results, time.monotonic(), set()
    if fresh and results.exists():
        shutil.rmtree(results)
    results.mkdir(parents=True, exist_ok=True)
    (results / RECORD).unlink(missing_ok=True)
    (results / "profile.yaml").write_text(
        yaml.safe_dump(profile.model_dump(), sort_keys=False)
    )
    # A profile of another name is handed to the notebooks as the file that records it.
    parameters = {
        "profile": (
            profile.name
            if profile.name in profile_names()
            else str(results / "profile.yaml")
        )
    }
    generated = fresh if profile.name == "demo" else not evaluation.stored_file(profile)
    for index, notebook in enumerate(notebooks, 1):
        print(f"[{index}/{len(notebooks)}] {notebook.stem}", flush=True)
        for need in [
            need for need in NEEDS.get(notebook.stem[:2], ()) if need not in prepared
        ]:
            _prepare(need, profile, fresh)
            prepared.add(need)
        _execute(
            notebook,
            results,
            parameters | ({"completions": str(results)} if generated else {}),
        )
    if any(notebook.stem[:2] == "06" for notebook in notebooks):
        print(
            "Claims by"
            f" verdict:\n{counts(read_verdicts(profile)).to_string(index=False)}"
        )
    print(f"Done in {time.monotonic() - started:.0f} s. Figures: {profile.figures}")
    print(agreement(results), flush=True)


def _prepare(need: str, profile: Profile, fresh: bool) -> None:
    """Compute what the notebooks would, but with bars; what is there already takes no
    time.
    """
    if need in measurement.PARTS:
        measurement.measure(
            profile, need, stored=not fresh
        )  # once begun anew, what the repository has is not read
    elif need == "likelihood":
        evaluation.scores(profile)
    elif need != "main" or profile.name != "demo":
        evaluation.answers(profile, need)
    else:
        asked = (
            profile.accuracy
            if fresh
            else profile.accuracy.model_copy(update={"limit": CHECKED})
        )
        # In a folder of its own, since what reads `results` takes its answers for all
        # of them.
        folder = profile.results if fresh else profile.results / "check"
        found = evaluation.answers(
            profile.model_copy(update={"accuracy": asked}), folder=folder
        )
        same, common = evaluation.same_texts(profile, found)
        print(
            f"{same} of {common} completions agree with the stored demo's", flush=True
        )


def _execute(notebook: Path, results: Path, parameters: dict) -> None:
    """Run one notebook into `results`; only parameters that it declares are passed."""
    declared = papermill.inspect_notebook(str(notebook))
    # A kernel started from another checkout's environment must still import this one's
    # package.
    os.environ["PYTHONPATH"] = os.pathsep.join(
        [str(paths.ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]
    )
    try:
        papermill.execute_notebook(
            str(notebook),
            str(results / notebook.name),
            {name: value for name, value in parameters.items() if name in declared},
            kernel_name="python3",
            cwd=str(paths.NOTEBOOKS),
            extra_arguments=[
                "--log-level=ERROR"
            ],  # of the kernel, which else warns of TCP in front of the bar
            progress_bar=sys.stderr.isatty()
            and {"desc": notebook.stem, "unit": "cell", "file": sys.stderr},
        )
    except papermill.PapermillExecutionError as error:
        said = (
            f"{error.ename}: {error.evalue} (executed copy: {results / notebook.name})"
        )
        raise InputError(f"{notebook.stem} stopped: {said}") from error
