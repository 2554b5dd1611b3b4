"""What a notebook shows: a figure on a page of its own, saved as it is shown, and
tables that are rounded.

A figure is a png, a pdf and the csv of its numbers. The csv alone decides whether the
three are written anew, since processors round differently: the same run elsewhere
differs in the sixth digit and in every byte. To draw a figure in a new look, delete its
png.
"""

import contextlib
import io
import json
import re
import textwrap
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from IPython.display import Image, display
from PIL import Image as Pixels

from lib.errors import InputError
from lib.figures.draw import HEIGHT, STYLE, WIDTH
from lib.models.names import resolve
from lib.paths import relative_path, write_json, write_whole
from lib.prompts.problems import describe
from lib.statistics import ALPHA, format_interval

RECORD = "figures.json"  # in a run's results: how each of its figures compared
DPI = 200  # twice what a page shows: sharp on every screen
CHARACTERS, LEGEND = (
    190,
    145,
)  # of a line of the caption, and of the legend, where a mark is as wide as 8 of them
THIS_RUN = "this run"  # in a column `source`, beside what the paper reports
ABSENT, UNDRAWN = "no table was there", "no picture was there"
# The least that a reader sees: of a number; of an interval's width, whose half is told
# to two digits.
OF_NUMBER, OF_WIDTH = 0.01, 0.05
FLOOR, NARROWEST = (
    0.01,
    1e-3,
)  # of a column's largest number: what a smaller one, and an interval's width, count as
P_VALUE = re.compile(r"(.*[._])?p(_value|_holm)?")
SMALLEST, FACTOR = 1e-3, 3.0  # of p-values: what is told, half an order of magnitude
NOTHING = "Nothing to show: this profile does not ask for it. The profile demo does."
UNFOLDED = {
    "width": 1000,
    "max_columns": None,
    "max_colwidth": None,
}  # else the length of a number moves lines
SIGNED = ("effect", "against others")  # differences


@contextlib.contextmanager
def page(
    run,
    name,
    tables,
    part,
    *,
    panels=1,
    columns=None,
    mosaic=None,
    height=HEIGHT,
    widths=None,
    ylabel="",
    note="",
):
    """Yield axes to draw on, (panels,); then add legend and caption, save the figure
    with its tables, and show it.

    part: the section of the profile whose models and problems the caption names, None
    for the models of all; tables: the one that the caption is about, and others of the
    figure; mosaic: where the panels stand, by number. Files whose csv says the same
    stay; without panels there is no figure. Raises InputError for a folder that cannot
    be written.
    """
    if not panels:
        yield np.empty(0, dtype=object)
        return
    columns = columns or (panels if panels <= 3 else 2)
    places = [*range(panels), *["."] * (-panels % columns)]
    mosaic = mosaic or [
        places[start : start + columns] for start in range(0, panels, columns)
    ]
    path, numbers = run.figures / name, pd.concat(tables, ignore_index=True)
    csv = numbers.to_csv(index=False, float_format="%.6g", lineterminator="\n").encode()
    with plt.rc_context(STYLE):
        figure, axes = plt.subplot_mosaic(
            mosaic, figsize=(WIDTH, height * len(mosaic)), width_ratios=widths
        )
        try:
            yield np.array([axes[number] for number in range(panels)])
            for ax in axes.values():
                place = ax.get_subplotspec()
                if ylabel and place and place.is_first_col():
                    ax.set_ylabel(ylabel)
            found = _compared(path, csv)
            if found["changed"]:
                caption = provenance(run, part, tables[0]) + note
                _save(
                    figure, path, caption, None if found["changed"] == UNDRAWN else csv
                )
            run.results.mkdir(parents=True, exist_ok=True)
            write_json(run.results / RECORD, recorded(run.results) | {name: found})
        finally:
            plt.close(figure)
    display(Image(path.with_suffix(".png"), retina=True))
    print(f"{relative_path(path)}.png, .pdf and .csv")


def _compared(path, csv):
    """Return why a figure's files are to be written (`changed`, "" to keep them), or
    how far its numbers are apart.
    """
    try:
        largest, where = largest_difference(
            pd.read_csv(path.with_suffix(".csv")), pd.read_csv(io.BytesIO(csv))
        )
    except (OSError, ValueError):  # missing or damaged: as good as not there
        return {"changed": ABSENT}
    there = all(path.with_suffix(f".{kind}").is_file() for kind in ("png", "pdf"))
    changed = where if largest >= 1 else "" if there else UNDRAWN
    return {"changed": changed, "largest": largest, "where": where}


def _save(figure, path, caption, csv):
    """Write a legend of all panels above them and the caption below; save csv, unless
    it is None, pdf and png.

    The png has 256 colours: no eye tells, at a third of the size.
    """
    named = {}
    for ax in figure.axes:
        for mark, label in zip(*ax.get_legend_handles_labels(), strict=True):
            named.setdefault(label, mark)
    height = figure.get_figheight()
    if named:  # in as many columns, filled one after another, as the page is wide
        widths = [8 + len(label) for label in named]
        splits = {
            columns: np.array_split(widths, columns) for columns in range(6, 1, -1)
        }
        fits = [
            columns
            for columns, parts in splits.items()
            if sum(max(part, default=0) for part in parts) <= LEGEND
        ]
        columns = (*fits, 1)[0]
        figure.legend(
            named.values(), named.keys(), loc="outside upper center", ncols=columns
        )
        height = height + 0.13 * -(-len(named) // columns) + 0.08
    lines = textwrap.wrap(caption, CHARACTERS, break_on_hyphens=False)
    figure.supxlabel("\n".join(lines), x=0.01, ha="left", fontsize=5, color="0.45")
    figure.set_figheight(height + 0.09 * len(lines) + 0.05)  # the axes keep theirs
    figure.draw_without_rendering()
    figure.set_layout_engine("none")  # found once, for both
    pdf, drawn, png = io.BytesIO(), io.BytesIO(), io.BytesIO()
    figure.savefig(pdf, format="pdf", metadata={"CreationDate": None})
    figure.savefig(drawn, format="png", dpi=DPI)
    few = (
        Pixels.open(drawn)
        .convert("RGB")
        .quantize(256, Pixels.Quantize.MAXCOVERAGE, dither=Pixels.Dither.NONE)
    )
    few.save(png, format="png", optimize=True)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(
            f"cannot write figure {path.name} to {path.parent}:"
            f" {error.strerror or error}"
        ) from error
    for kind, content in {
        "png": png.getvalue(),
        "pdf": pdf.getvalue(),
        "csv": csv,
    }.items():
        if content is not None:
            write_whole(path.with_suffix(f".{kind}"), content)


def provenance(run, part, table):
    """Return what a caption says of a table's numbers: models with their weights,
    problems, prompt, and n.
    """
    table = (
        table[table.source == THIS_RUN]
        if THIS_RUN in set(table.get("source", ()))
        else table
    )
    sections = [getattr(run, part)] if part else [run.attention, run.accuracy]
    revisions = (
        table.dropna(subset="revision").groupby("model").revision.first()
        if "revision" in table
        else {}
    )
    labels = {}
    for source in (resolve(spec) for section in sections for spec in section.models):
        if source.name in set(table.get("model", ())):
            revision = revisions.get(source.name, source.revision)
            name = f"{source.name} @ {revision[:12]}" if revision else source.name
            labels[f"{name}, {source.weights}" if source.weights else name] = True
    text = f"{'; '.join(labels)}. " if labels else ""
    if part:
        text += (
            f"Problems: {describe(sections[0].problems)}, {sections[0].format} prompt"
        )
        counts = table.n.agg(["min", "max"]).unique() if "n" in table else []
        text += (
            f", n = {' to '.join(f'{n:,.0f}' for n in counts)}. "
            if len(counts)
            else ". "
        )
    return text + ("95 % intervals over problems. " if "low" in table else "")


def largest_difference(old, new):
    """Return (size, where) of the largest difference between two DataFrames; from 1 on
    a reader sees it.

    Numbers are compared by what they mean: an estimate and its ends (columns that end
    in low and high behind it) by the interval's width, a p-value by what it decides,
    others by their size. Whole numbers are counts, which have to be equal as texts
    have: inf where they are not, and for other rows or columns.
    """
    if list(old) != list(new):
        return np.inf, f"columns {', '.join(new)}, were {', '.join(old)}"
    if len(old) != len(new):
        return np.inf, f"{len(new)} rows, were {len(old)}"
    largest, where = 0.0, ""
    numbers = {*old.select_dtypes("number")} & {*new.select_dtypes("number")}
    ends = {
        name: list(some[1:])
        for some in triples(list(new))
        if numbers.issuperset(some[1:])
        for name in some
    }
    for name in new if len(new) else ():
        apart = _apart(name, old, new, ends.get(name))
        row = int(apart.argmax())
        if apart[row] > largest:
            largest, where = (
                float(apart[row]),
                f"{name} in line {row + 2}: {new[name][row]}, was {old[name][row]}",
            )
    return largest, where


def _apart(name, old, new, ends):
    """Return how far a column is apart in each row (n,), in what a reader sees; 0 or
    inf where it has to be equal.
    """
    one, other = old[name], new[name]
    exact = np.where((one == other) | (one.isna() & other.isna()), 0, np.inf)
    kinds = {one.dtype.kind, other.dtype.kind}
    if not kinds <= set("if") or (kinds == {"i"} and not ends):
        return exact
    both = np.array([one, other], dtype=float)  # (2, n)
    if P_VALUE.fullmatch(name):
        sizes = np.fmax(both, SMALLEST)
        same = ((both < ALPHA).all(0) | (both >= ALPHA).all(0)) & (
            sizes.max(0) < FACTOR * sizes.min(0)
        )
        return np.where(same, 0, exact)
    if ends:
        bounds = np.array([old[ends], new[ends]], dtype=float)  # (2, n, 2)
        size = OF_WIDTH * np.fmax(
            np.fmax(*np.ptp(bounds, axis=2)),
            NARROWEST * np.nanmax(np.abs(bounds), initial=0),
        )
    else:
        size = OF_NUMBER * np.maximum(
            np.abs(both).max(0), FLOOR * np.nanmax(np.abs(both), initial=0)
        )
    apart = np.abs(both[0] - both[1]) / np.where(exact == 0, 1, size)
    return np.where(exact == 0, 0, np.nan_to_num(apart, nan=np.inf))


def triples(names):
    """Return (estimate, low, high) of the columns that are an estimate followed by its
    ends.
    """
    following = zip(names, names[1:], names[2:], strict=False)
    return [
        some
        for some in following
        if some[1].endswith("low") and some[2] == f"{some[1][:-3]}high"
    ]


def recorded(results):
    """Return how the figures of a run compared, by name; what a killed run left is no
    figure.
    """
    try:
        return json.loads((Path(results) / RECORD).read_text())
    except (OSError, ValueError):
        return {}


def agreement(results):
    """Return the last words of a run: how many figures agree, where they differ most,
    and what was written and why.
    """
    found = recorded(results)
    same = [name for name, row in found.items() if not row["changed"]]
    new = [name for name, row in found.items() if row["changed"] == ABSENT]
    lines = []
    if same:
        most = max(same, key=lambda name: found[name]["largest"])
        text = (
            f"{len(same)} of {len(found) - len(new)} figures agree with the files that"
            " were there"
        )
        if size := 100 * found[most]["largest"]:
            text += (
                f"; the largest difference is {size:.2g} % of one that shows ({most}:"
                f" {found[most]['where']})"
            )
        lines.append(f"{text}.")
    if new:
        lines.append(
            f"{len(new)} new figure{'s were' if len(new) > 1 else ' was'} drawn."
        )
    others = [name for name in found if name not in [*same, *new]]
    return "\n".join(
        [
            *lines,
            *(f"{name} was drawn anew: {found[name]['changed']}." for name in others),
        ]
    )


def show(table, columns=None, digits=2):
    """Return columns of a DataFrame, all for none, rounded to so many digits, or to
    those of each column that is named.

    The first column is the index, told once where it repeats; gaps are empty. A p-value
    has three digits. An estimate and its ends become one column. A table without rows
    is said to be one.
    """
    if table.empty:
        return print(NOTHING)
    for name, value in UNFOLDED.items():
        pd.set_option(f"display.{name}", value)
    shown = (
        table[list(columns or table)].rename_axis(columns=None).reset_index(drop=True)
    )
    for name, low, high in triples(list(shown)):
        rows = zip(shown[name], shown.pop(low), shown.pop(high), strict=True)
        sign = "+" if name in SIGNED else ""
        shown[name] = [
            "" if pd.isna(row[0]) else format_interval(*row, sign) for row in rows
        ]
    for name in shown:
        places = digits.get(name, 2) if isinstance(digits, dict) else digits
        values = (
            shown[name].convert_dtypes() if shown[name].isna().any() else shown[name]
        )  # counts stay whole
        shown[name] = [_cell(name, value, places) for value in values]
    first = shown.pop(shown.columns[0])
    return shown.set_index(first.where(first != first.shift(), ""))


def _cell(name, value, places):
    """Return a gap as nothing, and a fraction with as many places as the others of its
    column.
    """
    if pd.isna(value):
        return ""
    if P_VALUE.fullmatch(name):
        return f"< {SMALLEST}" if value < SMALLEST else f"{value:.3f}"
    return f"{value:z.{places}f}" if isinstance(value, float) else value


def say(*sentences):
    """Print sentences, each on a line of its own, which its length does not fold: nbval
    compares lines.
    """
    print(*sentences, sep="\n")
