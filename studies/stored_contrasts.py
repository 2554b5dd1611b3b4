"""Tables of stored likelihoods, attention and verdicts, for studies.stored_answers.

They compare what the verdicts leave out: slashes with other insertions, with fewer
slashes and at other positions, problems that were scored later, and long solutions. The
docstring of each function says what its table shows; none was planned.
"""

import functools

import pandas as pd

from lib.statistics.intervals import POINTS, holm
from reproduction import evaluation, paths
from reproduction.claims.verdicts import (
    VERDICTS,
    Verdict,
    models_of,
    read_verdicts,
    verdict_table,
)
from reproduction.evaluation.answer_tables import mean_and_bounds, p_value_of_mean
from reproduction.evaluation.likelihood_tables import contrast_table, nats_by_condition
from reproduction.measurement.measurement_run import measure
from reproduction.profiles import load_profile

CHANGE = ["change", "low", "high"]
LAMBDA_FILE = paths.DATA / "authors" / "lambda.csv"  # of studies.measured_lambda
SHORT = 192  # tokens of the longest solution in the ablations
# Pairs of conditions (treatment, reference) by what their difference says. Holm's
# correction of a question is over its pairs and all models.
QUESTIONS = {
    "slashes, instead of another insertion": [
        ("mless", "random"),
        ("mless", "mful"),
        ("mless", "letters"),
    ],
    "number of slashes": [("mless:10", "none"), ("mless", "mless:10")],
    "position of slashes": [
        ("mless@before", "none"),
        ("mless", "none"),
        ("mless@random", "none"),
    ],
}
LAYER_1 = ("mless", "hidden-from-layer-1")
# The words of verdicts, from the least favourable to a claim to the most.
FROM_WORST = ("contradicted", "undecided", "in part", "supported")


@functools.cache
def verdicts(profile: str = "families") -> list[Verdict]:
    """Return the stored verdicts of a profile on claims that were tested."""
    return [row for row in read_verdicts(paths.DATA / profile) if row.n]


def contrasts(scores: pd.DataFrame, ablations: pd.DataFrame) -> pd.DataFrame:
    """A row per question, pair of conditions, problems and model: the change of the
    reference solution's log-likelihood, in nats.

    `scores` were planned, and those of `ablations`, on short solutions, came later.
    p_holm is corrected for the rows of the question, and p_verdicts as if the row were
    one more verdict.
    """
    rows = []
    for question, pairs in QUESTIONS.items():
        for pair in pairs:
            rows += _changes(ablations, pair, question, "short")
    question = "layer 1 in addition to later layers"
    rows += _changes(scores, LAYER_1, question, "planned")
    rows += _changes(ablations, LAYER_1, question, "short")
    keys = ["model", "problem_id"]
    planned = scores[scores["condition"] == LAYER_1[1]].set_index(keys).index
    later = ablations[~ablations.set_index(keys).index.isin(planned)]
    rows += _changes(later, LAYER_1, question, "short, not planned")
    is_short = scores["tokens"].astype(int) <= SHORT
    for pair in (("mless", "none"), ("gap", "none")):
        for problems, of_length in (("short", is_short), ("longer", ~is_short)):
            of_pair = scores[of_length]
            rows += _changes(of_pair, pair, "length of the solution", problems)

    table = pd.DataFrame(rows)
    by_question = table.groupby("question", sort=False)["p_value"]
    known = [row.p for row in verdicts()]
    with_verdicts = [float(holm([*known, p])[-1]) for p in table["p_value"]]
    return table.assign(p_holm=by_question.transform(holm), p_verdicts=with_verdicts)


def change_of_nats(scores: pd.DataFrame, treatment: str, reference: str) -> pd.Series:
    """Return the change in the log-likelihood of each problem's solution, from one
    model's scores.
    """
    nats = nats_by_condition(scores)
    return (nats[treatment] - nats[reference]).astype(float).dropna()


def _changes(
    scores: pd.DataFrame, pair: tuple[str, str], question: str, problems: str
) -> list[dict]:
    """Return a row per model that has problems scored under both conditions."""
    treatment, reference = pair
    rows = []
    for model in models_of(verdicts()):
        of_model = scores[scores["model"] == model]
        if not {treatment, reference} <= set(of_model["condition"]):
            continue
        change = change_of_nats(of_model, treatment, reference)
        row = {"question": question, "treatment": treatment, "reference": reference}
        row |= {"problems": problems, "model": model, "n": len(change)}
        row |= mean_and_bounds(CHANGE, change, "mean")
        rows.append(row | {"p_value": p_value_of_mean(change)})
    return rows


def lambda_and_nats() -> pd.DataFrame:
    """A row per model and insertion into the prompt of the authors' code: the change of
    the reference solution's log-likelihood by it, in nats, and lambda in layer 1 on the
    same problems.

    `rank` is Spearman's rank correlation of the two over the insertions of a model.
    """
    measured = pd.read_csv(LAMBDA_FILE, index_col=["model", "problem_id"])
    scores = evaluation.scores(load_profile("authors"))
    table = contrast_table(scores, {name: (name, "none") for name in measured})
    columns = ["lambda", "lambda_low", "lambda_high"]
    means = pd.DataFrame(
        mean_and_bounds(columns, measured.loc[row.model, row.contrast], "mean")
        for row in table.itertuples()
    )
    both = table.rename(columns={"contrast": "condition"}).join(means)
    by_model = both.groupby("model")[["lambda", "change"]]
    ranks = by_model.apply(lambda rows: rows.corr("spearman").iloc[0, 1])
    return both.assign(rank=both["model"].map(ranks))


def single_problems(scores: pd.DataFrame) -> pd.DataFrame:
    """A row per model: the mean and the standard deviation over problems of the change
    by slashes, in nats, and the lowest and the highest of Spearman's rank correlations
    with the changes in another model.
    """
    by_model = scores.groupby("model", sort=False)
    changes = pd.DataFrame(
        {model: change_of_nats(rows, "mless", "none") for model, rows in by_model}
    )
    correlations = changes.corr("spearman")
    others = correlations[correlations < 1]
    columns = {"mean": changes.mean(), "sd": changes.std()}
    columns |= {"lowest": others.min(), "highest": others.max()}
    return pd.DataFrame(columns).rename_axis("model").reset_index()


def first_token() -> pd.DataFrame:
    """A row per model whose tokens are shown: the attention that the first token of the
    example prompt receives in layer 1 without and with slashes, the mean over heads.
    """
    rows = []
    for model, measured in measure(load_profile("families"), "tokens").items():
        if "received" not in measured:
            continue
        received = measured["received"].sel(layer=1).isel(token=0).mean("head")
        conditions = ("none", "mless")
        row = {name: float(received.sel(condition=name)) for name in conditions}
        rows.append({"model": model} | row)
    return pd.DataFrame(rows)


def attention_taken() -> pd.DataFrame:
    """A row per model and insertion: the share of attention that it takes in layer 1,
    less what slashes take, in points, on all problems.
    """
    rows = []
    for model, measured in measure(load_profile("families"), "attention").items():
        of_layer = measured["mass"].sel(network="trained", layer=1)
        # A row per problem, and a column per condition.
        taken = POINTS * of_layer.mean("head").to_pandas().T.astype(float)
        for inserted in ("random", "mful"):
            change = (taken[inserted] - taken["mless"]).dropna()
            row = {"model": model, "inserted": inserted, "n": len(change)}
            row |= {"slashes": taken["mless"].mean(), "taken": taken[inserted].mean()}
            rows.append(row | mean_and_bounds(CHANGE, change, "mean"))
    return pd.DataFrame(rows)


def verdict_counts(profile: str) -> pd.DataFrame:
    """A row per reading and time at which rules were written: how many rules and
    verdicts of a profile there are, how many verdicts of each kind, how many of those
    that support a claim are nearly certain by construction (`certain`), and how many
    are more favourable to the claim, or less, in another defensible range (`better`,
    `worse`).

    A rule counts by its first model; for some models data had been seen by then.
    """
    rows = verdict_table(verdicts(profile))
    rows["first"] = ~rows["id"].duplicated()
    rows["certain"] = rows["certain"].notna() & (rows["word"] == "supported")
    ranks = {word: rank for rank, word in enumerate(FROM_WORST)}
    change = rows["otherwise"].map(ranks) - rows["word"].map(ranks)
    rows["better"], rows["worse"] = change > 0, change < 0
    groups = rows.groupby(["reading", "written"], sort=False)
    words = groups["word"].value_counts().unstack(fill_value=0)
    words = words.reindex(columns=[*VERDICTS, "too few"], fill_value=0)
    counts = groups["first"].agg(rules="sum", verdicts="size")
    return (
        counts.join(words)
        .join(groups[["certain", "better", "worse"]].sum())
        .reset_index()
    )
