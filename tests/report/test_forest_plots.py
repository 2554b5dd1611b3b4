"""A panel has a row per claim and model, a side and the paper's own numbers."""

import numpy as np
import pytest
import xarray as xr
from report_folder import claim, verdict_of

from lib.claims.claim import load_claims
from lib.claims.rule import Untestable
from lib.report import forest_plots
from lib.report.forest_plots import clouds, failed_checks, forests, opening


def verdict(name, **changes):
    points = {"unit": "points", "effect": 2, "low": -1.5, "high": 5.25}
    return verdict_of(claim(id=name, **points | changes))


def test_the_page_opens_with_attention_likelihood_and_accuracy():
    panels = opening([verdict("dilution", unit="λ", effect=0.8, low=0.7, high=0.9)])
    assert [panel["even"] for panel in panels] == [1, 0, 0]
    titles = [panel["title"].partition(",")[0] for panel in panels]
    assert titles == [
        "Attention on the original tokens",
        "Likelihood of the worked solution",
        "Accuracy",
    ]
    ((row,),) = [group["rows"] for group in panels[0]["groups"]]
    assert row["text"] == "0.80 [0.70, 0.90]"
    assert panels[1]["groups"] == []


def test_the_points_have_every_weighted_claim_or_its_count():
    weighted = {known.id for known in load_claims() if known.measure == "pass_rates"}
    rows = set(forest_plots.POINTS_ROWS)
    # Weights explode under a sentence, so that answers are counted instead.
    assert weighted - rows == {"points-sentence"}
    assert "accuracy-sentence" in rows


def test_a_row_has_its_effect_with_both_ends_its_problems_and_its_model():
    points, nats = forests([verdict("accuracy-mless", model="m", n=40)])
    (group,) = points["groups"]
    assert group["title"] == "Answers counted, slashes less none"
    assert group["rows"] == [
        {
            "id": "accuracy-mless|m",
            "claim": "accuracy-mless",
            "model": "m",
            "x": 2,
            "low": -1.5,
            "high": 5.25,
            "n": 40,
            "text": "+2.0 [-1.5, +5.2] points",
        }
    ]
    assert nats["title"] == "Nats of the worked solution"
    assert nats["groups"] == []


def test_layer_1_has_a_row_for_what_it_adds_and_one_for_it_alone():
    names = ("points-layer-1-needed", "points-layer-1-suffices", "likelihood-gain")
    points, nats = forests([verdict(name) for name in names])
    titles = [group["title"] for group in points["groups"]]
    assert titles == ["What layer 1 adds to the later layers", "Layer 1 alone"]
    assert [group["title"] for group in nats["groups"]] == ["Slashes, all in all"]


SIDES = [
    ({"low_end": 0, "high_end": None}, 1),
    ({"low_end": None, "high_end": 0}, -1),
    ({"low_end": -1, "high_end": 1}, 0),
]


@pytest.mark.parametrize("ends, side", SIDES)
def test_a_panel_knows_on_which_side_of_even_the_paper_claims_to_be(ends, side):
    other = verdict("points-slashes", low_end=-9, high_end=9)
    points, _ = forests([verdict("accuracy-mless", **ends), other])
    assert points["even"] == 0
    assert points["side"] == side


def test_what_should_have_come_out_is_held_against_chance():
    panels = failed_checks([verdict("likelihood-right", low_end=50, high_end=None)])
    assert [(panel["even"], panel["side"]) for panel in panels] == [(50, 1), (0, 0)]


def test_rings_are_the_papers_numbers_for_its_own_models_also_a_zero():
    rows = [
        verdict("accuracy-mless", model="a", paper=2.3, paper_of="Math-7B"),
        verdict("accuracy-mless", model="b", paper=2.3, paper_of="Math-7B"),
        verdict("accuracy-mless", model="c", paper=0.0, paper_of="Llama"),
        verdict("accuracy-mless", model="d"),
    ]
    points, _ = forests(rows)
    assert points["rings"] == [
        {"x": 2.3, "label": "Math-7B"},
        {"x": 0.0, "label": "Llama"},
    ]


def test_a_cloud_has_the_sorted_effects_on_all_problems_that_the_row_rests_on(
    monkeypatch,
):
    values = xr.DataArray(
        [[[0.456, -0.123, np.nan], [9, 9, 9]], [[8, 8, 8], [8, 8, 8]]],
        {"network": ["trained", "untrained 0"], "problem": ["a", "b", "c"]},
        ("network", "component", "problem"),
    )

    def values_of(claim, evidence):
        if not evidence:
            raise Untestable("nothing is known")
        return values

    monkeypatch.setattr(forest_plots, "values_of", values_of)
    monkeypatch.setattr(forest_plots, "known", lambda rows, name: rows)
    rows = [
        verdict("accuracy-mless", model=model, n=n)
        for model, n in (("m", 2), ("fewer", 3), ("unknown", 2))
    ]
    panel = forest_plots._panel(rows, {"accuracy-mless": ""}, "", 0)
    evidence = {"unknown": {}, "m": {"answers": 1}, "fewer": {"answers": 1}}
    assert clouds(evidence, [panel]) == {"accuracy-mless|m": [-0.12, 0.46]}
