"""What another machine would print and draw: the notebooks under other kernels, and on measurements shaken a little.

Nothing that a reader could see may move: no file of a figure, no verdict, no printed sentence, and no printed number by
more than one in its last place, nor may it be printed with more or fewer places.
"""

import io
import json
import re

import nbformat
import pandas as pd
import papermill
import pytest
import yaml
from commands import copy_repository

from lib.figures import agreement
from lib.figures.page import largest_difference

MEASURING = ("01", "02", "04", "06")  # of which networks compute something
PROBLEMS = 20  # as many as a verdict takes
# As on processors without AVX2, and with AVX2 alone; torch, oneDNN, MKL, NumPy's OpenBLAS and NumPy each ask their own.
OLD = {"ATEN_CPU_CAPABILITY": "default", "ONEDNN_MAX_CPU_ISA": "SSE41", "MKL_CBWR": "COMPATIBLE"}
AVX2 = {"ATEN_CPU_CAPABILITY": "avx2", "ONEDNN_MAX_CPU_ISA": "AVX2", "MKL_CBWR": "AVX2"}
MACHINES = {
    "old": OLD | {"OPENBLAS_CORETYPE": "Nehalem", "OMP_NUM_THREADS": "1"},
    "avx2 with two threads": AVX2 | {"OPENBLAS_CORETYPE": "Haswell", "OMP_NUM_THREADS": "2"},
}
# Put before a notebook: all that is measured, times 1 ± 1e-5 at random. Evenly spread attention is arithmetic, equal in
# all heads.
SHAKING = """
import numpy as np
from lib.measurement import run

rng = np.random.default_rng(0)

def shaken(values):
    if values.dtype.kind != "f":
        return values
    moved = values * (1 + 1e-5 * rng.uniform(-1, 1, values.shape)).astype("float32")
    return moved.where(values.network != "uniform", values) if "network" in values.dims else moved

def shaking(measure):  # a notebook has a `measure` of its own
    return lambda *args, **kw: {name: one.map(shaken, keep_attrs=True) for name, one in measure(*args, **kw).items()}

run.measure = shaking(run.measure)
"""
# ARM moves an activation by its sign and by whether it is within a bound, so that the last digit decides where one near
# zero goes. In layer 3 that moves the variance of one prompt by 1 to 2 %: as far as it can be known.
ARM = r"(?m)^.*\barm\b.*\n?"
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def copy(tmp_path_factory, demo):
    """A copy of the repository whose demo profile measures little, and draws into an empty folder.

    The demo model is there already: converting it, once per machine, shows a bar.
    """
    folder = copy_repository(tmp_path_factory.mktemp("machine"))
    file = folder / "data" / "profiles" / "demo.yaml"
    content = yaml.safe_load(file.read_text())
    # Of every layer a handful of problems would be measured, whose intervals one swap of ranks moves visibly.
    content["attention"] |= {"limit": PROBLEMS, "map_problems": None}
    file.write_text(yaml.safe_dump(content))
    return folder


@pytest.fixture(scope="module")
def run(copy):
    """Run the notebooks in a process of their own; return what they print, the files they leave and the verdicts."""

    def in_process(environment, before="", numbers=MEASURING):
        cells = [cell for number in numbers for cell in code_cells(copy, number)]
        whole = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(before), *cells])
        nbformat.write(whole, copy / "whole.ipynb")
        for file in () if before else (copy / "results" / "demo").glob("*.nc"):
            file.unlink()
        with pytest.MonkeyPatch.context() as patch:
            for name, value in {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(copy), **environment}.items():
                patch.setenv(name, value)
            done = papermill.execute_notebook(
                copy / "whole.ipynb", copy / "out.ipynb", cwd=copy, kernel_name="python3", progress_bar=False
            )
        files = {path.name: path.read_bytes() for path in (copy / "figures" / "demo").iterdir()}
        return [text_of(cell) for cell in done.cells], files, verdicts(copy)

    return in_process


def code_cells(copy, number):
    """Return the code cells of a notebook, of the demo whatever profile it stores."""
    (notebook,) = (copy / "notebooks").glob(f"{number}_*.ipynb")
    cells = [cell for cell in nbformat.read(notebook, as_version=4).cells if cell.cell_type == "code"]
    for cell in cells:
        if "parameters" in cell.metadata.get("tags", []):
            cell.source += '\nprofile = "demo"'
    return [nbformat.v4.new_code_cell(cell.source) for cell in cells]


def text_of(cell):
    """Return what a cell printed and the tables it showed, as one text: a kernel may send a print in pieces."""
    told = [output for output in cell.get("outputs", []) if output.get("name") != "stderr"]
    return "\n".join(output.get("text") or output.get("data", {}).get("text/plain", "") for output in told)


def verdicts(copy):
    rows = json.loads((copy / "results" / "demo" / "claims.json").read_text())
    return {(row["id"], row["model"]): (row["verdict"], row["survives"]) for row in rows}


@pytest.fixture(scope="module")
def here(run):
    return run({})


def test_another_processor_prints_and_draws_the_same(here, run, copy):
    found = [difference for machine in MACHINES.values() for difference in differences(here, run(machine), copy)]
    assert not found, "\n".join(found)


def test_what_is_measured_may_be_off_in_the_fifth_digit(here, run, copy):
    printed, files, found = run({}, SHAKING)
    found = differences(here, (printed, files, found), copy)
    assert not found, "\n".join(found)


def differences(here, there, copy):
    """Return in words what a reader could see of two runs that differs, what ARM does to later layers left out."""
    texts = [[re.sub(ARM, "", text) for text in run[0]] for run in (here, there)]
    found = [f"{now}, was {was}" for was, now in zip(*texts, strict=True) if not same_text(was, now)]
    for name in sorted(name for name in here[1] | there[1] if here[1].get(name) != there[1].get(name)):
        table = f"{name.partition('.')[0]}.csv"
        if here[1][table] == there[1][table] or not same_table(here[1][table], there[1][table]):
            found.append(f"{name} was written anew: {agreement(copy / 'results' / 'demo')}")
        (copy / "figures" / "demo" / name).write_bytes(here[1][name])
    return found + [f"{key}: {there[2][key]}, was {here[2][key]}" for key in here[2] if here[2][key] != there[2][key]]


def same_table(one, other):
    """Return whether two csv files say the same of all but ARM."""
    tables = [pd.read_csv(io.BytesIO(content)) for content in (one, other)]
    if "condition" in tables[0]:
        tables = [table[table.condition != "arm"].reset_index(drop=True) for table in tables]
    return largest_difference(*tables)[0] < 1


def same_text(one, other):
    """Return whether two texts have the same words, and numbers that are the same to a reader."""
    words, numbers = (
        [" ".join(NUMBER.sub("#", text).split()) for text in (one, other)],
        [NUMBER.findall(text) for text in (one, other)],
    )
    return words[0] == words[1] and all(map(same_number, *numbers))


def same_number(one, other):
    places = [len(text.partition(".")[2]) for text in (one, other)]
    values = [float(text.replace(",", "").replace("−", "-")) for text in (one, other)]
    if "e" in one + other or places == [0, 0]:
        return abs(values[0] - values[1]) <= 0.01 * abs(values[0]) * (abs(values[0]) > 100)
    return places[0] == places[1] and abs(values[0] - values[1]) < 1.5 * 10 ** -places[0]


@pytest.mark.parametrize(
    "one, other, same",
    [
        ("control 0.0227 [0.00013, 0.0464]", "control 0.0227 [0.000132, 0.0464]", False),
        ("0.847 [0.815, 0.874] λ, n = 100", "0.848 [0.815,\n 0.874] λ, n = 100", True),
        ("0.847", "0.849", False),
        ("-0.00", "0.00", True),
        ("n = 96", "n = 97", False),
        ("needs n = 31,759", "needs n = 31,760", True),
        ("supported: a, b", "supported: a", False),
    ],
)
def test_numbers_are_the_same_within_one_of_their_last_place(one, other, same):
    assert same_text(one, other) == same
