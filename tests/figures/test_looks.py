"""Conditions and models are told apart, and axes have few plain ticks."""

import pytest
from artists import texts

from lib.figures.looks import LOOKS, look_of, ratio_axis

CONDITIONS = ("none", "mless", "mful", "random", "arm")


@pytest.mark.parametrize("field", ["colour", "marker"])
def test_conditions_differ_in_colour_and_mark(field):
    assert len({getattr(LOOKS[name], field) for name in CONDITIONS}) == 5


def test_a_variant_of_a_condition_looks_like_it_under_its_own_name():
    assert look_of("mless") == (LOOKS["mless"], "Mless")
    assert look_of("mless:25") == (LOOKS["mless"], "mless:25")
    assert look_of("mful@end") == (LOOKS["mful"], "mful@end")


def test_an_unknown_condition_is_refused():
    with pytest.raises(ValueError, match="unknown condition 'bogus'"):
        look_of("bogus")


@pytest.mark.parametrize("low, high", [(0.97, 1.03), (0.1, 1.2), (0.5, 8.0)])
def test_ticks_of_ratios_are_plain_few_and_include_one(ax, low, high):
    ratio_axis(ax, low, high)
    labels = texts(ax.get_yticklabels())
    assert "1" in labels
    assert 2 <= len(labels) <= 8
    bottom, top = ax.get_ylim()
    assert bottom < low
    assert top > high
