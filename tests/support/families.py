"""Tiny random models of every family that received attention supports."""

import functools

from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    PreTrainedTokenizerFast,
)

from lib.models.loading import load, load_without_weights, with_weights

SMALL = {
    "vocab_size": 97,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 3,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 8,
    "max_position_embeddings": 512,
    "pad_token_id": 0,
    "bos_token_id": 1,
    "eos_token_id": 2,
}
GEMMA = {
    **SMALL,
    "sliding_window": 7,
    "layer_types": ["sliding_attention", "full_attention", "sliding_attention"],
}
# Small enough for a test, real enough to be built: the picture tower is never run.
PICTURES = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "image_size": 28,
}
MULTI_HEAD_LATENT = {
    "num_key_value_heads": 4,
    "head_dim": 4,
    "v_head_dim": 6,
    "q_lora_rank": 8,
    "kv_lora_rank": 8,
    "qk_rope_head_dim": 4,
    "qk_nope_head_dim": 8,
}
# Types of transformers, without windows and with them.
PLAIN = (
    "apertus arcee bitnet biogpt cohere ernie4_5 flex_olmo gemma glm glm4 gpt_neox"
    " granite helium hunyuan_v1_dense llama nanochat nemotron olmo olmo2 olmoe opt"
    " persimmon phi qwen2 qwen2_moe qwen3_moe seed_oss stablelm"
)
WINDOWED = (
    "cohere2 cwm exaone4 gemma2 gemma3_text gpt_oss ministral mistral mixtral olmo3"
    " phi3 qwen3 smollm3 starcoder2 vaultgemma"
)


def gemma3_multimodal():
    config = Gemma3Config(
        text_config=GEMMA, vision_config=PICTURES, mm_tokens_per_image=4
    )
    return Gemma3ForConditionalGeneration._from_config(config)


def of_type(model_type, **others):
    """Make a random model of one of transformers' types, with a window of seven where
    the type knows windows.
    """
    shape = SMALL.copy()
    if hasattr(AutoConfig.for_model(model_type), "sliding_window"):
        shape["sliding_window"] = 7
    config = AutoConfig.for_model(model_type, **{**shape, **others})
    return AutoModelForCausalLM.from_config(config)


FAMILIES = {
    name: functools.partial(of_type, name) for name in f"{PLAIN} {WINDOWED}".split()
}
FAMILIES["qwen2-window"] = functools.partial(
    of_type, "qwen2", use_sliding_window=True, sliding_window=5, max_window_layers=1
)
FAMILIES["gemma4_text"] = functools.partial(
    of_type, "gemma4_text", vocab_size_per_layer_input=97
)
FAMILIES["gemma3-local-and-global"] = functools.partial(of_type, "gemma3_text", **GEMMA)
FAMILIES["gemma3-multimodal"] = gemma3_multimodal
FAMILIES["deepseek_v3"] = functools.partial(of_type, "deepseek_v3", **MULTI_HEAD_LATENT)
# Families that differ in what the attention code does: grouped heads alone, learned
# positions, capped scores, windows in some layers, shared keys and values, sinks,
# heads of two widths, and a text model inside another.
KINDS = (
    *("llama", "opt", "gemma2", "gemma3-local-and-global"),
    *("gemma4_text", "gpt_oss", "deepseek_v3", "gemma3-multimodal"),
)


def save(model, folder, **options):
    """Save a model and a tokenizer with the vocabulary size of the tiny models."""
    words = {f"w{number}": number for number in range(SMALL["vocab_size"])}
    tokenizer = Tokenizer(WordLevel(words, unk_token="w0"))
    tokenizer.pre_tokenizer = WhitespaceSplit()
    PreTrainedTokenizerFast(tokenizer_object=tokenizer).save_pretrained(folder)
    model.save_pretrained(folder, **options)


def on_cpu(spec, **options):
    """Load a model by name or folder on the CPU."""
    return load(str(spec), device="cpu", **options)


def offloaded(folder):
    """Load a folder as likelihoods do: weights that memory lacks stay on disk."""
    return with_weights(load_without_weights(str(folder), "cpu"), offload=True)


def spread(model, width=0.3):
    """Draw the weights again with standard deviation `width`: with the default of 0.02
    attention is too uniform to tell heads apart.
    """
    for parameter in model.parameters():
        parameter.data.normal_(0, width)
    return model.eval()
