"""The tables of notebooks 01, 02 and 04, on hand-written measurements."""

import numpy as np
import pytest
import xarray as xr

from lib.errors import InputError
from lib.measurement import tables
from lib.measurement.store import CAUSES, OTHERS
from lib.measurement.tables import (
    AFFINE_TEXT,
    affine_table,
    causes_by_head,
    causes_table,
    changes_table,
    classes_table,
    controls_table,
    count_heads,
    curves,
    estimates,
    heads_table,
    layers_table,
    likeness_table,
    log_changes,
    spans_of_heads,
    spans_table,
    summary_of_heads,
)
from lib.profiles import Panel, load_profile
from lib.statistics import holm, interval, signed_rank

N, LAYERS, HEADS = 40, 2, 3
NAN = float("nan")
PLAIN = ["instruction"] * 2 + ["problem"] * 2 + [""] * 2
FILLED = ["instruction"] * 2 + ["inserted"] * 2 + ["problem"] * 2
OVER = ("condition", "problem", "layer", "measure")
OVER_HEADS = ("condition", "problem", "layer", "head")


def model(arrays, coords):
    """Return the measurements of a trained network."""
    return {"m": xr.Dataset(arrays, coords).expand_dims(network=["trained"])}


def trained(measured):
    return measured["m"].sel(network="trained")


@pytest.fixture
def measured():
    """Layer 1: heads at 0.5, 1.5 and about 1; layer 2: all about 1. Terms explain three quarters of log lambda."""
    rng = np.random.default_rng(0)
    centre = np.array([[0.5, 1.5, 1.0], [1.0, 1.0, 1.0]])
    values = centre * np.exp(rng.normal(0, 0.1, (2, N, LAYERS, HEADS)))
    coords = {"condition": ["mless", "random"], "layer": [1, 2], "head": [1, 2, 3], "problem": range(N)}
    found = {name: (OVER_HEADS, values) for name in ("lambda", "mass", "flatness", "dispersion")}
    both = np.exp(-rng.uniform(0.5, 1.5, (N, HEADS)))
    found |= {name: (("problem", "head"), np.full((N, HEADS), 0.1 * i)) for i, name in enumerate(AFFINE_TEXT)}
    found["cause_lambda"] = ("cause", "problem", "head"), np.stack([both, both**0.75, both**0.25])
    return model(found, coords | {"cause": list(CAUSES)})


def test_heads_are_significant_where_an_effect_was_planted(measured):
    heads = heads_table(measured)
    assert len(heads) == 2 * LAYERS * HEADS and set(heads.n) == {N}
    logs = np.log(trained(measured)["lambda"].stack(place=["condition", "layer", "head"]).values)
    np.testing.assert_allclose(heads.p, holm(signed_rank(logs)))  # corrected for all of a model
    first = heads.iloc[0]
    assert first["lambda"] == pytest.approx(0.5, abs=0.03) and first["problems < 1"] == 1
    counted = count_heads(heads).set_index(["condition", "layer"])
    assert counted.loc[("mless", 1), ["below", "above", "heads"]].tolist() == [1, 1, 3]
    assert counted.loc[("random", 2), ["below", "above", "heads"]].tolist() == [0, 0, 3]


def test_causes_and_fits_are_those_that_were_planted(measured):
    table, lam = causes_table(measured).set_index("cause"), trained(measured).cause_lambda
    assert list(table.index) == list(CAUSES) and table["share"].tolist() == pytest.approx([1, 0.75, 0.25])
    np.testing.assert_allclose(causes_by_head(measured)["lambda"], lam.mean("problem").values.ravel())
    np.testing.assert_allclose(table["lambda"], lam.mean(["problem", "head"]))
    fits = affine_table(measured).set_index("measure")["mean"]
    assert fits.to_dict() == pytest.approx({text: 0.1 * i for i, text in enumerate(AFFINE_TEXT.values())})


def test_problems_of_one_template_widen_every_table(measured):
    ids = [f"embedded/{i // 10}/{i}" for i in range(N)]
    together = {"m": measured["m"].assign_coords(problem=ids)}
    lam = trained(measured)["lambda"].sel(condition="mless", layer=1)
    values = lam.sel(head=1).values
    row, same = heads_table(together).iloc[0], interval(values, ids)
    assert (row.low, row.high) == pytest.approx((same.low, same.high))
    assert row.high - row.low != pytest.approx(np.ptp(heads_table(measured).loc[0, ["low", "high"]]))
    mean = layers_table(together).query("measure == 'lambda' and condition == 'mless' and layer == 1").iloc[0]
    heads = interval(lam.mean("head").values, ids)
    assert (mean["mean"], mean.low, mean.high) == pytest.approx((heads.estimate, heads.low, heads.high))


def test_classes_of_tokens_are_told_with_their_difference_to_the_others():
    rng = np.random.default_rng(0)
    others = rng.uniform(0.1, 0.2, N)
    digits, ids = others + 0.05 + rng.normal(0, 0.01, N), [f"embedded/{i // 4}/{i}" for i in range(N)]
    digits[:10] = np.nan  # problems without digits
    shares = np.stack([digits, others], 1)[None, :, None]  # (condition, problem, layer, class)
    coords = {"condition": ["none"], "problem": ids, "layer": [1], "class": ["digits", OTHERS]}
    found = model({"classes": (("condition", "problem", "layer", "class"), shares)}, coords)
    row = classes_table(found).set_index("class").loc["digits"]
    apart = interval(100 * (digits - others)[10:], ids[10:])
    assert (row["against others"], row["against low"], row["against high"], row.n) == pytest.approx(
        (apart.estimate, apart.low, apart.high, N - 10)
    )
    assert row["against low"] > 0 and row["near zero"] == pytest.approx(100 * digits[10:].mean())


def test_changes_are_geometric_means_with_corrected_p_values():
    rng = np.random.default_rng(1)
    before, names = rng.uniform(1, 2, (N, 2)), ["L1", "L2"]
    after = before * np.exp(rng.normal([0.3, 0.0], 0.1, (N, 2)))
    values = np.stack([before, after])[:, :, None]  # (condition, problem, layer, measure)
    coords = {"condition": ["none", "mless"], "problem": range(N), "layer": [1], "measure": names}
    found = model({"measures": (("condition", "problem", "layer", "measure"), values)}, coords)
    table, logs = changes_table(found), np.log(after / before)
    np.testing.assert_allclose(table.ratio, np.exp(logs.mean(0)))
    np.testing.assert_allclose(table.high, np.exp(interval(logs).high))
    np.testing.assert_allclose(table.p, holm(signed_rank(logs)))


def test_likeness_is_told_of_each_change_but_the_slashes():
    over, names = ("condition", "problem", "layer"), ["none", "mless", "mful", "random", "arm"]
    values = np.random.default_rng(1).uniform(-1, 1, (2, 5, N, 2))
    found = {part: (over, some) for part, some in zip(("shape", "elements"), values, strict=True)}
    table = likeness_table(model(found, {"condition": names, "problem": range(N), "layer": [1, 2]}))
    assert table[["condition", "layer"]].values.tolist() == [[c, k] for c in names[2:] for k in (1, 2)]
    np.testing.assert_allclose(table[["shape", "elements"]].T, values[:, 2:].mean(2).reshape(2, -1))


def test_lambda_is_told_by_the_tokens_that_receive_and_give():
    values = np.array([[0.5, 0.6], [0.7, 0.8]])[:, :, None, None, None, None] + np.zeros((2, 2, 1, 1, 2, 1))
    coords = {"problem": ["a", "b"], "query": ["all", "original"], "span": ["problem"], "layer": [1], "head": [1, 2]}
    lam = xr.DataArray(
        values, coords | {"condition": ["mless"]}, ["problem", "query", "span", "layer", "head", "condition"]
    )
    table = spans_table(model({"lambda_by_span": lam}, {}))
    assert table[["query", "span", "lambda", "n"]].values.tolist() == [
        ["all", "problem", 0.6, 2],
        ["original", "problem", 0.7, 2],
    ]


def test_n_counts_the_problems_of_each_place():
    values = np.array([[1.0, np.nan, np.nan], [2.0, 4.0, np.nan], [4.0, 5.0, np.nan]])
    table = estimates(xr.DataArray(values, {"problem": ["a", "b", "c"], "layer": [1, 2, 3]}, ["problem", "layer"]))
    assert table.layer.tolist() == [1, 2] and table.n.tolist() == [3, 2]
    ends = interval([4.0, 5.0])
    assert table.loc[1, ["mean", "low", "high"]].tolist() == pytest.approx([4.5, ends.low, ends.high])


def test_controls_span_the_heads_of_all_untrained_networks():
    names = ["trained", "untrained 0", "untrained 1", "untrained 2", "uniform"]
    lam = np.arange(5.0)[:, None, None, None, None] + np.zeros((5, 1, 2, 2, 2)) + np.array([0, 0.1])
    lam[1:, ..., 1, :] = np.nan  # without training only the first layer
    coords = {"network": names, "condition": ["mless"], "layer": [1, 2], "problem": ["a", "b"], "head": [1, 2]}
    found = controls_table({"m": xr.Dataset({"lambda": (("network", *OVER_HEADS), lam)}, coords)}, "mless")
    assert found.values.tolist() == [["m", "untrained", 1, 1.0, 3.1], ["m", "uniform", 1, 4.0, 4.1]]


@pytest.mark.parametrize(
    ("before", "after", "ratio"),
    [
        ([0.2, 0.4], [0.0, 0.2], [0.5, 0.5]),  # a share of nothing counts as half the smallest of its own measure
        ([0.2, 0.2], [0.006, 0.2], [0.03, 1]),  # one below all of none is told as it is
    ],
)
def test_no_share_is_smaller_than_half_an_element(before, after, ratio):
    others = np.array([[8e-4, 9e-4], [8e-4, 9e-4]])  # of another measure, whose smallest is no floor of shares
    values = np.stack([[before, after], others], -1)[:, :, None]  # (condition, problem, layer, measure)
    coords = {"condition": ["none", "mless"], "layer": [1], "measure": ["near zero", "L1"]}
    logs = log_changes(xr.DataArray(values, coords, OVER))
    np.testing.assert_allclose(np.exp(logs.sel(condition="mless", measure="near zero", layer=1)), ratio)


@pytest.fixture
def drawn(monkeypatch):
    """The curves of one head of a model of two heads in one layer, of which the second gives tokens something."""
    received = np.full((2, 1, 2, 6), NAN)  # (condition, layer, head, token)
    received[:, 0, 1] = [[9, 0.4, 0.2, NAN, NAN, NAN], [9, 0.1, 0.05, 0.07, 0.3, NAN]]
    arrays = {"received": (("condition", "layer", "head", "token"), received)}
    arrays["part"] = ("condition", "token"), [PLAIN, FILLED]
    coords = {"condition": ["none", "mless"], "layer": [1], "head": [1, 2]}
    measured = xr.Dataset(
        arrays, coords, {"model": "SmolLM2-135M-Instruct", "revision": "0123456789ab", "example": "x/1"}
    )
    monkeypatch.setattr(tables, "measure", lambda *given, **options: {measured.model: measured})
    profile = load_profile("demo")

    def of(*named, figure="fig10", what=curves):
        row = [Panel(model="demo", layer=1, head=head) for head in named]
        attention = profile.attention.model_copy(update={"panels": {figure: row}, "layers": 1})
        return what(profile.model_copy(update={"attention": attention}), figure, ["none", "mless"])

    return of


def test_curves_have_a_row_per_token_with_its_part_and_place(drawn):
    table = drawn(2)
    assert table.part.tolist() == PLAIN[:4] + FILLED and table.position.tolist() == [*range(4), *range(6)]
    np.testing.assert_array_equal(table.received[4:], [9, 0.1, 0.05, 0.07, 0.3, NAN])
    assert set(table.model) == {"SmolLM2-135M-Instruct"} and set(table["head"]) == {2}


def test_the_summary_compares_original_tokens_without_the_first_and_the_last(drawn):
    one, other = summary_of_heads(drawn(2), drawn(2)).to_dict("records")
    assert one == other and (one["layer"], one["head"], one["tokens"], one["slashes"]) == (1, 2, 2, 2)
    assert one["λ"] == pytest.approx(0.4 / 0.6) and one["receive less"] == 0.5
    assert one["slash / original"] == pytest.approx(0.06 / 0.2)


@pytest.mark.parametrize(("figure", "expected"), [("fig13", [1, 2]), ("fig10", [1]), ("fig18", [2])])
def test_where_none_is_named_the_first_heads_are_drawn_as_far_as_there_are_any(drawn, figure, expected):
    heads = [head for _, head in drawn(figure=figure, what=lambda *asked: tables._drawn(*asked[:2], "tokens"))]
    assert [(head.layer, head["head"]) for head in heads] == [(1, head) for head in expected]


@pytest.mark.parametrize(
    ("head", "said"),
    [(3, "fig10: demo has layers 1 to 1 and heads 1 to 2, not layer 1, head 3"), (1, "of demo gives is not stored")],
)
def test_a_head_that_is_not_there_is_named(drawn, head, said):
    with pytest.raises(InputError, match=said):
        drawn(head)


def test_a_drawn_head_has_lambda_of_either_part_over_all_problems(monkeypatch):
    dims = ("network", "condition", "problem", "layer", "head", "span", "query")
    values = np.arange(1.0, 1 + 2 * 3 * 2).reshape(1, 1, 2, 1, 1, 3, 2) * np.ones((1, 1, 2, 1, 9, 3, 2))
    spans = {"span": ["original", "problem", "instruction"], "query": ["all", "original"]}
    coords = {"network": ["trained"], "condition": ["mless"], "layer": [1], "head": range(1, 10), "problem": ["a", "b"]}
    measured = xr.Dataset({"lambda_by_span": (dims, values)}, coords | spans, {"model": "m"})
    monkeypatch.setattr(tables, "measure", lambda *given, **options: {"m": measured})
    table = spans_of_heads(load_profile("demo"), "fig10", "fig11")
    assert table["figure"].tolist() == ["fig10"] * 2 + ["fig11"] * 6 and table["head"].tolist()[:4] == [6, 6, 1, 1]
    assert table.query("figure == 'fig10'").set_index("span")["lambda"].to_dict() == {"problem": 6, "instruction": 8}
