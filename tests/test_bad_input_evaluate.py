"""What `evaluate` refuses: each in one line, with exit code 2, before anything is written."""

import json
import shutil

import pytest
from refusals import EVALUATE, refused

from lib import paths
from lib.__main__ import main
from lib.evaluation import run
from lib.models import names


@pytest.mark.parametrize("options, said", EVALUATE, ids=[options for options, _ in EVALUATE])
def test_evaluate_refuses_in_one_line(options, said, tmp_path, capsys, monkeypatch):
    math500 = "lib.prompts.problems.DATA", tmp_path  # where a copy of MATH-500 may lie
    monkeypatch.setattr(*math500)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    refused(f"evaluate --model demo --limit 2 --out o {options}", said, tmp_path, capsys, monkeypatch)


def few_tokens(model, folder):
    """The words of a run that takes a moment."""
    return f"evaluate --model {model} --limit 1 --max-new-tokens 4 --out {folder}/o".split()


DAMAGED = [
    ("tokenizer.json", "{", "tiny-llama: cannot be loaded"),
    ("tokenizer.json", '{"model": 3}', "tiny-llama: cannot be loaded"),
    ("tokenizer.json", None, "tiny-llama: cannot be loaded"),
    ("chat_template.jinja", "{% for", "the model's chat template fails: "),
    ("chat_template.jinja", "{{ messages[9].content }}", "the model's chat template fails: "),
    ("chat_template.jinja", "hello", "the chat template changes the problem's text"),
    ("config.json", "[1]", "its config.json describes no model"),
    ("model.safetensors", "x", "model.safetensors is damaged or no safetensors file"),
]


@pytest.mark.parametrize("file, content, said", DAMAGED)
def test_a_damaged_checkpoint_is_one_line(file, content, said, tiny_checkpoint, tmp_path, capsys):
    for path in tiny_checkpoint.glob("token*" if content is None else file):
        path.unlink()
    if content is not None:
        (tiny_checkpoint / file).write_text(content)
    assert main(few_tokens(tiny_checkpoint, tmp_path)) == 2
    *others, line = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ") and said in line and not [text for text in others if "Traceback" in text]
    written = tmp_path / "o" / "completions.jsonl"
    assert not written.read_text() if file == "model.safetensors" else not written.parent.exists()


def test_a_message_names_the_model_and_not_the_cache_it_lies_in(tmp_path, monkeypatch, capsys, tiny_checkpoint):
    cached = tmp_path / "cache" / "models--org--name" / "snapshots" / "abc"
    shutil.copytree(tiny_checkpoint, cached)
    (cached / "tokenizer.json").write_text("{")
    monkeypatch.setattr("lib.models.loading._checkpoint_folder", lambda *_: cached)
    assert main(few_tokens(tiny_checkpoint, tmp_path)) == 2
    assert "cache" not in capsys.readouterr().err


MODELS = [
    "3",
    "[1]",
    "demo: 3",
    "demo: {hub: a/b}",
    "demo: {wheels: w}",
    "demo: {\n",
    "demo: {}\ndemo: {}\n",
    "[" * 9999,
]


@pytest.mark.parametrize("content", MODELS, ids=range(len(MODELS)))
def test_a_broken_table_of_models_is_one_line(content, tmp_path, capsys, monkeypatch):
    (tmp_path / "models.yaml").write_text(content)
    monkeypatch.setattr(paths, "DATA", tmp_path)
    names.known_models.cache_clear()
    refused("evaluate --model demo --out o", "models.yaml: ", tmp_path, capsys, monkeypatch)
    names.known_models.cache_clear()


ACCEPTED = {
    "mark": "\ufeff" + json.dumps({"problem": "a", "answer": 7}) + "\r\n\r\n",
    "separator": json.dumps({"problem": "a\u2028b", "answer": 7, "unique_id": 3}, ensure_ascii=False) + "\n\n",
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_a_mark_blank_lines_separators_and_numbers_are_accepted(name, tmp_path, monkeypatch, capsys):
    (tmp_path / "set.jsonl").write_bytes(ACCEPTED[name].encode())
    asked = []

    def noted(accuracy, *_):
        asked.append(accuracy)
        return []

    monkeypatch.setattr(run, "evaluate", noted)
    monkeypatch.setenv("HOME", str(tmp_path))
    command = ["evaluate", "--model", "demo", "--conditions", "none, mless", "--problems", "~/set.jsonl", "--out"]
    assert main([*command, str(tmp_path / "o")]) == 0
    assert asked[0].conditions == ["none", "mless"] and asked[0].problems == "~/set.jsonl"
