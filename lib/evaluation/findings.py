"""What notebooks 03 and 05 found: from their tables to the rows that they publish and the sentences they end with."""

import numpy as np
import pandas as pd

from lib import paths
from lib.arm.settings import Arm
from lib.models.names import captions
from lib.profiles import Profile, variation
from lib.prompts.conditions import parse_condition
from lib.prompts.problems import describe
from lib.statistics import told

THIS_RUN, PAPER = "this run", "the paper"
ASKED = {  # what each of PARTS adds
    "fillers": "fillers of other lengths, places and kinds",
    "sampling": "several answers to a problem",
    "interventions": "answers with ARM",
    "arm_map": "answers under other settings of ARM",
}
LEVEL = 0.05  # of Holm's corrected tests


def paper_numbers() -> dict:
    """Return data/paper.yaml: figure or table -> {"source": text, "values": {model: {condition: %}}}."""
    return paths.read_yaml(paths.DATA / "paper.yaml")


def compared(table: pd.DataFrame, could: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `summarise` that are compared with none, beside what `power` says they could show."""
    pairs = table.dropna(subset="p_value").astype({"only_none": int, "only_this": int})
    return pairs.merge(could.drop(columns="discordant"), on=["model", "condition"])


def effect_sentences(pairs: pd.DataFrame) -> list[str]:
    """Say per condition whether a gain or a loss was shown, how large it could be, and what two points would need."""
    sentences = []
    sure = [pairs.effect_low > 0, pairs.effect_high < 0]
    found = np.select(sure, ["a gain was shown", "a loss was shown"], "no effect was shown either way")
    for row, shown in zip(pairs.itertuples(), found, strict=True):
        lies = f"it is {told(row.effect, row.effect_low, row.effect_high, '+')} points (n = {row.n})"
        more = pd.isna(row.needed)
        needed = "are more than all the answers that changed" if more else f"would need {row.needed:,.0f} problems"
        sentences.append(f"{row.model}, {row.condition}: {shown}; {lies}. Two points {needed}.")
    return sentences


def grader_sentences(judged: pd.DataFrame) -> list[str]:
    """Say per condition whether the sign of its effect is the same under every grader."""
    tested = judged.dropna(subset="effect").groupby(["model", "condition"], sort=False)
    told = {True: "is the same under every grader", False: "depends on the grader"}
    return [
        f"{model}, {condition}: the sign of the effect {told[effects.map(np.sign).nunique() == 1]}."
        for (model, condition), effects in tested["effect"]
    ]


def by_part(parts: pd.DataFrame, field: str) -> pd.DataFrame:
    """Return `breakdown` with a column per condition: accuracy with its interval and n, a row per level or subject."""
    texts = parts.apply(lambda row: f"{told(row.accuracy, row.low, row.high)} n={row.n:.0f}", axis=1)
    wide = parts.assign(text=texts).pivot(index=["model", field], columns="condition", values="text")
    return wide[parts.condition.unique()].reset_index().rename_axis(columns=None)


def beside_paper(table: pd.DataFrame, reported: dict[str, dict[str, float]]) -> pd.DataFrame:
    """Return what Fig. 10 left draws, a row per bar: this run's accuracies and the paper's, which have no interval."""
    columns = ["source", "model", "condition", "n", "accuracy", "low", "high"]
    run = table.assign(source=THIS_RUN)[columns]
    rows = [(PAPER, name, key, 500, value) for name, values in reported.items() for key, value in values.items()]
    return pd.concat([run, pd.DataFrame(rows, columns=columns[:5])], ignore_index=True)


def answering(run: Profile, answers: pd.DataFrame) -> dict[str, str]:
    """Return by model how captions call what answered: with its weights and their dtype, as far as they are known."""
    named, dtypes = captions(run.accuracy.models), answers.groupby("model", sort=False)["dtype"].last()
    return {
        name: ", ".join([named.get(name, name), *([dtype] if isinstance(dtype, str) else [])])
        for name, dtype in dtypes.items()
    }


def accuracy_line(run: Profile, n: pd.Series, of: str) -> str:
    """Return the caption of accuracies: the problems, and how many stand behind each of what is drawn."""
    counts = " to ".join(map(str, sorted({n.min(), n.max()})))
    return f"Problems: {describe(run.accuracy.problems)}, n = {counts} per {of}, 95 % intervals."


def bar_groups(bars: pd.DataFrame, problems: str) -> list[tuple[str, list[tuple], bool]]:
    """Return `beside_paper` as `draw_accuracy_bars` takes it: label, bars, and whether they are the paper's."""
    groups = []
    for (source, model), part in bars.groupby(["source", "model"], sort=False):
        ends = list(part[["condition", "accuracy", "low", "high"]].itertuples(index=False, name=None))
        groups.append((f"{model}, {'MATH-500' if source == PAPER else describe(problems)}", ends, source == PAPER))
    return groups


def arm_grid(table: pd.DataFrame) -> pd.DataFrame:
    """Return the rows of `summarise` with the c, p1 and layer that each condition's ARM has."""
    arms = [parse_condition(condition).arm or Arm() for condition in table.condition]
    return table.assign(c=[arm.c for arm in arms], p1=[arm.p1 for arm in arms], layer=[arm.layer for arm in arms])


def completions_sentence(run: Profile, answers: pd.DataFrame, part: str | None = None) -> str:
    """Say how many completions there are, of what, and where they come from; `part` is one of PARTS."""
    if answers.empty and part:
        return f"Not measured in the profile {run.name}: {ASKED[part]}. The profile demo has them."
    asked = variation(run.accuracy, part) if part else run.accuracy
    how = f"{asked.format} prompt, {'with' if asked.elicit else 'without'} answer elicitation"
    text = f"{len(answers)} completions on {describe(asked.problems)}, {how}"
    return f"{text}, temperature {asked.temperature:g}; {answers.attrs['origin']}."


def side_by_side(variants: pd.DataFrame, panels: dict) -> pd.DataFrame:
    """Return a row per model and point of Fig. 8 (`panels` of data/paper.yaml), with the paper's number, if any."""
    points = [
        {"panel": panel, "condition": condition, "reported": None} | point
        for panel, row in panels.items()
        for condition, point in row.items()
    ]
    drawn = pd.DataFrame(points).astype({"reported": float}).merge(variants, on="condition")
    models = list(variants.model.unique())
    return drawn.sort_values("model", key=lambda names: names.map(models.index), kind="stable", ignore_index=True)


def spread_over_samples(wide: pd.DataFrame) -> pd.DataFrame:
    """Return a row per model, condition and measure of several samples (`diversity`, `best_of`), with its interval."""
    rows = [
        (row["model"], row["condition"], row["n"], name, row[name], row[f"{name} low"], row[f"{name} high"])
        for row in wide.to_dict("records")
        for name in row
        if f"{name} low" in row
    ]
    return pd.DataFrame(rows, columns=["model", "condition", "n", "measure", "value", "low", "high"])


def noise_sentences(noise: pd.DataFrame) -> list[str]:
    """Say how far two runs of none lie apart that differ in nothing but the seed."""
    text = "{model}: two seeds of none differ by {difference:.1f} points on average and by {largest:.1f} at most; "
    text += "{discordant:.0f} % of problems change between two seeds."
    return [text.format_map(row) for row in noise.to_dict("records")]


def accuracy_rows(table: pd.DataFrame) -> list[dict]:
    """Return a row per model for Fig. 10, with the table behind it."""
    rows = []
    for model, part in table.groupby("model", sort=False):
        found = ", ".join(f"{row.condition} {told(row.accuracy, row.low, row.high)} %" for row in part.itertuples())
        row = {"figure": "fig10", "model": model, "n": int(part.n.min()), "found": found}
        rows.append(row | {"paper": "none < mless, mful by 1-4 points", "table": part.fillna(0).to_dict("records")})
    return rows


def filler_rows(variants: pd.DataFrame) -> list[dict]:
    """Return a row per model for Fig. 8: the fillers that were shown to hurt and to help."""
    rows = []
    for model, part in variants.groupby("model", sort=False):
        sure = part[part.p_holm < LEVEL]
        hurt, helped = (", ".join(sure[sign * sure.effect > 0].condition) or "none" for sign in (-1, 1))
        row = {"figure": "fig08", "model": model, "n": int(part.n.min()), "paper": "only 55 slashes between help"}
        rows.append(row | {"found": f"shown to hurt: {hurt}; to help: {helped}"})
    return rows


def filler_sentences(variants: pd.DataFrame) -> list[str]:
    """Say which of the fillers were shown to hurt or to help."""
    counts = variants[variants.condition != "none"].groupby("model", sort=False).size()
    text = "{model}: of {fillers} fillers {found} (Holm, p < {level}, n = {n})."
    return [text.format(**row, fillers=counts[row["model"]], level=LEVEL) for row in filler_rows(variants)]


def arm_sentences(table: pd.DataFrame) -> list[str]:
    """Say what each intervention did to accuracy."""
    return [f"{row.model}: {_effect(row)} (n = {row.n})." for row in table.dropna(subset="p_value").itertuples()]


def _effect(row) -> str:
    return f"{row.condition} {told(row.effect, row.effect_low, row.effect_high, '+')} points, p = {row.p_value:.2f}"


def chance_sentences(largest: pd.DataFrame) -> list[str]:
    """Say of each model's map whether its largest effect is more than the best of so many would be by chance."""
    return [
        f"{row['model']}: the largest of {row['conditions']} effects, {row['largest']:+.1f} points, is "
        f"{'more' if row['p_value'] < LEVEL else 'no more'} than chance alone gives: {row['expected']:+.1f} "
        f"on average, at least as large with p = {row['p_value']:.2f} (n = {row['n']})."
        for row in largest.to_dict("records")
    ]


def arm_rows(table: pd.DataFrame, spread: pd.DataFrame, cells: pd.DataFrame) -> list[dict]:
    """Return a row per model for Table 2, Fig. 6 and Fig. 12, as far as the profile has them."""
    rows: list[tuple] = []
    for row in table[table.condition == "arm"].itertuples():
        rows.append(("table 2", row.model, row.n, _effect(row), "ARM +1 to +3 points"))
    for model, part in spread[spread.measure == "distinct 2-grams"].groupby("model", sort=False):
        texts = ", ".join(f"{row.condition} {told(row.value, row.low, row.high)} %" for row in part.itertuples())
        rows.append(("fig06", model, part.n.iloc[0], f"2-grams: {texts}", "ARM more diverse"))
    for model, part in cells.groupby("model", sort=False):
        text = f"effects of the map from {part.effect.min():+.1f} to {part.effect.max():+.1f} points"
        rows.append(("fig12", model, part.n.min(), text, "peaks at chosen settings"))
    table = pd.DataFrame(rows, columns=["figure", "model", "n", "found", "paper"])
    return table.astype({"n": int}).to_dict("records")
