"""What the documents are filled from: what the repository stores, each file read once.

Templates see every function of this module by its name.
"""

import functools
import tomllib
from collections import Counter
from collections.abc import Iterable, Iterator

import pandas as pd
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lib import evaluation, paths
from lib.claims import verdict
from lib.claims.verdict import Verdict
from lib.claims.verdict_tables import stored_verdicts
from lib.errors import InputError
from lib.evaluation.pass_rates import pass_rate_table
from lib.profiles import (
    Accuracy,
    Attention,
    Likelihood,
    PassRates,
    Profile,
    load_profile,
)
from lib.prompts.conditions import Filler
from lib.statistics import ENOUGH, interval

# What writes a csv, by the beginning of its path.
WRITTEN_BY = {
    "benchmarks": "make bench",
    "studies": "python -m studies.{}",
    "figures": "make reproduce",
    "data": "make reproduce",
}
# Of conditions whose sampled answers are weighted.
PAIRS = [
    ("mless", "none"),
    ("mless", "hidden-from-layer-1"),
    ("layer-1-only", "gap"),
    ("mful", "none"),
    ("arm", "none"),
]
AT_ONCE = ("mless", "dots:50@end", "pause:10@end", "pause:50@end")
LONGEST_DEFAULT = 20  # characters
SECTIONS: dict[str, type[BaseModel]] = {
    "": Profile,
    "filler.": Filler,
    "attention.": Attention,
    "accuracy.": Accuracy,
    "likelihood.": Likelihood,
    "pass_rates.": PassRates,
}


@functools.cache
def csv(path: str) -> pd.DataFrame:
    """Return a csv of the repository; InputError where it cannot be read."""
    file = paths.ROOT / path
    try:
        return pd.read_csv(file)
    except (OSError, ValueError) as error:
        folder = path.partition("/")[0]
        command = WRITTEN_BY[folder].format(file.stem)
        raise InputError(f"cannot read {path} ({error}): {command} writes it") from None


def rows(path: str) -> list[dict]:
    """Return the rows of a csv of the repository."""
    return csv(path).to_dict("records")


def by(column: str, path: str) -> dict[str, dict]:
    """Return the rows of a csv by the values of a column."""
    return csv(path).set_index(column, drop=False).to_dict("index")


@functools.cache
def verdicts(profile: str) -> list[Verdict]:
    """Return the verdicts that the repository keeps of a profile."""
    return stored_verdicts(profile)


def about(claim: str, profile: str = "families") -> list[Verdict]:
    """Return the verdicts on a claim that rest on enough problems."""
    return verdict.about(verdicts(profile), claim, ENOUGH)


def stands(rows_: Iterable[Verdict]) -> Counter:
    """Return how many verdicts stand how."""
    return Counter(row.stands for row in rows_)


def inside(profile: str) -> list[list[Verdict]]:
    """Return the literal claims on attention and activations, as the verdicts of all
    models.
    """
    claims: dict[str, list[Verdict]] = {}
    for row in verdict.literal(verdicts(profile)):
        on_inside = not row.answers and row.unit != "nats"
        if row.n >= ENOUGH and on_inside and not row.id.startswith("points-"):
            claims.setdefault(row.claim, []).append(row)
    return [rows_ for rows_ in claims.values() if len(rows_) > 1]


def taken(inserted: str, model: str | None = None) -> list[float]:
    """Return what an insertion takes of the first layer's attention, in %."""
    shares = csv("figures/families/mass_by_layer.csv")
    first = shares[(shares.layer == 1) & (shares.inserted == inserted)]
    return list(first.mass if model is None else first.mass[first.model == model])


def as_much() -> list[bool]:
    """Return of each model whether a sentence takes as much as slashes."""
    pairs = zip(taken("a sentence as long"), taken("slashes"), strict=True)
    return [sentence >= slashes for sentence, slashes in pairs]


def below_1(condition: str) -> str:
    """Return in how many heads of the demo model's layer 1 λ lies surely below 1."""
    heads = csv("figures/demo/lambda_by_head.csv")
    first = heads[(heads.layer == 1) & (heads.condition == condition)]
    return f"{(first.high < 1).sum()} of {len(first)}"


@functools.cache
def answers() -> pd.DataFrame:
    """Return the answers of the families' models."""
    return evaluation.answers(load_profile("families"))


@functools.cache
def draws() -> pd.DataFrame:
    """Return the sampled answers of the families' models."""
    return evaluation.stored_draws(load_profile("families"))


@functools.cache
def weights() -> list[dict]:
    """Return what sampled answers say of each pair of conditions, with their checks."""
    return pass_rate_table(draws(), PAIRS).to_dict("records")


@functools.cache
def scores() -> pd.DataFrame:
    """Return the likelihoods of the families' models."""
    return evaluation.scores(load_profile("families"))


@functools.cache
def at_once() -> list[dict]:
    """Return what fillers change of the gold answer without any reasoning, in nats: a
    row per condition and model.
    """
    of_answers = scores()[scores().target == "answer"]
    nats = of_answers.pivot(
        index=["model", "problem_id"], columns="condition", values="nats"
    )
    rows_ = []
    for condition in AT_ONCE:
        change = (nats[condition] - nats["none"]).dropna()
        for model, by_problem in change.groupby("model"):
            mean = interval(by_problem, by_problem.index)
            ends = (mean.estimate, mean.low, mean.high)
            estimate = verdict.Estimate(*ends, len(by_problem))
            rows_.append({"condition": condition, "model": model, "estimate": estimate})
    return rows_


def spread_of_solutions() -> list[float]:
    """Return by model how far slashes move the likelihood of single solutions."""
    solutions = scores()[scores().target == "solution"]
    keys = ["model", "problem_id"]
    nats = solutions.pivot(index=keys, columns="condition", values="nats")
    return list((nats.mless - nats.none).groupby("model").std())


def times_as_fast(other: str, ours: str) -> list[float]:
    """Return how many times as fast received attention is, by the number of tokens."""
    table = csv("benchmarks/results/extraction.csv")
    seconds = table.pivot(index="way", columns="tokens", values="seconds")
    return list((seconds.loc[other] / seconds.loc[ours])[[128, 512, 2048, 4096]])


def completions_per_second() -> pd.DataFrame:
    """Return how fast each way answers problems, in the best of several batches."""
    table = csv("benchmarks/results/generation.csv").query("batch > 1")
    return table.pivot_table(
        index="way", columns="problems", values="per_second", aggfunc="max", sort=False
    )


def fields(*only: str) -> Iterator[tuple[str, str, str | None]]:
    """Yield fields of a profile, all or some: name, default, meaning."""
    for section, model in SECTIONS.items():
        for name, info in model.model_fields.items():
            field = f"{section}{name}"
            is_section = f"{name}." in SECTIONS
            if not is_section and (not only or field in only):
                yield field, default_text(info), info.description


def default_text(info: FieldInfo) -> str:
    """Return a field's default in YAML, cut to LONGEST_DEFAULT characters."""
    if info.is_required():
        return "required"
    text = yaml.safe_dump(info.default, default_flow_style=True, width=1000)
    text = text.removesuffix("...\n").strip()
    if len(text) > LONGEST_DEFAULT:
        text = f"{text[:LONGEST_DEFAULT]}…"
    return f"`{text}`"


def megabytes() -> float:
    """Return the size of what is measured and committed."""
    files = (paths.DATA / "families").rglob("*")
    kept = [path for path in files if path.suffix in (".nc", ".gz")]
    return sum(path.stat().st_size for path in kept) / 1e6


def repository() -> str:
    """Return whose repository this is, and its name."""
    return urls()["Repository"].removeprefix("https://github.com/")


def published() -> bool:
    """Return whether the repository has been given its address (`make address`)."""
    return not repository().startswith("OWNER/")


def urls() -> dict[str, str]:
    """Return the addresses of the repository and its page."""
    text = (paths.ROOT / "pyproject.toml").read_text()
    return tomllib.loads(text)["project"]["urls"]
