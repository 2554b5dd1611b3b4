"""The tokens of one problem that are compared between conditions."""

import pandas as pd
import pytest

from lib.prompts import build_prompt
from reproduction.measurement.single_prompt import comparable_parts

PARTS = ("instruction", "problem", "merged")


@pytest.mark.parametrize("format, merged", [("plain", []), ("authors", ["}."])])
def test_the_compared_tokens_are_the_same_under_every_condition(demo, format, merged):
    conditions = ("none", "mless", "mful", "random")
    problem = "A bag holds $3$ red balls. How many?"
    prompts = [
        build_prompt(demo.tokenizer, problem, name, format=format)
        for name in conditions
    ]
    by_part = []
    for prompt, parts in zip(prompts, comparable_parts(prompts), strict=True):
        tokens = pd.Series(prompt.texts, index=parts)
        by_part.append({name: tokens[tokens.index == name].tolist() for name in PARTS})
    without, *others = by_part
    assert without.pop("merged") == merged
    for tokens in others:
        tokens.pop("merged")
        assert tokens == without
