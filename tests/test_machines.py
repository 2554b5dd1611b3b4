"""What another machine would print and draw: the notebooks under other kernels, and on
measurements shaken a little.

Nothing that a reader could see may move: no file of a figure, no verdict, no printed
sentence, and no printed number by more than one in its last place, nor may it be
printed with more or fewer places.
"""

import io
import json
import re
import shutil

import pandas as pd
import pytest
import yaml
from commands import copy_repository
from one_kernel import run_in_one_kernel

from lib import paths
from lib.figures.compare import difference

MEASURING = ("01", "02", "04", "06")  # of which networks compute something
PROBLEMS = 20  # as many as a verdict takes
# As on processors without AVX2, with two threads, which wait asleep and so leave their
# core to the tests beside them; torch, oneDNN, MKL, NumPy's OpenBLAS and NumPy each ask
# their own.
OLD = {
    "ATEN_CPU_CAPABILITY": "default",
    "ONEDNN_MAX_CPU_ISA": "SSE41",
    "MKL_CBWR": "COMPATIBLE",
    "OPENBLAS_CORETYPE": "Nehalem",
    "OMP_NUM_THREADS": "2",
    "OMP_WAIT_POLICY": "passive",
}
# Put before a notebook: all that is measured, times 1 ± 1e-5 at random. Evenly spread
# attention is arithmetic, equal in all heads; a share near zero is one of counts.
SHAKING = """
import numpy as np
from lib.measurement import run as measuring

rng = np.random.default_rng(0)

def shaken(values):
    if values.dtype.kind != "f":
        return values
    moved = values * (1 + 1e-5 * rng.uniform(-1, 1, values.shape)).astype("float32")
    if "measure" in values.dims:
        moved = moved.where(values.measure != "near zero", values)
    if "network" not in values.dims:
        return moved
    return moved.where(values.network != "uniform", values)

def shaking(measure):
    def measured(*args, **kw):
        datasets = measure(*args, **kw)
        return {name: datasets[name].map(shaken, keep_attrs=True) for name in datasets}

    return measured

measuring.measure = shaking(measuring.measure)
"""
# ARM moves an activation by its sign and by whether it is within a bound, so that the
# last digit decides where one near zero goes. In layer 3 that moves the variance of one
# prompt by 1 to 2 %: as far as it can be known.
ARM = r"(?m)^.*\barm\b.*\n?"
NUMBER = re.compile(r"(?<![\w.])[-−+]?\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?")


@pytest.fixture(scope="module")
def copy(tmp_path_factory, demo):
    """A copy of the repository whose demo profile measures little, and draws into an
    empty folder.

    The demo model is there already: converting it, once per machine, shows a bar.
    """
    folder = copy_repository(tmp_path_factory.mktemp("machine"))
    file = folder / "data" / "profiles" / "demo.yaml"
    content = yaml.safe_load(file.read_text())
    # Of every layer a handful of problems would be measured, whose intervals one swap
    # of ranks moves visibly.
    content["attention"] |= {"limit": PROBLEMS, "map_problems": None}
    file.write_text(yaml.safe_dump(content))
    return folder


def verdicts_in(folder):
    """Return the verdict by claim and model, and whether it survives correction."""
    verdicts = {}
    file = folder / "results" / "demo" / "claims.json"
    for row in json.loads(file.read_text()):
        verdicts[row["id"], row["model"]] = (row["verdict"], row["survives"])
    return verdicts


@pytest.fixture(scope="module")
def run(copy):
    """Run the notebooks in a process of their own; return what they print, the files
    they leave and the verdicts.
    """

    def in_process(environment, before=""):
        if not before:
            shutil.rmtree(copy / "results" / "demo" / "measured", ignore_errors=True)

        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("OMP_NUM_THREADS", "1")
            for name, value in environment.items():
                patch.setenv(name, value)
            done = run_in_one_kernel(
                copy, paths.notebooks(MEASURING), before, profile="demo"
            )

        drawn = (copy / "figures" / "demo").iterdir()
        files = {path.name: path.read_bytes() for path in drawn}
        return [text_of(cell) for cell in done.cells], files, verdicts_in(copy)

    return in_process


def text_of(cell):
    """Return what a cell printed and the tables it showed, as one text: a kernel may
    send a print in pieces.
    """
    texts = []
    for output in cell.get("outputs", []):
        if output.get("name") != "stderr":
            table = output.get("data", {}).get("text/plain", "")
            texts.append(output.get("text") or table)
    return "\n".join(texts)


def same_text(one, other):
    """Return whether two texts have the same words, and numbers that are the same to a
    reader.
    """
    words = [" ".join(NUMBER.sub("#", text).split()) for text in (one, other)]
    return words[0] == words[1] and all(
        map(same_number, NUMBER.findall(one), NUMBER.findall(other))
    )


def same_number(one, other):
    places = [len(text.partition(".")[2]) for text in (one, other)]
    values = [float(text.replace(",", "").replace("−", "-")) for text in (one, other)]
    if "e" in one + other or places == [0, 0]:
        return abs(values[0] - values[1]) <= 0.01 * abs(values[0]) * (
            abs(values[0]) > 100
        )
    return (
        places[0] == places[1] and abs(values[0] - values[1]) < 1.5 * 10 ** -places[0]
    )


@pytest.fixture(scope="module")
def here(run):
    return run({})


def without_arm(table):
    """Return a table without what ARM does to later layers."""
    if "condition" not in table:
        return table
    return table[table.condition != "arm"].reset_index(drop=True)


def drawn_anew(before, after):
    """Return the figures of whose numbers a reader would see other ones.

    before, after: the bytes of all files of figures, by name.
    """
    anew = []
    for name in sorted(before | after):
        if before.get(name) == after.get(name):
            continue
        table = f"{name.partition('.')[0]}.csv"
        tables = [pd.read_csv(io.BytesIO(files[table])) for files in (before, after)]
        assert before[table] != after[table]
        if difference(*map(without_arm, tables)):
            anew.append(name)
    return anew


@pytest.mark.parametrize(
    "environment, before",
    [(OLD, ""), ({}, SHAKING)],
    ids=["old with two threads", "shaken in the fifth digit"],
)
def test_another_machine_prints_and_draws_the_same(
    here, run, copy, environment, before
):
    texts_here, files_here, verdicts_here = here
    texts, files, verdicts = run(environment, before)

    for was, now in zip(texts_here, texts, strict=True):
        assert same_text(re.sub(ARM, "", was), re.sub(ARM, "", now)), (
            f"{now}, was {was}"
        )

    # The next machine draws beside the first one's figures again.
    for name, content in files_here.items():
        (copy / "figures" / "demo" / name).write_bytes(content)
    assert drawn_anew(files_here, files) == []
    assert verdicts == verdicts_here
