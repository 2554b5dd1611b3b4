"""Compare the numbers of README.md and docs/report.md with stored results.

    python -m docs.numbers

Both documents are written by hand. Every estimate with an interval must be one that is
stored, rounded to the printed decimals: in a profile's claims.json, or in a table of
studies/results or figures. Every other number must be in docs/numbers.yaml, which names
the cell of a table that it is, or that it is a setting or a number of a paper. The
command prints each number for which that fails with its sentence, and
tests/test_documents.py fails if there is any.
"""

import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterator

import numpy as np
import pandas as pd

from lib.files.text_files import read_yaml
from reproduction import paths

DOCUMENTS = ("README.md", "docs/report.md")
SOURCES = paths.ROOT / "docs" / "numbers.yaml"
Estimate = tuple[float, float, float]  # with the bounds of its interval
NUMBER = r"[+-]?\d+(?:\.\d+)?"
INTERVAL = re.compile(rf"({NUMBER}) \[({NUMBER}), ({NUMBER})\]")
# Code, links, and names such as layer 1, Qwen 1.5B, arXiv ids and file names.
NO_NUMBERS = re.compile(
    r"```.*?```|`[^`]*`|\]\([^)]*\)|\[\d\d[^\]]*\]|\b\d{4}\.\d{5}\b"
    r"|\b(?:Qwen|Gemma|SmolLM)2?(?:\.5)?(?:-Math|-Coder)?[ -][\d.]+[BM]\b"
    r"|\b[\w.]*[A-Za-z-]\d[\w.-]*|\b\d+[A-Za-z_][\w.-]*",
    re.S,
)
# Integers up to this one are not compared, since most are names, such as layer 1.
COUNTED_IN_WORDS = 10
PLAIN = re.compile(r"(?<![\w.])[+-]?\d+(?:,\d{3})*(?:\.\d+)?(?![\w])")
SENTENCE_END = re.compile(r"(?<=[.?!:])\s+(?=[A-Z*\[])|\n\s*\n|\n(?=[-|#\d])")


def stored_estimates() -> list[Estimate]:
    """Return every estimate with an interval of the stored results."""
    found = []
    for file in sorted(paths.DATA.glob("*/claims.json")):
        for verdict in json.loads(file.read_text(encoding="utf-8")):
            for part in (verdict, verdict["control"], verdict["of_example"]):
                if part and part["effect"] is not None:
                    found.append((part["effect"], part["low"], part["high"]))
    for folder in ("studies/results", "figures"):
        for file in sorted((paths.ROOT / folder).rglob("*.csv")):
            found += _estimates_of(pd.read_csv(file))
    return found


def _estimates_of(table: pd.DataFrame) -> Iterator[Estimate]:
    """Yield the estimates of a table: the columns before two that are named low and
    high, alone or with the same addition.
    """
    names = list(table)
    for index, name in enumerate(names[:-1]):
        if index and "low" in name and names[index + 1] == name.replace("low", "high"):
            columns = table.iloc[:, index - 1 : index + 2].dropna()
            yield from columns.itertuples(index=False, name=None)


def as_printed(text: str, number: float) -> bool:
    """Return whether a printed number is this one, rounded to its decimals."""
    decimals = len(text.partition(".")[2])
    return abs(float(text) - number) <= 0.5001 * 10**-decimals


def unlike(texts: dict[str, str]) -> list[str]:
    """Return a line for each number of documents that no stored result supports.

    texts: by the document's name, as in DOCUMENTS.
    """
    estimates = stored_estimates()
    sources = {str(name): entry for name, entry in read_yaml(SOURCES).items()}
    values = {name: _values_of(entry) for name, entry in sources.items()}
    found = defaultdict(list)
    for name, text in texts.items():
        for sentence in SENTENCE_END.split(text):
            for printed in INTERVAL.findall(sentence):
                if not any(all(map(as_printed, printed, one)) for one in estimates):
                    found[f"{name}: {' '.join(sentence.split())}"].append(printed)
        for sentence in SENTENCE_END.split(NO_NUMBERS.sub(" ", text)):
            for printed in PLAIN.findall(INTERVAL.sub(" ", sentence)):
                bare = printed.lstrip("+-").replace(",", "")
                if bare.isdigit() and int(bare) <= COUNTED_IN_WORDS:
                    continue
                known = values.get(bare, [])
                if not any(one is None or as_printed(bare, one) for one in known):
                    found[f"{name}: {' '.join(sentence.split())}"].append(printed)
    return [f"{numbers} in {sentence}" for sentence, numbers in found.items()]


def _values_of(entry: str) -> list[float | None]:
    """Return the numbers that an entry of docs/numbers.yaml names: those of `table |
    rows | column`, or None for any number if the entry only says what it is.
    """
    if " | " not in entry:
        return [None]
    file, rows, column = entry.split(" | ")
    result = pd.read_csv(paths.ROOT / file).query(rows).eval(column)
    return [abs(number) for number in np.atleast_1d(result)]


def main() -> int:
    """Print what differs, and return the exit code: 1 if anything does."""
    texts = {name: (paths.ROOT / name).read_text("utf-8") for name in DOCUMENTS}
    found = unlike(texts)
    print("\n".join(found) or "every number is that of the stored results")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
