"""What a run computes before its notebooks start, and what it hands to them."""

import json
import re

import nbformat
import papermill
import pytest
import yaml

from lib import paths, reproduce
from lib.errors import InputError
from lib.evaluation import of_profile
from lib.evaluation.of_profile import stored_rows
from lib.figures.compare import RECORD
from lib.paths import write_json
from lib.plan import CHECKED, Plan
from lib.profiles import PARTS, load_profile


def nothing_planned(profile, *options):
    return Plan([], {}, [], 0)


@pytest.fixture
def runs(monkeypatch, tmp_path):
    """Run no notebook and measure nothing; return what would have been, in order."""
    calls = []
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    monkeypatch.setattr(paths, "CACHE", tmp_path / "cache")

    def execute(notebook, executed, parameters, **options):
        name = notebook.rpartition("/")[2].removesuffix(".ipynb")
        calls.append((name, parameters))

    def measure(profile, part, stored):
        calls.append(("measure", part, stored))

    def answers(profile, part="main", folder=None):
        calls.append(("answers", part, profile.accuracy.limit, folder))
        return stored[:3]

    stored = stored_rows(load_profile("demo"))
    monkeypatch.setattr(reproduce, "make_plan", nothing_planned)
    monkeypatch.setattr(papermill, "execute_notebook", execute)
    monkeypatch.setattr(reproduce, "measure", measure)
    monkeypatch.setattr(reproduce, "measure_prompts", lambda profile, stored: None)
    monkeypatch.setattr(of_profile, "answers", answers)
    monkeypatch.setattr(of_profile, "scores", lambda profile: calls.append("scores"))
    monkeypatch.setattr(of_profile, "draws", lambda profile: calls.append("weights"))
    monkeypatch.setattr(reproduce, "read_verdicts", lambda profile: [])
    return calls


def begun(calls, name, only, fresh=False):
    calls.clear()
    reproduce.reproduce(load_profile(name), paths.notebooks(only), fresh)
    return calls


def test_what_a_notebook_needs_is_computed_once_before_it_starts(runs):
    assert begun(runs, "families", ["01", "02", "07"]) == [
        ("measure", "tokens", True),
        ("01_attention_maps", {"profile": "families"}),
        ("measure", "attention", True),
        ("measure", "controls", True),
        ("02_meaningless_effect", {"profile": "families"}),
        ("measure", "activations", True),
        *[("answers", part, 350, None) for part in ("main", *PARTS)],
        "scores",
        ("answers", "draws", 350, None),
        "weights",
        ("07_does_it_help", {"profile": "families"}),
    ]
    assert set(reproduce.NEEDS) == {path.stem for path in paths.notebooks()}


def named_in(notebook):
    """Return the parts of measurements and of answers that a notebook's code names."""
    code = notebook.read_text(encoding="utf-8").replace('\\"', "'")
    asked = re.findall(r"\b(?:measure|evaluation\.answers)\(run, ([^)]+)\)", code)
    return set(re.findall(r"'(\w+)'", " ".join(asked)))


def test_all_that_a_notebook_names_is_computed_before_it_starts():
    named = {path.stem: named_in(path) for path in paths.notebooks()}
    assert named["02_meaningless_effect"] == {"tokens", "attention", "controls"}
    for notebook, parts in named.items():
        assert parts <= set(reproduce.NEEDS[notebook])


def test_claims_are_judged_on_all_that_any_notebook_needs():
    needs = {need for parts in reproduce.NEEDS.values() for need in parts}
    # The tokens of single heads are drawn and not judged.
    assert set(reproduce.NEEDS["06_claims"]) == needs - {"tokens"}


def test_a_run_is_planned_as_it_is_asked_for_and_told_before_it_starts(
    runs, monkeypatch, capsys
):
    planned = []

    def make_plan(profile, *options):
        planned.append((profile.name, *options))
        return nothing_planned(profile)

    monkeypatch.setattr(reproduce, "make_plan", make_plan)
    monkeypatch.setattr(reproduce, "summary", lambda plan: "An hour.")
    begun(runs, "families", ["01", "02"], fresh=True)
    needs = ["tokens", "attention", "controls"]
    assert planned == [("families", True, needs)]
    told = capsys.readouterr().out.splitlines()
    assert told[:2] == ["An hour.", "[1/2] 01_attention_maps"]


def test_verdicts_are_counted_where_a_notebook_judges_them(runs, capsys):
    begun(runs, "families", ["01", "06"])
    assert "Claims by verdict:" in capsys.readouterr().out
    begun(runs, "families", ["01"])
    assert "Claims by verdict:" not in capsys.readouterr().out


def test_the_last_words_are_of_this_runs_figures_and_not_of_an_earlier_one(
    runs, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(paths, "FIGURES", tmp_path / "drawn")
    record = tmp_path / "families" / RECORD
    record.parent.mkdir()
    write_json(record, {"fig01": ""})

    def draw(profile, part, stored):
        assert not record.exists()
        write_json(record, {"fig02": "", "fig03": ""})

    monkeypatch.setattr(reproduce, "measure", draw)
    begun(runs, "families", ["01"])
    done, figures = capsys.readouterr().out.splitlines()[-2:]
    assert re.fullmatch(r"Done in \d s\. Figures: .*/drawn/families", done)
    assert figures == "2 of 2 figures agree with the files that were there."


def test_fresh_measures_what_is_stored_and_begins_with_an_empty_folder(runs, tmp_path):
    old = tmp_path / "families" / "measured.nc"
    old.parent.mkdir()
    old.touch()
    assert ("measure", "tokens", True) in begun(runs, "families", ["01"])
    assert old.exists()
    assert ("measure", "tokens", False) in begun(runs, "families", ["01"], fresh=True)
    assert not old.exists()
    recorded = yaml.safe_load((old.parent / "profile.yaml").read_text())
    assert recorded == load_profile("families").model_dump()


def test_a_profile_of_ones_own_is_handed_on_as_the_file_that_records_it(runs, tmp_path):
    mine = load_profile("demo").model_copy(update={"name": "mine"})
    reproduce.reproduce(mine, paths.notebooks(["01"]), fresh=False)
    (_, parameters) = runs[-1]
    assert parameters["profile"] == str(tmp_path / "mine" / "profile.yaml")
    assert load_profile(parameters["profile"]) == mine


def test_the_demos_stored_answers_are_checked_in_a_folder_of_their_own(
    runs, tmp_path, capsys
):
    few, every = (begun(runs, "demo", ["03"], fresh)[0] for fresh in (False, True))
    assert few == ("answers", "main", CHECKED, tmp_path / "demo" / "check")
    assert every == ("answers", "main", 96, tmp_path / "demo")
    agreement = "3 of 3 completions agree with the stored demo's"
    assert capsys.readouterr().out.count(agreement) == 2


def test_answers_that_differ_from_the_stored_demos_are_counted(
    runs, monkeypatch, capsys
):
    stored = stored_rows(load_profile("demo"))[:3]
    texts = ["another", *stored.response[1:]]
    changed = stored.assign(response=texts)
    monkeypatch.setattr(of_profile, "answers", lambda profile, folder: changed)
    begun(runs, "demo", ["03"])
    assert "2 of 3 completions agree" in capsys.readouterr().out


def test_a_profile_without_likelihoods_leaves_their_notebook_out(runs, capsys):
    begun(runs, "demo", ["06", "07"])
    printed = capsys.readouterr().out.splitlines()
    assert next(line for line in printed if "/" in line) == "[1/1] 06_claims"
    assert ["m", "3"] in [line.split() for line in printed]
    reason = "profile demo has no section `likelihood`, which notebook 07 shows"
    with pytest.raises(InputError, match=reason):
        begun(runs, "demo", ["07"])


CELL = """
import json, lib, os, sys
found = {
    "profile": profile,
    "package": os.path.dirname(lib.__file__),
    "also": "/elsewhere" in sys.path,
    "folder": os.getcwd(),
}
json.dump(found, open(os.environ["FOUND"], "w"))
raise KeyError("no such layer")
"""


@pytest.fixture
def settings_of_a_user(tmp_path, monkeypatch):
    """Settings of the tools underneath that a user has for other work."""
    kernel = tmp_path / "jupyter" / "kernels" / "python3"
    kernel.mkdir(parents=True)
    spec = {"argv": ["false"], "display_name": "x", "language": "python"}
    write_json(kernel / "kernel.json", spec)
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(tmp_path / "jupyter"))
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    monkeypatch.delenv("JUPYTER_PREFER_ENV_PATH", raising=False)


def test_a_notebook_runs_in_its_folder_by_this_copy_whatever_kernels_a_user_has(
    settings_of_a_user, monkeypatch, tmp_path
):
    monkeypatch.setenv("FOUND", str(tmp_path / "found.json"))
    parameters = nbformat.v4.new_code_cell("profile = None")
    parameters.metadata["tags"] = ["parameters"]
    cells = [parameters, nbformat.v4.new_code_cell(CELL)]
    notebook = tmp_path / "01_short.ipynb"
    metadata = {"kernelspec": {"name": "python3", "display_name": "x"}}
    metadata["language_info"] = {"name": "python"}
    content = nbformat.v4.new_notebook(cells=cells, metadata=metadata)
    nbformat.write(content, notebook)
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    (tmp_path / "demo").mkdir()
    with pytest.raises(InputError) as caught:
        reproduce._execute(notebook, load_profile("demo"))
    reason = "01_short stopped: KeyError: 'no such layer' (executed copy: "
    assert str(caught.value) == f"{reason}{tmp_path}/demo/01_short.ipynb)"
    assert json.loads((tmp_path / "found.json").read_text()) == {
        "profile": "demo",
        "package": str(paths.ROOT / "lib"),
        "also": True,
        "folder": str(paths.NOTEBOOKS),
    }
