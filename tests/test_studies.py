"""What the studies of the findings count, on scores that can be checked by eye."""

import pandas as pd
import pytest

from studies.plain import compared


def scores_of(model, **nats):
    """Rows of scores: a list of log p per condition, one for each problem."""
    rows = []
    for condition, values in nats.items():
        for number, value in enumerate(values):
            row = {"model": model, "target": "solution", "condition": condition}
            rows.append(row | {"problem_id": f"p{number}", "nats": value})
    return pd.DataFrame(rows)


def test_plain_prompts_stand_beside_chat_on_the_same_problems():
    plain = scores_of("tiny", none=[-10, -20, -30], mless=[-9, -18, -27])
    # A fourth problem was scored in chat alone.
    chat = scores_of("tiny", none=[-5, -5, -5, -5], mless=[-5, -6, -7, -99])
    table = compared(plain, chat)
    slashes = table.iloc[0]
    assert slashes.more == "mless"
    assert slashes.less == "none"

    assert slashes.n == 3
    assert slashes.effect == 2
    assert slashes["median"] == 2
    assert slashes.low < 2
    assert slashes.high > 2

    assert slashes.n_in_chat == 3
    assert slashes.effect_in_chat == -1


def test_what_was_not_scored_has_no_number():
    plain = scores_of("tiny", none=[-10, -20], mless=[-9, -18])
    table = compared(plain, plain)
    sentence = table[table.more == "random"]
    assert len(sentence) == 1
    assert sentence.effect.isna().all()
    assert sentence.n.isna().all()
    assert sentence.effect_in_chat.isna().all()


def test_a_model_that_has_no_chat_scores_has_plain_ones_alone():
    plain = scores_of("base", none=[-10, -20], mless=[-11, -21])
    chat = scores_of("other", none=[-1, -1], mless=[-2, -2])
    table = compared(plain, chat)
    assert table.effect[0] == pytest.approx(-1)
    assert "effect_in_chat" not in table
