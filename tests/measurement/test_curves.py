"""Curves of drawn heads on hand-written arrays: what is compared, and what a caption says."""

import numpy as np
import pytest
import xarray as xr

from lib.measurement.curves import Curves, curves_table, drawn_heads, source_line
from lib.models.names import Card
from lib.profiles import Panel, load_profile

NAN = float("nan")


@pytest.fixture
def curves():
    plain = ["instruction"] * 2 + ["problem"] * 2 + [""] * 2
    filled = ["instruction"] * 2 + ["inserted"] * 2 + ["problem"] * 2
    received = [[9, 0.4, 0.2, NAN, NAN, NAN], [9, 0.1, 0.05, 0.07, 0.3, NAN]]
    dims = ("condition", "token")
    tokens = xr.Dataset(
        {"received": (dims, received), "part": (dims, [plain, filled])}, {"condition": ["none", "mless"]}
    )
    panel = Panel(model="demo", layer=1, head=2)
    return Curves(panel, Card("A", "demo", "0123456789abcdef", 2, 1, 99, "float32"), tokens)


def test_a_drawn_head_compares_original_tokens_without_the_first_and_the_last(curves):
    (row,) = drawn_heads({"fig13": [curves]}).to_dict("records")
    assert (row["figure"], row["model"], row["layer"], row["head"]) == ("fig13", "A", 1, 2)
    assert (row["tokens"], row["inserted"]) == (2, 2)
    assert row["lambda"] == pytest.approx(0.4 / 0.6) and row["lost"] == 0.5
    assert row["inserted / original"] == pytest.approx(0.06 / 0.2)


def test_a_head_is_drawn_from_its_second_token_on(curves):
    title, before, after, whole, span = curves.drawn("mless")
    assert title == "A Layer 1 Head 2" and (span.start, span.stop) == (2, 4)
    np.testing.assert_array_equal(before, [0.4, 0.2, NAN])
    np.testing.assert_array_equal(after, [0.1, 0.3, NAN])
    assert len(whole) == 5


def test_the_table_says_to_which_part_each_token_belongs(curves):
    table = curves_table([curves, curves])
    assert len(table) == 20
    parts = table[table.condition == "mless"].part.tolist()[:6]
    assert parts == ["instruction"] * 2 + ["inserted"] * 2 + ["problem"] * 2


def test_a_caption_says_on_which_problems_and_prompts():
    profile = load_profile("demo")
    assert source_line(profile) == "Problems: embedded set, plain prompt, n = 1."
    assert source_line(profile, 100).endswith("n = 100.")
