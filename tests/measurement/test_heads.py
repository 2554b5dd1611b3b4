"""Drawn heads on hand-written arrays: what is compared, and what a caption says."""

import numpy as np
import pytest
import xarray as xr

from lib.errors import InputError
from lib.measurement.heads import head_of, heads_summary, source_line, tokens_table, with_and_without
from lib.profiles import Panel, load_profile

NAN = float("nan")


@pytest.fixture
def measured():
    """A model of two heads in one layer, of which the second gives tokens something."""
    plain = ["instruction"] * 2 + ["problem"] * 2 + [""] * 2
    filled = ["instruction"] * 2 + ["inserted"] * 2 + ["problem"] * 2
    received = np.full((2, 1, 2, 6), NAN)  # (condition, layer, head, token)
    received[:, 0, 1] = [[9, 0.4, 0.2, NAN, NAN, NAN], [9, 0.1, 0.05, 0.07, 0.3, NAN]]
    arrays = {"received": (("condition", "layer", "head", "token"), received)}
    arrays["part"] = ("condition", "token"), [plain, filled]
    coords = {"condition": ["none", "mless"], "layer": [1], "head": [1, 2]}
    return xr.Dataset(arrays, coords, {"model": "A", "revision": "0123456789abcdef", "label": "A @ 0123456789ab"})


@pytest.fixture
def head(measured):
    return head_of(measured, Panel(model="demo", layer=1, head=2))


def test_a_drawn_head_compares_original_tokens_without_the_first_and_the_last(head):
    (row,) = heads_summary({"fig13": [head]}).to_dict("records")
    assert (row["figure"], row["model"], row["layer"], row["head"]) == ("fig13", "A", 1, 2)
    assert (row["tokens"], row["inserted"]) == (2, 2)
    assert row["lambda"] == pytest.approx(0.4 / 0.6) and row["lost"] == 0.5
    assert row["inserted / original"] == pytest.approx(0.06 / 0.2)


def test_a_head_is_drawn_from_its_second_token_on(head):
    title, before, after, whole, span = with_and_without(head, "mless")
    assert title == "A Layer 1 Head 2" and (span.start, span.stop) == (2, 4)
    np.testing.assert_array_equal(before, [0.4, 0.2, NAN])
    np.testing.assert_array_equal(after, [0.1, 0.3, NAN])
    assert len(whole) == 5


def test_the_table_says_to_which_part_each_token_belongs(head):
    table = tokens_table([head, head], ["none", "mless"])
    assert len(table) == 20
    parts = table[table.condition == "mless"].part.tolist()[:6]
    assert parts == ["instruction"] * 2 + ["inserted"] * 2 + ["problem"] * 2


@pytest.mark.parametrize(
    ("layer", "number", "said"),
    [
        (1, 3, "fig13: demo has layers 1 to 1 and heads 1 to 2, not layer 1, head 3"),
        (1, 1, "of demo gives is not stored"),
    ],
)
def test_a_head_that_is_not_there_is_named(measured, layer, number, said):
    with pytest.raises(InputError, match=said):
        head_of(measured, Panel(model="demo", layer=layer, head=number), "fig13")


def test_a_caption_says_on_which_problems_and_prompts():
    profile = load_profile("demo")
    assert source_line(profile) == "Problems: embedded set, plain prompt, n = 1."
    assert source_line(profile, 100).endswith("n = 100.")
