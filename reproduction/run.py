"""Run the notebooks with papermill, after computing the results that they show.

Before each notebook, the parts of the profile that it needs are computed, with progress
bars. At the end, the run prints the accuracy and the verdicts on the claims.
"""

import os
import sys
import time
from pathlib import Path

import papermill
import yaml
from nbclient.exceptions import DeadKernelError

from lib.errors import InputError
from lib.files.atomic import write_atomically
from lib.prompts.conditions import AUTHORS_FORMATS
from reproduction import paths
from reproduction.claims.verdicts import read_verdicts, totals
from reproduction.evaluation.answer_tables import print_accuracy
from reproduction.evaluation.profile_parts import Part, answers, parts_of_profile
from reproduction.measurement.dataset import MEASURED_PARTS
from reproduction.measurement.measurement_run import MeasuredPart
from reproduction.plan import summary, tasks_of
from reproduction.profiles import VARIATIONS, Profile, profile_names

# The parts from which claims are judged.
EVIDENCE = (
    "attention",
    "controls",
    "activations",
    "main",
    *VARIATIONS,
    "likelihood",
    "ablations",
    "draws",
    "draw_scores",
)
# The parts of a profile that have to be computed before a notebook starts.
NEEDS = {
    "01_attention_maps": ("tokens", "attention"),
    "02_meaningless_effect": ("tokens", "attention", "controls"),
    "03_math500": ("main", "fillers", "tokens"),
    "04_activation_redistribution": ("activations",),
    "05_arm": ("interventions", "arm_map", "sampling"),
    "06_claims": EVIDENCE,
    "07_does_it_help": EVIDENCE,
    "08_why": ("ablations", "likelihood", "attention", "controls"),
    "09_separators": ("likelihood", "main", "fillers"),
}
SHOWS_ACCURACY = "03_math500"
SHOWS_VERDICTS = "06_claims"
# Notebooks that show only an optional section of a profile.
SHOWS_SECTION = {"07_does_it_help": "likelihood", "08_why": "ablations"}
# The notebook that shows what is measured with the authors' prompt.
SHOWS_AUTHORS_PROMPT = "09_separators"


def reproduce(profile: Profile, notebooks: list[Path], fresh: bool) -> None:
    """Run these notebooks under `profile`, store their executed copies and figures, and
    print the accuracy and the verdicts on the claims that they show.

    fresh: whether the repository's measurements are ignored; its answers and scores are
    used in any case. The number of prompts to compute is printed first. Raises
    InputError for a notebook that fails.
    """
    started = time.monotonic()
    notebooks = _with_something_to_show(notebooks, profile)
    needs = {need for path in notebooks for need in NEEDS.get(path.stem, ())}
    print(summary(tasks_of(profile, needs, stored=not fresh)), flush=True)
    recorded = yaml.safe_dump(profile.model_dump(), sort_keys=False)
    write_atomically(profile.results / "profile.yaml", recorded.encode())
    # Each part is computed before the first notebook that needs it.
    incomplete: dict[str, MeasuredPart | Part] = {
        name: MeasuredPart(profile, name, stored=not fresh) for name in MEASURED_PARTS
    }
    incomplete |= parts_of_profile(profile)
    for index, notebook in enumerate(notebooks, 1):
        print(f"[{index}/{len(notebooks)}] {notebook.stem}", flush=True)
        for need in NEEDS.get(notebook.stem, ()):
            if need in incomplete:
                incomplete.pop(need).complete()
        _execute(notebook, profile)
    shown = {notebook.stem for notebook in notebooks}
    if SHOWS_ACCURACY in shown:
        print_accuracy(answers(profile))
    if SHOWS_VERDICTS in shown:
        print(f"The paper's literal claims: {totals(read_verdicts(profile.results))}")
    seconds = time.monotonic() - started
    print(f"Done in {seconds:.0f} s. Figures: {profile.figures}", flush=True)


def _with_something_to_show(notebooks: list[Path], profile: Profile) -> list[Path]:
    """Return the notebooks without those that show only what the profile does not have.

    Raises InputError if no notebook is left.
    """
    lacking = {
        stem: f"section `{section}`"
        for stem, section in SHOWS_SECTION.items()
        if section not in profile.parts
    }
    likelihood = profile.likelihood
    if likelihood is None or likelihood.format not in AUTHORS_FORMATS:
        lacking[SHOWS_AUTHORS_PROMPT] = "likelihood with the format authors"
    others = [path for path in notebooks if path.stem not in lacking]
    if not others:
        stem = notebooks[0].stem
        raise InputError(
            f"profile {profile.name} has no {lacking[stem]}, which notebook"
            f" {stem[:2]} shows"
        )
    return others


def _set_environment() -> None:
    """Make kernels use this environment and import this copy of the package, even if
    another checkout is installed.
    """
    folders = [str(paths.ROOT), os.environ.get("PYTHONPATH")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, folders))
    os.environ["JUPYTER_PREFER_ENV_PATH"] = "1"


def _execute(notebook: Path, profile: Profile) -> None:
    """Run one notebook under a profile, and store the executed copy in the results.

    Raises InputError for a cell that fails, a kernel that dies, a copy that cannot be
    written and a file that is no notebook.
    """
    # A profile outside data/profiles is passed as the file that records the run.
    shipped = profile.name in profile_names()
    name = profile.name if shipped else str(profile.results / "profile.yaml")
    executed = profile.results / notebook.name
    _set_environment()
    try:
        papermill.execute_notebook(
            str(notebook),
            str(executed),
            {"profile": name},
            kernel_name="python3",
            language="python",  # for a notebook whose metadata were removed
            cwd=str(paths.NOTEBOOKS),
            # Otherwise the kernel warns about TCP in front of the progress bar, and
            # now and then reports an error because it is interrupted before it ends.
            extra_arguments=["--log-level=CRITICAL"],
            progress_bar=sys.stderr.isatty(),
        )
    except papermill.PapermillExecutionError as error:
        reason = f"{error.ename}: {error.evalue} (executed copy: {executed})"
        raise InputError(f"{notebook.stem} stopped: {reason}") from error
    except OSError as error:
        # Papermill's errors often lack the name of the file, which is this copy then.
        path = error.filename or executed
        raise InputError(f"cannot write {path}: {error.strerror or error}") from error
    except DeadKernelError as error:
        raise InputError(
            f"{notebook.stem}: its kernel died, probably because memory ran out: close"
            " other programs, or choose a smaller model"
        ) from error
    except Exception as error:  # of a file that is no notebook, in many classes
        reason = str(error).partition("\n")[0]
        raise InputError(f"{notebook} cannot be run: {reason}") from error
