"""Every notebook by papermill, asserting on the numbers it leaves, and by nbval against
its stored outputs.
"""

import ast
import os
import re
import shutil
import subprocess
import sys

import nbformat
import papermill
import pytest
from commands import copy_repository

from lib import paths
from lib.figures import agreement

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
BOOKS = {path.stem: nbformat.read(path, as_version=4) for path in NOTEBOOKS}
CODE = {
    name: [cell for cell in book.cells if cell.cell_type == "code"]
    for name, book in BOOKS.items()
}
# cells whose text or table nbval really compares: fewer means that outputs were lost
COMPARED_FLOOR = 37
LINES, IMPORTS, ALL = (
    8,
    5,
    180,
)  # lines of a cell, of imports in a notebook, and of code in all notebooks


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository, in whose figures one number is off in the seventh digit
    and one by five percent.
    """
    folder = copy_repository(tmp_path_factory.mktemp("copy"))
    for profile in ("demo", "families"):
        shutil.copytree(paths.FIGURES / profile, folder / "figures" / profile)
    for file in (paths.RESULTS / "demo").glob(
        "*.nc"
    ):  # what was measured with this very code need not be again
        (folder / "results" / "demo").mkdir(parents=True, exist_ok=True)
        shutil.copy(file, folder / "results" / "demo")
    _alter(folder / "figures/families/fig13.csv", 1 + 2e-6)
    _alter(folder / "figures/families/fig18.csv", 1.05)
    return folder


def _alter(file, factor):
    """Multiply the number at the end of a csv's tenth line."""
    lines = file.read_text().splitlines(keepends=True)
    start, _, number = lines[9].rpartition(",")
    lines[9] = f"{start},{float(number) * factor:.9g}\n"
    file.write_text("".join(lines))


def rewritten(copy, profile):
    """Return the names of a profile's committed figures whose files are others in the
    copy.
    """
    files = (paths.FIGURES / profile).iterdir()
    return {
        path.name
        for path in files
        if (copy / "figures" / profile / path.name).read_bytes() != path.read_bytes()
    }


def agreeing(copy, profile):
    """Return how many figures agree, of how many, and what else the last words of a run
    say.
    """
    first, *others = agreement(copy / "results" / profile).splitlines()
    return *map(int, re.match(r"(\d+) of (\d+) figures agree", first).groups()), others


@pytest.fixture(scope="module")
def execute(copy):
    """Run a notebook of the copy as `papermill` does, and return it."""

    def run(name, **parameters):
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(copy))
            path = str(copy / "notebooks" / f"{name}.ipynb")
            return papermill.execute_notebook(
                path, None, parameters, kernel_name="python3", progress_bar=False
            )

    return run


@pytest.fixture(scope="module")
def as_stored(copy):
    """Run every notebook under nbval, which compares what is printed with the stored
    outputs; return how it ended.
    """
    command = (
        f"{sys.executable} -m pytest -q --nbval --nbval-current-env -p no:cacheprovider"
        " notebooks"
    )
    environment = os.environ | {"PYTHONPATH": str(copy)}
    return subprocess.run(
        command.split(),
        cwd=copy,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def measured(copy, execute):
    """Run every notebook but 07 with the profile demo, which networks compute here and
    now and which has no scores.
    """
    for notebook in paths.notebooks()[:-1]:
        execute(notebook.stem, profile="demo")


def test_nbval_finds_the_stored_outputs_again(as_stored):
    assert as_stored.returncode == 0, as_stored.stdout[-4000:]
    assert int(re.search(r"(\d+) passed", as_stored.stdout)[1]) >= COMPARED_FLOOR


def test_a_run_names_the_figure_that_differs_by_some_percent_and_no_other(
    as_stored, copy
):
    same, drawn, (other,) = agreeing(copy, "families")
    assert (
        same == drawn - 1 == len(list((paths.FIGURES / "families").glob("*.csv"))) - 1
    )
    assert other.startswith("fig18 was drawn anew: received in line 10: ")
    assert rewritten(copy, "families") <= {"fig13.csv", "fig18.png", "fig18.pdf"}


def test_the_demo_measured_here_gives_the_numbers_that_are_committed(measured, copy):
    same, drawn, others = agreeing(copy, "demo")
    assert not others and same == drawn == len(
        list((paths.FIGURES / "demo").glob("*.csv"))
    )
    assert not rewritten(copy, "demo")


def test_a_person_is_needed_by_no_notebook(execute):
    run = execute(
        "00_try_it", problem="What is $2 + 2$?", filler=" ", length=12, position="end"
    )
    pictures = [
        output.data
        for cell in run.cells
        for output in cell.get("outputs", [])
        if "image/png" in output.data
    ]
    assert len(pictures) == 1 and "widgets" not in run.metadata


def test_their_stored_outputs_are_there_to_compare_and_say_what_families_lack():
    cells = [cell for code in CODE.values() for cell in code]
    shown = [
        {
            out.output_type if out.get("name") != "stdout" else "text"
            for out in cell.outputs
        }
        for cell in cells
    ]
    assert (
        sum(bool(kinds & {"execute_result", "text"}) for kinds in shown)
        >= COMPARED_FLOOR
    )
    assert sum(line != "" for cell in cells for line in cell.source.splitlines()) <= ALL
    said = [
        out.text
        for cell in CODE["03_math500"]
        for out in cell.outputs
        if out.get("name") == "stdout"
    ]
    assert sum("The profile demo does." in text for text in said) >= 2


@pytest.mark.parametrize("name", BOOKS)
def test_notebooks_state_call_and_show(name):
    assert (
        BOOKS[name].metadata.kernelspec.name == "python3"
        and "papermill" not in BOOKS[name].metadata
    )
    assert all(
        cell.execution_count and len(cell.source.splitlines()) <= LINES
        for cell in CODE[name]
    )
    assert (
        sum("parameters" in cell.metadata.get("tags", []) for cell in CODE[name]) == 1
    )
    lines = [line for cell in CODE[name] for line in cell.source.splitlines()]
    assert sum(line.startswith(("from ", "import ")) for line in lines) <= IMPORTS
    nodes = [node for cell in CODE[name] for node in ast.walk(ast.parse(cell.source))]
    assert not any(
        isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda) for node in nodes
    )
    *_, heading, _, last = BOOKS[name].cells
    assert name == "00_try_it" or heading.source.startswith("## What was found")
    assert name == "00_try_it" or "**Where to go next.**" in last.source
