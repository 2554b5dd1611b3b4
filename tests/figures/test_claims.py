"""The figure of the claims: what is drawn is what was given."""

from lib.figures.claims import VERDICT_LOOKS, draw_claims


def test_claims_have_a_row_each_and_the_untested_say_so(ax):
    nan = float("nan")
    verdicts = ["supported", "contradicted", "undecided", "undecided"]
    rows = ([2, -100, 0.1, nan], [1, -100, -1, nan], [3, -90, 1, nan], [nan, nan, 0.3, nan], [-1, nan, nan, nan])
    points = draw_claims(ax, list("abcd"), ["1 λ", "2 λ", "3 λ", "not tested"], verdicts, *rows)
    assert [list(p.get_ydata()) for p in points] == [[3], [2], [1], [0]]
    assert [p.get_color() for p in points] == [VERDICT_LOOKS[verdict].colour for verdict in verdicts]
    assert [text.get_text() for text in ax.texts] == ["1 λ", "2 λ", "3 λ", "not tested"]
    labels = [text.get_text() for text in ax.get_legend().get_texts()]
    verdicts = ["supported", "contradicted", "no effect of that size", "undecided"]
    assert labels == ["untrained networks", "the paper's number", *verdicts]
    untrained, paper = (line for line in ax.get_lines() if len(line.get_xdata()) == 4)
    assert untrained.get_xdata()[0] == -1 and paper.get_xdata()[2] == 0.3
    low, high = ax.get_xlim()
    assert low < -100 and high == -low
