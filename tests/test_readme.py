"""README.md and docs against what `make readme` writes, their examples against the
code, and the README's prose against what a reader bears.
"""

import re
import shlex

import pandas as pd
import pytest
import xarray as xr
import yaml

from docs import answer_blocks, sources
from docs.make_readme import BLOCKS, DOCUMENTS, README
from docs.markdown import BLOCK, with_blocks
from lib import paths
from lib.__main__ import parser
from lib.measurement.plan import PER_HEAD
from lib.measurement.store import save_measured
from lib.models.card import card
from lib.profiles import load_profile

TEXTS = {path: path.read_text(encoding="utf-8") for path in DOCUMENTS}
TEXT = TEXTS[README]
EVERYTHING = "\n".join(TEXTS.values())
CODE = re.compile(r"```(\w+)\n(.*?)```", re.S)

# What a reader bears, and what of a text is read as prose.
MOST_WORDS = 1400
MOST_WORDS_OF_A_SENTENCE = 30
MOST_NUMBERS_OF_A_SENTENCE = 3
NO_PROSE = re.compile(r"```.*?```|<!--.*?-->|^[|#].*?$|^`\{.*?$", re.S | re.M)
LINK = re.compile(r"!?\[([^\]]*)\]\([^)]*\)")
SENTENCE_END = re.compile(r"(?<=[.?!])(?:\*\*)?\s+|\n\s*\n|\n(?=- )")
# A number with its interval, or from one end to the other, is one to a reader; what is
# part of a name, as the 7 of Math-7B, is none.
NUMBER = r"(?<![\w.-])[-+]?\d[\d,]*(?:\.\d+)?"
NUMBERS = re.compile(rf"{NUMBER}(?: \[{NUMBER}, {NUMBER}\]| to {NUMBER})?(?![\w-])")


def code(language):
    """Return the examples of all documents in a language."""
    return [text for name, text in CODE.findall(EVERYTHING) if name == language]


def sentences(text):
    """Return the sentences of a document outside its tables and code."""
    prose = LINK.sub(r"\1", NO_PROSE.sub("\n\n", text))
    parts = [" ".join(part.split()) for part in SENTENCE_END.split(prose)]
    return [part for part in parts if part]


def test_tables_and_numbers_are_what_the_stored_files_say():
    named = {name for _, name, _ in BLOCK.findall(EVERYTHING)}
    assert named == set(BLOCKS)
    for path, text in TEXTS.items():
        assert with_blocks(text, BLOCKS) == text, f"make readme: {path.name}"


def test_a_stored_file_is_read_once_for_all_that_is_told_of_it(monkeypatch):
    read = []

    def counted(function):
        def kept(path):
            read.append(getattr(path, "name", path))
            return function(path)

        return kept

    monkeypatch.setattr(pd, "read_csv", counted(pd.read_csv))
    monkeypatch.setattr(sources, "load_profile", counted(sources.load_profile))
    cached = (sources.families_run, sources.stored, sources.stored_as_verdicts)
    for reader in cached:
        reader.cache_clear()
    answer_blocks.headline()
    answer_blocks.models_table()
    answer_blocks.paper_says()
    assert sources.families_run() is sources.families_run()
    assert read == ["verdicts.csv", "mass_by_layer.csv", "families"]


def test_the_readme_is_short():
    assert len(TEXT.split()) <= MOST_WORDS


@pytest.mark.parametrize("sentence", sentences(TEXT))
def test_its_sentences_can_be_read_aloud(sentence):
    assert len(sentence.split()) <= MOST_WORDS_OF_A_SENTENCE
    assert len(NUMBERS.findall(sentence)) <= MOST_NUMBERS_OF_A_SENTENCE


def test_a_sentence_that_cannot_be_read_aloud_is_seen():
    told = "It is 1.0 [0.5, 1.5] in Math-7B, 10 to 20 % in B, 3 in C and -4 in D."
    assert sentences(f"# A\n\n| 1 | 2 |\n\n- {told}\n- *B*: 5.") == [
        f"- {told}",
        "- *B*: 5.",
    ]
    assert len(NUMBERS.findall(told)) == 4
    assert sentences("**Does it?** No. [It](a.md) does `not`.") == [
        "**Does it?",
        "No.",
        "It does `not`.",
    ]


@pytest.mark.parametrize(
    "command",
    [line for text in code("bash") for line in text.replace("\\\n", "").splitlines()],
)
def test_its_commands_are_understood(command):
    if command.startswith("sbatch"):
        command = shlex.split(command)[-1].replace("$SLURM_ARRAY_TASK_ID", "1")
    python, flag, package, *arguments = shlex.split(command)
    assert [python, flag, package] == ["python", "-m", "lib"] and parser().parse_args(
        arguments
    ).run


def test_its_profile_loads(tmp_path):
    (text,) = code("yaml")
    (tmp_path / "mine.yaml").write_text(
        text.replace("org/name", "demo")
    )  # a model whose heads are known
    (line,) = re.findall(r"`(\{\"unique_id.*?\})`", TEXT)
    (tmp_path / "mine.jsonl").write_text(line + "\n")
    profile = load_profile(tmp_path / "mine.yaml")
    assert (
        profile.accuracy.problems == str(tmp_path / "mine.jsonl")
        and profile.accuracy.limit == 20
    )
    assert yaml.safe_load(line)["answer"] == "7"


def test_its_measurement_opens(tmp_path, monkeypatch, capsys):
    (text,), model = code("python"), card("demo").name
    coords = {
        "network": ["trained"],
        "condition": ["mless"],
        "problem": ["a", "b"],
        "layer": [1],
        "head": [1, 2],
    }
    measured = xr.Dataset(
        {"lambda": (PER_HEAD.split(), [[[[[0.5, 0.75]], [[0.5, 0.25]]]]])}, coords
    )
    save_measured(tmp_path / f"results/demo/{model}.nc", measured)
    monkeypatch.chdir(tmp_path)
    exec(text, {})
    assert "[0.5, 0.5]" in re.sub(r"\s+", " ", capsys.readouterr().out)


def test_the_files_that_are_named_exist():
    named = ("CONTRIBUTING.md", "environment.yml", "binder/postBuild")
    contributing, environment, binder = (
        (paths.ROOT / name).read_text(encoding="utf-8") for name in named
    )
    links = r"\]\((?!https)([^)]+)\)"
    places = [
        f"docs/{place}"
        for path in DOCUMENTS[1:]
        for place in re.findall(links, TEXTS[path])
    ]
    places += re.findall(links, TEXT)
    places += re.findall(r"-[rc] (\S+\.txt)", environment + binder)
    places += re.findall(
        r"`((?:lib|tests|data|benchmarks|studies)/[\w./]+)`", contributing
    )
    places += re.findall(r"mybinder\.org/\S+labpath=([^)]+)\)", TEXT)
    files = [place.partition("#")[0] for place in places]
    missing = [
        file
        for file in files
        if "NAME" not in file and not (paths.ROOT / file).exists()
    ]
    assert len(places) > 20 and not missing
