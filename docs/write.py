"""Fill in the tables of docs/*.md whose cells are stored results.

    make readme

A person writes the documents. docs/tables.yaml says where the rows of a table come
from, by how its header begins, and only these rows are replaced.
"""

import functools
import re
from collections.abc import Callable, Iterator

import pandas as pd
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from docs.stored import chosen, tables
from lib.files.atomic import write_atomically
from lib.prompts.conditions import Filler
from lib.statistics.intervals import ENOUGH
from reproduction import paths
from reproduction.claims.claim import load_claims
from reproduction.claims.verdicts import Estimate
from reproduction.figures.notebook_tables import intervals_of
from reproduction.profiles import (
    Accuracy,
    Attention,
    Likelihood,
    PassRates,
    Profile,
)

MAX_DEFAULT = 20  # characters of a default that are printed
# The models of a profile's fields, by the prefix of the fields' names.
SECTIONS: dict[str, type[BaseModel]] = {
    "": Profile,
    "filler.": Filler,
    "attention.": Attention,
    "accuracy.": Accuracy,
    "likelihood.": Likelihood,
    "pass_rates.": PassRates,
}
# How the effect stands beside the verdicts on some claims.
EFFECTS = {
    "affine": ", {:.2f}",
    "arm-like-mless": ", {:+.2f}",
    "mful-alike": ", {:.2f}",
}


def main() -> None:
    """Fill in the tables of every document."""
    for name in filled_tables():
        path = paths.ROOT / name
        text = with_tables(name, path.read_text(encoding="utf-8"), rows_of_table)
        write_atomically(path, text.encode())


@functools.cache
def filled_tables() -> dict[str, dict]:
    """Return the sources of each document's tables by how their headers begin."""
    return yaml.safe_load((paths.ROOT / "docs/tables.yaml").read_text())


def with_tables(name: str, text: str, rows: Callable[[str, str], list[str]]) -> str:
    """Return the text of a document with the rows of each table that is filled in
    replaced by rows(document, how its header begins).
    """
    for header in filled_tables().get(name, ()):
        table = rf"^\|{re.escape(header)}\|.*\n[|-]+\n((?:\|.*\n)*)"
        match = re.search(table, text, re.M)
        assert match, f"{name} has no table that begins with {header!r}"
        lines = "".join(f"|{row}|\n" for row in rows(name, header))
        text = text[: match.start(1)] + lines + text[match.end(1) :]
    return text


def rows_of_table(name: str, header: str) -> list[str]:
    """Return the rows of a table, with | between their cells."""
    sources = filled_tables()[name][header]
    if isinstance(sources, str):
        return list(FUNCTIONS[sources]())
    if isinstance(sources, list):  # of whole rows
        return texts(sources)
    return [
        "|".join([label, *texts([source] if isinstance(source, str) else source)])
        for label, source in sources.items()
    ]


def texts(sources: list[str]) -> list[str]:
    """Return the text of each source once for each of its rows, whose values stand in
    for the columns' names in braces. An estimate is printed with its interval.
    """
    filled = []
    for source in sources:
        rows, text = chosen(source)
        for row in rows.to_dict("records"):
            for name, low, high in intervals_of(list(rows)):
                row[name] = Estimate(row[name], row[low], row[high], 0)
            filled.append(text.format(**row))
    return filled


def verdicts_by_claim() -> Iterator[str]:
    """Yield a row for each literal or translated claim that was tested on MATH-500,
    with a verdict for each model.
    """
    verdicts = tables()["families/claims"]
    otherwise = {claim.id: claim.otherwise for claim in load_claims()}
    models = verdicts["short"].unique()
    verdicts = verdicts.query("reading in ['literal', 'translated']")
    for name, of_claim in verdicts.groupby("id", sort=False):
        first = of_claim.iloc[0]
        tested = of_claim[of_claim["n"] >= ENOUGH].set_index("short")
        if tested.empty:
            continue
        same_untrained = tested["specific"].eq(False).map({True: " ‡", False: ""})
        effects = tested["effect"].map(EFFECTS.get(name, "").format)
        cells = tested["word"] + tested["dagger"] + same_untrained + effects
        other = otherwise[name]
        yield "|".join(
            [
                first["claim"] + (" §" if pd.notna(first["certain"]) else ""),
                first["reading"],
                first["written"],
                *cells.reindex(models, fill_value="not measured"),
                f"{other.says}: {', '.join(tested['otherwise'])}" if other else "",
            ]
        )


def fields() -> Iterator[str]:
    """Yield the name, default and description of each field of a profile."""
    for section, model in SECTIONS.items():
        for name, info in model.model_fields.items():
            if f"{name}." not in SECTIONS:
                yield f"`{section}{name}`|{default_text(info)}|{info.description}"


def default_text(info: FieldInfo) -> str:
    """Return a field's default as YAML, cut to MAX_DEFAULT characters; "required" if
    it has none.
    """
    if info.is_required():
        return "required"
    text = yaml.safe_dump(info.default, default_flow_style=True, width=1000)
    text = text.removesuffix("...\n").strip()
    if len(text) > MAX_DEFAULT:
        text = f"{text[:MAX_DEFAULT]}…"
    return f"`{text}`"


FUNCTIONS = {"verdicts_by_claim": verdicts_by_claim, "fields": fields}

if __name__ == "__main__":
    main()
