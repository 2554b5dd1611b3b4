"""The parts that a run computes before its notebooks start, and the notebooks'
settings.
"""

import json
import re
from pathlib import Path

import nbformat
import papermill
import pytest
import yaml

from lib.files.atomic import write_json
from reproduction import paths, run
from reproduction.evaluation.profile_parts import DrawScoresPart, Part
from reproduction.profiles import VARIATIONS, load_profile


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """A function that runs notebooks of a profile without computing anything, and
    returns the calls that would have computed the parts, in order.
    """
    calls = []

    def plan(profile, names, **options):
        calls.append(("plan", names, options))
        return []

    class Measured:
        def __init__(self, profile, name, stored=True):
            self.called = "measure", name, stored

        def complete(self):
            calls.append(self.called)

    def execute(notebook, executed, parameters, **options):
        calls.append((Path(notebook).stem, parameters))

    def complete(part):
        calls.append(("part", part.name))

    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    monkeypatch.setattr(run, "tasks_of", plan)
    monkeypatch.setattr(papermill, "execute_notebook", execute)
    monkeypatch.setattr(run, "MeasuredPart", Measured)
    for kind in (Part, DrawScoresPart):
        monkeypatch.setattr(kind, "complete", complete)
    monkeypatch.setattr(run, "read_verdicts", lambda profile: [])
    monkeypatch.setattr(run, "answers", lambda profile: Part(profile, "main").stored())

    def begin(name, only, fresh=False):
        calls.clear()
        run.reproduce(load_profile(name), paths.notebooks(only), fresh)
        return calls

    return begin


def test_the_parts_that_a_notebook_needs_are_computed_once_before_it_starts(runs):
    measured = ["tokens", "attention", "controls", "activations"]
    answered = ["main", *VARIATIONS, "likelihood", "ablations", "draws", "draw_scores"]
    plan, *done = runs("families", ["01", "02", "07"])
    assert sorted(plan[1]) == sorted(measured + answered)
    assert done == [
        ("measure", "tokens", True),
        ("measure", "attention", True),
        ("01_attention_maps", {"profile": "families"}),
        ("measure", "controls", True),
        ("02_meaningless_effect", {"profile": "families"}),
        ("measure", "activations", True),
        *[("part", name) for name in ("main", "fillers", "comparisons", "direct")],
        *[("part", name) for name in ("likelihood", "ablations", "draws")],
        ("part", "draw_scores"),
        ("07_does_it_help", {"profile": "families"}),
    ]
    assert set(run.NEEDS) == {path.stem for path in paths.notebooks()}


def test_the_accuracy_is_printed_by_a_run_that_shows_it(runs, capsys):
    runs("families", ["03"])
    assert "37.7 [32.6, 43.0]" in capsys.readouterr().out
    runs("families", ["01"])
    assert "37.7" not in capsys.readouterr().out


def named_in(notebook):
    """Return the parts of measurements and answers that a notebook's code names."""
    code = notebook.read_text(encoding="utf-8").replace('\\"', "'")
    calls = re.findall(r"\b(?:measure|evaluation\.answers)\(run, ([^)]+)\)", code)
    parts = set(re.findall(r"'(\w+)'", " ".join(calls)))
    return parts | {"likelihood"} if "evaluation.scores(run)" in code else parts


def test_the_parts_that_a_notebooks_code_names_are_listed_as_needed():
    named = {path.stem: named_in(path) for path in paths.notebooks()}
    assert named["02_meaningless_effect"] == {"tokens", "attention", "controls"}
    assert "likelihood" in named["08_why"]
    for notebook, parts in named.items():
        assert parts <= set(run.NEEDS[notebook])


def test_claims_are_judged_on_all_parts_that_any_notebook_needs():
    needs = {need for parts in run.NEEDS.values() for need in parts}
    # The part `tokens` is only drawn; no claim uses it.
    assert set(run.NEEDS["06_claims"]) == needs - {"tokens"}


@pytest.mark.parametrize("fresh", [False, True])
def test_fresh_ignores_stored_measurements_and_deletes_nothing(runs, tmp_path, fresh):
    old = tmp_path / "families" / "completions.jsonl"
    old.parent.mkdir()
    old.touch()
    plan, tokens, attention, _ = runs("families", ["01"], fresh)
    assert plan[2] == {"stored": not fresh}
    assert tokens == ("measure", "tokens", not fresh)
    assert attention == ("measure", "attention", not fresh)
    assert old.exists()
    recorded = yaml.safe_load((old.parent / "profile.yaml").read_text())
    assert recorded == load_profile("families").model_dump()


def test_the_notebook_of_likelihoods_is_left_out_if_the_profile_has_none(
    runs, capsys, refused
):
    runs("demo", ["06", "07"])
    assert "[1/1] 06_claims\n" in capsys.readouterr().out
    message = refused(runs, "demo", ["07"])
    assert message.startswith("profile demo has no section `likelihood`")


CELL = """
import json, lib, logging, os, sys
from ipykernel.kernelapp import IPKernelApp
found = {
    "profile": profile,
    "package": os.path.dirname(lib.__file__),
    "also": "/elsewhere" in sys.path,
    "folder": os.getcwd(),
    "reports_errors": IPKernelApp.instance().log_level <= logging.ERROR,
}
json.dump(found, open(os.environ["FOUND"], "w"))
raise KeyError("no such layer")
"""


@pytest.fixture
def settings_of_a_user(tmp_path, monkeypatch):
    """A kernel and a PYTHONPATH that a user has for other work."""
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    spec = {"argv": ["false"], "display_name": "x", "language": "python"}
    write_json(kernel / "kernel.json", spec)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.delenv("JUPYTER_PREFER_ENV_PATH", raising=False)


DIES = nbformat.v4.new_code_cell("import os; os.kill(os.getpid(), 9)")
DEAD = nbformat.writes(nbformat.v4.new_notebook(cells=[DIES]))  # without metadata


@pytest.mark.parametrize(
    "content, said",
    [
        (DEAD, "its kernel died, probably because memory ran out"),
        ("", "does not appear to be JSON"),
        ("<<<<<<< HEAD\n" + DEAD, "does not appear to be JSON"),
        ('{"nbformat": 4}', "missing an expected key: cells"),
        ("[]", "has no attribute 'get'"),
    ],
)
def test_a_notebook_that_cannot_run_is_named_in_one_line(
    monkeypatch, tmp_path, refused, content, said
):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    (tmp_path / "demo").mkdir()
    notebook = tmp_path / "01_broken.ipynb"
    notebook.write_text(content)
    message = refused(run._execute, notebook, load_profile("demo"))
    assert "01_broken" in message
    assert said in message


def test_a_notebook_runs_in_its_folder_with_this_package_whatever_kernels_a_user_has(
    settings_of_a_user, monkeypatch, tmp_path, refused
):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    monkeypatch.setenv("FOUND", str(tmp_path / "found.json"))
    parameters = nbformat.v4.new_code_cell("profile = None")
    parameters.metadata["tags"] = ["parameters"]
    cells = [parameters, nbformat.v4.new_code_cell(CELL)]
    metadata = {"kernelspec": {"name": "python3", "display_name": "x"}}
    metadata["language_info"] = {"name": "python"}
    notebook = tmp_path / "01_short.ipynb"
    nbformat.write(nbformat.v4.new_notebook(cells=cells, metadata=metadata), notebook)
    (tmp_path / "demo").mkdir()
    reason = "01_short stopped: KeyError: 'no such layer' (executed copy: "
    assert refused(run._execute, notebook, load_profile("demo")) == (
        f"{reason}{tmp_path}/demo/01_short.ipynb)"
    )
    assert json.loads((tmp_path / "found.json").read_text()) == {
        "profile": "demo",
        "package": str(paths.ROOT / "lib"),
        "also": True,
        "folder": str(paths.NOTEBOOKS),
        # Of the kernel itself, such as that it was interrupted before it ended.
        "reports_errors": False,
    }
