"""Claims stand in their group with their figures, and their axis holds every number."""

import pytest
from report_folder import CONTROL, claim, verdict_of

from lib.report.axis import AXIS_EDGE, AXIS_WIDTH, axis
from lib.report.claim_rows import SIGNS, grouped_claims


def verdict(**changes):
    return verdict_of(claim(**changes))


def figure(name, notebook, *claims):
    return {"name": name, "caption": {"notebook": notebook, "claims": claims}}


FIGURES = [
    figure("lambda_map", "02_meaningless_effect", "dilution"),
    figure("fig12", "05_arm", "arm"),
    {"name": "holiday", "caption": None},
]
PLACES = {
    "02_meaningless_effect": "notebooks/02.html",
    "05_arm": "notebooks/05.html",
}


def test_every_way_to_stand_has_a_sign_of_its_own():
    assert SIGNS["supported"] == "✓"
    assert SIGNS["in part"] == "◐"
    assert SIGNS["contradicted"] == "✕"
    assert SIGNS["small"] == "≈"
    assert SIGNS["undecided"] == SIGNS["too few"] == "?"


def test_claims_stand_in_groups_by_what_measures_them():
    rows = [
        verdict(id="accuracy-mless"),
        verdict(id="likelihood-gain"),
        verdict(id="redistribution"),
        verdict(id="dilution"),
        verdict(id="layer-1-most", reading="other"),
        verdict(id="causes", reading="control"),
        verdict(id="unknown"),
    ]
    groups = grouped_claims(rows, [], {})
    ids = {name: [one["first"].id for one in own] for name, own in groups.items()}
    expected = {
        "Attention": ["dilution", "unknown"],
        "Activations of the first MLP": ["redistribution"],
        "Likelihood of the worked solution, and weighted answers": ["likelihood-gain"],
        "Accuracy and ARM": ["accuracy-mless"],
        "Checks of the measures, and claims of other papers": [
            "layer-1-most",
            "causes",
        ],
    }
    assert ids == expected
    assert list(ids) == list(expected)


def test_a_claim_has_its_models_its_figures_and_the_notebooks_that_draw_them():
    rows = [verdict(model="a/b c"), verdict(model="other", survives=False)]
    ((one,),) = grouped_claims(rows, FIGURES, PLACES).values()
    assert one["anchor"] == "claim-dilution"
    assert [drawn["name"] for drawn in one["figures"]] == ["lambda_map"]
    assert one["notebooks"] == {"02_meaningless_effect": "notebooks/02.html"}
    assert list(one["by_model"]) == ["a/b c", "other"]
    first, second = one["rows"]
    assert first["anchor"] == "claim-dilution-a-b-c"
    assert first["told"] == "supported"
    assert second["told"] == "supported †"  # lost when corrected
    assert "0.80 [0.70, 0.90] λ" in first["measured"]


def test_a_claim_whose_notebook_is_not_published_names_none():
    ((one,),) = grouped_claims([verdict()], FIGURES, {}).values()
    assert one["notebooks"] == {}


def test_the_control_has_a_bar_of_its_own_on_the_axis():
    drawn = axis(verdict(**CONTROL))
    ticks = {text: place for place, text in drawn["ticks"]}
    assert drawn["bar"][0] == ticks["0.7"]
    assert drawn["bar"][2] == drawn["control"][0] == ticks["0.9"]
    assert drawn["bar"][1] == ticks["0.8"]
    assert drawn["control"][2] <= AXIS_WIDTH - AXIS_EDGE


@pytest.mark.parametrize("paper", [-2.0, 5.0])
def test_the_papers_number_is_on_the_axis_however_far_it_lies(paper):
    drawn = axis(verdict(effect=0, low=-1, high=1, high_end=0, paper=paper))
    ticks = {float(text): place for place, text in drawn["ticks"]}
    assert drawn["paper"] == ticks[paper] if paper in ticks else drawn["paper"]
    assert AXIS_EDGE < drawn["paper"] < AXIS_WIDTH - AXIS_EDGE
    assert (drawn["paper"] > drawn["bar"][2]) == (paper > 1)


def test_one_number_alone_lies_in_the_middle_of_its_axis():
    same = dict.fromkeys(("effect", "low", "high", "high_end"), 50)
    drawn = axis(verdict(**same))
    assert drawn["bar"] == (AXIS_WIDTH / 2,) * 3
    # The axis reaches a tenth of the number to either side.
    assert [text for _, text in drawn["ticks"]] == ["45", "50", "55"]


def test_without_an_interval_there_is_no_axis():
    nothing = dict.fromkeys(("effect", "low", "high"))
    assert axis(verdict(n=0, **nothing)) is None
    assert axis(verdict(low=None, high=None)) is None
