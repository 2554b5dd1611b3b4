"""Compare the numbers of documents and notebooks with the stored results.

    python -m docs.numbers

The documents and the notebooks' sentences are written by hand, except for the tables
that docs.write fills in. An estimate with its interval, such as "+1.7 [-1.8, +5.3]",
must be a stored one, rounded to the printed decimals, and have the number of problems
that stands beside it. Every other number belongs to a phrase, such as "10 to 39 %" or
"layer 1", for which docs/numbers.yaml names stored cells or a constant. The command
prints each number that has neither, with its sentence, and tests/test_documents.py
fails if there is one.
"""

import functools
import json
import re
import sys
from collections.abc import Iterator
from itertools import chain

import yaml

from docs.stored import chosen, estimates
from docs.write import with_tables
from reproduction import paths

DOCUMENTS = [
    "README.md",
    "docs/questions.md",
    *(f"docs/{name}.md" for name in ("report", "findings", "weighted_pass_rates")),
    *sorted(f"notebooks/{path.name}" for path in paths.NOTEBOOKS.glob("0*.ipynb")),
]
# What holds no number to compare: code, formulas, the targets of links, papers' ids,
# and the marks of lists.
NO_PROSE = re.compile(
    r"```\w*\n.*?```|\$\$?[^$\n]+\$\$?|\]\([^)]*\)|`[^`\n]*`"
    r"|\b\d{4}\.\d{5}|^\d+\.(?= )",
    re.S | re.M,
)
NUMBER = r"(?<![\w.-])[+±-]?\d[\d,]*(?:\.\d+)?(?![\w.]*[A-Za-z])(?<!,)"
INTERVAL = re.compile(
    rf"({NUMBER})(?: %)? \[({NUMBER}), ({NUMBER})\]"
    r"(?:(?: †)?(?: [a-z]+)?(?: in \w+ [\d.]+[MB])?,? \(?n? ?(\d+)(?: [a-z]+)?\))?"
)
# Words before a number that name something by it, and those that do so by several.
NAME = r"(?:[Ll]ayer|[Hh]ead|Fig\.|Figure|Table|Eq\.|Sec\.|[Nn]otebook|\w+ =)"
NAMES = r"(?:[Ll]ayers|[Hh]eads|Figs\.|Figures|Tables|[Nn]otebooks)"
BETWEEN = r"(?:,? (?:and|to|or|of|by|against|in|with) |, )"
PHRASE = re.compile(
    rf"(?P<name>{NAME} {NUMBER}|{NAMES} {NUMBER}(?:{BETWEEN}{NUMBER})*)"
    rf"|{NUMBER}(?:{BETWEEN}{NUMBER})*(?P<unit>[ -](?:%|[A-Za-z]+))?"
)
END = re.compile(r"(?<=[.:!?])\s|\n\n|\|?\n[|-]")


@functools.cache
def sources() -> dict[str, dict]:
    """Return the sources of phrases: of all documents (constants), and of each."""
    return yaml.safe_load((paths.ROOT / "docs/numbers.yaml").read_text())


def text_of(name: str) -> str:
    """Return what a person wrote in a document or notebook."""
    path = paths.ROOT / name
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        cells = json.loads(text)["cells"]
        written = [cell["source"] for cell in cells if cell["cell_type"] == "markdown"]
        return "\n\n".join("".join(source) for source in written)
    return with_tables(name, text, lambda *table: [])


@functools.cache
def printed_by(name: str) -> list[float]:
    """Return the numbers in the stored outputs of a notebook."""
    cells = json.loads((paths.ROOT / name).read_text(encoding="utf-8"))["cells"]
    shown = [
        output.get("data", {}) for one in cells for output in one.get("outputs", [])
    ]
    texts = [
        "".join(data.get(f"text/{kind}", ""))
        for data in shown
        for kind in ("plain", "markdown")
    ]
    return [
        float(one)
        for one in re.findall(r"(?<![\w.])[+-]?\d+(?:\.\d+)?", " ".join(texts))
    ]


def rounds_to(value: float, said: str) -> bool:
    """Return whether a stored value is the printed one at its decimals. A printed sign
    has to agree.
    """
    number = said.replace(",", "").lstrip("+±-")
    half = 0.5001 * 10.0 ** -len(number.partition(".")[2])
    if said[0] in "+-" and float(number) and (value < 0) != (said[0] == "-"):
        return False
    return abs(abs(value) - float(number)) <= half


def cells(source: str) -> list[float]:
    """Return the values of a source's columns in its rows, as in `chance | of ==
    "greedy answers" | p_value`. + before the columns adds the values of each, and a
    source without columns has the number of its rows.
    """
    rows, columns = chosen(source)
    if not columns:
        return [len(rows)]
    if columns.startswith("+"):
        return [rows[column].sum() for column in columns[1:].split(", ")]
    return [value for column in columns.split(", ") for value in rows[column]]


def supported(phrase: str, values: list[float]) -> bool:
    """Return whether the numbers of a phrase are the values in their order or, if there
    are more values, the lowest and the highest of them, with or without their signs, or
    one of these two without. A share counts as a percentage, too.
    """
    said = re.findall(NUMBER, phrase)
    if not values:
        return False
    low, *_, high = sorted([*values, values[0]], key=abs)
    choices = [values, [min(values), max(values)], [low, high], [low], [high]]
    factors = (1, 100) if "%" in phrase else (1,)
    return any(
        all(
            rounds_to(factor * one, text)
            for one, text in zip(choice, said, strict=True)
        )
        for choice in choices
        for factor in factors
        if len(choice) == len(said)
    )


def phrases(text: str) -> Iterator[tuple[str, int]]:
    """Yield each phrase with a number, and where it is. One that ends with its number
    begins with the word before it.
    """
    for match in PHRASE.finditer(text):
        start = match.start()
        if not match["name"] and not match["unit"]:
            before = re.search(r"(?:[^\s…|]+\s?|\|)\(?$", text[:start])
            start = before.start() if before else start
        yield " ".join(text[start : match.end()].split()), match.start()


def sentence(text: str, position: int) -> str:
    """Return the sentence, or the cells of a table, around a position."""
    ends = [match.end() for match in END.finditer(text)]
    start = max([end for end in ends if end <= position], default=0)
    end = min([end for end in ends if end > position], default=len(text))
    return " ".join(text[start:end].split())


def is_stored(match: re.Match) -> bool:
    """Return whether an estimate with its interval, and its n if printed, is stored."""
    *said, printed_n = match.groups()
    return any(
        printed_n in (None, str(int(n))) and all(map(rounds_to, ends, said))
        for *ends, n in estimates()
    )


def sourced(name: str, phrase: str) -> bool:
    """Return whether the stored cells of a phrase of a document have its numbers, or
    the outputs of a notebook do, or it is a constant of this document.
    """
    known = sources().get(name, {})
    if phrase in known:
        return supported(phrase, cells(known[phrase]))
    if phrase in chain(*known.get("constants", {}).values()):
        return True
    return phrase in known.get("printed", ()) and all(
        any(rounds_to(number, said) for number in printed_by(name))
        for said in re.findall(NUMBER, phrase)
    )


def hide(match: re.Match) -> str:
    """Return as many dots as a match has characters; a shell's commands stay."""
    return match[0] if match[0].startswith("```sh\n") else "…" * len(match[0])


def unlike(name: str, text: str) -> list[str]:
    """Return what a document says and the stored results do not, a line each."""
    written, text = text, NO_PROSE.sub(hide, text)
    found = []
    constants = set(chain(*sources()["constants"].values()))
    for match in INTERVAL.finditer(text):
        if not is_stored(match) and " ".join(match[0].split()) not in constants:
            said = f"{match[0]} is no stored estimate"
            found.append(f"{name}: {said}: {sentence(written, match.start())}")
    text = INTERVAL.sub(hide, text)
    for phrase, position in phrases(text):
        if phrase not in constants and not sourced(name, phrase):
            said = f"{phrase!r} has no source"
            found.append(f"{name}: {said}: {sentence(written, position)}")
    return found


def main() -> int:
    """Print what differs, and return the exit code: 1 if anything does."""
    found = [line for name in DOCUMENTS for line in unlike(name, text_of(name))]
    print("\n".join(found) or "every number is that of the stored results")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
