"""The tables of notebooks 01, 02 and 04, on hand-written measurements.

Those that are means and their intervals alone are held by the numbers that the
notebooks store.
"""

import numpy as np
import pytest
import xarray as xr
from evidence import dataset

from lib.errors import InputError
from lib.measurement import measured_tables
from lib.measurement.attention import QUERIES, SPANS
from lib.measurement.measured_tables import curves, layers_of, means_table
from lib.profiles import Panel, load_profile
from lib.statistics import interval

NAN = float("nan")
LABELS = {
    "network": ["trained"],
    "problem": ["a", "b"],
    "span": SPANS,
    "query": QUERIES,
}
LABELS |= {"measure": ["near zero", "L1"], "layer": [1], "condition": ["none", "mless"]}


def test_the_first_layers_have_all_problems_and_every_layer_those_that_went_through_all():
    lam = np.ones((1, 2, 2, 3, 1))  # (network, condition, problem, layer, head)
    lam[0, 0, 0] = [
        [NAN],
        [1],
        [NAN],
    ]  # a cell that is not defined, and the deeper layer, which only b went through
    lam[0, 1, :, 2] = NAN
    labels = LABELS | {
        "condition": ["mless", "random"],
        "layer": [1, 2, 3],
        "head": [1],
    }
    found = dataset(labels, {"lambda": lam})["lambda"]
    first, every = layers_of(found), layers_of(found, every=True)
    assert (
        first.condition.size == 2
        and first.layer.values.tolist() == [1, 2]
        and first.problem.size == 2
    )
    assert (
        every.condition.values == ["mless"]
        and every.problem.values == ["b"]
        and every.layer.size == 3
    )


def test_n_counts_the_problems_of_each_place():
    values = np.array([[1.0, NAN, NAN], [2.0, 4.0, NAN], [4.0, 5.0, NAN]])
    table = means_table(
        xr.DataArray(
            values,
            {"problem": ["a", "b", "c"], "layer": [1, 2, 3]},
            ["problem", "layer"],
        )
    )
    assert table.layer.tolist() == [1, 2] and table.n.tolist() == [3, 2]
    ends = interval([4.0, 5.0])
    assert table.loc[1, ["mean", "low", "high"]].tolist() == pytest.approx(
        [4.5, ends.low, ends.high]
    )


@pytest.mark.parametrize(
    ("before", "after", "ratio"),
    [
        (
            [0.2, 0.4],
            [0.0, 0.2],
            [0.5, 0.5],
        ),  # a share of nothing counts as half the smallest of its own measure
        ([0.2, 0.2], [0.006, 0.2], [0.03, 1]),  # one below all of none is told as it is
    ],
)
def test_no_share_is_smaller_than_half_an_element(before, after, ratio):
    others = np.array(
        [[8e-4, 9e-4], [8e-4, 9e-4]]
    )  # of another measure, whose smallest is no floor of shares
    values = np.stack([[before, after], others], -1)[
        :, :, None
    ]  # (condition, problem, layer, measure)
    measures = dataset(LABELS, {"measures": values}).measures.sel(network="trained")
    logs = measured_tables.log_changes(measures).sel(
        condition="mless", measure="near zero", layer=1
    )
    np.testing.assert_allclose(np.exp(logs), ratio)


@pytest.fixture
def profile(monkeypatch):
    """A profile that draws a model of two heads in one layer, of which nothing that
    they give is stored.
    """
    arrays = {
        "received": NAN,
        "part": "problem",
        "lambda_by_span": np.arange(12.0).reshape(2, 3, 2),
    }
    measured = dataset(LABELS | {"head": [1, 2], "token": range(6)}, arrays)
    measured.attrs |= {
        "model": "SmolLM2-135M-Instruct",
        "revision": "0123456789ab",
        "example": "x/1",
    }
    monkeypatch.setattr(
        measured_tables, "measure", lambda *given, **options: {measured.model: measured}
    )

    def drawing(**heads):
        demo = load_profile("demo")
        panels = {
            figure: [Panel(model="demo", layer=1, head=head)]
            for figure, head in heads.items()
        }
        return demo.model_copy(
            update={
                "attention": demo.attention.model_copy(
                    update={"panels": panels, "layers": 1}
                )
            }
        )

    return drawing


def test_a_head_that_is_not_there_is_named(profile):
    there = "demo has layers 1 to 1 and heads 1 to 2, not layer 1, head 3"
    for head, said in ((3, f"fig10: {there}"), (1, "of demo gives is not stored")):
        with pytest.raises(InputError, match=said):
            curves(profile(fig10=head), "fig10", ["none", "mless"])


def test_a_drawn_head_has_lambda_of_either_part_over_all_problems(profile):
    figures = {
        "fig10": [2],
        "fig13": [1, 2],
        "fig18": [2],
    }  # where none is named the first, as far as there are any
    table = measured_tables.spans_of_heads(profile(fig10=2), *figures)
    drawn = [
        (figure, 1, head, span)
        for figure, heads in figures.items()
        for head in heads
        for span in SPANS[1:]
    ]
    assert (
        list(zip(table.figure, table.layer, table["head"], table.span, strict=True))
        == drawn
    )
    assert table["lambda"].tolist() == [8, 10, 2, 4, 8, 10, 8, 10] and set(table.n) == {
        2
    }
