"""What the documents say of time, memory and disk, from benchmarks/results."""

import tomllib

from docs import sources
from docs.markdown import as_markdown
from lib.paths import ROOT

TOKENS = (128, 512, 2048, 4096)  # lengths whose speed is told
# What is compared, the other way, and this project's.
COMPARED_WAYS = (
    ("layer 1 than eager, all layers", "eager", "layer1"),
    ("layer 1 than TransformerLens", "lens_layer1", "layer1"),
    ("all layers than eager", "eager", "all"),
    ("all layers than TransformerLens", "lens_all", "all"),
)


def commands() -> str:
    """Return how long the two commands take, and what installing needs."""
    table = sources.stored(sources.BENCHMARKS / "commands.csv").set_index("command")
    install = table.loc["install"]
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    python = project["requires-python"].removeprefix(">=")
    return (
        f"On {install.cores} CPU cores `make reproduce` takes"
        f" {table.minutes['make reproduce']} minutes, and `make test`"
        f" {table.minutes['make test']}. The first run creates `.venv`"
        f" ({install.minutes} minutes, {install.disk_gb} GB). Python {python} or newer"
        " and a package index are needed, but no GPU, account or model hub."
    )


def first_layers() -> str:
    """Return GB to fetch and of memory, of the first layers and of the whole model."""
    table = sources.stored(sources.BENCHMARKS / "first_layers.csv").set_index("model")
    parts = list(dict.fromkeys(column.split(":")[0] for column in table))
    rows = []
    for model, row in table.iterrows():
        cells = [
            f"{row[f'{part}: GB to fetch']:.2f} / {row[f'{part}: GB of RAM']:.2f}"
            for part in parts
        ]
        rows.append((model, *cells))
    return as_markdown(rows, ["GB to fetch / of memory", *parts])


def rehearsal() -> str:
    """Return what scoring with models took of which one layer is in memory."""
    rows = []
    for row in sources.stored(sources.BENCHMARKS / "rehearsal.csv").itertuples():
        numbers = (
            f"{row.gb_fetched:.1f}",
            f"{row.peak_gb:.1f}",
            f"{row.reading_seconds:.0f}",
            f"{row.sweep_seconds:.0f}",
            f"{row.hours_of_laptop:.0f}",
        )
        rows.append((row.model, *numbers))
    columns = [
        "one layer at a time",
        "GB fetched",
        "GB of memory at most",
        "seconds to read all weights",
        "seconds for six short texts",
        "hours of a core for `laptop`",
    ]
    return as_markdown(rows, columns)


def rehearsal_end_to_end() -> str:
    """Return in sentences what all of `laptop` took on a few problems."""
    (row,) = sources.stored(
        sources.BENCHMARKS / "rehearsal_end_to_end.csv"
    ).itertuples()
    return (
        f"All of `laptop` on {row.problems} problems, with short answers, fetched"
        f" {row.gb_fetched:.0f} GB and drew every figure. It took"
        f" {row.peak_gb:.0f} GB of memory at most and {row.processor_minutes:.0f}"
        " minutes of a core."
    )


def speed() -> str:
    """Return how fast received attention and completions are.

    The first in times of other ways, the second per second of each way.
    """
    table = sources.stored(sources.BENCHMARKS / "extraction.csv")
    seconds = table.pivot(index="way", columns="tokens", values="seconds")
    rows = []
    for text, other, ours in COMPARED_WAYS:
        ratios = seconds.loc[other] / seconds.loc[ours]
        rows.append((text, *(f"{ratios[tokens]:.3g}" for tokens in TOKENS)))
    columns = ["times as fast, at tokens", *(f"{tokens:,}" for tokens in TOKENS)]
    attention = as_markdown(rows, columns)

    # Of several batches the best.
    batches = sources.stored(sources.BENCHMARKS / "generation.csv").query("batch > 1")
    best = batches.pivot_table(
        index="way", columns="problems", values="per_second", aggfunc="max", sort=False
    )
    best.index = best.index.str.replace("transformers", "this project")
    rows = [
        (way, *(f"{rate:.2f}" for rate in rates)) for way, *rates in best.itertuples()
    ]
    return f"{attention}\n\n{as_markdown(rows, ['completions per second', *best])}"
