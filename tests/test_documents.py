"""README.md and docs/*.md: they equal the output of `make readme`, their examples work,
and a stored number that no longer supports its sentence is an error.
"""

import re
import shlex
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import jinja2
import pytest
from nbconvert.filters.markdown import markdown2html

from docs import stored, write
from lib import paths
from lib.__main__ import parser
from lib.errors import InputError
from lib.files.text_files import read_yaml

README = paths.ROOT / "README.md"
DOCUMENTS = (README, *sorted(paths.ROOT.glob("docs/*.md")))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}
CODE = re.compile(r"```(\w+)\n(.*?)```", re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")

PRINTED = """@page { size: A4; margin: 14mm }
body { font: 9pt/1.25 serif } table { font-size: 8pt } img { max-height: 60mm }
h1 { font-size: 14pt } h1, h2, p, ul, table { margin: 0 0 1.5mm }"""
MOST_PAGES = {"report.md": 2, "weighted_pass_rates.md": 4}
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def code(language, documents=tuple(TEXTS)):
    """Return the examples of documents in a language."""
    everything = "\n".join(TEXTS[name] for name in documents)
    return [text for name, text in CODE.findall(everything) if name == language]


def commands():
    """Return the command lines of all documents that call the package."""
    # Commands of a cluster's scheduler cannot be checked here.
    documents = tuple(name for name in TEXTS if name != "cluster.md")
    lines = "\n".join(code("bash", documents)).replace("\\\n", "").splitlines()
    return [line for line in lines if line]


# A claim, and the sentence of README that is wrong if the claim is a significant gain.
NO_LONGER_TRUE = {
    "accuracy-mless": "accuracy does not rise significantly",
    "points-slashes": "accuracy does not rise significantly",
    "direct-slashes": "show no significant gain",
    "likelihood-gain": "In two of the four, the reference solution",
    "likelihood-layer-1": "no model gains significantly and two lose",
}


def test_documents_are_up_to_date_with_templates_and_stored_files():
    rendered = write.documents()
    assert set(rendered) == {*DOCUMENTS, paths.ROOT / "codecheck.yml"}
    for path, text in rendered.items():
        assert text == path.read_text(encoding="utf-8"), f"make readme: {path.name}"


@pytest.mark.parametrize("claim, sentence", NO_LONGER_TRUE.items())
def test_a_significant_gain_stops_every_document_and_names_the_sentence(
    capsys, monkeypatch, claim, sentence
):
    gain = {"effect": 1.0, "low": 0.5, "high": 1.5, "n": 200}
    gain |= {"survives": True, "verdict": "supported"}
    gained = {}
    for profile in ("demo", "families"):
        rows = stored.verdicts(profile)
        gained[profile] = [
            replace(row, **gain) if row.id == claim else row for row in rows
        ]
    monkeypatch.setattr(stored, "verdicts", gained.get)
    written = []
    monkeypatch.setattr(write, "write_atomically", lambda path, _: written.append(path))
    assert write.main() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: README.md: the stored results no longer support")
    assert sentence in line
    assert not written


def test_an_unknown_name_in_a_template_is_an_error():
    page = write.environment().from_string("{{ about('dilution')[0].nothing }}")
    with pytest.raises(jinja2.UndefinedError, match="nothing"):
        page.render()


MISSING = {
    "benchmarks/results/none.csv": "make bench",
    "studies/results/none.csv": r"python -m studies\.none",
    "figures/families/none.csv": "make reproduce",
}


@pytest.mark.parametrize("path, command", MISSING.items())
def test_a_missing_table_is_named_with_the_command_that_writes_it(path, command):
    with pytest.raises(InputError, match=f"^cannot read {path} .*: {command} writes"):
        stored.csv(path)


def test_the_codecheck_names_every_stored_figure_with_the_notebook_that_draws_it():
    listed = read_yaml(paths.ROOT / "codecheck.yml")["manifest"]
    files = {entry["file"] for entry in listed}
    stored = [path.parent.name for path in paths.DATA.glob("*/claims.json")]
    # A user's own profiles have figures there, too.
    figures = [path for name in stored for path in (paths.FIGURES / name).glob("*.png")]
    assert files == {path.relative_to(paths.ROOT).as_posix() for path in figures}
    for entry in listed:
        _, profile, name = entry["file"].split("/")
        command, notebook = re.search(r"`(.*)` runs (.*)", entry["comment"]).groups()
        assert f"--profile {profile} --only {Path(notebook).name[:2]}" in command
        source = (paths.ROOT / notebook).read_text(encoding="utf-8")
        figure = name.removesuffix(".png")
        assert re.search(rf'figures\.keep\(\w+, \\"{figure}\\"', source)


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium: apt-get install chromium")
@pytest.mark.parametrize("name, most", MOST_PAGES.items())
def test_a_document_prints_on_few_pages(tmp_path, name, most):
    page = tmp_path / "page.html"
    base = f"<base href='{paths.ROOT.as_uri()}/docs/'>"
    body = markdown2html(TEXTS[name])
    page.write_text(f"<meta charset=utf-8>{base}<style>{PRINTED}</style>{body}")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--no-pdf-header-footer", f"--print-to-pdf={tmp_path}/page.pdf"]
    subprocess.run([*command, page.as_uri()], check=True, capture_output=True)
    pdf = (tmp_path / "page.pdf").read_bytes()
    assert 1 < len(re.findall(rb"/Type\s*/Page\b", pdf)) <= most


@pytest.mark.parametrize("command", commands())
def test_every_documented_command_is_valid(command):
    if command.startswith("sbatch"):
        command = shlex.split(command)[-1].replace("$SLURM_ARRAY_TASK_ID", "1")
    python, flag, package, *arguments = shlex.split(command)
    assert python in ("python", ".venv/bin/python")
    assert [flag, package] == ["-m", "lib"]
    assert parser().parse_args(arguments).run


def test_the_five_lines_of_the_readme_print_the_line_below_them(capsys):
    ((_, example),) = [
        block for block in CODE.findall(TEXTS["README.md"]) if block[0] == "python"
    ]
    *lines, said = example.splitlines()
    assert len(lines) == 5
    exec(example, {})
    assert capsys.readouterr().out == said.removeprefix("# ") + "\n"


def test_the_example_of_the_method_prints_the_lines_below_it(capsys):
    ((_, example),) = [
        block
        for block in CODE.findall(TEXTS["weighted_pass_rates.md"])
        if block[0] == "python"
    ]
    exec(example, {})
    said = [line for line in example.splitlines() if line.startswith("# ")]
    assert capsys.readouterr().out.splitlines() == [line[2:] for line in said]


def test_the_example_that_reads_measurements_works():
    ((_, example),) = [
        block for block in CODE.findall(TEXTS["running.md"]) if block[0] == "python"
    ]
    names: dict = {}
    exec(example, names)
    lam = names["found"]["lambda"].sel(network="trained", condition="mless", layer=1)
    assert lam.sizes["head"] == 9
    assert lam.notnull().all()


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(path):
    links = LINK.findall(TEXTS[path.name])
    assert not [link for link in links if not (path.parent / link).exists()]
