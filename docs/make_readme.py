"""Write the tables and numbers of README.md and docs, from stored files and the code.

`make readme`, after verdicts or figures were made anew or the benchmarks run, writes
what stands between their markers. tests/test_readme.py holds them against what this
would write. benchmarks/results/commands.csv, the time and the disk of the two commands,
is kept by hand.
"""

import functools
import re
import sys
import tomllib
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import pandas as pd
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lib import evaluation
from lib.claims.verdict import Verdict, about, models_of
from lib.claims.verdict_tables import stored_verdicts, verdicts_of
from lib.errors import InputError
from lib.paths import FIGURES, ROOT, relative_path, write_whole
from lib.profiles import (
    Accuracy,
    Attention,
    Likelihood,
    PassRates,
    Profile,
    load_profile,
)
from lib.prompts.conditions import Filler
from lib.sentences import all_verdicts, conclusion, findings
from lib.sentences.noise import AGAIN
from lib.sentences.numbers import in_words
from lib.statistics import ENOUGH, format_interval

README = ROOT / "README.md"
PROFILES_PAGE = ROOT / "docs" / "profiles.md"
FINDINGS_PAGE = ROOT / "docs" / "findings.md"
RUNNING_PAGE = ROOT / "docs" / "running.md"
DOCUMENTS = (README, PROFILES_PAGE, FINDINGS_PAGE, RUNNING_PAGE)
BENCHMARKS = ROOT / "benchmarks" / "results"
STUDIES = ROOT / "studies" / "results"
# What the README says of each model, and of the paper's claims, by their ids.
NUMBERS_OF_MODELS = {
    "likelihood-gain": "worked solution, nats",
    "likelihood-layer-1": "layer 1's part, nats",
    "accuracy-mless": "right answers, points",
    "points-slashes": "right answers, sampled, points",
}
MAIN_CLAIMS = {
    "dilution": "lower the attention that the prompt's tokens receive in layer 1",
    "dilution-problem": "lower it for the problem's tokens alone",
    "layer-1-most": "do so in layer 1 more than in layers 2 and 3",
    "affine": "turn layer 1's output into λ times the old one plus one direction",
    "variance-grows": "raise the variance before the first MLP's activation function",
    "redistribution": "move near-zero activations, norms and variance together",
    "likelihood-layer-1": "help through layer 1: the worked solution gets likelier",
    "accuracy-mless": "raise accuracy",
}
# Pairs of conditions of studies/plain.py, and what their difference is.
PLAIN_CHANGES = {
    ("mless", "none"): "55 slashes",
    ("random", "none"): "a sentence as long",
    ("mful", "none"): '55 times "he"',
    ("mless", "hidden-from-layer-1"): "layer 1's part of the slashes",
}
BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.S)
LONGEST_DEFAULT = 20  # characters
SECTIONS: dict[str, type[BaseModel]] = {
    "": Profile,
    "filler.": Filler,
    "attention.": Attention,
    "accuracy.": Accuracy,
    "likelihood.": Likelihood,
    "pass_rates.": PassRates,
}
# What most profiles set; docs/profiles.md has all.
USUAL_FIELDS = (
    "attention.models",
    "attention.layers",
    "attention.problems",
    "attention.limit",
    "accuracy.conditions",
    "accuracy.max_new_tokens",
)
TOKENS = (128, 512, 2048, 4096)  # lengths whose speed is told
# What is compared, the other way, and this project's.
COMPARED_WAYS = (
    ("layer 1 than eager, all layers", "eager", "layer1"),
    ("layer 1 than TransformerLens", "lens_layer1", "layer1"),
    ("all layers than eager", "eager", "all"),
    ("all layers than TransformerLens", "lens_all", "all"),
)


def main() -> int:
    """Rewrite the documents; 2 with one line when a stored file is missing."""
    try:
        for document in DOCUMENTS:
            text = rewritten(document.read_text(encoding="utf-8"))
            write_whole(document, text.encode())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def rewritten(text: str) -> str:
    """Return a document with each marked block as `BLOCKS` writes it.

    Raises InputError for a block that is not among them.
    """
    names = {name for _, name, _ in BLOCK.findall(text)}
    if unknown := names - set(BLOCKS):
        raise InputError(
            f"unknown block {min(unknown)!r}: choose from {', '.join(BLOCKS)}"
        )

    def renewed(block: re.Match) -> str:
        begin, name, end = block.groups()
        return f"{begin}{BLOCKS[name]()}\n{end}"

    return BLOCK.sub(renewed, text)


def commands() -> str:
    """Return how long the two commands take, and what installing needs."""
    table = stored(BENCHMARKS / "commands.csv").set_index("command")
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


def headline() -> str:
    """Return the answer and the numbers that it rests on: the paragraph that notebook
    07 closes with.
    """
    verdicts = stored_as_verdicts("families")
    first, *parts = conclusion.conclusion_parts(verdicts, families_shares())
    answer, *limits = first
    *others, last = models_of(row for row in verdicts if row.n)
    names = f"{', '.join(others)} and {last}"
    models = " ".join([f"They are {names}, with 4-bit weights.", *limits])
    lines = [" ".join(sentences) for sentences in parts if sentences]
    return f"**{answer}** {models}\n\n{as_list(*lines)}"


def models_table() -> str:
    """Return a row per model: attention, likelihoods and answers under slashes."""
    verdicts = stored_as_verdicts("families")
    shares = families_shares().query("layer == 1")
    drawn = shares[shares.inserted.isin(("slashes", "a sentence as long"))]
    taken = shares.set_index(["model", "inserted"]).mass
    rows = []
    for model in models_of(row for row in verdicts if row.n):
        own = [row for row in verdicts if row.model == model]
        cells = [
            f"{taken[model, 'slashes']:.0f}",
            f"{taken[model, 'a sentence as long']:.0f}",
        ]
        for claim in NUMBERS_OF_MODELS:
            row = next(iter(about(own, claim, ENOUGH)), None)
            cells.append(f"{row.estimate:+}, n = {row.n}" if row else "")
        rows.append((model, *cells))
    columns = [
        "model",
        f"slashes take, % of layer 1 (n = {drawn.n.max()})",
        "a sentence takes, %",
        *NUMBERS_OF_MODELS.values(),
    ]
    return as_markdown(rows, columns)


def paper_says() -> str:
    """Return in how many models each of the paper's main claims holds."""
    verdicts = stored_as_verdicts("families")
    rows = [(text, held(verdicts, claim)) for claim, text in MAIN_CLAIMS.items()]
    return as_markdown(rows, ["The paper says that 55 slashes ...", "holds in"])


def held(verdicts: Sequence[Verdict], claim: str) -> str:
    """Return in how many models a claim is supported, and in how many neither that nor
    the opposite is.
    """
    rows = about(verdicts, claim, ENOUGH)
    supported = sum(row.verdict == "supported" for row in rows)
    text = f"{supported} of {len(rows)} models"
    others = Counter(row.stands for row in rows)
    told = [
        f"{others[name]} {name}" for name in ("in part", "undecided") if others[name]
    ]
    if told:
        return ", ".join([text, *told])
    return text if supported else f"no: {text}"


def checks() -> str:
    """Return how the measure fares in its own checks, and what graders make of it."""
    told = findings.checks(stored_as_verdicts("families"))
    return as_list(*told, *findings.graders_apart(families_answers()))


def requantised() -> str:
    """Return what quantising the weights once more changes."""
    table = stored(STUDIES / "requantised.csv")
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
    for row in stored(STUDIES / "plain.csv").itertuples():
        plain = format_interval(row.effect, row.low, row.high, "+")
        chat = "not scored"
        if row.n_in_chat > 0:
            in_chat = (row.effect_in_chat, row.low_in_chat, row.high_in_chat)
            chat = format_interval(*in_chat, "+")
        change = PLAIN_CHANGES[row.more, row.less]
        rows.append((row.model, change, plain, chat, row.n))
    columns = ["model", "change by", "plain prompt", "chat prompt", "n"]
    return as_markdown(rows, columns)


def again() -> str:
    """Return what asking for the same answers again changes."""
    lines = []
    for row in stored(AGAIN).itertuples():
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


def families() -> str:
    """Return what holds in all, some and none of the families' models.

    And which n would decide accuracy.
    """
    verdicts = stored_as_verdicts("families")
    return as_list(
        *all_verdicts.inside(verdicts),
        *findings.finding(verdicts),
        *findings.accuracies(verdicts),
        all_verdicts.closing(verdicts)[-1],
    )


def demo_claims() -> str:
    """Return what the demo run says: in numbers, and which claims got which verdict."""
    verdicts = stored_as_verdicts("demo")
    heads = stored(FIGURES / "demo" / "lambda_by_head.csv")
    first = heads[heads.layer == 1]
    slashes = first[first.condition == "mless"]
    sentence = first[first.condition == "random"]
    answered = [row for row in verdicts if row.id in ("accuracy-mless", "arm-accuracy")]
    below_1 = (
        f"With slashes λ is below 1 in {below(slashes)} heads of layer 1, with an"
        f" ordinary sentence as long in {below(sentence)} (n = {slashes.n.max():.0f})."
    )
    *told, _, corrected = all_verdicts.lead(verdicts)
    return as_list(*told, below_1, *findings.accuracies(answered), corrected)


def below(heads: pd.DataFrame) -> str:
    """Return how many heads have the whole interval of λ below 1, of how many."""
    return f"{(heads.high < 1).sum()} of {len(heads)}"


def profile_fields(only: Sequence[str] = ()) -> str:
    """Return the fields of a profile, or some of them.

    With their defaults and what they mean.
    """
    rows = []
    for section, model in SECTIONS.items():
        for name, info in model.model_fields.items():
            field = f"{section}{name}"
            is_section = f"{name}." in SECTIONS
            if not is_section and (not only or field in only):
                rows.append((f"`{field}`", default_text(info), info.description))
    return as_markdown(rows, ["field", "default", "meaning"])


def usual_fields() -> str:
    """Return the fields of a profile that most profiles set."""
    return profile_fields(USUAL_FIELDS)


def default_text(info: FieldInfo) -> str:
    """Return a field's default in YAML, cut to LONGEST_DEFAULT characters."""
    if info.is_required():
        return "required"
    text = yaml.safe_dump(info.default, default_flow_style=True, width=1000)
    text = text.removesuffix("...\n").strip()
    if len(text) > LONGEST_DEFAULT:
        text = f"{text[:LONGEST_DEFAULT]}…"
    return f"`{text}`"


def first_layers() -> str:
    """Return GB to fetch and of memory, of the first layers and of the whole model."""
    table = stored(BENCHMARKS / "first_layers.csv").set_index("model")
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
    for row in stored(BENCHMARKS / "rehearsal.csv").itertuples():
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
    (row,) = stored(BENCHMARKS / "rehearsal_end_to_end.csv").itertuples()
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
    table = stored(BENCHMARKS / "extraction.csv")
    seconds = table.pivot(index="way", columns="tokens", values="seconds")
    rows = []
    for text, other, ours in COMPARED_WAYS:
        ratios = seconds.loc[other] / seconds.loc[ours]
        rows.append((text, *(f"{ratios[tokens]:.3g}" for tokens in TOKENS)))
    columns = ["times as fast, at tokens", *(f"{tokens:,}" for tokens in TOKENS)]
    attention = as_markdown(rows, columns)

    # Of several batches the best.
    batches = stored(BENCHMARKS / "generation.csv").query("batch > 1")
    best = batches.pivot_table(
        index="way", columns="problems", values="per_second", aggfunc="max", sort=False
    )
    best.index = best.index.str.replace("transformers", "this project")
    rows = [
        (way, *(f"{rate:.2f}" for rate in rates)) for way, *rates in best.itertuples()
    ]
    return f"{attention}\n\n{as_markdown(rows, ['completions per second', *best])}"


@functools.cache
def families_run() -> Profile:
    """Return the profile of whose models the documents tell."""
    return load_profile("families")


@functools.cache
def families_answers() -> pd.DataFrame:
    """Return the answers of the families' models."""
    return evaluation.answers(families_run())


def families_shares() -> pd.DataFrame:
    """Return what slashes and a sentence take of each layer's attention."""
    return stored(FIGURES / "families" / "mass_by_layer.csv")


@functools.cache
def stored_as_verdicts(profile: str) -> Sequence[Verdict]:
    """Return the verdicts that the repository keeps of a profile of its own."""
    return tuple(verdicts_of(stored(stored_verdicts(profile))))


@functools.cache
def stored(path: Path) -> pd.DataFrame:
    """Return a csv; an InputError says which command writes one that is missing."""
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        command = "make bench" if path.parent == BENCHMARKS else "make reproduce"
        raise InputError(
            f"cannot read {relative_path(path)} ({error}): {command} writes it"
        ) from error


def as_markdown(rows: Sequence[tuple], columns: Sequence[str]) -> str:
    """Return a table in Markdown."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join(f"|{'|'.join(map(str, line))}|" for line in lines)


def as_list(*lines: str) -> str:
    """Return lines as a list in Markdown."""
    return "\n".join(f"- {line}" for line in lines)


BLOCKS: dict[str, Callable[[], str]] = {
    "headline": headline,
    "models": models_table,
    "paper-says": paper_says,
    "checks": checks,
    "requantised": requantised,
    "plain-prompts": plain_prompts,
    "again": again,
    "commands": commands,
    "families": families,
    "claims": demo_claims,
    "fields": profile_fields,
    "usual-fields": usual_fields,
    "first-layers": first_layers,
    "rehearsal": rehearsal,
    "rehearsal-end-to-end": rehearsal_end_to_end,
    "speed": speed,
}

if __name__ == "__main__":
    sys.exit(main())
