"""The tables of notebooks 01, 02 and 04, on hand-written measurements."""

import numpy as np
import pytest
import xarray as xr

from lib.errors import InputError
from lib.measurement import tables
from lib.measurement.attention import QUERIES, SPANS
from lib.measurement.store import CAUSES, CHANGES, OTHERS, VARIABLES
from lib.measurement.tables import AFFINE_TEXT, SPAN, curves, estimates
from lib.profiles import Panel, load_profile
from lib.statistics import holm, interval, signed_rank

N = 40
NAN = float("nan")
DIMS = {name: dims.split() for variables in VARIABLES.values() for name, (dims, _) in variables.items()}
LABELS = {
    "network": ["trained"],
    "condition": ["none", *CHANGES],
    "problem": range(N),
    "layer": [1, 2],
    "head": [1, 2, 3],
}
LABELS |= {
    "cause": CAUSES,
    "span": SPANS,
    "query": QUERIES,
    "measure": ["near zero", "L1"],
    "class": ["digits", OTHERS],
}
IN_FOURS = [f"embedded/{i // 4}/{i}" for i in range(N)]  # templates of four problems


def model(arrays, **labels):
    """Return measurements of a model: these variables, or what is broadcast to them, over LABELS or others."""
    labels = {name: list(some) for name, some in (LABELS | labels).items()}
    found = {
        name: (DIMS[name], np.broadcast_to(values, [len(labels[dim]) for dim in DIMS[name]]))
        for name, values in arrays.items()
    }
    used = {dim for name in arrays for dim in DIMS[name]}
    return {"m": xr.Dataset(found, {dim: some for dim, some in labels.items() if dim in used})}


def trained(measured):
    return measured["m"].sel(network="trained")


@pytest.fixture
def measured():
    """Layer 1: heads at 0.5, 1.5 and about 1; layer 2: all about 1. Terms explain three quarters of log lambda."""
    rng = np.random.default_rng(0)
    values = [[0.5, 1.5, 1.0], [1.0, 1.0, 1.0]] * np.exp(rng.normal(0, 0.1, (2, N, 2, 3)))
    both = np.exp(-rng.uniform(0.5, 1.5, (N, 3)))
    found = dict.fromkeys(("lambda", *SPAN), values) | {name: 0.1 * i for i, name in enumerate(AFFINE_TEXT)}
    return model(found | {"cause_lambda": [[both, both**0.75, both**0.25]]}, condition=["mless", "random"])


def test_heads_are_significant_where_an_effect_was_planted(measured):
    heads = tables.heads_table(measured)
    assert len(heads) == 2 * 2 * 3 and set(heads.n) == {N}
    logs = np.log(trained(measured)["lambda"].stack(place=["condition", "layer", "head"]).values)
    np.testing.assert_allclose(heads.p, holm(signed_rank(logs)))  # corrected for all of a model
    first = heads.iloc[0]
    assert first["lambda"] == pytest.approx(0.5, abs=0.03) and first["problems < 1"] == 1
    counted = tables.count_heads(heads).set_index(["condition", "layer"])
    assert counted.loc[("mless", 1), ["below", "above", "heads"]].tolist() == [1, 1, 3]
    assert counted.loc[("random", 2), ["below", "above", "heads"]].tolist() == [0, 0, 3]


def test_causes_and_fits_are_those_that_were_planted(measured):
    table, lam = tables.causes_table(measured).set_index("cause"), trained(measured).cause_lambda
    assert list(table.index) == list(CAUSES) and table["share"].tolist() == pytest.approx([1, 0.75, 0.25])
    np.testing.assert_allclose(tables.causes_by_head(measured)["lambda"], lam.mean("problem").values.ravel())
    np.testing.assert_allclose(table["lambda"], lam.mean(["problem", "head"]))
    fits = tables.affine_table(measured).set_index("measure")["mean"]
    assert fits.to_dict() == pytest.approx({text: 0.1 * i for i, text in enumerate(AFFINE_TEXT.values())})


def test_problems_of_one_template_widen_every_table(measured):
    together = {"m": measured["m"].assign_coords(problem=IN_FOURS)}
    lam = trained(measured)["lambda"].sel(condition="mless", layer=1)
    row, same = tables.heads_table(together).iloc[0], interval(lam.sel(head=1), IN_FOURS)
    assert (row.low, row.high) == pytest.approx((same.low, same.high))
    assert row.high - row.low != pytest.approx(np.ptp(tables.heads_table(measured).loc[0, ["low", "high"]]))
    mean = tables.layers_table(together).query("measure == 'lambda' and condition == 'mless' and layer == 1").iloc[0]
    heads = interval(lam.mean("head"), IN_FOURS)
    assert (mean["mean"], mean.low, mean.high) == pytest.approx((heads.estimate, heads.low, heads.high))


def test_classes_of_tokens_are_told_with_their_difference_to_the_others():
    rng = np.random.default_rng(0)
    others = rng.uniform(0.1, 0.2, N)
    digits = others + 0.05 + rng.normal(0, 0.01, N)
    digits[:10], others[35:] = NAN, NAN  # problems without digits, and without others
    found = model({"classes": np.stack([digits, others], 1)[:, None]}, problem=IN_FOURS, condition=["none"])
    row = tables.classes_table(found).set_index("class").loc["digits"]
    apart = interval(100 * (digits - others)[10:35], IN_FOURS[10:35])
    ends = row["against others"], row["against low"], row["against high"], row.n
    assert ends == pytest.approx((apart.estimate, apart.low, apart.high, 25))
    assert row["against low"] > 0 and row["near zero"] == pytest.approx(100 * digits[10:35].mean())


def test_changes_are_geometric_means_with_corrected_p_values():
    rng = np.random.default_rng(1)
    before = rng.uniform(1, 2, (N, 1, 2))
    after = before * np.exp(rng.normal([0.3, 0.0], 0.1, (N, 1, 2)))
    found = model({"measures": np.stack([before, after])}, condition=["none", "mless"], layer=[1])
    table, logs = tables.changes_table(found), np.log(after / before)[:, 0]
    np.testing.assert_allclose(table.ratio, np.exp(logs.mean(0)))
    np.testing.assert_allclose(table.high, np.exp(interval(logs).high))
    np.testing.assert_allclose(table.p, holm(signed_rank(logs)))


def test_likeness_is_told_of_each_change_but_the_slashes():
    values = np.random.default_rng(1).uniform(-1, 1, (2, 5, N, 2))
    table = tables.likeness_table(model(dict(zip(("shape", "elements"), values, strict=True))))
    assert table[["condition", "layer"]].values.tolist() == [[c, k] for c in CHANGES[1:] for k in (1, 2)]
    np.testing.assert_allclose(table[["shape", "elements"]].T, values[:, 2:].mean(2).reshape(2, -1))


def test_lambda_is_told_by_the_tokens_that_receive_and_give():
    values = np.array([0, 0.1, 0.2])[:, None] + np.array([[0.5, 0.6], [0.7, 0.8]]).reshape(2, 1, 1, 1, 2)
    labels = {"problem": "ab", "condition": ["mless"], "layer": [1], "head": [1, 2]}
    table = tables.spans_table(model({"lambda_by_span": values}, **labels))
    assert list(zip(table.span, table["query"], table.n, strict=True)) == [(s, q, 2) for s in SPANS for q in QUERIES]
    assert table["lambda"].tolist() == pytest.approx([0.6, 0.7, 0.7, 0.8, 0.8, 0.9])


def test_n_counts_the_problems_of_each_place():
    values = np.array([[1.0, NAN, NAN], [2.0, 4.0, NAN], [4.0, 5.0, NAN]])
    table = estimates(xr.DataArray(values, {"problem": ["a", "b", "c"], "layer": [1, 2, 3]}, ["problem", "layer"]))
    assert table.layer.tolist() == [1, 2] and table.n.tolist() == [3, 2]
    ends = interval([4.0, 5.0])
    assert table.loc[1, ["mean", "low", "high"]].tolist() == pytest.approx([4.5, ends.low, ends.high])


def test_controls_span_the_heads_of_all_untrained_networks():
    lam = np.arange(5.0)[:, None, None, None, None] + np.zeros((5, 1, 2, 2, 2)) + np.array([0, 0.1])
    lam[1:, ..., 1, :] = NAN  # without training only the first layer
    names = ["trained", "untrained 0", "untrained 1", "untrained 2", "uniform"]
    found = model({"lambda": lam}, network=names, condition=["mless"], problem="ab", head=[1, 2])
    table = tables.controls_table(found, "mless")
    assert table.values.tolist() == [["m", "untrained", 1, 1.0, 3.1], ["m", "uniform", 1, 4.0, 4.1]]


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
    measures = trained(model({"measures": values}, condition=["none", "mless"], problem="ab", layer=[1])).measures
    logs = tables.log_changes(measures).sel(condition="mless", measure="near zero", layer=1)
    np.testing.assert_allclose(np.exp(logs), ratio)


PLAIN = ["instruction"] * 2 + ["problem"] * 2 + [""] * 2
FILLED = ["instruction"] * 2 + ["inserted"] * 2 + ["problem"] * 2


@pytest.fixture
def profile(monkeypatch):
    """A profile that draws a model of two heads in one layer, of which the second gives the drawn tokens something."""
    received = np.full((2, 1, 2, 6), NAN)  # (condition, layer, head, token)
    received[:, 0, 1] = [[9, 0.4, 0.2, NAN, NAN, NAN], [9, 0.1, 0.05, 0.07, 0.3, NAN]]
    arrays = {"received": received, "part": [PLAIN, FILLED], "lambda_by_span": np.arange(12.0).reshape(2, 3, 2)}
    labels = {"condition": ["none", "mless"], "problem": "ab", "layer": [1], "head": [1, 2], "token": range(6)}
    measured = model(arrays, **labels)["m"]
    measured.attrs |= {"model": "SmolLM2-135M-Instruct", "revision": "0123456789ab", "example": "x/1"}
    monkeypatch.setattr(tables, "measure", lambda *given, **options: {measured.model: measured})

    def drawing(**heads):
        demo = load_profile("demo")
        panels = {figure: [Panel(model="demo", layer=1, head=head)] for figure, head in heads.items()}
        return demo.model_copy(update={"attention": demo.attention.model_copy(update={"panels": panels, "layers": 1})})

    return drawing


def test_curves_have_a_row_per_token_with_its_part_and_place(profile):
    table = curves(profile(fig10=2), "fig10", ["none", "mless"])
    assert table.part.tolist() == PLAIN[:4] + FILLED and table.position.tolist() == [*range(4), *range(6)]
    np.testing.assert_array_equal(table.received[4:], [9, 0.1, 0.05, 0.07, 0.3, NAN])
    assert set(table.model) == {"SmolLM2-135M-Instruct"} and set(table["head"]) == {2}
    # Compared are original tokens without the first and the last.
    one, other = tables.summary_of_heads(table, table).to_dict("records")
    assert one == other and (one["layer"], one["head"], one["tokens"], one["slashes"]) == (1, 2, 2, 2)
    assert one["λ"] == pytest.approx(0.4 / 0.6) and one["receive less"] == 0.5
    assert one["slash / original"] == pytest.approx(0.06 / 0.2)


@pytest.mark.parametrize(
    ("head", "said"),
    [(3, "fig10: demo has layers 1 to 1 and heads 1 to 2, not layer 1, head 3"), (1, "of demo gives is not stored")],
)
def test_a_head_that_is_not_there_is_named(profile, head, said):
    with pytest.raises(InputError, match=said):
        curves(profile(fig10=head), "fig10", ["none", "mless"])


def test_a_drawn_head_has_lambda_of_either_part_over_all_problems(profile):
    figures = {"fig10": [2], "fig13": [1, 2], "fig18": [2]}  # where none is named the first, as far as there are any
    table = tables.spans_of_heads(profile(fig10=2), *figures)
    drawn = [(figure, 1, head, span) for figure, heads in figures.items() for head in heads for span in SPANS[1:]]
    assert list(zip(table.figure, table.layer, table["head"], table.span, strict=True)) == drawn
    assert table["lambda"].tolist() == [8, 10, 2, 4, 8, 10, 8, 10] and set(table.n) == {2}
