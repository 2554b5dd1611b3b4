"""Only the first layers are read from a hub and from disk; what goes wrong is said in
one line.
"""

import contextlib
import re
import time
from types import SimpleNamespace
from unittest.mock import Mock

import httpx2
import pytest
import torch
from eager import outputs_of
from families import gemma3_multimodal, of_type
from hub_server import point_at
from safetensors.torch import load_file
from transformers import Gemma3ForConditionalGeneration, Qwen2ForCausalLM

from lib import paths
from lib.errors import InputError
from lib.models import first_layers as ranges
from lib.models.card import card
from lib.models.checkpoint import is_needed
from lib.models.first_layers import first_layers
from lib.models.hub import snapshot
from lib.models.load_errors import explain_hub_error
from lib.models.weights import load_weights
from lib.progress import Bar

REPO = "Qwen/Qwen2.5-Math-7B"
GEMMA_REPO = "google/gemma-3-4b-it"
IDS = torch.tensor([3, 14, 15, 9, 2, 6, 5])
UNKNOWN_COMMIT = "f" * 40


def first_three(repo):
    return first_layers(repo, 3)


def state_after(model, layers):
    """Return what decoder layer `layers` puts out, before any final norm."""
    return outputs_of(model, IDS, "")[layers, ""]


@pytest.fixture(scope="module")
def needed(models):
    """How many bytes embedding, first three layers and final norm have."""
    total = 0
    for path in (models / REPO).glob("*.safetensors"):
        for name, tensor in load_file(path).items():
            if not re.search(r"layers\.[3-7]\.|lm_head", name):
                total += tensor.nbytes
    return total


@pytest.fixture(scope="module")
def is_exact(models):
    """Tell whether a folder's first three layers compute what the whole model under
    REPO does.
    """
    whole = state_after(Qwen2ForCausalLM.from_pretrained(models / REPO), 3)

    def is_exact(folder):
        return torch.equal(state_after(load_weights(folder, 3, "float32"), 3), whole)

    return is_exact


def test_of_a_folder_the_first_layers_compute_the_same(models, is_exact):
    assert is_exact(models / REPO)


def test_from_the_hub_come_only_the_needed_bytes_and_they_give_the_same(
    server, needed, is_exact
):
    folder = first_three(REPO)
    assert is_exact(folder)
    place = (*REPO.split("/"), server.commit(REPO), "layers-3")
    assert folder.parts[-4:] == place
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    assert needed <= server.sent <= 1.15 * needed
    assert server.ranged <= 10

    statuses = [path.stat() for path in folder.iterdir()]
    on_disk = sum(512 * status.st_blocks for status in statuses)
    size = sum(status.st_size for status in statuses)
    assert on_disk <= 1.1 * needed < 0.6 * size

    # What is there already costs a look at the commit.
    server.sent = 0
    assert first_three(REPO) == folder
    assert server.sent < 10_000


@pytest.mark.parametrize("share", [0.3, 0.9])
def test_a_fetch_that_was_given_up_goes_on_from_the_bytes_on_disk(
    server, monkeypatch, needed, share, is_exact
):
    monkeypatch.setattr(ranges, "TRIES", 1)
    server.break_after = int(share * needed)
    with pytest.raises(InputError, match="what was fetched stays"):
        first_three(REPO)
    assert not list(paths.CACHE.rglob("layers-3"))
    assert server.sent_weights >= int(share * needed)

    assert is_exact(first_three(REPO))
    assert server.sent_weights <= 1.05 * needed


def test_a_break_costs_no_byte_twice(server, needed, is_exact):
    server.break_after = needed // 2
    assert is_exact(first_three(REPO))
    assert server.break_after is None
    assert server.sent_weights <= 1.05 * needed


def test_a_bar_of_a_fetch_that_goes_on_ends_at_its_total(server, monkeypatch, needed):
    monkeypatch.setattr(ranges, "TRIES", 1)
    server.break_after = needed // 2
    with pytest.raises(InputError):
        first_three(REPO)
    bars = []

    class Counting(Bar):
        def __init__(self, *args, **options):
            super().__init__(*args, **options)
            bars.append(self)

    monkeypatch.setattr(ranges, "Bar", Counting)
    first_three(REPO)
    (bar,) = bars
    assert bar.n == bar.total > needed


def test_of_a_shard_each_needed_byte_counts_once(tmp_path, monkeypatch):
    def sent(url, start, stop):
        return [b"x" * (stop - start)]

    monkeypatch.setattr(ranges, "bytes_between", sent)
    shard = ranges.RemoteShard("shard", "url", [(0, 4), (6, 8)], 12)
    path = tmp_path / "shard"
    for here in (0, 2, 7, 12):
        path.write_bytes(b"x" * here)
        bar = Mock()
        ranges._fetch_shard(shard, path, bar)
        assert sum(call.args[0] for call in bar.update.mock_calls) == 6


def test_a_server_that_never_answers_is_asked_five_times(monkeypatch):
    asked = []

    def nothing(url, start, stop):
        asked.append((start, stop))
        raise httpx2.TransportError("broken")

    monkeypatch.setattr(ranges, "WAIT", 0.0)
    monkeypatch.setattr(ranges, "_one_request", nothing)
    with pytest.raises(httpx2.TransportError):
        list(ranges.bytes_between("url", 2, 9))
    assert asked == [(2, 9)] * 5


def test_bytes_of_another_range_are_not_taken(monkeypatch):
    response = SimpleNamespace(
        status_code=206,
        headers={"Content-Range": "bytes 0-6/99"},
        raise_for_status=lambda: None,
        iter_raw=lambda: [b"x" * 7],
    )
    answer = contextlib.nullcontext(response)
    monkeypatch.setattr(ranges, "http_stream_backoff", lambda *_, **__: answer)
    with pytest.raises(ranges.RangeRefused):
        list(ranges.bytes_between("url", 2, 9))


def test_a_connection_that_breaks_after_each_byte_brings_all_of_them(monkeypatch):
    def one_byte(url, start, stop):
        yield b"x"
        raise httpx2.TransportError("broken")

    monkeypatch.setattr(ranges, "WAIT", 0.0)
    monkeypatch.setattr(ranges, "_one_request", one_byte)
    sent = ranges.bytes_between("url", 0, 9)
    assert b"".join(sent) == b"x" * 9


@pytest.mark.parametrize("ignore_range", [False, True])
def test_all_bytes_are_of_the_commit_that_is_asked_for(server, is_exact, ignore_range):
    commit = server.commit(REPO)
    server.lost.add("main")
    server.ignore_range = ignore_range
    assert is_exact(first_layers(REPO, 3, commit))


def test_a_snapshot_that_lacks_a_shard_is_not_enough(server, is_exact):
    shards = sorted(snapshot(REPO).glob("*.safetensors"))
    shards[0].unlink()
    assert is_exact(first_three(REPO))


def test_a_server_without_ranges_sends_whole_shards(server, needed, is_exact):
    server.ignore_range = True
    assert is_exact(first_three(REPO))
    assert server.sent_weights <= 9 * needed


def test_a_snapshot_holds_neither_pickles_nor_code_and_spares_the_network_later(
    server, is_exact
):
    folder = snapshot(REPO)
    assert folder.name == server.commit(REPO)
    assert {path.suffix for path in folder.iterdir()} == {".json", ".safetensors"}
    server.sent_weights = 0
    assert is_exact(first_three(REPO))
    assert server.sent_weights == 0


@pytest.mark.parametrize("status", [401, 403])
@pytest.mark.parametrize("fetch", [snapshot, first_three, card])
def test_a_gated_repository_says_how_to_get_access_before_any_weights_are_sent(
    server, fetch, status, refused
):
    server.gated[REPO] = status
    access = f"{REPO} is gated: request access on {server.url}/{REPO}"
    message = refused(fetch, REPO)
    assert message.startswith(access)
    assert re.search("hf auth login.*HF_TOKEN", message)
    assert not server.sent_weights


@pytest.mark.parametrize(
    "repo, layers, revision, message",
    [
        (REPO, 3, "v9", "has no revision 'v9'"),
        (REPO, 3, UNKNOWN_COMMIT, f"{REPO} has no revision 'f+': give a branch"),
        ("Qwen/Missing", 3, None, "Qwen/Missing was not found"),
        ("not an id", 3, None, "is not a hub id"),
        (REPO, 0, None, "has 8 layers; asked for the first 0"),
        (REPO, 9, None, "has 8 layers; asked for the first 9"),
    ],
)
def test_what_does_not_exist_is_named(server, repo, layers, revision, message, refused):
    server.lost.add(UNKNOWN_COMMIT)
    assert re.search(message, refused(first_layers, repo, layers, revision))


def test_no_network_is_said_at_once_and_what_is_cached_needs_none(
    server, monkeypatch, refused
):
    folder = first_three(REPO)
    point_at("http://127.0.0.1:9", monkeypatch)
    started = time.monotonic()
    for fetch in (card, snapshot, first_three):
        message = refused(fetch, "org/name")
        assert re.search(r"127\.0\.0\.1:9 does not answer.*local folder", message)
    assert time.monotonic() - started < 5
    assert first_three(REPO) == folder


def test_a_full_disk_is_named_and_a_bug_is_not_the_hubs(monkeypatch):
    monkeypatch.setattr(paths, "CACHE", "/some/cache")
    no_space = OSError(28, "No space left on device")
    message = explain_hub_error(REPO, None, no_space)
    assert re.match("disk full: free space in /some/cache and .*hub", message)
    assert explain_hub_error(REPO, None, TypeError("a bug")) is None


@pytest.mark.parametrize("fetch", [snapshot, first_three])
def test_pickled_weights_are_refused(models, server, refused, fetch):
    folder = models / "old" / "pickled"
    of_type("llama").config.save_pretrained(folder)
    (folder / "pytorch_model.bin").write_bytes(b"pickle")
    refusal = "old/pickled: only pickle weights (pytorch_model.bin)"
    assert refused(fetch, "old/pickled").startswith(refusal)


def remove(path):
    path.unlink()


def replace_by_a_page(path):
    path.write_bytes(b"<html>" * 300)


def cut_short(path):
    path.write_bytes(path.read_bytes()[:-100])


@pytest.mark.parametrize("damage", [remove, replace_by_a_page, cut_short])
def test_damaged_checkpoints_are_named(models, server, damage, refused):
    repo = f"broken/{damage.__name__}"
    folder = models / repo
    of_type("llama").save_pretrained(folder, max_shard_size="30KB")
    damage(min(folder.glob("*.safetensors")))

    def from_disk():
        load_weights(folder, 3, "float32")

    def first_from_the_hub():
        load_weights(first_three(repo), 3, "float32")

    def whole_from_the_hub():
        load_weights(snapshot(repo), None, "float32")

    for read in (from_disk, first_from_the_hub, whole_from_the_hub):
        assert "00001-of-" in refused(read)


def test_only_the_text_model_is_taken_from_gemma3_multimodal(models, server):
    folder = models / GEMMA_REPO
    gemma3_multimodal().bfloat16().save_pretrained(folder)
    # Read back, because `bfloat16` has rounded the rotary frequencies as well, which a
    # loaded model keeps exact.
    whole = Gemma3ForConditionalGeneration.from_pretrained(folder).eval()
    for checkpoint in (first_layers(GEMMA_REPO, 2), folder):
        decoder = load_weights(checkpoint, 2, "bfloat16")
        assert type(decoder).__name__ == "Gemma3TextModel"
        assert decoder.dtype == torch.bfloat16
        assert torch.equal(state_after(decoder, 2), state_after(whole, 2))


@pytest.mark.parametrize("head", [True, False])
def test_all_layers_of_a_model_that_also_sees_compute_the_same(tmp_path, head):
    gemma3_multimodal().save_pretrained(tmp_path)
    whole = Gemma3ForConditionalGeneration.from_pretrained(tmp_path).eval()
    loaded = load_weights(tmp_path, None, "float32", head=head).eval()
    assert torch.equal(state_after(loaded, 3), state_after(whole, 3))


@pytest.mark.parametrize("part", ["vision_tower", "lm_head"])
def test_other_towers_and_the_head_are_not_needed(part):
    assert not is_needed(f"model.{part}.layers.0.mlp.fc1.weight", 3)
