"""Every notebook runs: by papermill, with checks of its numbers; by nbval, compared
with its stored outputs; and on measurements with the rounding of another machine.
"""

import base64
import json
import os
import re
import shutil
import subprocess
import sys

import nbformat
import numpy as np
import pandas as pd
import pytest
import yaml
from commands import copy_repository
from one_kernel import run_in_one_kernel

from reproduction import paths
from reproduction.profiles import load_profile, profile_with_overrides

NOTEBOOKS = sorted(paths.NOTEBOOKS.glob("[0-9][0-9]_*.ipynb"))
BOOKS = {path.stem: nbformat.read(path, as_version=4) for path in NOTEBOOKS}
CODE = {
    name: [cell for cell in book.cells if cell.cell_type == "code"]
    for name, book in BOOKS.items()
}
# The least number of cells whose text nbval compares; fewer means lost outputs.
COMPARED_FLOOR = 45
WIDEST_ROW = 195  # characters; a page breaks the headings and intervals of such a row
COMMITTED = ("demo", "families")
# Code that runs before the notebooks: it multiplies every measurement by 1 ± 1e-5, as
# if at random. Equal numbers stay equal, as on every machine.
SHAKING = """
import numpy as np
from reproduction.measurement import measurement_run as measuring

def shaken(values):
    if values.dtype.kind != "f":
        return values
    return values * (1 + 1e-5 * np.sin(1e6 * values)).astype("float32")

def shaking(measure):
    def measured(*args, **kw):
        datasets = measure(*args, **kw)
        return {name: datasets[name].map(shaken, keep_attrs=True) for name in datasets}

    return measured

measuring.measure = shaking(measuring.measure)
"""


@pytest.fixture(scope="module")
def copy(tmp_path_factory):
    """A copy of the repository, with one number of a figure's table changed by 5 %."""
    folder = copy_repository(tmp_path_factory.mktemp("copy"))
    for profile in COMMITTED:
        shutil.copytree(paths.FIGURES / profile, folder / "figures" / profile)

    # Measurements of this version of the code need not be repeated.
    measured = paths.RESULTS / "demo" / "measured"
    if measured.is_dir():
        shutil.copytree(measured, folder / "results" / "demo" / "measured")
    file = folder / "figures" / "families" / "fig18.csv"
    table = pd.read_csv(file)
    table.iloc[8, -1] *= 1.05
    table.to_csv(file, index=False)
    return folder


def rewritten(copy, profile):
    """Return the names of a profile's committed figure files that differ in the
    copy.
    """
    in_copy = copy / "figures" / profile
    files = (paths.FIGURES / profile).iterdir()
    return {
        path.name
        for path in files
        if (in_copy / path.name).read_bytes() != path.read_bytes()
    }


@pytest.fixture(scope="module")
def as_stored(copy):
    """The finished process of nbval, which runs every notebook and compares its outputs
    with the stored ones.
    """
    options = "-q --nbval --nbval-current-env -p no:cacheprovider notebooks"
    return subprocess.run(
        [sys.executable, "-m", "pytest", *options.split()],
        cwd=copy,
        env=os.environ | {"PYTHONPATH": str(copy)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_nbval_fails_if_a_magic_does(tmp_path):
    shutil.copy(paths.NOTEBOOKS / "conftest.py", tmp_path)
    failing = nbformat.v4.new_code_cell("%no_such_magic", execution_count=1)
    nbformat.write(nbformat.v4.new_notebook(cells=[failing]), tmp_path / "a.ipynb")
    options = "-q --nbval --nbval-current-env -p no:cacheprovider a.ipynb"
    command = [sys.executable, "-m", "pytest", *options.split()]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert "1 failed" in ran.stdout


def test_nbval_reproduces_the_stored_outputs(as_stored):
    assert as_stored.returncode == 0, as_stored.stdout[-4000:]
    cells = [cell for code in CODE.values() for cell in code]
    assert sum(bool(text_of(cell)) for cell in cells) >= COMPARED_FLOOR


@pytest.mark.parametrize("name", BOOKS)
def test_the_text_describes_the_profile_that_is_stored(name):
    sources = "\n".join(cell.source for cell in CODE[name])
    stored = re.search(r'^profile = "(\w+)"', sources, re.MULTILINE)
    described = re.findall(r'figures\.text_describes\("(\w+)", run\)', sources)
    assert all(profile == stored[1] for profile in described)


def text_of(cell):
    """Return the tables and the prose of a cell as one text."""
    texts = []
    for output in cell.outputs:
        shown = output.get("data", {})
        texts.append(shown.get("text/markdown") or shown.get("text/plain", ""))
    return " ".join(" ".join(texts).split())


@pytest.mark.parametrize("name", BOOKS)
def test_a_stored_picture_is_the_file_that_it_names(name):
    for cell in CODE[name]:
        shown = [output.get("data", {}) for output in cell.outputs]
        files = re.findall(r"Saved as `(\S+\.png)`", text_of(cell))
        pictures = [data["image/png"] for data in shown if "image/png" in data]
        for file, picture in zip(
            files, pictures, strict="figures.keep(" in cell.source
        ):
            assert base64.b64decode(picture) == (paths.ROOT / file).read_bytes(), file


def test_a_run_redraws_only_the_figure_whose_numbers_differ(as_stored, copy):
    # The run restores the committed numbers in its table.
    assert rewritten(copy, "families") <= {"fig18.png", "fig18.pdf"}


def run_demo(copy, before=""):
    """Run the demo's notebooks except 07 and 09, whose scores the demo lacks."""
    shown = [path for path in paths.notebooks() if path.stem[:2] not in ("07", "09")]
    return run_in_one_kernel(copy, shown, before, profile="demo")


@pytest.fixture(scope="module")
def measured_here(copy):
    return run_demo(copy)


def test_measuring_the_demo_model_again_gives_the_committed_numbers(
    copy, measured_here
):
    assert not rewritten(copy, "demo")


def test_changes_in_the_fifth_digit_alter_no_text_figure_or_verdict(
    copy, measured_here
):
    file = copy / "results" / "demo" / "claims.json"
    before = json.loads(file.read_text())
    shaken = run_demo(copy, SHAKING)
    for was, now in zip(measured_here.cells, shaken.cells, strict=True):
        assert layout(text_of(was)) == layout(text_of(now))
        assert np.allclose(counts(text_of(was)), counts(text_of(now)), rtol=0, atol=1)
    assert not rewritten(copy, "demo")
    after = json.loads(file.read_text())
    assert after != before
    assert list(map(decided, after)) == list(map(decided, before))


def layout(text):
    return re.sub(r"\d", "#", text)


def counts(text):
    """Return the numbers of a text in units of their last places."""
    numbers = re.findall(r"\d[\d.]*", text)
    return [int(number.replace(".", "")) for number in numbers]


def decided(row):
    return row["id"], row["model"], row["verdict"], row["survives"]


def test_every_notebook_runs_on_five_problems_of_a_users_model(copy, tiny_llama):
    """A first try of a user: few problems and a model that answers at random."""
    run = profile_with_overrides("demo", model=str(tiny_llama), limit=5, name="mine")
    content = run.model_dump()
    content["accuracy"] |= {"levels": None, "max_new_tokens": 8}
    common = {"models": [str(tiny_llama)], "problems": "embedded", "limit": 5}
    of_families = load_profile("families").likelihood.conditions
    # The model has three layers.
    scored = [one for one in of_families if one.deepest <= 3] + ["mless@end"]
    content["likelihood"] = common | {"conditions": list(map(str, scored))}
    content["pass_rates"] = common | {"max_new_tokens": 8}
    (copy / "mine.yaml").write_text(yaml.safe_dump(content))
    stored = paths.notebooks(["02", "03", "05", "06", "07"])
    run_in_one_kernel(copy, stored, profile=str(copy / "mine.yaml"))
    for figure in ("mass_by_layer", "fig10"):
        table = pd.read_csv(copy / "figures" / "mine" / f"{figure}.csv")
        if "source" in table:
            table = table[table.source == "this run"]
        assert set(table.n) == {5}


def test_the_verdicts_on_one_problem_are_a_sentence_that_names_how_many_are_needed(
    copy,
):
    verdicts = paths.notebooks(["06"])
    run = run_in_one_kernel(copy, verdicts, profile="demo", limit=1)
    shown = " ".join(text_of(cell) for cell in run.cells if cell.cell_type == "code")
    assert "**Too few problems**: a claim is judged on 20 problems and more." in shown


def test_notebook_00_runs_without_a_person(copy, tiny_llama):
    tried = {"problem": "What is $2 + 2$?", "filler": " ", "length": 12}
    tried |= {"model": str(tiny_llama), "position": "end", "format": "authors"}
    run = run_in_one_kernel(copy, [paths.NOTEBOOKS / "00_try_it.ipynb"], **tried)
    outputs = [output for cell in run.cells for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.data]
    assert len(pictures) == 1
    assert "widgets" not in run.metadata


@pytest.mark.parametrize("name", BOOKS)
def test_no_row_of_a_table_is_much_wider_than_a_page(name):
    for cell in CODE[name]:
        for output in cell.outputs:
            shown = output.get("data", {})
            lines = shown.get("text/plain", "").splitlines()
            if "text/html" in shown:
                assert max(map(len, lines)) <= WIDEST_ROW, cell.source


@pytest.mark.parametrize("name", BOOKS)
def test_notebooks_are_valid_have_parameters_and_print_no_streams(name):
    nbformat.validate(
        json.loads((paths.NOTEBOOKS / f"{name}.ipynb").read_text("utf-8"))
    )
    assert BOOKS[name].metadata.kernelspec.name == "python3"
    tags = [tag for cell in CODE[name] for tag in cell.metadata.get("tags", [])]
    assert tags.count("parameters") == 1
    for cell in CODE[name]:
        assert cell.execution_count
        assert all(output.output_type != "stream" for output in cell.outputs)
