"""Every notebook by papermill, asserting on the numbers it publishes, and by nbval against its stored outputs."""

import ast
import json
import os
import re
import shutil
import statistics
import subprocess
import sys

import nbformat
import papermill
import pytest
from commands import copy_repository

from lib import paths
from lib.claims.verdict import VERDICTS
from lib.figures.saving import agreement
from lib.profiles import run_profile

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
# Cells whose text or table nbval really compares, over all notebooks: fewer means that outputs were lost.
COMPARED_FLOOR = 37
# What a cell is at most, so that a reader takes it in at a glance: it states, calls and shows.
LINES, WIDTH, MEDIAN = 10, 120, 6


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository, in whose figures one number is off in the seventh digit and one by five percent."""
    folder = copy_repository(tmp_path_factory.mktemp("copy"))
    for profile in ("demo", "families"):
        shutil.copytree(paths.FIGURES / profile, folder / "figures" / profile)
    (folder / "results" / "demo").mkdir(parents=True)
    for file in (paths.RESULTS / "demo").glob("*.nc"):  # what `make reproduce` measured here need not be again
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


def published(copy, name, profile="demo"):
    """Return the rows that a notebook published when it last ran."""
    return json.loads((copy / "results" / profile / f"{name}.json").read_text())


def rewritten(copy, profile):
    """Return the names of a profile's committed figures whose files are others in the copy."""
    return {
        path.name
        for path in (paths.FIGURES / profile).iterdir()
        if (copy / "figures" / profile / path.name).read_bytes() != path.read_bytes()
    }


@pytest.fixture(scope="module")
def execute(copy):
    """Run a notebook of the copy with the profile demo, as `papermill` does."""

    def run(name, **parameters):
        notebook, given = copy / "notebooks" / f"{name}.ipynb", {"profile": "demo", **parameters}
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("PYTHONPATH", str(copy))
            papermill.execute_notebook(
                str(notebook), str(copy / "out.ipynb"), given, kernel_name="python3", progress_bar=False
            )

    return run


@pytest.fixture(scope="module")
def as_stored(copy):
    """Run every notebook under nbval, which compares what is printed with the stored outputs; return how it ended."""
    options = ["-q", "--nbval", "--nbval-current-env", "-p", "no:cacheprovider", "notebooks"]
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def measured(copy, execute):
    """Run every notebook but 07 with the profile demo, which networks compute here and now and which has no scores."""
    for notebook in paths.notebooks():
        if notebook.stem != "07_does_it_help":
            execute(notebook.stem)


def test_nbval_finds_the_stored_outputs_again(as_stored):
    assert as_stored.returncode == 0, as_stored.stdout[-4000:]
    assert int(re.search(r"(\d+) passed", as_stored.stdout)[1]) >= COMPARED_FLOOR


def test_a_run_names_the_figure_that_differs_by_some_percent_and_no_other(as_stored, copy):
    first, *others = agreement(copy / "results" / "families").splitlines()
    assert len(others) == 1 and others[0].startswith("fig18 was drawn anew: received in line 10: ")
    same, drawn = map(int, re.match(r"(\d+) of (\d+) figures agree", first).groups())
    assert same == drawn - 1 and "new" not in first
    assert rewritten(copy, "families") <= {"fig13.csv", "fig18.png", "fig18.pdf"}


def test_the_demo_measured_here_gives_the_numbers_that_are_committed(measured, copy):
    first, *others = agreement(copy / "results" / "demo").splitlines()
    assert not others, others
    same, drawn = map(int, re.match(r"(\d+) of (\d+) figures agree", first).groups())
    assert same == drawn == len(list((paths.FIGURES / "demo").glob("*.csv"))) and not rewritten(copy, "demo")


def test_attention_maps_publish_lambda_of_each_drawn_head(measured, copy):
    rows = {row["figure"]: row for row in published(copy, "01_attention_maps")}
    assert set(rows) == {"fig13", "fig18"}
    assert all(len(row["lambda"]) == 3 and all(0 < value < 1 for value in row["lambda"]) for row in rows.values())


def test_effect_is_measured_over_the_problems_given(execute, copy, tiny_llama):
    given = {"model": str(tiny_llama), "limit": 5}
    execute("02_meaningless_effect", **given)
    name = run_profile("demo", **given).name
    rows = {row["figure"]: row for row in published(copy, "02_meaningless_effect", name)}
    assert set(rows) == {"fig09", "fig10_right", "fig11", "causes"}
    assert {row["n"] for row in rows.values()} == {5}
    for figure in (*rows, "lambda_by_head", "lambda_map", "lambda_by_layer", "inserted_span"):
        assert (copy / "figures" / name / f"{figure}.png").stat().st_size > 5_000
    assert rows["fig09"]["lambda"][0] < 1


def test_accuracy_counts_every_stored_completion_once(measured, copy):
    row, fillers = published(copy, "03_math500")
    assert fillers["figure"] == "fig08" and fillers["n"] == 48
    assert row["n"] == 96 and [part["condition"] for part in row["table"]] == ["none", "mless", "mful"]
    assert all(part["low"] <= part["accuracy"] <= part["high"] for part in row["table"])
    figure = (copy / "figures" / "demo" / "fig10.csv").read_text()
    assert "the paper" in figure and "this run" in figure


def test_claims_are_judged_on_what_the_other_notebooks_show(measured, copy):
    (row,) = published(copy, "06_claims")
    verdicts = json.loads((copy / "results" / "demo" / "claims.json").read_text())
    assert {v["verdict"] for v in verdicts} <= set(VERDICTS) and len(verdicts) >= 15
    assert sum(int(part.split()[0]) for part in row["found"].split(", ")) == len(verdicts)
    tested = [v for v in verdicts if v["n"]]
    assert len(tested) >= 15 and all(v["low"] <= v["effect"] <= v["high"] for v in tested)


def test_likelihoods_are_shown_as_stored_with_how_they_stand(as_stored, copy):
    rows = published(copy, "07_does_it_help", "families")
    assert {row["figure"] for row in rows} == {"likelihood", "answer_at_once"}
    assert all(row["n"] >= 20 and row["found"].startswith("mless ") for row in rows)
    assert (copy / "figures" / "families" / "likelihood.png").stat().st_size > 5_000


def test_activations_are_measured_over_the_problems_given(execute, copy, tiny_llama):
    given = {"model": str(tiny_llama), "limit": 4}
    execute("04_activation_redistribution", **given)
    name = run_profile("demo", **given).name
    rows = {row["figure"]: row for row in published(copy, "04_activation_redistribution", name)}
    assert set(rows) == {"fig04", "fig07"} and {row["n"] for row in rows.values()} == {4}
    for figure in (*rows, "activations_by_layer"):
        assert (copy / "figures" / name / f"{figure}.png").stat().st_size > 5_000


def test_arm_is_compared_in_pairs(measured, copy):
    rows = {row["figure"]: row for row in published(copy, "05_arm")}
    assert set(rows) == {"table 2", "fig06", "fig12"} and rows["table 2"]["n"] == 96


def test_what_families_lack_is_said_in_a_sentence():
    for name, parts in {"02_meaningless_effect": 1, "03_math500": 2}.items():
        printed = [
            output.text
            for cell in nbformat.read(paths.NOTEBOOKS / f"{name}.ipynb", as_version=4).cells
            for output in cell.get("outputs", [])
            if output.get("name") == "stdout" and output.text.startswith(("Not measured in ", "Not drawn here: "))
        ]
        assert len(printed) == parts and all("profile demo" in text for text in printed)


def compared_cells(notebook):
    """Count code cells with printed text or a table, the outputs that nbval compares here."""
    cells = nbformat.read(notebook, as_version=4).cells
    return sum(
        any(output.output_type == "execute_result" or output.get("name") == "stdout" for output in cell.outputs)
        for cell in cells
        if cell.cell_type == "code"
    )


def test_stored_outputs_are_there_to_be_compared():
    assert sum(compared_cells(notebook) for notebook in NOTEBOOKS) >= COMPARED_FLOOR


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_state_call_and_show(notebook):
    book = nbformat.read(notebook, as_version=4)
    code = [cell for cell in book.cells if cell.cell_type == "code"]
    assert book.metadata.kernelspec.name == "python3" and "papermill" not in book.metadata
    assert all(cell.execution_count for cell in code)
    assert sum("parameters" in cell.metadata.get("tags", []) for cell in code) == 1
    lines = [cell.source.splitlines() for cell in code]
    assert max(map(len, lines)) <= LINES and statistics.median(map(len, lines)) <= MEDIAN
    assert max(len(line) for cell in lines for line in cell) <= WIDTH
    assert notebook.stat().st_size < 1_000_000


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebooks_define_nothing_and_assemble_no_sentence(notebook):
    cells = [cell.source for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    nodes = [node for source in cells for node in ast.walk(ast.parse(source))]
    assert not any(isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Lambda) for node in nodes)
    printed = [
        node for node in nodes if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("print", "say")
    ]
    assert not any(isinstance(inner, ast.JoinedStr) for node in printed for inner in ast.walk(node))


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_no_sentence_that_goes_on_with_a_number_turns_into_a_list(notebook):
    texts = [cell.source for cell in nbformat.read(notebook, 4).cells if cell.cell_type == "markdown"]
    assert not [text for text in texts if re.search(r"\S\n\d+[.)] ", text)]


def test_a_person_is_needed_by_no_notebook(copy, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(copy))
    given = {"problem": "What is $2 + 2$?", "filler": " ", "length": 12, "position": "end"}
    run = papermill.execute_notebook(
        str(copy / "notebooks" / "00_try_it.ipynb"), None, given, kernel_name="python3", progress_bar=False
    )
    pictures = [output.data for cell in run.cells for output in cell.get("outputs", []) if "image/png" in output.data]
    assert len(pictures) == 1 and "widgets" not in run.metadata


@pytest.mark.parametrize("notebook", NOTEBOOKS[1:], ids=lambda path: path.stem)
def test_notebooks_end_with_what_they_showed_and_where_to_go_next(notebook):
    *_, heading, _, last = nbformat.read(notebook, as_version=4).cells
    assert (
        heading.source.startswith("## What was found")
        and last.cell_type == "markdown"
        and "**Where to go next.**" in last.source
    )
