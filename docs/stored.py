"""Read the stored results with which the documents' templates are filled.

Templates can call every function of this module by its name. Results are those of the
profile families, unless a function says otherwise. Each file is read once.
"""

import functools
import itertools
from collections.abc import Iterator
from types import SimpleNamespace

import pandas as pd
import yaml
from pydantic import BaseModel
from pydantic.fields import FieldInfo

from lib.errors import InputError
from lib.prompts.conditions import Filler
from lib.statistics.intervals import ENOUGH, POINTS
from reproduction import evaluation, paths
from reproduction.claims import answer_measures
from reproduction.claims.claim import Claim, load_claims
from reproduction.claims.verdicts import Estimate, Verdict, read_verdicts
from reproduction.figures.notebook_tables import intervals_of
from reproduction.measurement.measurement_run import measure
from reproduction.profiles import (
    Accuracy,
    Attention,
    Likelihood,
    PassRates,
    Profile,
    load_profile,
)

# The command that writes a csv, by the first folder of its path.
WRITTEN_BY = {
    "benchmarks": "make bench",
    "studies": "a script of studies",
    "figures": "make reproduce",
    "data": "make reproduce",
}
MAX_DEFAULT = 20  # characters of a default that are printed
# The models of a profile's fields, by the prefix of the fields' names.
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
    """Return a csv file of the repository; raise InputError if it cannot be read."""
    file = paths.ROOT / path
    try:
        return pd.read_csv(file)
    except (OSError, ValueError) as error:
        folder = path.partition("/")[0]
        raise InputError(
            f"cannot read {path} ({error}): {WRITTEN_BY[folder]} writes it"
        ) from None


def rows(path: str) -> list[SimpleNamespace]:
    """Return the rows of a csv file of the repository, with a field for each column. A
    number whose bounds follow in the next two columns becomes an Estimate.
    """
    table = csv(path)
    collected = []
    for row in table.to_dict("records"):
        for name, *bounds in intervals_of(list(table)):
            low, high = (row[bound] for bound in bounds)
            row[name] = Estimate(row[name], low, high, 0)
        collected.append(SimpleNamespace(**row))
    return collected


@functools.cache
def verdicts(profile: str) -> list[Verdict]:
    """Return the verdicts that the repository stores for a profile."""
    return read_verdicts(paths.DATA / profile)


def about(claim: str) -> list[Verdict]:
    """Return the verdicts on the claim with an id that rest on ENOUGH problems or
    more.
    """
    return [row for row in verdicts("families") if row.id == claim and row.n >= ENOUGH]


@functools.cache
def first_token(model: str) -> tuple[float, float]:
    """Return the attention that the first token of the example prompt receives in layer
    1, the mean over heads, without and with slashes.
    """
    received = measure(load_profile("families"), "tokens")[model]["received"]
    first = received.sel(layer=1).isel(token=0).mean("head")
    return float(first.sel(condition="none")), float(first.sel(condition="mless"))


@functools.cache
def claims() -> dict[str, Claim]:
    """Return the claims by their ids."""
    return {claim.id: claim for claim in load_claims()}


def claims_untested_on_families() -> list[Claim]:
    """Return the literal claims on answers or likelihoods that no model of the profile
    families has tested.
    """
    tested = {row.id for row in verdicts("families") if row.n}
    return [
        claim
        for claim in claims().values()
        if claim.reading == "literal"
        and hasattr(answer_measures, claim.measure)
        and claim.id not in tested
    ]


def paper_gain(rate: float) -> float:
    """Return the gain in points of a model with a `rate` of right answers in %, if its
    odds ratio is that of Qwen2.5-Math-1.5B in Table 1.
    """
    return gain_at(rate, **_paper_table("table1")["Qwen2.5-Math-1.5B"])


def paper_gains(rate: float) -> list[float]:
    """Return the gains in points of a model with a `rate` of right answers in %, in
    ascending order, by the odds ratio of each model in Tables 1 and 5.
    """
    rows = [*_paper_table("table1").values(), *_paper_table("table5").values()]
    return sorted(gain_at(rate, row["none"], row["mless"]) for row in rows)


def _paper_table(name: str) -> dict[str, dict[str, float]]:
    return yaml.safe_load((paths.DATA / "paper.yaml").read_text())[name]["values"]


def gain_at(rate: float, none: float, mless: float) -> float:
    """Return by how many points a rate in % grows if its odds are multiplied by the
    ratio of the odds of `mless` to those of `none`, two other rates in %.
    """
    ratio = mless / (POINTS - mless) / (none / (POINTS - none))
    odds = ratio * rate / (POINTS - rate)
    return POINTS * odds / (1 + odds) - rate


@functools.cache
def answers_by_processor(model: str) -> SimpleNamespace:
    """Return how many sampled answers a model has, and how many a GPU wrote."""
    drawn = evaluation.answers(load_profile("families"), "draws")
    processors = drawn.processor[drawn.model == model]
    on_gpu = int(processors.str.startswith("NVIDIA").sum())
    return SimpleNamespace(answers=len(processors), on_gpu=on_gpu)


@functools.cache
def change_of_each_problem(treatment: str, reference: str) -> pd.DataFrame:
    """Return the difference in log-likelihood of each problem's reference solution
    between two conditions of the ablations, in nats: a row per problem and a column per
    model; NaN where a model has not scored the problem under both.
    """
    ablations = evaluation.scores(load_profile("families"), "ablations")
    nats = ablations.pivot(
        index="problem_id", columns=["condition", "model"], values="nats"
    )
    return nats[treatment] - nats[reference]


def rank_correlations(changes: pd.DataFrame) -> list[float]:
    """Return Spearman's rank correlation of each pair of columns, over the rows with a
    number in both.
    """
    matrix = changes.corr("spearman")
    pairs = itertools.combinations(matrix, 2)
    return [matrix.loc[pair] for pair in pairs]


def fields() -> Iterator[tuple[str, str, str | None]]:
    """Yield the name, default and description of each field of a profile."""
    for section, model in SECTIONS.items():
        for name, info in model.model_fields.items():
            if f"{name}." not in SECTIONS:
                yield f"{section}{name}", default_text(info), info.description


def default_text(info: FieldInfo) -> str:
    """Return a field's default as YAML, cut to MAX_DEFAULT characters; "required" if
    it has none.
    """
    if info.is_required():
        return "required"
    text = yaml.safe_dump(info.default, default_flow_style=True, width=1000)
    text = text.removesuffix("...\n").strip()
    if len(text) > MAX_DEFAULT:
        text = f"{text[:MAX_DEFAULT]}…"
    return f"`{text}`"
