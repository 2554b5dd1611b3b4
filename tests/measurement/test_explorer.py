"""The explorer: every head's received attention on one prompt, and λ beside it, kept as one file per model."""

import numpy as np
import pytest
import xarray as xr

from lib.attention.received import received_attention
from lib.measurement.run import measure_explorer
from lib.profiles import load_profile, override
from lib.report.parts import read_heads


@pytest.fixture(scope="module")
def measured(demo, tmp_path_factory):
    """Two problems through the demo model's first layers."""
    profile = override(load_profile("demo"), limit=2, name="explored")
    attention = profile.attention.model_copy(update={"map_problems": None})
    profile = profile.model_copy(update={"attention": attention})
    folder = tmp_path_factory.mktemp("explored")
    (explorer,) = measure_explorer(profile, folder).values()
    return profile, folder, explorer


def test_even_attention_is_the_mean_of_a_uniform_lower_triangle(measured):
    _, _, explorer = measured
    none = explorer.sel(condition="none")
    even = none.even.values[none.part.values != ""]
    uniform = np.tril(np.ones((len(even), len(even)))) / np.arange(1, len(even) + 1)[:, None]
    expected = [uniform[j + 1 :, j].mean() for j in range(len(even) - 1)]
    assert even[:-1] == pytest.approx(expected) and np.isnan(even[-1])


def test_tokens_are_named_and_what_each_receives_is_the_models(measured, demo):
    _, _, explorer = measured
    none, mless = explorer.sel(condition="none"), explorer.sel(condition="mless")
    real = mless.part.values != ""
    assert (mless.part == "inserted").sum() == 55 and set(mless.text.values[mless.part == "inserted"]) == {" /"}
    kept = real & (mless.part.values != "inserted")
    assert list(mless.text.values[kept]) == list(none.text.values[none.part.values != ""])
    ids = demo.tokenizer("".join(mless.text.values), return_tensors="pt").input_ids
    expected = received_attention(demo.model, ids, [1, 2, 3])[0].numpy()
    np.testing.assert_allclose(mless.received.values[..., real], expected, atol=1e-5)


def test_lambda_stands_beside_each_head_with_its_interval(measured):
    _, _, explorer = measured
    one = explorer.sel(condition="mless")
    assert one.ratio.shape == (3, 9) and bool((one.low <= one.ratio).all() and (one.ratio <= one.high).all())
    assert np.isnan(explorer.ratio.sel(condition="none")).all() and explorer.attrs["n"] == 2


def test_it_is_kept_and_the_report_reads_it(measured, monkeypatch):
    profile, folder, explorer = measured
    monkeypatch.setattr("lib.measurement.explorer.explore", lambda *_: pytest.fail("measured again"))
    (again,) = measure_explorer(profile, folder).values()
    xr.testing.assert_allclose(again, explorer)
    monkeypatch.setattr("lib.paths.RESULTS", folder)
    (folder / "explored").mkdir()
    (folder / "explored" / "measurements").symlink_to(folder)
    (head,), missing = read_heads(profile)
    assert not missing and head["layers"] == [1, 2, 3] and len(head["received"]) == 27
