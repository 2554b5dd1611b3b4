"""The matrix of claims: a mark for how each stands, none where it was not tested."""

import pandas as pd
import pytest

from lib.figures import claims_matrix, grid
from lib.figures.matrix import MARKS

MODELS = ["m", "n"]
TABLE = pd.DataFrame(
    [
        ("It a", "m", "contradicted", False),
        ("It a", "n", "small", True),
        ("It b", "m", "in part", False),
        ("It b", "n", "supported", False),
        ("It c", "n", "undecided", False),
        ("It d", "m", "too few", False),
    ],
    columns=["claim", "model", "mark", "lost"],
)


@pytest.fixture
def matrix():
    _, (ax,) = grid(height=2)
    return ax, claims_matrix(ax, TABLE, MODELS)


def test_each_way_to_stand_has_a_mark_of_its_own(matrix):
    _, marks = matrix
    places = {line.get_label(): line.get_xydata().tolist() for line in marks}
    assert places == {
        "holds": [[1, 1]],
        "holds in part": [[0, 1]],
        "within the margin: small": [[1, 0]],
        "undecided": [[1, 2]],
        "does not hold": [[0, 0]],
        "too few problems to tell": [[0, 3]],
    }
    assert len({(line.get_marker(), line.get_fillstyle()) for line in marks}) == 6


def test_no_mark_shows_a_direction(matrix):
    assert not {marker for _, marker, *_ in MARKS.values()} & set("<>^v1234")


def test_what_does_not_stand_when_corrected_has_a_dagger_beside_its_mark(matrix):
    ax, _ = matrix
    (dagger,) = ax.texts
    assert dagger.get_text() == "†"
    assert dagger.get_position() == (pytest.approx(1.12), 0)


def test_claims_are_rows_from_the_top_and_models_columns(matrix):
    ax, _ = matrix
    assert [label.get_text() for label in ax.get_xticklabels()] == MODELS
    sentences = [label.get_text() for label in ax.get_yticklabels()]
    assert sentences == ["It a", "It b", "It c", "It d"]
    assert ax.yaxis_inverted()


def test_a_legend_names_only_what_is_there():
    _, (ax,) = grid()
    (mark,) = claims_matrix(ax, TABLE[:1], MODELS)
    assert mark.get_label() == "does not hold"
    assert not ax.texts
