"""Compute the measures of claims on attention and activations, one value per problem.

Each public function that returns an array is a `measure` of data/claims.yaml. It
receives `measured`, the Dataset of one model (`reproduction.measurement.dataset`), in
which NaN means not measured. It returns an array (network, component, problem), whose
values are of the kind "mean" (`lib.statistics.intervals`), or raises Untestable with
the reason. A component is a part of the claim, such as a layer. Most claims use
`compared`. `reproduction.claims.answer_measures` has the measures of answers and
likelihoods.
"""

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr
from xarray import ufuncs

from lib.statistics.intervals import POINTS
from reproduction.claims.decision_rule import Untestable
from reproduction.measurement.dataset import TRAINED
from reproduction.measurement.network_tables import log_changes

# The forms of the map from layer 1's old outputs to the new ones, by variable.
AFFINE_FORMS = {
    "affine": "one λ, one σ",
    "line": "a coefficient of σ per token",
    "softmax": "a λ per token",
}


def _others(values: xr.DataArray) -> list[Hashable]:
    """Return the dimensions that are averaged: all but network and problem."""
    return [dim for dim in values.dims if dim not in ("network", "problem")]


# How values of several heads or layers become one, by name.
AVERAGES: dict[str, Callable[[xr.DataArray], xr.DataArray]] = {
    "mean": lambda values: values.mean(_others(values)),
    "median": lambda values: values.median(_others(values)),
    "geometric": lambda values: ufuncs.exp(ufuncs.log(values).mean(_others(values))),
}
# By dimension: a label, a list of labels, or {"from": label} for it and all later ones.
Labels = Mapping[str, Any]


def compared(
    measured: xr.Dataset,
    of: Sequence[str],
    at: Labels,
    less: Labels | None = None,
    over: Labels | None = None,
    each: str | None = None,
    average: str = "mean",
) -> xr.DataArray:
    """Return the variables `of` at the labels `at`, minus their values at the labels
    `less`, divided by their values at the labels `over`.

    `less` and `over` give only the labels that differ from `at`; without them, nothing
    is subtracted or divided. All dimensions but network and problem are averaged before
    that, except `each`, every label of which becomes a component. A head for which a
    value is missing is left out of all averages of a problem, and the component's name
    has the number of heads that remain. average: a key of AVERAGES.
    """
    components = {}
    for name in of:
        sides = [_selected(measured, name, at)]
        for other in (less, over):
            if other:
                sides.append(_selected(measured, name, {**at, **other}))
        complete = sum(side * 0 for side in sides)  # 0, or NaN if any side is missing
        by_side = [_by_label(side + complete, each, name) for side in sides]
        for label, numbers in by_side[0].items():
            means = [AVERAGES[average](labels[label]) for labels in by_side]
            value = means.pop(0)
            if less:
                value = value - means.pop(0)
            if over:
                value = value / means.pop(0)
            components[label + _heads_left(numbers)] = value
    return _named(components)


def compared_in_points(measured: xr.Dataset, **labels: Any) -> xr.DataArray:
    """Return `compared` of shares, in percentage points."""
    return POINTS * compared(measured, **labels)


def filler_attention(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return how the attention that inserted tokens receive compares with that of
    original tokens, in a layer.

    Both components are ratios, inserted over original. `level` is the ratio of the mean
    received attention, averaged over heads. `evenness` is the ratio of the coefficients
    of variation (standard deviation over mean), each averaged over the heads that have
    both; below 1, the inserted tokens receive more even attention.
    """
    at = {"condition": condition, "layer": layer}
    level = _selected(measured, "portion", at)
    inserted = _selected(measured, "flatness", at)
    original = _selected(measured, "unevenness", at)
    both = inserted.notnull() & original.notnull()
    evenness = inserted.where(both).mean("head") / original.where(both).mean("head")
    return _named(
        {
            f"level{_heads_left(level)}": level.mean("head"),
            f"evenness{_heads_left(inserted.where(both))}": evenness,
        }
    )


def affine_fit(measured: xr.Dataset, form: str) -> xr.DataArray:
    """Return R² of the affine map in layer 1 (Eq. 2 of the paper), averaged over heads.

    form: a key of AFFINE_FORMS, or "best" for the form with the highest mean R² over
    problems, chosen for each network.
    """
    by_form = {}
    for name, text in AFFINE_FORMS.items():
        by_form[text] = _selected(measured, name, {}).mean("head")
    fits = _named(by_form)
    if form != "best":
        return fits.sel(component=[AFFINE_FORMS[form]])

    # All networks share a component, which is named by the trained network's form.
    best = fits.mean("problem").fillna(0).argmax("component")  # (network,)
    label = fits.component.values[best.sel(network=TRAINED)]
    chosen = fits.isel(component=best).drop_vars("component")
    return chosen.expand_dims(component=[label])


def activation_changes(
    measured: xr.Dataset,
    condition: str,
    layer: int,
    rise: Sequence[str],
    fall: Sequence[str],
) -> xr.DataArray:
    """Return the log ratio of each activation measure under a condition to that under
    `none`, with the sign that makes the predicted change positive.

    rise, fall: the measures that the paper predicts to rise, and to fall.
    """
    at = {"condition": ["none", condition], "layer": layer}
    logs = log_changes(_selected(measured, "measures", at)).sel(condition=condition)
    parts = {}
    for name in rise:
        parts[f"{name} up"] = logs.sel(measure=name, drop=True)
    for name in fall:
        parts[f"{name} down"] = -logs.sel(measure=name, drop=True)
    return _named(parts)


def _selected(measured: xr.Dataset, name: str, at: Labels) -> xr.DataArray:
    """Return a variable at these labels, whose dimensions are dropped unless several
    labels are given.

    Raises Untestable if it was not measured there.
    """
    if name not in measured:
        raise Untestable(f"the profile measures no {name}")
    labels = {}
    for dim, label in at.items():
        available = measured[dim].values.tolist()
        if isinstance(label, Mapping):
            first = label["from"]
            label = [first, *(later for later in available if later > first)]
        missing = set(np.atleast_1d(label).tolist()) - set(available)
        if missing:
            text = ", ".join(map(str, available))
            raise Untestable(f"{dim} {min(missing)} was not measured, only {text}")
        labels[dim] = label
    values = measured[name].sel(labels, drop=True)
    if not values.sel(network=TRAINED).notnull().any():
        raise Untestable(f"the profile measures no {name} here")
    return values


def _heads_left(values: xr.DataArray) -> str:
    """Return how many heads of the trained network have a value in a problem, as text:
    " (9 to 11 of 12 heads)"; "" if all have one in every measured problem, or none has
    one in any.
    """
    if "head" not in values.dims:
        return ""
    has_number = values.sel(network=TRAINED).notnull()
    others = [dim for dim in has_number.dims if dim not in ("problem", "head")]
    heads = has_number.any(others).sum("head")  # (problem,)
    measured = heads.values[heads.values > 0]
    fewest = measured.min(initial=values.sizes["head"])
    most = measured.max(initial=0)
    if fewest == values.sizes["head"]:
        return ""
    count = f"{fewest} to {most}" if fewest < most else f"{most}"
    return f" ({count} of {values.sizes['head']} heads)"


def _by_label(
    values: xr.DataArray, dim: str | None, name: str
) -> dict[str, xr.DataArray]:
    """Return the values at each label of a dimension, by the label; a number gets the
    dimension's name, as "layer 2". Without a dimension, return all by their name.
    """
    if dim is None:
        return {name: values}
    parts = {}
    for label in values[dim].values.tolist():
        text = label if isinstance(label, str) else f"{dim} {label}"
        parts[text] = values.sel({dim: label}, drop=True)
    return parts


def _named(parts: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Return arrays as one, with a component for each name."""
    names = pd.Index(list(parts), name="component")
    return xr.concat(parts.values(), names)
