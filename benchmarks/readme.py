"""Write what README.md and docs say in tables and numbers, between their markers, from
stored files and from the code.

`make readme`, after the figures were drawn anew or the benchmarks run.
tests/test_readme.py holds them against what this would write.
benchmarks/results/commands.csv, the time and the disk of the two commands, is kept by
hand.
"""

import re
import sys
import tomllib
from pathlib import Path

import pandas as pd
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lib.claims import words
from lib.errors import InputError
from lib.paths import FIGURES, ROOT, relative_path, write_whole
from lib.profiles import Accuracy, Attention, Likelihood, Profile
from lib.prompts.conditions import Filler
from lib.statistics import ENOUGH

README, PROFILES = ROOT / "README.md", ROOT / "docs" / "profiles.md"
RESULTS = ROOT / "benchmarks" / "results"
DEMO, MATRIX = FIGURES / "demo", FIGURES / "families" / "claims_matrix.csv"
NUMBERS = ("none", "one", "two", "three", "four", "five")
BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.S)
LONGEST = 20  # characters of a default
SECTIONS: dict[str, type[BaseModel]] = {
    "": Profile,
    "filler.": Filler,
    "attention.": Attention,
}
SECTIONS |= {"accuracy.": Accuracy, "likelihood.": Likelihood}
# What most profiles set; docs/profiles.md has all.
USUAL = (
    "attention.models",
    "attention.layers",
    "attention.problems",
    "attention.limit",
    "accuracy.conditions",
)
USUAL += ("accuracy.max_new_tokens",)
LENGTHS = (128, 512, 2048, 4096)  # tokens
COMPARED = (
    ("layer 1 than eager, all layers", "eager", "layer1"),
    ("layer 1 than TransformerLens", "lens_layer1", "layer1"),
    ("all layers than eager", "eager", "all"),
    ("all layers than TransformerLens", "lens_all", "all"),
)


def main() -> int:
    """Rewrite the documents; 2 with one line when a stored file is missing."""
    try:
        for document in (README, PROFILES):
            write_whole(
                document, rewritten(document.read_text(encoding="utf-8")).encode()
            )
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def rewritten(text: str) -> str:
    """Return a document with each marked block as `BLOCKS` writes it; raises InputError
    for one that it lacks.
    """
    if unknown := {name for _, name, _ in BLOCK.findall(text)} - set(BLOCKS):
        raise InputError(
            f"unknown block {min(unknown)!r}: choose from {', '.join(BLOCKS)}"
        )
    return BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[3]}", text)


def commands() -> str:
    """Return how long the two commands take, and what installing needs."""
    table = stored(RESULTS / "commands.csv").set_index("command")
    install, project = (
        table.loc["install"],
        tomllib.loads((ROOT / "pyproject.toml").read_text())["project"],
    )
    rows = [
        (
            "`make reproduce`",
            "every figure and verdict: families drawn, the demo measured",
            table.minutes["make reproduce"],
        ),
        (
            "`make test`",
            "linter, type checker and every test",
            table.minutes["make test"],
        ),
    ]
    needs = (
        f"The first run creates `.venv` ({install.minutes} minutes, {install.disk_gb}"
        f" GB). Needed are Python {project['requires-python'].removeprefix('>=')} or"
        " newer and a package index; no GPU, account or model hub."
    )
    return f"{as_markdown(rows, ['command', 'gives', f'minutes on {install.cores} CPU cores'])}\n\n{needs}"


def headline() -> str:
    """Return in one paragraph what the families' stored numbers say of the paper's
    three sentences.
    """
    verdicts, heads = (
        stored(MATRIX),
        stored(FIGURES / "families" / "lambda_by_head.csv"),
    )
    models = verdicts[verdicts.n > 0].model.nunique()
    dilution, later = _of(verdicts, "dilution"), _of(verdicts, "later-layers")
    sentence = (
        heads[(heads.condition == "random") & (heads.layer == 1)]
        .groupby("model")["lambda"]
        .mean()
    )
    deep = int((later.low > 1).sum())
    text = (
        f"In {NUMBERS[models]} small models with 4-bit weights 55 slashes leave the"
        " prompt "
    )
    text += (
        f"{words.span(dilution.effect)} of its attention in layer 1 (λ, mean over"
        " heads). An ordinary sentence as "
    )
    text += (
        f"long leaves it {words.span(sentence)}, evenly spread attention would leave "
    )
    text += (
        f"{words.span(dilution.uniform_effect)}, and from layer 5 on λ is above 1 in"
        f" {NUMBERS[deep]} of them. "
    )
    text += "The log likelihood of MATH-500's worked solutions changes by "
    text += (
        f"{_reach(_of(verdicts, 'likelihood-gain'), 'nats')}, where one worked example"
        " adds "
    )
    text += (
        f"{words.span(_of(verdicts, 'likelihood-example').effect, 1)}; accuracy"
        " changes by "
    )
    text += (
        f"{_reach(_of(verdicts, 'accuracy-mless'), 'points')}. None of these is a model"
        " of the paper; for those: "
    )
    return f"**{text}`--profile laptop`.**"


def _reach(rows: pd.DataFrame, unit: str) -> str:
    """Return between which effects the models lie, and in how many of them the interval
    holds 0.
    """
    none = int(((rows.low <= 0) & (rows.high >= 0)).sum())
    return (
        f"{rows.effect.min():+.1f} to {rows.effect.max():+.1f} {unit} (0 inside {none}"
        f" of {len(rows)} intervals)"
    )


def gains(verdicts: pd.DataFrame) -> str:
    """Return what likelihoods and answers say of the gain that the paper reports."""
    nats, example = (
        _of(verdicts, "likelihood-gain"),
        _of(verdicts, "likelihood-example").set_index("model").effect,
    )
    told_of = [
        f"{words.effect_text(row, sign='+')} nats in {row['model']} (n ="
        f" {row['n']:.0f}; a worked example gives {example[row['model']]:+.1f})"
        for row in words.rows_of(nats)
    ]
    accuracy = [
        f"{words.effect_text(row, sign='+')} points in {row['model']} (n ="
        f" {row['n']:.0f})"
        for row in words.rows_of(_of(verdicts, "accuracy-mless"))
    ]
    said = (
        "Slashes change the log likelihood of MATH-500's worked solutions by"
        f" {', '.join(told_of)}; "
    )
    return said + f"they change accuracy by {', '.join(accuracy)}."


def sentences() -> str:
    """Return five plain sentences: what of the paper's story holds in how many of the
    families' models.
    """
    verdicts = stored(MATRIX)
    held = {name: _held(verdicts, name) for name in dict.fromkeys(verdicts.id)}
    dilution, layer_1 = _of(verdicts, "dilution"), _of(verdicts, "likelihood-layer-1")
    weaker = int((dilution.control_high < dilution.low).sum())
    adds = "; ".join(
        f"{words.effect_text(row, sign='+')} nats in {row['model']}"
        for row in words.rows_of(layer_1)
    )
    said = [
        (
            "Slashes lower the first layer's attention on the prompt in"
            f" {held['dilution']} models, on the problem's tokens alone in"
            f" {held['dilution-problem']}; untrained networks of the same shape are"
            f" diluted more in {weaker} of {len(dilution)}: training undoes a part of"
            " what the shape alone would do."
        ),
        (
            f"Layer 1 is diluted more than layers 2 and 3 in {held['layer-1-most']}"
            " models, and one λ with one constant direction describes its output (R²"
            f" above 0.9) in {held['affine']}."
        ),
        (
            "The variance before the first MLP's activation function grows in"
            f" {held['variance-grows']} models; near-zero activations, norms and"
            f" variance all move as claimed in {held['redistribution']}."
        ),
        (
            f"Showing the slashes to layer 1 beside all other layers adds {adds}; the"
            " paper's mechanism needs a gain."
        ),
        gains(verdicts),
    ]
    return "\n".join(f"{number}. {text}" for number, text in enumerate(said, 1))


def requantised() -> str:
    """Return what quantising the weights once more changes."""
    table = stored(RESULTS / "requantised.csv")
    moved = table.verdicts_moved.fillna("").str.split().map(len)
    return (
        f"Quantising the weights of {NUMBERS[len(table)]} of these models once more, to"
        f" Q4_0, moves λ of a head by at most {table.lambda_largest_change.max():.2f},"
        " log ratios of activations by at most"
        f" {table.log_ratio_largest_change.max():.2f}, and {moved.sum()} of"
        f" {table.claims.sum()} verdicts (n = {table.n.min()};"
        " benchmarks/requantised.py)."
    )


def again() -> str:
    """Return what asking for the same answers again changes."""
    said = []
    for row in stored(RESULTS / "again.csv").itertuples():
        elsewhere = (
            ""
            if row.processor == row.processor_again
            else ", on another kind of processor"
        )
        said.append(
            f"{row.other_text} of {row.n} answers of {row.model}"
            f" ({row.dtype}{elsewhere}) have another text, and {row.lost + row.gained}"
            " change between right and wrong"
        )
    return f"Asked for again in other batches, {'; '.join(said)} (benchmarks/again.py)."


def _of(verdicts: pd.DataFrame, name: str) -> pd.DataFrame:
    return verdicts[(verdicts.id == name) & (verdicts.n >= ENOUGH)]


def _held(verdicts: pd.DataFrame, name: str) -> str:
    found = _of(verdicts, name)
    return f"{(found.verdict == 'supported').sum()} of {len(found)}"


def families() -> str:
    """Return what holds in all, some and none of the families' models, and which n
    would decide accuracy.
    """
    verdicts = stored(MATRIX)
    found = [
        *words.inside(verdicts),
        *words.finding(verdicts),
        *words.accuracies(verdicts),
        words.closing(verdicts)[-1],
    ]
    return "\n".join(f"- {text}" for text in found)


def found() -> str:
    """Return what the demo run found: in numbers, and which claims got which verdict."""
    claims, heads = (
        stored(DEMO / "claims_matrix.csv"),
        stored(DEMO / "lambda_by_head.csv"),
    )
    slashes, sentence = (heads[heads.condition == name] for name in ("mless", "random"))
    first, answered = (
        slashes[slashes.layer == 1],
        claims[claims.id.isin(["accuracy-mless", "arm-accuracy"])],
    )
    said = (
        f"With slashes λ is below 1 in {below(first)} heads of layer 1, with an"
        f" ordinary sentence as long in {below(sentence[sentence.layer == 1])} (n ="
        f" {first.n.max():.0f})."
    )
    found = [
        *words.lead(claims)[:-2],
        said,
        *words.accuracies(answered),
        words.closing(claims)[-1],
    ]
    return "\n".join(f"- {text}" for text in found)


def below(heads: pd.DataFrame) -> str:
    """Return how many heads have the whole interval of λ below 1, of how many."""
    return f"{(heads.high < 1).sum()} of {len(heads)}"


def profile_fields(only: tuple[str, ...] = ()) -> str:
    """Return the fields of a profile, or some of them, with their defaults and what
    they mean.
    """
    rows = [
        (f"`{section}{name}`", default_text(info), info.description)
        for section, model in SECTIONS.items()
        for name, info in model.model_fields.items()
        if f"{name}." not in SECTIONS and (not only or f"{section}{name}" in only)
    ]
    return as_markdown(rows, ["field", "default", "meaning"])


def default_text(info: FieldInfo) -> str:
    """Return a field's default in YAML, cut to LONGEST characters."""
    if info.is_required():
        return "required"
    text = (
        yaml.safe_dump(info.default, default_flow_style=True, width=1000)
        .removesuffix("...\n")
        .strip()
    )
    return f"`{text if len(text) <= LONGEST else text[:LONGEST] + '…'}`"


def first_layers() -> str:
    """Return GB to fetch and of memory, of the first layers and of the whole model."""
    table = stored(RESULTS / "first_layers.csv").set_index("model")
    parts = dict.fromkeys(column.split(":")[0] for column in table)
    rows = [
        (
            model,
            *(
                f"{row[f'{part}: GB to fetch']:.2f} / {row[f'{part}: GB of RAM']:.2f}"
                for part in parts
            ),
        )
        for model, row in table.iterrows()
    ]
    return as_markdown(rows, ["GB to fetch / of memory", *parts])


def speed() -> str:
    """Return how many times as fast received attention is as by other ways, and
    completions per second of each way.
    """
    seconds = stored(RESULTS / "extraction.csv").pivot(
        index="way", columns="tokens", values="seconds"
    )
    rows = [
        (
            text,
            *(
                f"{seconds.loc[other, tokens] / seconds.loc[ours, tokens]:.3g}"
                for tokens in LENGTHS
            ),
        )
        for text, other, ours in COMPARED
    ]
    attention = as_markdown(
        rows, ["times as fast, at tokens", *(f"{tokens:,}" for tokens in LENGTHS)]
    )
    table = stored(RESULTS / "generation.csv").query("batch > 1")
    # Of several batches the best.
    best = table.pivot_table(
        index="way", columns="problems", values="per_second", aggfunc="max", sort=False
    )
    best.index = best.index.str.replace("transformers", "this project")
    rows = [
        (way, *(f"{speed:.2f}" for speed in row)) for way, *row in best.itertuples()
    ]
    return f"{attention}\n\n{as_markdown(rows, ['completions per second', *best])}"


def stored(path: Path) -> pd.DataFrame:
    """Return a csv; an InputError says which command writes one that is missing."""
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        command = "make reproduce" if path.parent == DEMO else "make bench"
        raise InputError(
            f"cannot read {relative_path(path)} ({error}): {command} writes it"
        ) from error


def as_markdown(rows: list[tuple], columns: list[str]) -> str:
    """Return a table in Markdown."""
    return "\n".join(
        f"|{'|'.join(map(str, line))}|"
        for line in [columns, ["---"] * len(columns), *rows]
    )


BLOCKS = {
    "headline": headline,
    "sentences": sentences,
    "requantised": requantised,
    "again": again,
    "commands": commands,
    "families": families,
    "claims": found,
    "fields": profile_fields,
    "usual-fields": lambda: profile_fields(USUAL),
    "first-layers": first_layers,
    "speed": speed,
}

if __name__ == "__main__":
    sys.exit(main())
