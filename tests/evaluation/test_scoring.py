"""Which texts go through a model together, and what is kept of them; the model's
numbers stand in `test_likelihood`.
"""

import contextlib
from types import SimpleNamespace

import pytest

from lib.errors import InputError
from lib.evaluation import likelihood, scoring
from lib.evaluation.likelihood import score_models
from lib.evaluation.scoring import require_room, score_rows
from lib.profiles import Likelihood


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
    monkeypatch.setattr(scoring, "SCORED_TOKENS", 20)
    monkeypatch.setattr(scoring, "_row", lambda loaded, key, text, nats: (key, nats))

    def batches(texts):
        seen = []

        def log_likelihoods(loaded, batch):
            seen.append("".join(batch))
            return [float(ord(key)) for key in batch]

        monkeypatch.setattr(scoring, "log_likelihoods", log_likelihoods)
        rows = list(score_rows(SimpleNamespace(), texts))
        assert sorted(rows) == [(key, float(ord(key))) for key in sorted(texts)]
        return " ".join(seen)

    return batches


def test_problems_go_through_all_conditions_before_the_next_ones_do(
    together, monkeypatch
):
    monkeypatch.setattr(scoring, "PROBLEMS_OF_A_CHUNK", 2)
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


# Four groups; a batch has twenty tokens at most, with padding to its longest.
LENGTHS = {"a": 4, "b": 10, "c": 10, "d": 3}
UNEQUAL = {key: text(length=length) for key, length in LENGTHS.items()}
for condition, keys in {"gap": "ef", "dilution": "gh", "bare": "ij"}.items():
    UNEQUAL |= {key: text(length=2, condition=condition) for key in keys}


def test_texts_of_like_length_go_together_the_longest_first(together):
    assert together(UNEQUAL) == "bc ad ef gh ij"


def test_a_text_of_more_tokens_than_a_batch_may_have_goes_alone(together):
    texts = {"a": text(length=50), "b": text(length=50)}
    assert together(texts) == "a b"


ROOM = SimpleNamespace(name="tiny", context=512)


def test_a_text_may_fill_all_of_the_context_and_no_more():
    require_room(ROOM, text(length=512))
    message = "problem p: prompt and solution are 513 tokens, tiny has room for 512:"
    with pytest.raises(InputError, match=message):
        require_room(ROOM, text(length=513))


MODELS = ["demo", "org/two"]


@pytest.fixture
def scored(tmp_path, monkeypatch):
    """Score texts that are wanted of each of two models; return their keys, and what
    models were loaded and bars were shown.
    """
    seen = []

    def load(spec, **options):
        seen.append((spec, options))
        return SimpleNamespace(name=spec)

    def bar(name, total, unit, done):
        seen.append((name, total, done))
        return contextlib.nullcontext(SimpleNamespace(update=lambda: None))

    def rows(loaded, texts):
        for key in texts:
            yield {"key": key}

    monkeypatch.setattr(likelihood, "load", load)
    monkeypatch.setattr(likelihood.progress, "bar", bar)
    monkeypatch.setattr(likelihood, "score_rows", rows)

    def scored(wanted, **settings):
        seen.clear()
        asked = Likelihood(models=MODELS, conditions=["none"], **settings)
        wanted = dict(zip(MODELS, wanted, strict=True))
        kept = score_models(
            asked, tmp_path, {}, lambda loaded: dict.fromkeys(wanted[loaded.name])
        )
        return [row["key"] for row in kept], list(seen)

    return scored


def test_every_model_is_scored_and_only_what_is_not_kept_yet(scored):
    keys, _ = scored([["a1"], ["b1"]])
    assert keys == ["a1", "b1"]
    keys, seen = scored([["a2", "a1", "a3"], ["b1"]])
    assert keys == ["a2", "a1", "a3", "b1"]
    bars = [each for each in seen if len(each) == 3]
    assert bars == [("demo", 3, 1), ("org/two", 1, 1)]


def test_a_model_is_loaded_in_its_dtype_and_from_disk_where_it_is_too_large(scored):
    _, seen = scored([["a"], ["b"]], dtype="bfloat16")
    options = {"dtype": "bfloat16", "offload": True}
    assert seen[0] == ("demo", options)
    assert seen[2] == ("org/two", options)
