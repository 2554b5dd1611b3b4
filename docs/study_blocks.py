"""What the documents say of the tables that studies/ writes."""

from docs import sources
from docs.markdown import as_markdown
from lib.sentences.noise import AGAIN
from lib.sentences.numbers import in_words
from lib.statistics import format_interval

# Pairs of conditions that the studies compare, and what their difference is.
STUDIED_CHANGES = {
    ("mless", "none"): "55 slashes",
    ("random", "none"): "a sentence as long",
    ("mful", "none"): '55 times "he"',
    ("mless", "hidden-from-layer-1"): "layer 1's part of the slashes",
}


def requantised() -> str:
    """Return what quantising the weights once more changes."""
    table = sources.stored(sources.STUDIES / "requantised.csv")
    moved = table.verdicts_moved.fillna("").str.split().map(len)
    return (
        "The weights of"
        f" {in_words(len(table))} of these models were quantised once more,"
        f" to Q4_0 (n = {table.n.min()}; studies/requantised.py). λ of a head moves by"
        f" at most {table.lambda_largest_change.max():.2f}, a log ratio of activations"
        f" by at most {table.log_ratio_largest_change.max():.2f}, and"
        f" {moved.sum()} of {table.claims.sum()} verdicts change."
    )


def plain_prompts() -> str:
    """Return what insertions do to likelihoods of plain prompts, beside chat."""
    rows = []
    for row in sources.stored(sources.STUDIES / "plain.csv").itertuples():
        plain = format_interval(row.effect, row.low, row.high, "+")
        chat = "not scored"
        if row.n_in_chat > 0:
            in_chat = (row.effect_in_chat, row.low_in_chat, row.high_in_chat)
            chat = format_interval(*in_chat, "+")
        change = STUDIED_CHANGES[row.more, row.less]
        rows.append((row.model, change, plain, chat, row.n))
    columns = ["model", "change by", "plain prompt", "chat prompt", "n"]
    return as_markdown(rows, columns)


def bfloat16() -> str:
    """Return what rounding to bfloat16 does to scores, and what weights say in it."""
    table = sources.stored(sources.STUDIES / "bfloat16.csv")
    sentences = []
    rows = []
    for row in table.to_dict("records"):
        change = STUDIED_CHANGES[row["more"], row["less"]]
        sentences.append(
            f"The change of log p by {change} is off by {_changed(row, 'ratio')} nats"
            f" on average, at most by {row['ratio_change_largest']:.1f}."
        )
        for dtype in ("float32", "bfloat16"):
            points = [row[f"{name}_{dtype}"] for name in ("points", "low", "high")]
            spread = f"{row[f'spread_{dtype}']:.2f}"
            effective = f"{row[f'effective_{dtype}']:.0f}"
            largest = f"{row[f'largest_weight_{dtype}']:.1f}"
            told = format_interval(*points, "+")
            rows.append((change, dtype, told, spread, effective, largest))

    first = table.to_dict("records")[0]
    sentences.insert(
        0,
        f"Rounding moves log p of an answer itself by {_changed(first, 'log_p')} nats"
        f" ({first['scored']} answers to {first['n']} problems, 95 % interval).",
    )
    columns = [
        "change by",
        "dtype",
        "points of accuracy",
        "spread, nats",
        "effective answers",
        "largest weight",
    ]
    return f"{' '.join(sentences)}\n\n{as_markdown(rows, columns)}"


def _changed(row: dict, name: str) -> str:
    """Return the mean absolute change of a score by rounding, with its interval."""
    ends = ("change", "change_low", "change_high")
    return format_interval(*(row[f"{name}_{end}"] for end in ends))


def again() -> str:
    """Return what asking for the same answers again changes."""
    lines = []
    for row in sources.stored(AGAIN).itertuples():
        how = row.dtype
        if row.processor != row.processor_again:
            how += ", on another kind of processor"
        changed = row.lost + row.gained
        lines.append(
            f"Asked again in other batches ({how}), {row.model} gave {row.other_text}"
            f" of {row.n} answers with another text, and {changed} changed between"
            " right and wrong."
        )
    return f"{' '.join(lines)} The study is studies/again.py."
