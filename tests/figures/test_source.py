"""The code that a notebook unfolds is the code that runs."""

import html

import pytest

from lib.figures.source import unfold


def test_a_function_is_folded_to_a_line_with_its_name_and_file():
    shown = unfold("lib.arm.moving.redistribute", "lib.figures.source.unfold")
    first, second = shown._repr_html_().split("</details>\n")
    assert first.startswith("<details><summary>The code: <code>redistribute</code>")
    assert "<code>lib/arm/moving.py</code></summary>" in first
    assert "def unfold(*names):" in html.unescape(second)
    assert repr(shown) == (
        "The code of lib.arm.moving.redistribute, lib.figures.source.unfold"
    )


def test_what_the_code_says_is_text_and_not_markup():
    assert "<details>{" not in unfold("lib.figures.source._details")._repr_html_()


def test_a_function_that_is_gone_is_named():
    with pytest.raises(ValueError, match=r"no function is called lib\.gone"):
        unfold("lib.gone", "lib.figures.source.unfold")


def test_a_decorated_function_is_named_with_the_file_that_it_stands_in():
    html = unfold("lib.attention.received.observe")._repr_html_()
    assert "<code>lib/attention/received.py</code></summary>" in html
