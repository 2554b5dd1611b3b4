"""Fixtures for the page's tests: a profile with results made by hand, and the published
folder.
"""

import shutil

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook
from report_folder import verdict

from lib import paths
from lib.claims.verdict_files import write_verdicts
from lib.profiles import load_profile
from lib.report.page import write_report


@pytest.fixture
def profile(tmp_path, monkeypatch):
    """A profile with results: a verdict, the stored prompt of two models, two figures
    and a notebook.
    """
    for name in ("RESULTS", "FIGURES", "NOTEBOOKS"):
        monkeypatch.setattr(paths, name, tmp_path / name.lower())
    demo = load_profile("demo")
    models = {"models": ["demo", "gemma-3-270m"]}
    attention = demo.attention.model_copy(update=models)
    profile = demo.model_copy(update={"name": "made", "attention": attention})
    write_verdicts(profile, [verdict()])
    shutil.copytree(paths.DATA / "families" / "prompt", profile.results / "prompt")
    profile.figures.mkdir(parents=True)
    for name in ("fig13", "fig09"):
        (profile.figures / f"{name}.png").touch()
    paths.NOTEBOOKS.mkdir()
    notebook = new_notebook(cells=[new_markdown_cell("# One prompt")])
    nbformat.write(notebook, paths.NOTEBOOKS / "01_attention_maps.ipynb")
    return profile


@pytest.fixture(scope="session")
def published(tmp_path_factory):
    """The folder that the workflow publishes, from the verdicts of the repository."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", tmp_path_factory.mktemp("results").resolve())
        profile = load_profile("families")
        profile.results.mkdir()
        shutil.copy(paths.DATA / "families" / "claims.json", profile.results)
        return write_report(profile).parent
