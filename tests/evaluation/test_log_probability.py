"""Which texts go through a model together, and what is kept of them; the model's
numbers stand in `test_likelihood`.
"""

from types import SimpleNamespace

import pytest

from lib.errors import InputError
from lib.evaluation import log_probability
from lib.evaluation.log_probability import require_room, score_rows


def text(problem="p", length=4, condition="none", target="solution"):
    """Return what is looked at to choose which texts go together."""
    return SimpleNamespace(
        problem=SimpleNamespace(id=problem),
        condition=condition,
        target=target,
        ids=[0] * length,
    )


@pytest.fixture
def together(monkeypatch):
    """What goes through a model together: the keys of each batch."""
    monkeypatch.setattr(
        log_probability, "_row", lambda loaded, key, text, nats: (key, nats)
    )

    def batches(texts):
        seen = []

        def log_likelihoods(loaded, batch):
            seen.append("".join(batch))
            return [float(ord(key)) for key in batch]

        monkeypatch.setattr(log_probability, "log_likelihoods", log_likelihoods)
        rows = list(score_rows(SimpleNamespace(), texts))
        assert sorted(rows) == [(key, float(ord(key))) for key in sorted(texts)]
        return " ".join(seen)

    return batches


def test_problems_go_through_all_conditions_before_the_next_ones_do(
    together, monkeypatch
):
    monkeypatch.setattr(log_probability, "PROBLEMS_OF_A_CHUNK", 2)
    texts = {
        "a": text("p1"),
        "b": text("p1", condition="gap"),
        "c": text("p1", target="answer"),
        "d": text("p2"),
        "e": text("p2", condition="gap"),
        "f": text("p3"),
        "g": text("p4"),
        "h": text("p5"),
    }
    assert together(texts) == "ad be c fg h"


ROOM = SimpleNamespace(name="tiny", context=512)


def test_a_text_may_fill_all_of_the_context_and_no_more():
    require_room(ROOM, text(length=512))
    message = "problem p: prompt and solution are 513 tokens, tiny has room for 512:"
    with pytest.raises(InputError, match=message):
        require_room(ROOM, text(length=513))
