"""Only the first layers are read from a hub and from disk; errors take one line."""

import re
import time

import pytest
import torch
from eager import outputs_of
from families import gemma3_multimodal, on_cpu, save
from hub_server import point_at
from safetensors.torch import load_file
from transformers import Gemma3ForConditionalGeneration, Qwen2ForCausalLM

from lib import paths
from lib.models import hub
from lib.models.hub import first_layers, hub_errors, snapshot
from lib.models.sources import source_with_config

REPO = "Qwen/Qwen2.5-Math-7B"
GEMMA_REPO = "google/gemma-3-4b-it"
IDS = torch.tensor([3, 14, 15, 9, 2, 6, 5])
# An upper bound of the bytes that reading the headers of the four shards takes.
HEADERS = 4 * 101_000
PIECE = 4096
LARGEST = 4 * 600 * 128  # bytes of a tensor: the embedding


def first_three(repo):
    return first_layers(repo, 3)


def state_after(model, layers):
    """Return the output of decoder layer `layers`, before any final norm."""
    return outputs_of(model, IDS, "")[layers, ""]


@pytest.fixture(scope="module")
def needed(models):
    """The number of bytes of the embedding, first three layers and final norm."""
    total = 0
    for path in (models / REPO).glob("*.safetensors"):
        for name, tensor in load_file(path).items():
            if not re.search(r"layers\.[3-7]\.|lm_head", name):
                total += tensor.nbytes
    return total


@pytest.fixture(scope="module")
def is_exact(models):
    """A function that returns whether a folder's first three layers compute the same as
    those of the complete model under REPO.
    """
    expected = state_after(Qwen2ForCausalLM.from_pretrained(models / REPO), 3)

    def is_exact(folder):
        cut = on_cpu(folder, layers=3)
        return torch.equal(state_after(cut.model, 3), expected)

    return is_exact


def test_only_the_bytes_of_the_first_layers_are_fetched_and_they_compute_the_same(
    server, needed, is_exact
):
    folder = first_three(REPO)
    assert is_exact(folder)
    expected = (*REPO.split("/"), "layers-3", server.commit(REPO))
    assert folder.parts[-4:] == expected
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    assert needed <= server.sent_weights <= needed + HEADERS
    files = [path.read_bytes() for path in folder.glob("*.safetensors")]
    assert sum(map(len, files)) <= 1.02 * needed
    # The size of each header is a multiple of 8, so that tensors are aligned.
    assert not any(int.from_bytes(file[:8], "little") % 8 for file in files)

    # If the files are cached, only the commit is requested.
    server.sent = 0
    assert first_three(REPO) == folder
    assert server.sent < 10_000


def test_another_number_of_layers_fetches_only_the_tensors_that_no_other_has(
    server, models, is_exact
):
    first_layers(REPO, 2)
    server.sent_weights = 0
    assert is_exact(first_three(REPO))
    third = 0
    for path in (models / REPO).glob("*.safetensors"):
        for name, tensor in load_file(path).items():
            third += tensor.nbytes * ("layers.2." in name)
    assert third <= server.sent_weights <= third + HEADERS
    server.sent_weights = 0
    first_layers(REPO, 1)
    assert server.sent_weights <= HEADERS


def test_a_killed_download_continues_after_the_tensors_on_disk(
    server, monkeypatch, needed, is_exact
):
    received = hub._bytes

    def killed(*arguments):
        if server.sent_weights > 0.6 * needed:
            raise KeyboardInterrupt
        return received(*arguments)

    monkeypatch.setattr(hub, "PIECE", PIECE)
    with monkeypatch.context() as patch:
        patch.setattr(hub, "_bytes", killed)
        with pytest.raises(KeyboardInterrupt):
            first_three(REPO)
    assert not list(paths.CACHE.rglob(server.commit(REPO)))

    assert is_exact(first_three(REPO))
    assert server.sent_weights <= needed + 2 * HEADERS + LARGEST


def test_a_broken_connection_costs_at_most_one_piece(
    server, monkeypatch, needed, is_exact
):
    monkeypatch.setattr(hub, "PIECE", PIECE)
    server.break_after = needed // 2
    assert is_exact(first_three(REPO))
    assert server.break_after is None
    assert server.sent_weights <= needed + HEADERS + PIECE


def test_a_server_without_range_requests_is_refused_with_a_remedy(
    server, refused, is_exact
):
    server.ignore_range = True
    message = refused(first_three, REPO)
    assert "its server sends only complete files" in message
    assert "hf download" in message
    snapshot(REPO)
    assert is_exact(first_three(REPO))


def test_a_snapshot_has_neither_pickles_nor_code_and_is_reused_without_the_network(
    server, is_exact
):
    folder = snapshot(REPO)
    assert folder.name == server.commit(REPO)
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    server.sent_weights = 0
    assert first_three(REPO) == folder
    assert is_exact(folder)
    assert server.sent_weights == 0


@pytest.mark.parametrize("fetch", [snapshot, first_three, source_with_config])
def test_a_gated_repository_is_named_before_any_weights_are_sent(
    server, fetch, refused
):
    server.gated[REPO] = 401
    message = refused(fetch, REPO)
    assert re.match(f"{REPO}: .*gated repo for url {server.url}/{REPO}", message)
    assert not server.sent_weights


@pytest.mark.parametrize(
    "repo, layers, revision, message",
    [
        (REPO, 3, "v9", f"^{REPO}: .*Revision Not Found.*v9"),
        ("Qwen/Missing", 3, None, "^Qwen/Missing: .*Repository Not Found"),
        ("not an id", 3, None, "^not an id: Repo id must"),
        (REPO, 9, None, "has 8 layers; the first 9 were requested"),
    ],
)
def test_what_does_not_exist_is_named_before_any_weights_are_sent(
    server, repo, layers, revision, message, refused
):
    assert re.search(message, refused(first_layers, repo, layers, revision))
    assert not server.sent_weights


def test_a_missing_network_is_reported_quickly_and_cached_models_need_none(
    server, monkeypatch, refused
):
    folder = first_three(REPO)
    point_at("http://127.0.0.1:9", monkeypatch)
    started = time.monotonic()
    for fetch in (source_with_config, snapshot, first_three):
        message = refused(fetch, "org/name")
        assert re.search(r"127\.0\.0\.1:9 does not answer.*local folder", message)
    assert time.monotonic() - started < 5
    assert first_three(REPO) == folder


@pytest.mark.parametrize("endpoint", ["", "hub.example"])
def test_an_address_of_the_hub_without_https_is_named_with_its_variable(
    server, monkeypatch, refused, endpoint
):
    point_at(endpoint, monkeypatch)
    for fetch in (source_with_config, snapshot, first_three):
        message = refused(fetch, "org/name")
        assert re.search(f"HF_ENDPOINT is '{endpoint}': .* https://", message)


def test_a_full_disk_is_named_and_a_bug_is_not_reported_as_a_hub_error(
    monkeypatch, refused
):
    def fail(error):
        with hub_errors(REPO):
            raise error

    monkeypatch.setattr(paths, "CACHE", "/some/cache")
    message = refused(fail, OSError(28, "No space left on device"))
    assert re.match("disk full: free space in /some/cache and .*hub", message)
    with pytest.raises(TypeError, match="a bug"):
        fail(TypeError("a bug"))


def test_only_the_text_model_of_gemma3_multimodal_is_loaded(models, server):
    folder = models / GEMMA_REPO
    save(gemma3_multimodal().bfloat16(), folder)
    # The reference is loaded from the folder, because `bfloat16` rounds the rotary
    # frequencies, which a loaded model keeps exact.
    whole = Gemma3ForConditionalGeneration.from_pretrained(folder).eval()
    for spec in (GEMMA_REPO + "@main", str(folder)):
        decoder = on_cpu(spec, layers=2, dtype="bfloat16").model
        assert type(decoder).__name__ == "Gemma3TextModel"
        assert decoder.dtype == torch.bfloat16
        assert torch.equal(state_after(decoder, 2), state_after(whole, 2))
