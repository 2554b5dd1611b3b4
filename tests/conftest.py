"""Fixtures and settings of all tests: a fixed seed, figures without a window, the demo
model (loaded once), a checkpoint of a megabyte, and `refused`, which checks errors.
"""

import gc
import shutil

import hypothesis
import matplotlib
import pytest
import torch
from transformers import AutoTokenizer, LlamaConfig, LlamaForCausalLM

from lib.errors import InputError
from lib.models.conversion import converted
from lib.models.loading import load
from lib.models.sources import resolve

matplotlib.use("Agg")
# How long an example takes depends on what else the machine does.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")
LONGEST = (
    "test_notebooks",
    "test_settings_reach_numbers",
    "test_command_line",
    "test_interruptions",
)


def pytest_collection_modifyitems(items):
    """Run the slowest files first, so that parallel workers end at about the same
    time.
    """
    order = {name: rank for rank, name in enumerate(LONGEST)}
    items.sort(key=lambda item: order.get(item.path.stem, len(LONGEST)))


def pytest_collection_finish():
    """Exclude everything that is imported by now from garbage collection, which the
    tests trigger hundreds of times when they drop a model.
    """
    gc.freeze()


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(0)


ON_A_GPU = [
    pytest.mark.cuda,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="no CUDA"),
]


@pytest.fixture(
    params=[
        pytest.param("cpu", marks=pytest.mark.cpu_too),
        pytest.param("cuda", marks=ON_A_GPU),
    ]
)
def device(request):
    """The device that a test runs on: a GPU and, so that its code is also tried on
    machines without a GPU, the CPU.
    """
    return request.param


@pytest.fixture(scope="session")
def demo():
    """The demo model with all layers; its conversion takes half a minute once per
    machine.
    """
    return load("demo", device="cpu")


@pytest.fixture(scope="session")
def tiny_llama(tmp_path_factory):
    """A folder with a random Llama of three layers and the demo model's tokenizer. All
    tests share it, so none may change it: see tiny_checkpoint.
    """
    tokenizer = AutoTokenizer.from_pretrained(converted(resolve("demo"), "float32"))
    config = LlamaConfig(
        hidden_size=8,
        intermediate_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        num_key_value_heads=1,
        max_position_embeddings=512,
        vocab_size=len(tokenizer),
        bos_token_id=tokenizer.bos_token_id,
        eos_token_id=tokenizer.eos_token_id,
    )
    torch.manual_seed(0)
    folder = tmp_path_factory.mktemp("checkpoint") / "tiny-llama"
    LlamaForCausalLM(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture
def tiny_checkpoint(tmp_path, tiny_llama):
    """A copy of tiny_llama that a test may change."""
    return shutil.copytree(tiny_llama, tmp_path / tiny_llama.name)


@pytest.fixture
def refused():
    """A function that calls another one, which must raise an InputError of one line,
    and returns its message.
    """

    def call(function, *args, **options):
        with pytest.raises(InputError) as caught:
            function(*args, **options)
        message = str(caught.value)
        assert "\n" not in message
        return message

    return call
