"""README.md and docs/*.md: they equal the output of `make readme`, their examples work,
and a stored number that no longer supports its sentence is an error.
"""

import ast
import json
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
from lib.files.text_and_yaml import read_yaml

README = paths.ROOT / "README.md"
DOCUMENTS = (README, *sorted(paths.ROOT.glob("docs/*.md")))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}
CODE = re.compile(r"```(\w+)\n(.*?)```", re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")

MOST_WORDS = 700  # of README's prose
MOST_WORDS_OF_A_SENTENCE = 25
LEAST_WORDS_WITHOUT_A_VERB = 5
MOST_NUMBERS_OF_A_SENTENCE = 4
NO_PROSE = re.compile(r"```.*?```|^[|#!].*?$", re.S | re.M)
LINKED = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
# A lead-in in bold states a finding or names a part.
LIST_ITEM = re.compile(r"^(?:- |\d\. )(?:\*\*[^*]*\.\*\*)?|^\*\*[^*]*\.\*\*", re.M)
ABBREVIATION = re.compile(r"\b(Figs?|Sec|Eq|al)\.")
SENTENCE_END = re.compile(r"(?<=[.?!:;])\*{0,2}\s+|\n\s*\n|\n(?=- )")
VERB = re.compile(
    r"\b(is|are|was|were|has|have|measured|do|does|did|can|may|would|must|should|will|came|comes|"
    r"explains?|simulate|names?|shows?|says?|sees?|run)\b"
)
# Numbers that are part of a name, such as layer 1, and the interval's level.
NAME = re.compile(
    r"\b(?:layers?|heads?|Figs?|Tables?|Sec|Eq|notebooks?)\.? \d+"
    r"(?:(?:,| to| and|,? or) \d+)*|\b55\b|95 %|80 % power|\d{4}\.\d{5}"
)
INTERVAL = re.compile(r"\[[^\]]*\d[^\]]*\]")
NUMBER = re.compile(r"(?<![\w./-])[+-]?\d[\d.,]*(?![\w/])")
# Words that this project once used instead of the field's: "certain" for significant,
# "holds 0" for includes zero, and so on.
NOT_THE_FIELDS_WORDS = re.compile(
    r"\b(certain(ly)?|surely|do(es)? not stand|hold(s|ing)? 0|lea(ves?|ving) out 0|"
    r"divided (problems|ones)|answers? at once|asked (for )?at once|single answers?|"
    r"(is|are) (not )?told|worked solutions?|numbers run over|(has|have) use for|"
    r"ow(es?|ing)|bears?|the house|floors|strangers?|held against|nats of|anew|"
    r"evenly spread|at work)\b",
    re.I,
)
# The same words in docstrings and messages of lib, without those that code may use.
NOT_CODES_WORDS = re.compile(
    r"\b(told|stands?|beside|anew|worked solutions?|divided problems|answers? at once|"
    r"single answers?|held against|evenly spread|numbers run over|has use for|bears?|"
    r"strangers?|asked for)\b",
    re.I,
)
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


def prose(text):
    return LINKED.sub(r"\1", NO_PROSE.sub("\n\n", text))


def sentences(text):
    plain = ABBREVIATION.sub(r"\1", LIST_ITEM.sub("- ", prose(text)))
    split = (" ".join(part.split()) for part in SENTENCE_END.split(plain))
    return [sentence for sentence in split if sentence.strip("- ")]


def numbers(sentence):
    """Return how many numbers a sentence has; an interval counts as one more."""
    return len(INTERVAL.findall(sentence)) + len(
        NUMBER.findall(NAME.sub("", INTERVAL.sub("", sentence)))
    )


def is_a_fragment(sentence):
    few = len(sentence.split()) < LEAST_WORDS_WITHOUT_A_VERB
    return few and sentence[-1] in ".?!" and not VERB.search(sentence)


def in_notebook(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    written = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(source) for source in written)


NOTEBOOKS = {
    path.name: in_notebook(path) for path in sorted(paths.NOTEBOOKS.glob("0*.ipynb"))
}
DOCUMENTS_READ = ("README.md", "report.md", "findings.md", "weighted_pass_rates.md")
READ_ALOUD = {name: TEXTS[name] for name in DOCUMENTS_READ}
READ_ALOUD |= NOTEBOOKS


@pytest.mark.parametrize("name", READ_ALOUD)
def test_sentences_are_neither_long_nor_fragments(name):
    read = sentences(READ_ALOUD[name])
    assert not [
        sentence
        for sentence in read
        if len(sentence.split()) > MOST_WORDS_OF_A_SENTENCE
    ]
    assert not [sentence for sentence in read if is_a_fragment(sentence)]


@pytest.mark.parametrize("name", sorted(READ_ALOUD.keys() - {"findings.md"}))
def test_no_sentence_has_too_many_numbers(name):
    assert not [
        sentence
        for sentence in sentences(READ_ALOUD[name])
        if numbers(sentence) > MOST_NUMBERS_OF_A_SENTENCE
    ]


@pytest.mark.parametrize("name", [*sorted(TEXTS), *NOTEBOOKS])
def test_documents_use_the_fields_words(name):
    text = (TEXTS | NOTEBOOKS)[name]
    assert not [found.group() for found in NOT_THE_FIELDS_WORDS.finditer(prose(text))]


def test_docstrings_and_messages_use_the_fields_words():
    found = {}
    for path in sorted((paths.ROOT / "lib").rglob("*.py")):
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        texts = [node.value for node in nodes if isinstance(node, ast.Constant)]
        text = "\n".join(text for text in texts if isinstance(text, str))
        if words := NOT_CODES_WORDS.findall(text):
            found[path.name] = words
    assert not found


def test_the_checks_of_sentences_find_fragments_numbers_and_words():
    examples = (
        "Counted, both agree. Cut were 10 of 20, 30 of 40 and 50. It is 1.2 [0.9, 1.5]."
    )
    first, second, third = sentences(examples)
    assert is_a_fragment(first)
    assert numbers(second) == 5
    assert numbers(third) == 2
    assert NOT_THE_FIELDS_WORDS.search("The interval holds 0.")
    assert NOT_CODES_WORDS.search("It is made anew beside the others.")


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


def test_the_readme_is_short():
    assert len(prose(TEXTS["README.md"]).split()) <= MOST_WORDS


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
