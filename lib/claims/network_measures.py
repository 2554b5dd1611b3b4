"""Compute the measures of claims on attention and activations, one value per problem.

Each public function is a `measure` of data/claims.yaml. It receives `measured`, a
Dataset of `lib.measurement.variables`, in which NaN means not measured. It returns an
array (network, component, problem), with the kind of its values (`lib.statistics`) as
an attribute (a mean if there is none), or raises Untestable. Most claims compare a
variable between layers or conditions by `compared`. `lib.claims.answer_measures` has
the measures of answers and likelihoods.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from lib.claims.decision_rule import Untestable
from lib.measurement.network_tables import log_changes
from lib.measurement.variables import DIMENSIONS, TRAINED

AFFINE_FORMS = {
    "affine": "one λ, one σ",
    "line": "a coefficient of σ per token",
    "softmax": "a λ per token",
}

# By dimension: a label, a list of labels, or {"from": the first of them}.
Labels = Mapping[str, Any]


def compared(
    measured: xr.Dataset,
    of: Sequence[str],
    at: Labels,
    less: Labels | None = None,
    over: Labels | None = None,
    each: str | None = None,
    times: float = 1,
) -> xr.DataArray:
    """Return variables (`of`) at the labels `at`, minus their values at `less`, divided
    by their values at `over`.

    `less` and `over` give only the labels that differ from `at`. The comparison is made
    for each head by itself; all dimensions but the problems are then averaged, except
    `each`, every label of which becomes a component. A head without a number on either
    side is left out of a problem's mean, and the component's name has the number of
    heads that remain. Results are multiplied by `times`.
    """
    components = {}
    for name in of:
        values = _selected(measured, name, at)
        if less:
            values = values - _selected(measured, name, {**at, **less})
        if over:
            values = values / _selected(measured, name, {**at, **over})
        by_label = _by_label(values, each) if each else {name: values}
        for label, numbers in by_label.items():
            averaged = [d for d in numbers.dims if d not in ("network", "problem")]
            means = times * numbers.mean(averaged)
            components[label + _heads_left(numbers)] = means
    return _named(components)


def check_compared(
    of: Sequence[str], at: Labels, each: str | None = None, **others: Any
) -> None:
    """Raise ValueError if these arguments of `compared` name a variable that does not
    exist, or a dimension that one of the variables lacks.
    """
    named = {*at, *(others.get("less") or {}), *(others.get("over") or {})}
    named |= {each} if each else set()
    for name in of:
        if name not in DIMENSIONS:
            choices = ", ".join(DIMENSIONS)
            raise ValueError(
                f"unknown variable {name!r} in `of`: choose from {choices}"
            )
        lacking = sorted(named - set(DIMENSIONS[name]))
        if lacking:
            dims = ", ".join(DIMENSIONS[name])
            raise ValueError(f"{name} has no dimension {lacking[0]!r}, only {dims}")


def filler_attention(measured: xr.Dataset, condition: str, layer: int) -> xr.DataArray:
    """Return the received attention of inserted over that of original tokens.

    It has two components, each over a layer's heads: the mean of the level's ratio, and
    the evenness as a ratio of means over the heads that have both.
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
    """Return R² of the affine map in layer 1, averaged over heads: of one form of the
    map, or of the one that fits best.
    """
    by_form = {}
    for name, text in AFFINE_FORMS.items():
        by_form[text] = _selected(measured, name, {}).mean("head")
    fits = _named(by_form)
    if form != "best":
        return fits.sel(component=[AFFINE_FORMS[form]])

    # Each network has the form that fits it best, under the trained one's name.
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
    """Return log ratios to none of the measures that should rise, and the negative ones
    of those that should fall.
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
    """Return a variable at these labels.

    Raises Untestable if it was not measured there.
    """
    if name not in measured:
        raise Untestable(f"the profile measures no {name}")
    labels = {}
    for dim, label in at.items():
        known = measured[dim].values.tolist()
        if isinstance(label, Mapping):
            first = label["from"]
            label = [first, *(later for later in known if later > first)]
        missing = set(np.atleast_1d(label).tolist()) - set(known)
        if missing:
            text = ", ".join(map(str, known))
            raise Untestable(f"{dim} {min(missing)} was not measured, only {text}")
        labels[dim] = label
    values = measured[name].sel(labels, drop=True)
    if not values.sel(network=TRAINED).notnull().any():
        raise Untestable(f"the profile measures no {name} here")
    return values


def _heads_left(values: xr.DataArray) -> str:
    """Return how many of the trained network's heads have a number, as " (9 to 11 of 12
    heads)": nothing if all have one in every problem that was measured.
    """
    if "head" not in values.dims:
        return ""
    has_number = values.sel(network=TRAINED).notnull()
    others = [dim for dim in has_number.dims if dim not in ("problem", "head")]
    heads = has_number.any(others).sum("head")  # (problem,)
    measured = heads.values[heads.values > 0]
    fewest, most = measured.min(), measured.max()
    if fewest == values.sizes["head"]:
        return ""
    count = f"{fewest} to {most}" if fewest < most else f"{most}"
    return f" ({count} of {values.sizes['head']} heads)"


def _by_label(values: xr.DataArray, dim: str) -> dict[str, xr.DataArray]:
    """Return the values at each label of a dimension; a number is named with the
    dimension, as "layer 2".
    """
    parts = {}
    for label in values[dim].values.tolist():
        name = label if isinstance(label, str) else f"{dim} {label}"
        parts[name] = values.sel({dim: label}, drop=True)
    return parts


def _named(parts: Mapping[str, xr.DataArray]) -> xr.DataArray:
    """Return a component for each of these names."""
    names = pd.Index(list(parts), name="component")
    return xr.concat(parts.values(), names)
