"""The size of a model is known before it is fetched, and so are reasons why it cannot
be fetched.
"""

import math
import socket
import time

import pytest
from hub_server import point_at

from lib.models.availability import HUB_SECONDS, config_folder, source_with_config
from lib.models.hub import first_layers, snapshot
from lib.models.name_resolution import known_models, resolve
from lib.plan.model_sizes import files_of, shape_of

OPEN = "org/open"
# Published numbers of parameters: half the bytes that the index files give.
PUBLISHED = {
    "Qwen2.5-Math-1.5B": 1_543_714_304,
    "Qwen2.5-Math-7B": 7_615_616_512,
    "Llama-3.1-8B-Instruct": 8_030_261_248,
    "Qwen2.5-0.5B-Instruct": 494_032_768,
}


@pytest.mark.parametrize("spec, parameters", PUBLISHED.items())
def test_known_models_have_the_published_number_of_parameters(spec, parameters):
    shape = shape_of(resolve(spec))
    assert shape.total == pytest.approx(parameters, rel=1e-4)
    assert shape_of(resolve(f"{spec}@main")) == shape


def test_every_known_model_has_a_config():
    assert all("model_type" in resolve(name).config for name in known_models())


def test_the_size_of_a_hub_model_is_known_without_its_weights(hub):
    stored = (hub.root / OPEN / "model.safetensors").stat().st_size
    # The same weights in other formats are not counted.
    (hub.root / OPEN / "original").mkdir()
    for name in ("consolidated.safetensors", "original/model.safetensors"):
        (hub.root / OPEN / name).write_bytes(b"x" * 1000)
    assert files_of(source_with_config(OPEN)) == (stored, 0)
    assert hub.sent_weights == 0
    # The model's config is fetched, because data/models.yaml does not have it.
    assert shape_of(source_with_config(OPEN)).total == pytest.approx(
        stored / 4, rel=0.1
    )


def test_a_shard_that_is_cached_is_not_counted_for_download(hub):
    folder = hub.root / OPEN
    first = (folder / "model.safetensors").rename(folder / "model-1.safetensors")
    (folder / "model-2.safetensors").write_bytes(b"x" * 1000)
    cache = config_folder(source_with_config(OPEN))
    (cache / first.name).write_bytes(first.read_bytes())
    # A cached copy in another format replaces no shard.
    (cache / "consolidated.safetensors").write_bytes(b"x" * 5000)
    assert files_of(source_with_config(OPEN)) == (1000, first.stat().st_size)


def test_fetched_files_are_found_in_the_cache_without_the_hub(hub):
    first_layers(OPEN, 2)
    sent = hub.sent
    missing, here = files_of(source_with_config(OPEN), 2)
    assert missing == 0 < here
    assert hub.sent == sent
    assert (
        files_of(source_with_config(OPEN))[0]
        > 0
        < files_of(source_with_config(OPEN), 3)[0]
    )

    snapshot(OPEN)
    sent = hub.sent
    hub.gated[OPEN] = 403
    stored = (hub.root / OPEN / "model.safetensors").stat().st_size
    for layers in (math.inf, 3):
        assert files_of(source_with_config(OPEN), layers) == (0, stored)
    assert hub.sent == sent


def test_a_local_gguf_file_needs_no_download(tmp_path):
    file = tmp_path / "own.gguf"
    file.write_bytes(b"GGUF" + b"x" * 596)
    assert files_of(source_with_config(str(file))) == (0, 600)


def test_pickles_are_refused_on_the_hub_and_in_a_folder(hub, refused):
    folder = hub.root / OPEN
    files_of(source_with_config(str(folder)))
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    for spec in (OPEN, str(folder)):
        assert "safetensors" in refused(files_of, source_with_config(spec))


def test_a_hub_that_does_not_answer_is_given_up_within_seconds(
    hub, monkeypatch, refused
):
    source_with_config(OPEN)  # the config is cached, the weights are not
    with socket.create_server(("127.0.0.1", 0)) as silent:
        point_at(f"http://127.0.0.1:{silent.getsockname()[1]}", monkeypatch)
        begun = time.monotonic()
        message = refused(lambda: files_of(source_with_config(OPEN)))
    assert message.startswith(f"{OPEN}: cannot be downloaded, http")
    assert time.monotonic() < begun + 3 * HUB_SECONDS
