"""Write what README.md and docs say in tables and numbers, between their markers, from stored files and from the code.

`make readme`, after the figures were drawn anew or the benchmarks run. tests/test_readme.py holds them against what
this would write. benchmarks/results/commands.csv, the time and the disk of the two commands, is kept by hand.
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
from lib.paths import FIGURES, ROOT, shown, write_whole
from lib.profiles import Accuracy, Attention, Likelihood, Profile
from lib.prompts.conditions import Filler

README, PROFILES = ROOT / "README.md", ROOT / "docs" / "profiles.md"
RESULTS = ROOT / "benchmarks" / "results"
DEMO = FIGURES / "demo"
BLOCK = re.compile(r"(<!-- begin ([\w-]+) -->\n).*?(<!-- end \2 -->)", re.S)
LONGEST = 20  # characters of a default
SECTIONS: dict[str, type[BaseModel]] = {"": Profile, "filler.": Filler, "attention.": Attention}
SECTIONS |= {"accuracy.": Accuracy, "likelihood.": Likelihood}
# What most profiles set; docs/profiles.md has all.
USUAL = ("attention.models", "attention.layers", "attention.problems", "attention.limit", "accuracy.conditions")
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
            write_whole(document, rewritten(document.read_text(encoding="utf-8")).encode())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


def rewritten(text: str) -> str:
    """Return a document with each marked block as `BLOCKS` writes it; raises InputError for one that it lacks."""
    if unknown := {name for _, name, _ in BLOCK.findall(text)} - set(BLOCKS):
        raise InputError(f"unknown block {min(unknown)!r}: choose from {', '.join(BLOCKS)}")
    return BLOCK.sub(lambda found: f"{found[1]}{BLOCKS[found[2]]()}\n{found[3]}", text)


def commands() -> str:
    """Return how long the two commands take, and what installing needs."""
    table = stored(RESULTS / "commands.csv").set_index("command")
    install, project = table.loc["install"], tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    rows = [
        ("`make reproduce`", "every figure, what it shows, and the verdicts", table.minutes["make reproduce"]),
        ("`make test`", "linter, type checker and every test", table.minutes["make test"]),
    ]
    needs = (
        f"Either first installs pinned packages into `.venv`: {install.minutes} minutes and {install.disk_gb} GB. "
        f"Needed are Python {project['requires-python'].removeprefix('>=')} or newer and a package index; "
        "no GPU, account or model hub."
    )
    return f"{as_markdown(rows, ['command', 'gives', f'minutes on {install.cores} CPU cores'])}\n\n{needs}"


def families() -> str:
    """Return what holds in all, some and none of the families' models, and which n would decide accuracy."""
    verdicts = stored(FIGURES / "families" / "claims_matrix.csv")
    found = [
        *words.inside(verdicts),
        *words.finding(verdicts),
        *words.accuracies(verdicts),
        words.closing(verdicts)[-1],
    ]
    return "\n".join(f"- {text}" for text in found)


def found() -> str:
    """Return what the demo run found: in numbers, and which claims got which verdict."""
    claims, heads = stored(DEMO / "claims_matrix.csv"), stored(DEMO / "lambda_by_head.csv")
    slashes, sentence = (heads[heads.condition == name] for name in ("mless", "random"))
    first, answered = slashes[slashes.layer == 1], claims[claims.id.isin(["accuracy-mless", "arm-accuracy"])]
    said = (
        f"With slashes λ is below 1 in {below(first)} heads of layer 1, with an ordinary sentence as long in "
        f"{below(sentence[sentence.layer == 1])} (n = {first.n.max()})."
    )
    found = [*words.lead(claims)[:-2], said, *words.accuracies(answered), words.closing(claims)[-1]]
    return "\n".join(f"- {text}" for text in found)


def below(heads: pd.DataFrame) -> str:
    """Return how many heads have the whole interval of λ below 1, of how many."""
    return f"{(heads.high < 1).sum()} of {len(heads)}"


def profile_fields(only: tuple[str, ...] = ()) -> str:
    """Return the fields of a profile, or some of them, with their defaults and what they mean."""
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
    if isinstance(info.default, BaseModel):
        return "the first heads"  # lib.profiles.FIRST_HEADS
    text = yaml.safe_dump(info.default, default_flow_style=True, width=1000).removesuffix("...\n").strip()
    return f"`{text if len(text) <= LONGEST else text[:LONGEST] + '…'}`"


def first_layers() -> str:
    """Return GB to fetch and of memory, of the first layers and of the whole model."""
    table = stored(RESULTS / "first_layers.csv").set_index("model")
    parts = dict.fromkeys(column.split(":")[0] for column in table)
    rows = [
        (model, *(f"{row[f'{part}: GB to fetch']:.2f} / {row[f'{part}: GB of RAM']:.2f}" for part in parts))
        for model, row in table.iterrows()
    ]
    return as_markdown(rows, ["GB to fetch / of memory", *parts])


def speed() -> str:
    """Return how many times as fast received attention is as by other ways, and completions per second of each way."""
    seconds = stored(RESULTS / "extraction.csv").pivot(index="way", columns="tokens", values="seconds")
    rows = [
        (text, *(f"{seconds.loc[other, tokens] / seconds.loc[ours, tokens]:.3g}" for tokens in LENGTHS))
        for text, other, ours in COMPARED
    ]
    attention = as_markdown(rows, ["times as fast, at tokens", *(f"{tokens:,}" for tokens in LENGTHS)])
    table = stored(RESULTS / "generation.csv").query("batch > 1")
    # Of several batches the best.
    best = table.pivot_table(index="way", columns="problems", values="per_second", aggfunc="max", sort=False)
    best.index = best.index.str.replace("transformers", "this project")
    rows = [(way, *(f"{speed:.2f}" for speed in row)) for way, *row in best.itertuples()]
    return f"{attention}\n\n{as_markdown(rows, ['completions per second', *best])}"


def stored(path: Path) -> pd.DataFrame:
    """Return a csv; an InputError says which command writes one that is missing."""
    try:
        return pd.read_csv(path)
    except (OSError, ValueError) as error:
        command = "make reproduce" if path.parent == DEMO else "make bench"
        raise InputError(f"cannot read {shown(path)} ({error}): {command} writes it") from error


def as_markdown(rows: list[tuple], columns: list[str]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"|{'|'.join(map(str, line))}|" for line in [columns, ["---"] * len(columns), *rows])


BLOCKS = {
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
