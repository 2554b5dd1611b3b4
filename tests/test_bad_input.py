"""What the commands refuse: each in one line, with exit code 2, before anything is written or a network is loaded."""

import json
import os
import shlex
import shutil
import subprocess
import sys

import pytest
from huggingface_hub import constants
from report_folder import claim

from lib import paths
from lib.__main__ import main
from lib.errors import InputError
from lib.evaluation import run
from lib.models import names
from lib.profiles import run_profile

LONG = "9" * 5000  # more digits than Python reads
PROBLEM = json.dumps({"problem": "What is $1 + 1$?", "answer": "2", "unique_id": "a", "response": "so \\boxed{2}"})
PROFILE = "name: mine\ndescription: x\nattention:\n  models: [demo]\naccuracy:\n  models: [demo]\n"
FILES = {
    "good.jsonl": f"{PROBLEM}\n",
    "broken.jsonl": f"{PROBLEM}\n{{half\n",
    "empty.jsonl": "",
    "three.jsonl": "3",
    "deep.jsonl": "[" * 100_000,
    "digits.jsonl": f'{{"problem": "a", "answer": {LONG}}}\n',
    "surrogate.jsonl": '{"problem": "a\\ud800", "answer": "1"}\n',
    "twice.jsonl": f"{PROBLEM}\n" * 2,
    "deep.yaml": "[" * 100_000,
    "twice.yaml": PROFILE + "  limit: 2\n  limit: 3\n",
    "digits.yaml": PROFILE + f"  limit: {LONG}\n",
    "list.yaml": "[1]",
    "object.yaml": "name: !!python/object:os.system x\n",
    "field.yaml": PROFILE + "  modles: [x]\n",
    "filler.yaml": PROFILE + "filler:\n  length: 100000\n",
}
# A command without what all of its kind begin with, and what is said of it.
EVALUATE = [
    ("--seed -1", "seed: must be greater than or equal to 0, not '-1'"),
    ("--seed LONG", "seed: must be a smaller number"),
    ("--temperature 1e-320", "temperature: must be 0 or between 1e-09 and 1e+15"),
    ("--temperature nan", "temperature: must be a finite number, not 'nan'"),
    ("--temperature warm", "temperature: must be a number, not 'warm'"),
    ("--top-p 0", "top_p: must be greater than 0"),
    ("--limit 0", "limit: must be greater than 0"),
    ("--max-new-tokens 8192", "SmolLM2-135M-Instruct has room for 8192 tokens, not for 0 inserted and 8192 new"),
    ("--samples 2", "samples is 2 at temperature 0"),
    ("--shard 3/2", "shard '3/2': give i/n"),
    ("--engine-options fast", "engine_options: 'fast': give NAME=N"),
    ("--engine vlm", "unknown engine 'vlm' (did you mean vllm?)"),
    ("--filler ''", "filler: must not be empty"),
    ("--filler-length 100000", "mless: SmolLM2-135M-Instruct has room for 8192 tokens, not for 100000 inserted"),
    ("--position up", "position: must be 'before', 'between', 'end' or 'random', not 'up'"),
    ("--conditions mless", "conditions must hold 'none'"),
    ("--conditions none,none", "each only once"),
    ("--conditions none,mles", "unknown condition 'mles' (did you mean mless?)"),
    ("--conditions none,mless:99999999", "not for 99999999 inserted"),
    ("--conditions none,arm:c=-1", "c: must be greater than or equal to 0"),
    ("--conditions none,arm:layer=31", "the model has layers 1 to 30"),
    ("--conditions none,arm --arm p1=101", "ARM's settings: p1: must be less than or equal to 100"),
    ("--problems missing.jsonl", "unknown problems 'missing.jsonl': give embedded, math500 or the path"),
    ("--problems .", "cannot be read: Is a directory"),
    ("--problems math500", "MATH-500 could not be fetched"),
    ("--problems broken.jsonl", "broken.jsonl, line 2: not valid JSON"),
    ("--problems empty.jsonl", "empty.jsonl holds no problems"),
    ("--problems deep.jsonl", "line 1: not usable JSON"),
    ("--problems digits.jsonl", "line 1: not usable JSON"),
    ("--problems surrogate.jsonl", "problem: must be a text of whole characters"),
    ("--problems twice.jsonl", "unique_id 'a' was already used on line 1"),
    ("--problems latin.jsonl", "latin.jsonl is not UTF-8 text (byte 13)"),
    ("--model dem", "unknown model 'dem' (did you mean demo?): give demo"),
    ("--model org/name", "org/name: cannot be fetched"),
    ("--model bare", "bare: no config.json, so this is not a model checkpoint"),
    ("--out ''", "out: must not be empty"),
    ("--speed 3", "unrecognized arguments: --speed 3"),
]
REPRODUCE = [
    ("--profile dmo", "(did you mean demo?): choose from demo, families, laptop, paper, or give a YAML file"),
    ("--profile deep.yaml", "deep.yaml: maximum recursion depth"),
    ("--profile twice.yaml", "twice.yaml: line 8: limit is given twice"),
    ("--profile digits.yaml", "digits.yaml: Exceeds the limit"),
    ("--profile list.yaml", "list.yaml: must be fields with values, not [1]"),
    ("--profile object.yaml", "could not determine a constructor"),
    ("--profile field.yaml", "accuracy.modles: unknown field (did you mean models?)"),
    ("--profile filler.yaml", "has room for 8192 tokens, not for 100000 inserted"),
    ("--only 77", "unknown notebook '77': choose from 01_attention_maps"),
    ("--model Qwen2.5-Math-7", "(did you mean Qwen2.5-Math-7B?)"),
    ("--limit abc", "limit: must be a whole number, not 'abc'"),
    ("--limit 2 --name demo", "name 'demo' is a profile of data/profiles"),
    ("--limit 2 --name ../x", "name: must be of letters, digits, _, . and -, 80 at most, not '../x'"),
]
GRADE = [
    ("missing.jsonl", "missing.jsonl cannot be read: No such file or directory"),
    ("broken.jsonl", "broken.jsonl, line 2: not valid JSON"),
    ("empty.jsonl", "empty.jsonl: no lines to grade"),
    ("three.jsonl", "three.jsonl, line 1: no text in field 'answer'"),
    ("deep.jsonl", "line 1: not usable JSON"),
    ("good.jsonl --response text", "line 1: no text in field 'text'"),
    ("good.jsonl --answer answer.0.x", "line 1: no text in field 'answer.0.x'"),
    ("good.jsonl --answer ''", "answer: must not be empty"),
]
COMMANDS = [(f"evaluate --model demo --limit 2 --out o {options}", said) for options, said in EVALUATE]
COMMANDS += [(f"reproduce {options}", said) for options, said in REPRODUCE]
COMMANDS += [(f"grade {options}", said) for options, said in GRADE]
COMMANDS += [
    ("claims --profile nope", "unknown profile 'nope'"),
    ("claims --limit LONG", "limit: must be a smaller number"),
]
LATE = ("grade", "org/name", "math500")  # which ask the hub, or load more than the settings
FOREIGN = ("Value error", "nput should", "tring should", "pydantic", "Traceback", "[type=")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The folder that the commands start in: it holds FILES, one that is no text, and one that is no model."""
    for name in ("RESULTS", "FIGURES"):
        monkeypatch.setattr(paths, name, tmp_path / name.lower())
    monkeypatch.setattr("lib.prompts.problems.DATA", tmp_path)  # where a copy of MATH-500 may lie
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.jsonl").write_bytes(b'{"problem": "\xe9"}')
    (tmp_path / "bare").mkdir()
    return tmp_path


@pytest.fixture
def refused(folder, capsys):
    """Run a command, which must be refused in one line that says so, and must leave nothing."""

    def run(command, said):
        before = sorted(os.walk("."))
        assert main([part.replace("LONG", LONG) for part in shlex.split(command)]) == 2
        (line,) = capsys.readouterr().err.splitlines()
        assert line.startswith("error: ") and said in line and len(line) < 800
        assert not [text for text in FOREIGN if text in line]
        assert sorted(os.walk(".")) == before

    return run


@pytest.mark.parametrize("command, said", COMMANDS, ids=[command for command, _ in COMMANDS])
def test_a_command_is_refused_in_one_line(command, said, refused):
    refused(command, said)


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "no claims of profile demo yet: python -m lib claims --profile demo"),
        ("{}", "claims.json holds no claims (no list)"),
        ("[" * 100_000, "claims.json holds no claims"),
        (json.dumps([{"id": "a"}]), "row 1: effect is missing or wrong"),
    ],
)
def test_report_refuses_damaged_claims_in_one_line(content, said, refused, folder):
    if content is not None:
        (folder / "results" / "demo").mkdir(parents=True)
        (folder / "results" / "demo" / "claims.json").write_text(content)
    refused("report", said)


@pytest.mark.parametrize("content", ["3", "demo: 3", "demo: {hub: a/b}", "demo: {\n", "demo: {}\ndemo: {}\n"])
def test_a_broken_table_of_models_is_one_line(content, folder, refused, monkeypatch):
    (folder / "models.yaml").write_text(content)
    monkeypatch.setattr(paths, "DATA", folder)
    names.known_models.cache_clear()
    refused("evaluate --model demo --out o", "models.yaml: ")
    names.known_models.cache_clear()


@pytest.mark.parametrize(
    "parameters, said",
    [
        ({"limit": "abc"}, "parameters: limit: must be a whole number, not 'abc'"),
        ({"limit": 0}, "parameters: limit: must be greater than 0"),
        ({"model": 7}, "parameters: model: must be a text, not 7"),
        ({"model": ""}, "parameters: model: must not be empty"),
        ({"name_or_path": 7}, "unknown profile '7'"),
    ],
)
def test_a_notebook_refuses_a_parameter_as_papermill_hands_it_over(parameters, said):
    with pytest.raises(InputError) as caught:
        run_profile(**{"name_or_path": "demo"} | parameters)
    assert said in str(caught.value)


def few_tokens(model, folder):
    """The words of a run that takes a moment."""
    return f"evaluate --model {model} --limit 1 --max-new-tokens 4 --out {folder}/o".split()


@pytest.mark.parametrize(
    "file, content, said",
    [
        ("tokenizer.json", "{", "tiny-llama: cannot be loaded"),
        ("tokenizer.json", None, "tiny-llama: cannot be loaded"),
        ("chat_template.jinja", "{% for", "the model's chat template fails: "),
        ("chat_template.jinja", "hello", "the chat template changes the problem's text"),
        ("config.json", "[1]", "its config.json describes no model"),
        ("model.safetensors", "x", "model.safetensors: cannot be loaded: "),
    ],
)
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


def test_a_mark_blank_lines_separators_and_numbers_are_accepted(tmp_path, monkeypatch, capsys):
    line = json.dumps({"problem": "a\u2028b", "answer": 7, "response": "\\boxed{7}"}, ensure_ascii=False)
    (tmp_path / "set.jsonl").write_bytes(f"\ufeff{line}\r\n\r\n".encode())
    asked = []
    monkeypatch.setattr(run, "evaluate", lambda accuracy, *_: asked.append(accuracy) or [])
    monkeypatch.setenv("HOME", str(tmp_path))
    command = ["evaluate", "--model", "demo", "--conditions", "none, mless", "--problems", "~/set.jsonl", "--out"]
    assert main([*command, str(tmp_path / "o")]) == 0
    assert asked[0].conditions == ["none", "mless"] and asked[0].problems == "~/set.jsonl"
    capsys.readouterr()
    assert main(["grade", str(tmp_path / "set.jsonl")]) == 0
    assert json.loads(capsys.readouterr().out)["correct"] is True


@pytest.mark.parametrize("name", ["1", "01", "01_attention_maps", "01_attention_maps.ipynb"])
def test_a_notebook_is_named_in_every_way_a_person_would(name):
    assert [path.stem for path in paths.notebooks([name])] == ["01_attention_maps"]


def shell(command, **environment):
    """Run a command as a real console does."""
    started = {"cwd": paths.ROOT, "env": os.environ | environment, "capture_output": True, "text": True}
    command = f"set -o pipefail; {sys.executable} -m lib {command}"
    return subprocess.run(["bash", "-c", command], check=False, **started)


def test_closed_pipes_full_disks_and_narrow_encodings_end_in_a_line_or_none(tmp_path):
    row = json.dumps({"answer": "1", "response": "no box " * 20})
    many = tmp_path / "many.jsonl"
    many.write_text((row + "\n") * 3000)  # enough to fill a pipe
    done = shell(f"grade {many} | head -1")
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1
    if os.path.exists("/dev/full"):
        done = shell(f"grade {many} > /dev/full")
        assert (done.returncode, done.stderr) == (2, "error: the output: No space left on device\n")
    done = shell(f"grade {tmp_path}/\N{GREEK SMALL LETTER LAMDA}.jsonl", PYTHONIOENCODING="ascii")
    assert done.returncode == 2 and done.stderr.endswith("?.jsonl cannot be read: No such file or directory\n")


def test_refusals_help_and_the_report_need_no_torch(folder):
    (folder / "demo").mkdir()
    (folder / "demo" / "claims.json").write_text(json.dumps([claim()]))
    commands = [c.replace("LONG", LONG) for c, _ in COMMANDS if not any(word in c for word in LATE)]
    code = f"""if True:
        import os, shlex, sys
        from pathlib import Path
        from lib import paths
        from lib.__main__ import main
        paths.RESULTS = paths.FIGURES = Path({str(folder)!r})
        for command in {[*commands, "report", "--help"]!r}:
            try:
                code = main(shlex.split(command))
            except SystemExit as end:
                code = end.code
            assert code == (0 if command in ("report", "--help") else 2), command
            assert not {{"torch", "transformers"}} & set(sys.modules), command
    """
    environment = os.environ | {"PYTHONPATH": str(paths.ROOT)}
    subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, check=True, capture_output=True)


def test_without_a_command_the_help_is_shown(capsys):
    with pytest.raises(SystemExit) as ended:
        main([])
    assert ended.value.code == 0 and "reproduce" in capsys.readouterr().out


def test_outside_the_environment_one_line_says_how_to_make_it():
    code = "import runpy, sys; sys.modules['pydantic'] = None; runpy.run_module('lib', run_name='__main__')"
    done = subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert done.stderr.startswith("error: pydantic is not installed here: run `make` once")
