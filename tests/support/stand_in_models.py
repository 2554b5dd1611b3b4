"""Tiny random checkpoints under the real ids that the laptop profile names, for `hub_server` to serve.

By hand:   python tests/support/stand_in_models.py FOLDER [MATH500.jsonl]
           python tests/support/hub_server.py FOLDER --port 8123
           HF_ENDPOINT=http://127.0.0.1:8123 python -m lib reproduce --profile laptop

Families, head counts, shards and number format are those of the real models; widths and weights are not.
All speak through the demo model's tokenizer.
"""

import argparse
import shutil
from pathlib import Path

import torch
from transformers import (
    AutoTokenizer,
    Gemma3Config,
    Gemma3ForConditionalGeneration,
    LlamaConfig,
    LlamaForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
)

from lib.models.conversion import converted
from lib.models.names import resolve
from lib.prompts.problems import MATH500

LAYERS = 8
DECODER = {
    "hidden_size": 32,
    "intermediate_size": 2048,
    "num_hidden_layers": LAYERS,
    "head_dim": 8,
    "max_position_embeddings": 4096,
    "initializer_range": 0.3,  # wide enough for attention that is far from uniform
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 500000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 512,
}
GEMMA_ROPE = {
    "full_attention": {"rope_type": "linear", "rope_theta": 1000000.0, "factor": 8.0},
    "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
}
VISION = {
    "hidden_size": 16,
    "intermediate_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "image_size": 16,
    "patch_size": 8,
}


def write_models(root: Path) -> None:
    """Write the four checkpoints below `root`, 8 to 14 MB each."""
    tokenizer = AutoTokenizer.from_pretrained(_demo())
    tokens = {"bos_token_id": tokenizer.bos_token_id, "eos_token_id": tokenizer.eos_token_id}
    shared = DECODER | tokens | {"vocab_size": len(tokenizer) + 8}
    qwen = Qwen2Config(**shared, num_attention_heads=28, num_key_value_heads=4, tie_word_embeddings=False)
    small_qwen = Qwen2Config(**shared, num_attention_heads=14, num_key_value_heads=2, tie_word_embeddings=True)
    llama = LlamaConfig(
        **shared,
        num_attention_heads=32,
        num_key_value_heads=8,
        tie_word_embeddings=False,
        rope_parameters=LLAMA3_ROPE,
    )
    text = {"num_attention_heads": 8, "num_key_value_heads": 4, "sliding_window": 64, "rope_parameters": GEMMA_ROPE}
    gemma = Gemma3Config(
        text_config=shared | text | {"query_pre_attn_scalar": DECODER["head_dim"]},
        vision_config=VISION,
        mm_tokens_per_image=4,
        image_token_index=len(tokenizer),
        boi_token_index=len(tokenizer) + 1,
        eoi_token_index=len(tokenizer) + 2,
        **tokens,
    )
    _save(Qwen2ForCausalLM(qwen), root / "Qwen/Qwen2.5-Math-7B", max_shard_size="3MB")
    _save(Qwen2ForCausalLM(small_qwen), root / "Qwen/Qwen2.5-0.5B-Instruct")
    _save(LlamaForCausalLM(llama), root / "meta-llama/Llama-3.1-8B-Instruct", max_shard_size="4MB")
    _save(Gemma3ForConditionalGeneration(gemma), root / "google/gemma-3-4b-it", max_shard_size="5MB")


def write_math500(root: Path, source: Path) -> None:
    """Put the JSONL file `source` where the hub keeps MATH-500's one split."""
    folder = root / "datasets" / MATH500
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "README.md").write_text("---\npretty_name: MATH-500\n---\n")
    shutil.copyfile(source, folder / "test.jsonl")


def _demo() -> Path:
    return converted(resolve("demo").gguf, "float32")


def _save(model, folder: Path, **options) -> None:
    model.to(torch.bfloat16).save_pretrained(folder, **options)
    for pattern in ("*token*", "*.jinja"):
        for file in _demo().glob(pattern):
            shutil.copy(file, folder)


def main() -> None:
    parser = argparse.ArgumentParser(description="Write small random models under the laptop profile's ids.")
    parser.add_argument("folder", type=Path)
    parser.add_argument("math500", type=Path, nargs="?", help="a JSONL copy of MATH-500, to be served as the dataset")
    arguments = parser.parse_args()
    torch.manual_seed(0)
    write_models(arguments.folder)
    if arguments.math500:
        write_math500(arguments.folder, arguments.math500)


if __name__ == "__main__":
    main()
