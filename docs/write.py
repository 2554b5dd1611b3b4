"""Write the documents whose tables are filled in: docs/*.md from docs/templates and
stored results.

    make readme

A person writes the prose in the templates; numbers are filled in. A sentence that
depends on the results is put between `{% filter only_if(...) %}` and `{% endfilter %}`
with the condition under which it is true. If the condition no longer holds, writing
stops with an error that quotes the sentence.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path
from types import SimpleNamespace

import jinja2

from docs import stored
from lib.errors import InputError
from lib.files.atomic import write_atomically
from lib.statistics.importance_weighting import MIN_MIXED_PROBLEMS
from reproduction import paths
from reproduction.claims.verdicts import Verdict, models_of, totals
from reproduction.figures import short

TEMPLATES = Path(__file__).parent / "templates"
NUMBER_WORDS = (
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
    """Write every document, or none if a number is missing or a sentence is no longer
    true; return the exit code, 2 after such an error.
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
    """Return the text of every document by its path.

    Raises InputError that names the document.
    """
    templates = environment()
    texts = {}
    for name in templates.list_templates():
        document = name.removesuffix(".j2")
        try:
            texts[paths.ROOT / "docs" / document] = templates.get_template(
                name
            ).render()
        except InputError as error:
            raise InputError(f"{document}: {error}") from None
    return texts


def environment() -> jinja2.Environment:
    """Return jinja2's environment of the templates, with the functions of `stored` and
    the filters of this module.
    """
    jinja = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        finalize=format,  # an estimate prints itself with its interval
    )
    jinja.globals |= vars(stored) | {"totals": totals}
    jinja.globals["MIN_MIXED_PROBLEMS"] = MIN_MIXED_PROBLEMS
    jinja.filters |= {filter_.__name__.strip("_"): filter_ for filter_ in FILTERS}
    return jinja


def only_if(sentence: str, holds: bool) -> str:
    """Return a sentence if its condition holds; otherwise raise InputError."""
    if not holds:
        text = " ".join(sentence.split())
        raise InputError(f"the stored results no longer support {text!r}: rewrite it")
    return sentence


def words(count: int) -> str:
    """Return a count as a word if it is at most ten, else in digits; 0 is "none"."""
    return NUMBER_WORDS[count] if count < len(NUMBER_WORDS) else str(count)


def digits(number: float, decimals: int = 0) -> str:
    """Return a number with `decimals` decimals, and commas between thousands."""
    return f"{number:,.{decimals}f}"


def range_(values: Iterable[float], decimals: int = 0) -> str:
    """Return the lowest and highest number, as "10 to 39", or one if both round to
    it.
    """
    values = list(values)
    ends = [digits(min(values), decimals), digits(max(values), decimals)]
    return " to ".join(dict.fromkeys(ends))


def signed_range(values: Iterable[float], decimals: int = 0) -> str:
    """Return the lowest and highest number with their signs, as "-1 to +2"."""
    values = list(values)
    return f"{min(values):+.{decimals}f} to {max(values):+.{decimals}f}"


def signed(estimate: object) -> str:
    """Return an Estimate with its interval, or a number, with signs."""
    return format(estimate, "+")


def fill(text: str, row: SimpleNamespace | Verdict) -> str:
    """Format a text with the fields of a row, such as {0.n} or {0.estimate:+}.

    {short} is the short name of the row's model. For a Verdict, {word} is its word and
    {dagger}, which is a mark if the verdict is not significant after Holm's correction.
    {untrained} is a mark if untrained networks get the same verdict.
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
    """Return `fill(text, row)` for each row, such as the lines of a table."""
    return between.join(fill(text, row) for row in rows)


def cells(claim: str, text: str = "{word}") -> str:
    """Return the cells of a table with the verdicts on a claim, one for each model, as
    formatted by `fill`.
    """
    by_model = {row.model: row for row in stored.about(claim)}
    texts = []
    for model in models_of(stored.about("dilution")):
        row = by_model.get(model)
        texts.append(fill(text, row) if row else "not measured")
    return "|".join(texts)


def where(rows: Iterable, **fields: object) -> list:
    """Return the rows whose fields have these values."""
    wanted = fields.items()
    return [
        row
        for row in rows
        if all(getattr(row, name) == value for name, value in wanted)
    ]


def names(rows: Iterable) -> str:
    """Return the short names of the rows' models, as "Qwen 0.5B, Gemma 270M and SmolLM
    135M"; "" without rows.
    """
    *first, last = [short(row.model) for row in rows] or [""]
    return f"{', '.join(first)} and {last}" if first else last


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
    models_of,
    names,
    short,
)

if __name__ == "__main__":
    sys.exit(main())
