"""Write README.md, docs/*.md and codecheck.yml from docs/templates and stored results.

    make readme

A person writes the prose in the templates; numbers are filled in. A sentence that is
true of today's numbers alone stands in `{% filter only_if(...) %}`, which refuses to
write it once they no longer bear it.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

import jinja2

from docs import stored
from lib import paths
from lib.claims.verdicts import Verdict, models_of, totals
from lib.errors import InputError
from lib.files.atomic import write_atomically
from lib.report.page import addresses
from lib.statistics.importance_weighting import MIN_MIXED_PROBLEMS

TEMPLATES = Path(__file__).parent / "templates"
SUFFIXES = (".md.j2", ".yml.j2")  # of a document; other templates are parts of several
AT_THE_TOP = ("README.md", "codecheck.yml")
SHORT = {
    "Qwen2.5-Coder-1.5B-Instruct": "Qwen 1.5B",
    "Qwen2.5-Coder-0.5B-Instruct": "Qwen 0.5B",
    "gemma-3-270m": "Gemma 270M",
    "SmolLM2-135M-Instruct": "SmolLM 135M",
}
WORDS = (
    "none",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
)


def main() -> int:
    """Write every document, or none: 2 with one line where a number is missing, or does
    not bear its sentence.
    """
    try:
        texts = documents()
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    for path, text in texts.items():
        write_atomically(path, text.encode())
    return 0


def documents() -> dict[Path, str]:
    """Return the text of every document by where it is written."""
    pages = environment()
    texts = {}
    for name in pages.list_templates(filter_func=lambda name: name.endswith(SUFFIXES)):
        document = name.removesuffix(".j2")
        folder = paths.ROOT if document in AT_THE_TOP else paths.ROOT / "docs"
        try:
            texts[folder / document] = pages.get_template(name).render()
        except InputError as error:
            raise InputError(f"{document}: {error}") from None
    return texts


def environment() -> jinja2.Environment:
    """Return what fills the templates: they see what `stored` has, and the filters."""
    pages = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=format,  # an estimate prints itself with its interval
    )
    pages.globals |= vars(stored) | {"addresses": addresses, "totals": totals}
    pages.globals["MIN_MIXED_PROBLEMS"] = MIN_MIXED_PROBLEMS
    pages.filters |= {filter_.__name__.strip("_"): filter_ for filter_ in FILTERS}
    return pages


def only_if(sentence: str, holds: bool) -> str:
    """Return a sentence; raise InputError where it is not true any more."""
    if not holds:
        text = " ".join(sentence.split())
        raise InputError(f"the stored results no longer support {text!r}: rewrite it")
    return sentence


def words(count: int) -> str:
    """Return a small count as a word."""
    return WORDS[count] if count < len(WORDS) else str(count)


def digits(number: float, places: int = 0) -> str:
    """Return a number with so many places."""
    return f"{number:,.{places}f}"


def range_(values: Iterable[float], places: int = 0) -> str:
    """Return the lowest and the highest of some numbers, as "10 to 39"."""
    values = list(values)
    ends = [digits(min(values), places), digits(max(values), places)]
    return " to ".join(dict.fromkeys(ends))


def signed_range(values: Iterable[float], places: int = 0) -> str:
    """Return the lowest and the highest of some changes, with their signs."""
    values = list(values)
    return f"{min(values):+.{places}f} to {max(values):+.{places}f}"


def signed(estimate: object, sign: str = "+") -> str:
    """Return an estimate with its interval, or a number, with its sign."""
    return format(estimate, sign)


def fill(text: str, row: SimpleNamespace | Verdict) -> str:
    """Return a text with a row's fields, as {0.n} or {0.estimate:+} name them; {short}
    is its model's short name, {word} a verdict with its marks: {dagger} if it is not
    significant after Holm's correction, {untrained} if untrained networks get the same.
    """
    word = dagger = untrained = ""
    if isinstance(row, Verdict):
        dagger = " †" if row.lost else ""
        untrained = " ‡" if row.specific is False else ""
        word = row.word + dagger
    model = short(getattr(row, "model", ""))
    marks = {"word": word, "dagger": dagger, "untrained": untrained}
    return text.format(row, short=model, **marks)


def lines(rows: Iterable, text: str, between: str = "\n") -> str:
    """Return a line of a table, or of a list, for each row: see `fill`."""
    return between.join(fill(text, row) for row in rows)


def cells(claim: str, text: str = "{word}") -> str:
    """Format the verdicts on a claim as cells of a table, one for each model."""
    by_model = {row.model: row for row in stored.about(claim)}
    texts = []
    for model in models_of(stored.about("dilution")):
        row = by_model.get(model)
        texts.append(fill(text, row) if row else "not measured")
    return "|".join(texts)


def where(rows: Iterable, **fields: object) -> list:
    """Return the rows whose fields are these."""
    wanted = fields.items()
    return [
        row for row in rows if all(getattr(row, name) == is_ for name, is_ in wanted)
    ]


def effects(rows: Iterable[Verdict], control: str = "") -> list[float]:
    """Return the effects of verdicts, or those of one of their controls if they have
    it.
    """
    values = [getattr(row, control) if control else row for row in rows]
    return [one.effect for one in values if one]


def holding(rows: Iterable[Verdict], number: float) -> list[Verdict]:
    """Return the verdicts whose interval holds a number."""
    return [row for row in rows if row.estimate.includes(number)]


def certain(rows: Iterable[Verdict], side: str = "above") -> list[Verdict]:
    """Return the verdicts whose whole interval lies above 0, or below."""
    return [row for row in rows if getattr(row.estimate, f"lies_{side}")(0)]


def gains(rows: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts that are a gain, also once corrected for their number."""
    return [row for row in certain(rows) if row.survives]


def supported(rows: Iterable[Verdict]) -> list[Verdict]:
    """Return the verdicts that support their claim."""
    return [row for row in rows if row.verdict == "supported"]


def short(model: str) -> str:
    """Return a model's name as a narrow table has it."""
    return SHORT.get(model, model)


FILTERS: tuple[Callable, ...] = (
    only_if,
    words,
    digits,
    range_,
    signed,
    signed_range,
    lines,
    cells,
    where,
    effects,
    holding,
    certain,
    gains,
    supported,
    models_of,
    short,
)

if __name__ == "__main__":
    sys.exit(main())
