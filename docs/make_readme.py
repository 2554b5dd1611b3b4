"""Write the tables and numbers of README.md and docs, from stored files and the code.

`make readme`, after verdicts or figures were made anew or the benchmarks run, writes
what stands between their markers. tests/test_readme.py holds them against what this
would write. benchmarks/results/commands.csv, the time and the disk of the two commands,
is kept by hand.
"""

import re
import sys
import tomllib
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pandas as pd
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lib import evaluation
from lib.claims import summary
from lib.claims.summary import about
from lib.claims.verdict import UNTRAINED, Verdict, stored_verdicts, verdicts_of
from lib.errors import InputError
from lib.paths import FIGURES, ROOT, relative_path, write_whole
from lib.profiles import Accuracy, Attention, Likelihood, Profile, load_profile
from lib.prompts.conditions import Filler
from lib.statistics import ENOUGH

README = ROOT / "README.md"
PROFILES_PAGE = ROOT / "docs" / "profiles.md"
BENCHMARKS = ROOT / "benchmarks" / "results"
STUDIES = ROOT / "studies" / "results"
PAPERS_GAIN = 2  # points, of Qwen2.5-Math-1.5B in Table 1
NUMBER_WORDS = ("none", "one", "two", "three", "four", "five")
BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.S)
LONGEST_DEFAULT = 20  # characters
SECTIONS: dict[str, type[BaseModel]] = {
    "": Profile,
    "filler.": Filler,
    "attention.": Attention,
    "accuracy.": Accuracy,
    "likelihood.": Likelihood,
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
        for document in (README, PROFILES_PAGE):
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
    columns = ["command", "gives", f"minutes on {install.cores} CPU cores"]
    python = project["requires-python"].removeprefix(">=")
    needs = (
        f"The first run creates `.venv` ({install.minutes} minutes, {install.disk_gb}"
        f" GB). Needed are Python {python} or newer and a package index; no GPU,"
        " account or model hub."
    )
    return f"{as_markdown(rows, columns)}\n\n{needs}"


def headline() -> str:
    """Return the question, its answer, and the three numbers that it rests on."""
    verdicts = stored_as_verdicts("families")
    models = summary.models_of(row for row in verdicts if row.n)
    nats = about(verdicts, "likelihood-gain", ENOUGH)
    points = about(verdicts, "accuracy-mless", ENOUGH)
    return (
        "**Do 55 slashes in the prompt make a small model better at maths? In the"
        f" {NUMBER_WORDS[len(models)]} models that we could run"
        f" {seen_gains([*nats, *points])}.** They have 4-bit weights, and none of them"
        f" is the paper's. {first_layers_share()}"
        f" {first_layers_part(verdicts)} {moved_accuracy(points)} For the paper's own"
        " models: `--profile laptop`."
    )


def seen_gains(verdicts: Sequence[Verdict]) -> str:
    """Return how many of the measures of a gain lie wholly above 0."""
    gains = [verdict for verdict in verdicts if verdict.estimate.low > 0]
    if not gains:
        return "we see no gain"
    return f"{len(gains)} of {len(verdicts)} measures show a gain"


def first_layers_share() -> str:
    """Return what slashes and a sentence take of the first layer's attention."""
    shares = stored(FIGURES / "families" / "mass_by_layer.csv")
    first = shares[shares.layer == 1]
    slashes = first[first.inserted == "slashes"].mass
    sentence = first[first.inserted == "a sentence as long"].mass
    return (
        "In the first layer the tokens after the slashes give them"
        f" {slashes.min():.0f} to {slashes.max():.0f} % of their attention; an ordinary"
        f" sentence as long gets {sentence.min():.0f} to {sentence.max():.0f} %."
    )


def first_layers_part(verdicts: Sequence[Verdict]) -> str:
    """Return in how many models the first layer's slashes make solutions likelier."""
    layer_1 = about(verdicts, "likelihood-layer-1", ENOUGH)
    likelier = sum(verdict.estimate.low > 0 for verdict in layer_1)
    where = f"{likelier} of {len(layer_1)}" if likelier else "none"
    return (
        "Showing them to the first layer makes the worked solution likelier in"
        f" {where} of the models."
    )


def moved_accuracy(verdicts: Sequence[Verdict]) -> str:
    """Return how accuracy moved, and whether that tells the paper's gain from none."""
    moved = [f"{verdict.estimate:+} ({verdict.n} problems)" for verdict in verdicts]
    text = f"Accuracy moved by {' and '.join(moved)} points."
    estimates = [verdict.estimate for verdict in verdicts]
    if all(one.low <= 0 and one.high >= PAPERS_GAIN for one in estimates):
        text += f" That cannot tell the paper's +{PAPERS_GAIN} from nothing."
    return text


def effects(verdicts: Iterable[Verdict]) -> list[float]:
    return [verdict.estimate.effect for verdict in verdicts]


def gains(verdicts: Sequence[Verdict]) -> str:
    """Return what likelihoods and answers say of the gain that the paper reports."""
    examples = {
        row.model: row.estimate.effect
        for row in about(verdicts, "likelihood-example", ENOUGH)
    }
    nats = [
        f"{row.estimate:+} nats in {row.model} (n = {row.n}; a worked example gives"
        f" {examples[row.model]:+.1f})"
        for row in about(verdicts, "likelihood-gain", ENOUGH)
    ]
    points = [
        f"{row.estimate:+} points in {row.model} (n = {row.n})"
        for row in about(verdicts, "accuracy-mless", ENOUGH)
    ]
    return (
        "Slashes change the log likelihood of MATH-500's worked solutions by"
        f" {', '.join(nats)}; they change accuracy by {', '.join(points)}."
    )


def held(verdicts: Sequence[Verdict], claim: str) -> str:
    """Return in how many models a claim is supported."""
    rows = about(verdicts, claim, ENOUGH)
    supported = sum(row.verdict == "supported" for row in rows)
    return f"{supported} of {len(rows)}"


def sentences() -> str:
    """Return five plain sentences: what of the paper's story holds in the families."""
    verdicts = stored_as_verdicts("families")
    dilution = about(verdicts, "dilution", ENOUGH)
    weaker = sum(
        row.controls[UNTRAINED].estimate.high < row.estimate.low for row in dilution
    )
    layer_1 = about(verdicts, "likelihood-layer-1", ENOUGH)
    adds = "; ".join(f"{row.estimate:+} nats in {row.model}" for row in layer_1)
    alone = ", ".join(
        f"{row.estimate:+}"
        for row in about(verdicts, "likelihood-layer-1-suffices", ENOUGH)
    )
    lines = [
        (
            "Slashes lower the first layer's attention on the prompt in"
            f" {held(verdicts, 'dilution')} models, on the problem's tokens alone in"
            f" {held(verdicts, 'dilution-problem')}; untrained networks of the same"
            f" shape are diluted more in {weaker} of {len(dilution)}: training undoes a"
            " part of what the shape alone would do."
        ),
        (
            "Layer 1 is diluted more than layers 2 and 3 in"
            f" {held(verdicts, 'layer-1-most')} models, and one λ with one constant"
            " direction describes its output (R² above 0.9) in"
            f" {held(verdicts, 'affine')}."
        ),
        (
            "The variance before the first MLP's activation function grows in"
            f" {held(verdicts, 'variance-grows')} models; near-zero activations, norms"
            f" and variance all move as claimed in {held(verdicts, 'redistribution')}."
        ),
        (
            f"Showing the slashes to layer 1 beside all other layers adds {adds}; to"
            f" layer 1 alone, in the same order, {alone}; the paper's mechanism needs a"
            " gain."
        ),
        gains(verdicts),
        *pass_rates(verdicts),
    ]
    return "\n".join(f"{number}. {line}" for number, line in enumerate(lines, 1))


def pass_rates(verdicts: Sequence[Verdict]) -> list[str]:
    """Return what drawn answers say that are weighted; nothing without any."""
    slashes = about(verdicts, "points-slashes", ENOUGH)
    if not slashes:
        return []
    changes = [
        f"{row.estimate:+} points in {row.model} (n = {row.n} of 500 planned)"
        for row in slashes
    ]
    needed = [
        f"{row.estimate:+} points in {row.model}"
        for row in about(verdicts, "points-layer-1-needed", ENOUGH)
    ]
    return [
        "Answers that are drawn once and weighted by their probabilities put the change"
        f" of the pass rate under slashes at {'; '.join(changes)}. What showing them to"
        f" layer 1 adds is {'; '.join(needed)}. These runs have only begun."
    ]


def checks() -> str:
    """Return how the measure fares in its own checks, and what graders make of it."""
    answers = evaluation.answers(load_profile("families"))
    verdicts = stored_as_verdicts("families")
    return as_list(*summary.checks(verdicts), *summary.graders_apart(answers))


def requantised() -> str:
    """Return what quantising the weights once more changes."""
    table = stored(STUDIES / "requantised.csv")
    moved = table.verdicts_moved.fillna("").str.split().map(len)
    return (
        f"Quantising the weights of {NUMBER_WORDS[len(table)]} of these models once"
        f" more, to Q4_0, moves λ of a head by at most"
        f" {table.lambda_largest_change.max():.2f}, log ratios of activations by at"
        f" most {table.log_ratio_largest_change.max():.2f}, and {moved.sum()} of"
        f" {table.claims.sum()} verdicts (n = {table.n.min()};"
        " studies/requantised.py)."
    )


def again() -> str:
    """Return what asking for the same answers again changes."""
    parts = []
    for row in stored(STUDIES / "again.csv").itertuples():
        how = row.dtype
        if row.processor != row.processor_again:
            how += ", on another kind of processor"
        changed = row.lost + row.gained
        parts.append(
            f"{row.other_text} of {row.n} answers of {row.model} ({how}) have another"
            f" text, and {changed} change between right and wrong"
        )
    return f"Asked for again in other batches, {'; '.join(parts)} (studies/again.py)."


def families() -> str:
    """Return what holds in all, some and none of the families' models.

    And which n would decide accuracy.
    """
    verdicts = stored_as_verdicts("families")
    return as_list(
        *summary.inside(verdicts),
        *summary.finding(verdicts),
        *summary.accuracies(verdicts),
        summary.closing(verdicts)[-1],
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
    return as_list(
        *summary.lead(verdicts)[:-2],
        below_1,
        *summary.accuracies(answered),
        summary.closing(verdicts)[-1],
    )


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


def stored_as_verdicts(profile: str) -> list[Verdict]:
    """Return the verdicts that the repository keeps of a profile of its own."""
    return verdicts_of(stored(stored_verdicts(profile)))


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
    "sentences": sentences,
    "checks": checks,
    "requantised": requantised,
    "again": again,
    "commands": commands,
    "families": families,
    "claims": demo_claims,
    "fields": profile_fields,
    "usual-fields": usual_fields,
    "first-layers": first_layers,
    "speed": speed,
}

if __name__ == "__main__":
    sys.exit(main())
