"""A mistake in a notebook's parameters is reported in one line before anything is
loaded.
"""

import subprocess
import sys

import papermill
import pytest
from jupyter_client.manager import run_kernel

from reproduction import paths

TRY_IT = "00_try_it"
OF_A_PROFILE = [
    (
        {"profle": "demo"},
        "unknown parameter 'profle' (did you mean profile?): choose from profile,"
        " model, limit, name",
    ),
    ({"limit": 0}, "parameters: limit: must be greater than 0, not 0"),
    ({"limit": "all"}, "parameters: limit: must be a valid integer"),
    ({"profile": "dmo"}, "unknown profile 'dmo' (did you mean demo?): choose from"),
    ({"model": "dem"}, "unknown model 'dem' (did you mean demo?): give demo"),
    ({"limit": 5, "name": "demo"}, "name 'demo' is a profile of data/profiles"),
]
OF_A_PROMPT = [
    ({"fller": "!"}, "unknown parameter 'fller' (did you mean filler?): choose from"),
    # A part of a parameter's name is another name.
    ({"fill": "!"}, "unknown parameter 'fill' (did you mean filler?): choose from"),
    ({"model": "dem"}, "unknown model 'dem' (did you mean demo?): give demo"),
    ({"problem": " "}, "parameters: problem: must have at least 1 character"),
    (
        {"filler": 0},
        "parameters: filler: must be a text, not 0: pass it with papermill's -r",
    ),
    ({"length": 0}, "parameters: length: must be greater than 0, not 0"),
    ({"position": "middle"}, "parameters: position: must be 'before', 'between'"),
    ({"format": "author"}, "parameters: format: must be 'plain', 'chat'"),
]
STEMS = [path.stem for path in paths.notebooks()]
MISTAKES = [(stem, *mistake) for stem in STEMS for mistake in OF_A_PROFILE]
MISTAKES += [(TRY_IT, *mistake) for mistake in OF_A_PROMPT]


@pytest.fixture(scope="module")
def kernel():
    with run_kernel(cwd=paths.ROOT) as client:
        yield client


def first_cells(stem, parameters):
    """Return the code of a notebook from its parameters to their check, with the cell
    that papermill inserts between them.
    """
    path = paths.NOTEBOOKS / f"{stem}.ipynb"
    book = papermill.execute_notebook(path, None, parameters, prepare_only=True)
    return [cell.source for cell in book.cells if cell.cell_type == "code"][:3]


@pytest.mark.parametrize("stem, parameters, message", MISTAKES)
def test_a_mistake_in_parameters_is_one_line_and_imports_no_torch(
    kernel, stem, parameters, message
):
    *before, check = first_cells(stem, parameters)
    for source in before:
        assert kernel.execute_interactive(source)["content"]["status"] == "ok"
    (line,) = kernel.execute_interactive(check)["content"]["traceback"]
    assert line.startswith(f"error: {message}")
    loaded = "import sys; assert not {'torch', 'transformers'} & set(sys.modules)"
    assert kernel.execute_interactive(loaded)["content"]["status"] == "ok"


def test_parameters_are_checked_if_a_cell_stands_between_them_and_the_check(kernel):
    declared, injected, check = first_cells(STEMS[0], OF_A_PROFILE[0][0])
    for source in (declared, injected, "pause = 1"):
        assert kernel.execute_interactive(source)["content"]["status"] == "ok"
    (line,) = kernel.execute_interactive(check)["content"]["traceback"]
    assert line.startswith(f"error: {OF_A_PROFILE[0][1]}")


@pytest.mark.parametrize("stem", [TRY_IT, *STEMS])
def test_the_check_runs_in_a_notebook_that_was_exported_to_plain_python(stem):
    declared, check, *_ = first_cells(stem, {})
    exec(f"{declared}\n{check}", {})


@pytest.mark.parametrize("stem", [TRY_IT, *STEMS])
def test_papermill_lists_each_parameter_with_its_type(stem):
    listed = papermill.inspect_notebook(paths.NOTEBOOKS / f"{stem}.ipynb")
    assert len(listed) == (6 if stem == TRY_IT else 4)
    assert {parameter["inferred_type_name"] for parameter in listed.values()} == {
        "str",
        "int",
    }


@pytest.mark.parametrize("stem", [TRY_IT, *STEMS])
def test_valid_parameters_pass_even_if_cells_run_again(kernel, stem):
    given = {"model": "demo"} if stem == TRY_IT else {"profile": "demo", "limit": 5}
    declared, injected, check = first_cells(stem, given)
    for source in (declared, injected, check, "more = 1", check, declared, check):
        assert kernel.execute_interactive(source)["content"]["status"] == "ok"


def test_the_error_is_the_last_line_that_papermill_prints(tmp_path):
    files = [f"notebooks/{TRY_IT}.ipynb", tmp_path / "out.ipynb"]
    command = [sys.executable, "-m", "papermill", *files, "-p", "length", "0"]
    ran = subprocess.run(command, cwd=paths.ROOT, capture_output=True, text=True)
    assert ran.returncode
    last = ran.stderr.strip().splitlines()[-1]
    assert last.startswith("error: parameters: length: must be greater than 0")
