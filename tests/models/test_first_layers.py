"""Only the first layers are read from a hub and from disk; what goes wrong is said in
one line.
"""

import re
import time

import pytest
import torch
from eager import outputs_of
from families import gemma3_multimodal, of_type
from hub_server import point_at
from safetensors.torch import load_file
from transformers import Gemma3ForConditionalGeneration, Qwen2ForCausalLM

from lib import paths
from lib.errors import InputError
from lib.models import first_layers as hub
from lib.models import names
from lib.models.loading import load_weights
from lib.models.names import explain_hub_error

REPO = "Qwen/Qwen2.5-Math-7B"
IDS = torch.tensor([3, 14, 15, 9, 2, 6, 5])


def first_three(repo):
    return hub.first_layers(repo, 3)


def state_after(model, layers):
    """Return what decoder layer `layers` puts out, before any final norm."""
    return outputs_of(model, IDS, "")[layers, ""]


@pytest.fixture(scope="module")
def needed(models):
    """How many bytes embedding, first three layers and final norm have in the shards."""
    tensors = [
        item
        for path in (models / REPO).glob("*.safetensors")
        for item in load_file(path).items()
    ]
    return sum(
        tensor.nbytes
        for name, tensor in tensors
        if not re.search(r"layers\.[3-7]\.|lm_head", name)
    )


@pytest.fixture(scope="module")
def is_exact(models):
    """Tell whether a folder's first three layers compute what the whole model under
    REPO does.
    """
    whole = state_after(Qwen2ForCausalLM.from_pretrained(models / REPO), 3)
    return lambda folder: torch.equal(
        state_after(load_weights(folder, 3, "float32"), 3), whole
    )


def test_from_the_hub_come_only_the_needed_bytes_and_they_give_the_same(
    models, server, needed, is_exact
):
    assert is_exact(models / REPO)
    folder = first_three(REPO)
    assert is_exact(folder) and folder.parts[-4:] == (
        *REPO.split("/"),
        server.commit(REPO),
        "layers-3",
    )
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    assert needed <= server.sent <= 1.15 * needed and server.ranged <= 10
    on_disk = sum(512 * path.stat().st_blocks for path in folder.iterdir())
    assert (
        on_disk
        <= 1.1 * needed
        < 0.6 * sum(path.stat().st_size for path in folder.iterdir())
    )
    server.sent = server.sent_weights = 0
    assert first_three(REPO) == folder and server.sent < 10_000


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_fetch_that_was_given_up_goes_on_from_the_bytes_on_disk(
    server, monkeypatch, needed, share, is_exact
):
    monkeypatch.setattr(hub, "TRIES", 1)
    server.break_after = int(share * needed)
    with pytest.raises(InputError, match="what was fetched stays"):
        first_three(REPO)
    assert not list(paths.CACHE.rglob("layers-3")) and server.sent_weights >= int(
        share * needed
    )
    assert is_exact(first_three(REPO)) and server.sent_weights <= 1.05 * needed


@pytest.mark.parametrize("ignore_range, most", [(False, 1.05), (True, 9)])
def test_a_break_costs_no_byte_twice_and_without_ranges_come_whole_shards(
    server, needed, is_exact, ignore_range, most
):
    server.ignore_range, server.break_after = (
        ignore_range,
        None if ignore_range else needed // 2,
    )
    assert (
        is_exact(first_three(REPO))
        and server.break_after is None
        and server.sent_weights <= most * needed
    )


def test_a_snapshot_holds_neither_pickles_nor_code_and_spares_the_network_later(
    server, is_exact
):
    folder = hub.snapshot(REPO)
    assert folder.name == server.commit(REPO)
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    server.sent = server.sent_weights = 0
    assert is_exact(first_three(REPO)) and server.sent_weights == 0


@pytest.mark.parametrize("fetch", [hub.snapshot, first_three, names.card])
def test_a_gated_repository_says_how_to_get_access_before_any_weights_are_sent(
    server, fetch, refused
):
    for server.gated[REPO] in (401, 403):
        said = refused(fetch, REPO)
        assert re.search(
            f"{REPO} is gated: request access on {server.url}/{REPO}.*hf auth"
            " login.*HF_TOKEN",
            said,
        )
    assert not server.sent_weights


ABSENT = [
    (REPO, 3, "v9", "has no revision 'v9'"),
    (REPO, 3, "f" * 40, f"{REPO} has no revision 'f+': give a branch"),
]
ABSENT += [
    ("Qwen/Missing", 3, None, "Qwen/Missing was not found"),
    ("not an id", 3, None, "is not a hub id"),
]
ABSENT += [
    (REPO, layers, None, f"has 8 layers; asked for the first {layers}")
    for layers in (0, 9)
]


@pytest.mark.parametrize("repo, layers, revision, message", ABSENT)
def test_what_does_not_exist_is_named(server, repo, layers, revision, message, refused):
    server.lost.add("f" * 40)
    assert re.search(message, refused(hub.first_layers, repo, layers, revision))


def test_no_network_and_a_full_disk_are_said_at_once_and_what_is_cached_needs_none(
    server, monkeypatch, refused
):
    folder = first_three(REPO)
    point_at("http://127.0.0.1:9", monkeypatch)
    started = time.monotonic()
    for fetch in (names.card, hub.snapshot, first_three):
        assert re.search(
            r"127\.0\.0\.1:9 does not answer.*local folder", refused(fetch, "org/name")
        )
    assert time.monotonic() - started < 5
    assert first_three(REPO) == folder
    monkeypatch.setattr(paths, "CACHE", "/some/cache")
    said = explain_hub_error(REPO, None, OSError(28, "No space left on device"))
    assert re.match("disk full: free space in /some/cache and .*hub", said)
    assert explain_hub_error(REPO, None, TypeError("a bug")) is None


def test_pickled_weights_are_refused(models, server, refused):
    of_type("llama").config.save_pretrained(models / "old/pickled")
    (models / "old/pickled/pytorch_model.bin").write_bytes(b"pickle")
    for fetch in (hub.snapshot, first_three):
        assert refused(fetch, "old/pickled").startswith(
            "old/pickled: only pickle weights (pytorch_model.bin)"
        )


@pytest.mark.parametrize(
    "content", [None, 0, -100], ids=["missing", "no safetensors", "cut short"]
)
def test_damaged_checkpoints_are_named(models, server, content, refused):
    repo = f"broken/model{content}"
    of_type("llama").save_pretrained(models / repo, max_shard_size="30KB")
    shard = min((models / repo).glob("*.safetensors"))
    (
        shard.unlink()
        if content is None
        else shard.write_bytes(shard.read_bytes()[:content] or b"<html>" * 300)
    )
    reads = (
        lambda: load_weights(models / repo, 3, "float32"),
        lambda: load_weights(first_three(repo), 3, "float32"),
    )
    for read in (*reads, lambda: load_weights(hub.snapshot(repo), None, "float32")):
        assert "00001-of-" in refused(read)


def test_only_the_text_model_is_taken_from_gemma3_multimodal(models, server):
    repo = "google/gemma-3-4b-it"
    gemma3_multimodal().bfloat16().save_pretrained(models / repo)
    # Read back, because `bfloat16` has rounded the rotary frequencies as well, which a
    # loaded model keeps exact.
    whole = Gemma3ForConditionalGeneration.from_pretrained(models / repo).eval()
    for folder in (hub.first_layers(repo, 2), models / repo):
        part = load_weights(folder, 2, "bfloat16")
        assert type(part).__name__ == "Gemma3TextModel" and part.dtype == torch.bfloat16
        assert torch.equal(state_after(part, 2), state_after(whole, 2))
    assert not any(
        names.needed(f"model.{part}.layers.0.mlp.fc1.weight", 3)
        for part in ("vision_tower", "lm_head")
    )
