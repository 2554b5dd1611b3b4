"""README.md and docs/*.md: they are what `make readme` writes, their examples work, and
a number that no longer bears its sentence stops them.
"""

import re
import shlex
import shutil
import subprocess
from dataclasses import replace

import jinja2
import pytest
from nbconvert.filters.markdown import markdown2html

from docs import stored, write
from lib import paths
from lib.__main__ import parser
from lib.errors import InputError

README = paths.ROOT / "README.md"
DOCUMENTS = (README, *sorted(paths.ROOT.glob("docs/*.md")))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}
CODE = re.compile(r"```(\w+)\n(.*?)```", re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")

# What a reader bears, and what of a text is read as prose.
MOST_WORDS = 1200
MOST_WORDS_OF_A_SENTENCE = 25
NO_PROSE = re.compile(r"```.*?```|^[|#!].*?$|^`\{.*?$", re.S | re.M)
SENTENCE_END = re.compile(r"(?<=[.?!:;])(?:\*\*)?\s+|\n\s*\n|\n(?=- )")
PRINTED = """@page { size: A4; margin: 14mm }
body { font: 9pt/1.25 serif } table { font-size: 8pt } img { max-height: 60mm }
h1 { font-size: 14pt } h1, h2, p, ul, table { margin: 0 0 1.5mm }"""
CHROMIUM = shutil.which("chromium") or shutil.which("google-chrome")


def code(language, documents=tuple(TEXTS)):
    """Return the examples of documents in a language."""
    everything = "\n".join(TEXTS[name] for name in documents)
    return [text for name, text in CODE.findall(everything) if name == language]


def commands():
    """Return the command lines of all documents that call the package."""
    lines = "\n".join(code("bash")).replace("\\\n", "").splitlines()
    return [line for line in lines if line]


# By a claim that becomes a certain gain: what README can no longer say.
NO_LONGER_TRUE = {
    "points-slashes": "bring no certain gain in right answers",
    "likelihood-gain": "they make the worked solution less likely",
    "likelihood-right": "was seen in neither of two models",
    "accuracy-example": "Counting sees large effects alone",
}


def test_documents_are_what_the_templates_and_stored_files_say():
    rendered = write.documents()
    assert set(rendered) == set(DOCUMENTS)
    for path, text in rendered.items():
        assert text == TEXTS[path.name], f"make readme: {path.name}"


@pytest.mark.parametrize("claim, sentence", NO_LONGER_TRUE.items())
def test_a_gain_stops_every_document_and_names_the_sentence(
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
    monkeypatch.setattr(write, "write_whole", lambda path, _: written.append(path))
    assert write.main() == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: README.md: what is stored no longer bears")
    assert sentence in line
    assert not written


def test_a_name_that_no_table_has_writes_nothing():
    page = write.environment().from_string("{{ about('dilution')[0].nothing }}")
    with pytest.raises(jinja2.UndefinedError, match="nothing"):
        page.render()


MISSING = {
    "benchmarks/results/none.csv": "make bench",
    "studies/results/none.csv": r"python -m studies\.none",
    "figures/families/none.csv": "make reproduce",
}


@pytest.mark.parametrize("path, command", MISSING.items())
def test_a_table_that_is_missing_is_named_with_what_writes_it(path, command):
    with pytest.raises(InputError, match=f"^cannot read {path} .*: {command} writes"):
        stored.csv(path)


@pytest.mark.parametrize("name", ["README.md", "report.md", "findings.md"])
def test_a_sentence_can_be_read_aloud(name):
    text = TEXTS[name]
    prose = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", NO_PROSE.sub("\n\n", text))
    long = [
        sentence
        for sentence in SENTENCE_END.split(prose)
        if len(sentence.split()) > MOST_WORDS_OF_A_SENTENCE
    ]
    assert not long


def test_the_readme_is_short():
    assert len(TEXTS["README.md"].split()) <= MOST_WORDS


@pytest.mark.skipif(not CHROMIUM, reason="no Chromium: apt-get install chromium")
def test_the_report_prints_as_two_pages(tmp_path):
    page = tmp_path / "report.html"
    base = f"<base href='{paths.ROOT.as_uri()}/docs/'>"
    body = markdown2html(TEXTS["report.md"])
    page.write_text(f"<meta charset=utf-8>{base}<style>{PRINTED}</style>{body}")
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu"]
    command += ["--no-pdf-header-footer", f"--print-to-pdf={tmp_path}/report.pdf"]
    subprocess.run([*command, page.as_uri()], check=True, capture_output=True)
    pdf = (tmp_path / "report.pdf").read_bytes()
    assert len(re.findall(rb"/Type\s*/Page\b", pdf)) == 2


@pytest.mark.parametrize("command", commands())
def test_a_command_is_understood(command):
    if command.startswith("sbatch"):
        command = shlex.split(command)[-1].replace("$SLURM_ARRAY_TASK_ID", "1")
    python, flag, package, *arguments = shlex.split(command)
    assert [python, flag, package] == ["python", "-m", "lib"]
    assert parser().parse_args(arguments).run


def test_measurements_are_read_as_the_example_says():
    (text,) = code("python", ["running.md"])
    names: dict = {}
    exec(text, names)
    lam = names["found"]["lambda"].sel(network="trained", condition="mless", layer=1)
    assert lam.sizes["head"] == 9
    assert lam.notnull().all()


def test_the_example_of_weighted_answers_finds_a_difference(capsys):
    (text,) = code("python", ["weighted_pass_rates.md"])
    names: dict = {}
    exec(text, names)
    assert capsys.readouterr().out
    # In truth it is 5.5 points, by integration over the log ratio.
    result = names["result"]
    assert result.difference.low < 5.5 < result.difference.high
    assert result.slope.low < 1 < result.slope.high
    assert len(text.splitlines()) <= 14


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.name)
def test_every_link_leads_to_a_file(path):
    places = LINK.findall(TEXTS[path.name])
    assert not [place for place in places if not (path.parent / place).exists()]
