"""README.md and docs/*.md: they equal the output of `make readme`, their examples work,
and a stored number that no longer supports its sentence is an error.
"""

import json
import re
import shlex
from pathlib import Path

import pytest

from docs import numbers, write
from reproduction import paths
from reproduction.__main__ import parser

README = paths.ROOT / "README.md"
DOCUMENTS = (README, *sorted(paths.ROOT.glob("docs/*.md")))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}
CODE = re.compile(r"```(\w+)\n(.*?)```", re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")

NO_PROSE = re.compile(r"```.*?```|^[|#!].*?$", re.S | re.M)
LINKED = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")


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


def test_documents_are_up_to_date_with_templates_and_stored_files():
    rendered = write.documents()
    assert set(rendered) < set(DOCUMENTS)
    for path, text in rendered.items():
        assert text == path.read_text(encoding="utf-8"), f"make readme: {path.name}"


WRITTEN_BY_HAND = {name: TEXTS[Path(name).name] for name in numbers.DOCUMENTS}


def test_every_number_of_a_document_written_by_hand_is_that_of_the_stored_results():
    assert not numbers.unlike(WRITTEN_BY_HAND)


# A text that a document has, another one, and what is said about it.
UNLIKE = [
    ("+1.7 [-1.8, +5.3]", "+1.6 [-1.8, +5.3]", "('+1.6', '-1.8', '+5.3')] in README"),
    ("0.073 (Holm)", "0.074 (Holm)", "['0.074'] in README.md: 448 tokens"),
    ("+4.3 [+1.4, +7.6]", "+4.3 [+1.3, +7.6]", "('+4.3', '+1.3', '+7.6')] in docs/rep"),
]


@pytest.mark.parametrize("old, new, said", UNLIKE)
def test_what_differs_from_the_stored_results_is_named(old, new, said):
    changed = {name: text.replace(old, new) for name, text in WRITTEN_BY_HAND.items()}
    found = numbers.unlike(changed)
    assert found
    assert any(said in line for line in found)


def prose(text):
    return LINKED.sub(r"\1", NO_PROSE.sub("\n\n", text))


def in_notebook(path):
    cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
    written = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
    return "\n\n".join("".join(source) for source in written)


NOTEBOOKS = {
    path.name: in_notebook(path) for path in sorted(paths.NOTEBOOKS.glob("0*.ipynb"))
}


DECIMAL = re.compile(r"(?<![\w.-])\d+\.\d+(?![\w.]*[A-Za-z])")
# Numbers of the paper and of definitions, and those that follow from printed ones.
NOT_PRINTED = {"0.3", "3.2", "1.4826", "2.5", "2.7", "0.03", "0.04", "0.07"}
NOT_PRINTED |= {"0.073", "0.034"}  # Holm's p-values of studies/results/chance.csv


@pytest.mark.parametrize("name", NOTEBOOKS)
def test_a_decimal_of_a_notebooks_sentences_is_printed_by_one_of_its_cells(name):
    cells = json.loads((paths.NOTEBOOKS / name).read_text(encoding="utf-8"))["cells"]
    shown = [
        output.get("data", {}) for one in cells for output in one.get("outputs", [])
    ]
    texts = [
        "".join(data.get(f"text/{kind}", ""))
        for data in shown
        for kind in ("plain", "markdown")
    ]
    printed = [float(number) for number in DECIMAL.findall(" ".join(texts))]
    for said in set(DECIMAL.findall(prose(NOTEBOOKS[name]))) - NOT_PRINTED:
        digits = len(said.partition(".")[2])
        is_name = digits == 5  # a paper on arXiv
        assert is_name or float(said) in [
            round(number, digits) for number in printed
        ], said


@pytest.mark.parametrize("command", commands())
def test_every_documented_command_is_valid(command):
    if command.startswith("sbatch"):
        command = shlex.split(command)[-1].replace("$SLURM_ARRAY_TASK_ID", "1")
    python, flag, package, *arguments = shlex.split(command)
    assert python in ("python", ".venv/bin/python")
    assert [flag, package] == ["-m", "reproduction"]
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
