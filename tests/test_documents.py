"""README.md, docs/*.md and the notebooks' sentences: their numbers are those of the
stored results, and their examples, commands and links work.
"""

import re
import shlex

import pytest

from docs import numbers, write
from reproduction import paths
from reproduction.__main__ import parser

README = paths.ROOT / "README.md"
DOCUMENTS = (README, *sorted(paths.ROOT.glob("docs/*.md")))
TEXTS = {path.name: path.read_text(encoding="utf-8") for path in DOCUMENTS}
CODE = re.compile(r"```(\w+)\n(.*?)```", re.S)
LINK = re.compile(r"\]\((?!https?:)([^)#]+)[^)]*\)")


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


@pytest.mark.parametrize("name", write.filled_tables())
def test_the_tables_of_a_document_hold_the_stored_results(name):
    text = (paths.ROOT / name).read_text(encoding="utf-8")
    assert write.with_tables(name, text, write.rows_of_table) == text, "make readme"


def test_only_the_rows_that_are_filled_in_are_not_compared():
    text = numbers.text_of("docs/findings.md")
    assert "\n|change by slashes|" in text
    assert "\n|λ in layer 1|" not in text
    assert "\n|greedy answers|80, 350|" in text


@pytest.mark.parametrize("name", numbers.DOCUMENTS)
def test_every_number_of_a_document_is_that_of_the_stored_results(name):
    assert not numbers.unlike(name, numbers.text_of(name))


# A text of the report, another one, and what is said about it.
UNLIKE = [
    (
        "+1.7 [-1.8, +5.3]",
        "+1.7 [-1.8, +5.4]",
        "+1.7 [-1.8, +5.4] is no stored estimate",
    ),
    ("+0.105 [+0.048", "+0.115 [+0.048", "A later comparison on short solutions"),
    ("10 to 39 %", "10 to 38 %", "'10 to 38 %' has no source: **Most claims"),
    ("layers 1 to 8 alone", "layers 2 to 8 alone", "'layers 2 to 8' has no source"),
]


@pytest.mark.parametrize("old, new, said", UNLIKE)
def test_a_number_that_is_not_stored_is_named_with_its_sentence(old, new, said):
    report = numbers.text_of("docs/report.md")
    (found,) = numbers.unlike("docs/report.md", report.replace(old, new))
    assert said in found


@pytest.mark.parametrize("command", commands())
def test_every_documented_command_is_valid(command):
    if command.startswith("sbatch"):
        command = shlex.split(command)[-1].replace("$SLURM_ARRAY_TASK_ID", "1")
    python, flag, package, *arguments = shlex.split(command)
    assert python in ("python", ".venv/bin/python")
    assert [flag, package] == ["-m", "reproduction"]
    assert parser().parse_args(arguments).run


def test_the_example_of_the_readme_prints_the_line_below_it(capsys):
    ((_, example),) = [
        block for block in CODE.findall(TEXTS["README.md"]) if block[0] == "python"
    ]
    said = example.splitlines()[-1]
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
