"""Lambda and flatness over problems, and the panels' curves, on the demo model."""

import numpy as np
import pytest

from lib.dilution import measure_dilution
from lib.errors import InputError
from lib.panels import panel_curves
from lib.problems import load_problems
from lib.profiles import load_profile, override
from lib.prompts import build_prompt


@pytest.fixture(scope="module")
def problems():
    return load_problems("embedded", limit=5)


def test_lambda_agrees_with_one_prompt_at_a_time(demo, problems, monkeypatch):
    from lib.attention import received_attention

    monkeypatch.setattr("lib.dilution.BATCH_TOKENS", 200)
    found = measure_dilution(demo, problems, ["mless"], [1, 2])
    for i, problem in enumerate(problems):
        means = []
        for condition in ("none", "mless"):
            prompt = build_prompt(demo.tokenizer, problem.problem, condition)
            received = received_attention(demo.model, prompt.input_ids, [1, 2])[0]
            means.append(received[..., prompt.original[1:-1]].mean(-1).numpy())
        np.testing.assert_allclose(found.ratio["mless"][i], means[1] / means[0], rtol=1e-4)


def test_report_counts_every_prompt_once(demo, problems):
    seen = []
    measure_dilution(demo, problems, ["mless", "random"], [1], report=lambda done, total: seen.append((done, total)))
    assert seen[-1] == (15, 15)
    assert [done for done, _ in seen] == sorted({done for done, _ in seen})


def test_slashes_are_flatter_than_a_sentence(demo, problems):
    flat = measure_dilution(demo, problems, ["mless", "random"], [1]).flatness
    assert flat["mless"].mean() < flat["random"].mean()


def test_nothing_to_measure_is_refused(demo):
    with pytest.raises(InputError, match="no problems"):
        measure_dilution(demo, [], ["mless"], [1])


def test_panels_compare_the_same_tokens():
    profile = override(load_profile("demo"), limit=3)
    for curves in panel_curves(profile, "fig13", ["none", "mless"]):
        assert curves.original("none").shape == curves.original("mless").shape
        assert len(curves.whole("mless")) == len(curves.whole("none")) + 55
        assert (curves.table().groupby(["condition", "part"]).size()["mless", "inserted"]) == 55


def test_example_beyond_the_problems_is_refused():
    profile = override(load_profile("demo"), limit=1)
    profile.attention.__dict__["example"] = 3
    with pytest.raises(InputError, match="example 3 is beyond the 1 problems"):
        panel_curves(profile, "fig13", ["none"])
