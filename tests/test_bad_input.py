"""Commands refuse mistakes in one line, before anything is written or loaded."""

import errno
import gzip
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
from unittest.mock import Mock

import pytest
from huggingface_hub import constants
from transformers import AutoTokenizer

from reproduction import paths
from reproduction.__main__ import NO_UNIX, main

PROBLEM = json.dumps(
    {
        "problem": "What is $1 + 1$?",
        "answer": "2",
        "unique_id": "a",
        "response": "so \\boxed{2}",
    }
)
PROFILE = (
    "name: mine\ndescription: x\nattention:\n  models: [demo]\naccuracy:\n  models:"
    " [demo]\n"
)
FILES = {
    "good.jsonl": f"{PROBLEM}\n",
    "solved.jsonl": PROBLEM.replace("response", "solution"),
    "broken.jsonl": f"{PROBLEM}\n{{half\n",
    "empty.jsonl": "",
    "deep.jsonl": "[" * 100_000,
    # The model does not exist, so nothing runs if one of the limits is accepted.
    "twice.yaml": PROFILE.replace("[demo]", "[a/b]") + "  limit: 2\n  limit: 3\n",
    "octal.yaml": PROFILE.replace("[demo]", "[a/b]") + "  limit: 020\n",
    "minutes.yaml": PROFILE.replace("[demo]", "[a/b]") + "  temperature: 1:30.5\n",
    "tab.yaml": "name: x\nattention:\n\tlimit: 2\n",
    "object.yaml": "name: !!python/object:os.system x\n",
    # NaN as pandas writes it, and a list of rows on one line.
    "nan.jsonl": '{"problem": "2+3?", "answer": NaN, "solution": NaN, "level": NaN}',
    "list.jsonl": '[{"problem": "2+3?", "answer": "5"}]',
    "odd.jsonl": json.dumps({"problem": "2+3?", "answer": "5", "level": "hard"}),
    "hub.yaml": PROFILE.replace("[demo]", "[org/name]"),
}
# A command and a part of its error message.
COMMANDS = """
evaluate --max-new-tokens 8192 |
SmolLM2-135M-Instruct has room for 8192 tokens, not for 0 inserted and 8192 new
evaluate --shard 3/2 | shard '3/2': give i/n
evaluate --temperature -1 | temperature: must be greater than or equal to 0, not '-1'
evaluate --conditions none,dilute | example, bare, repeat, hint, arm, mless+arm
likelihood --model demo --out o --conditions none,dilute | (did you mean dilution?)
evaluate --problems nan.jsonl |
 nan.jsonl, line 1: answer: must not be empty, not NaN
evaluate --problems list.jsonl | list.jsonl, line 1: must be a valid dictionary
evaluate --problems math500 | MATH-500 could not be fetched
evaluate --problems deep.jsonl | line 1: not valid JSON: maximum recursion
evaluate --problems latin.jsonl | latin.jsonl is not UTF-8 text (byte 13)
evaluate --model dem | unknown model 'dem' (did you mean demo?): give demo
evaluate --model org/name | org/name: cannot be downloaded
evaluate --out '' | out: must not be empty
evaluate --engine vllm --conditions none,arm | arm: engine vllm does not run ARM
reproduce --engine vllm | arm: engine vllm does not run ARM: use transformers
evaluate --speed 3 | unrecognized arguments: --speed 3
reproduce --profile dmo |
choose from authors, demo, families, laptop, paper, paper-all, or give a
reproduce --profile none.yaml | or give a YAML file by its path from /
reproduce --profile twice.yaml | twice.yaml: line 8: limit is given twice
reproduce --profile octal.yaml | octal.yaml: line 7: 020 is no decimal number
reproduce --profile minutes.yaml | line 7: 1:30.5 is no decimal number: write
reproduce --profile tab.yaml | tab.yaml: line 3: found character
reproduce --profile object.yaml | could not determine a constructor
reproduce --only 77 | unknown notebook '77': choose from 01_attention_maps
reproduce --limit 2 --name a/b |
name: must match pattern
grade broken.jsonl | broken.jsonl, line 2: not valid JSON
grade empty.jsonl | empty.jsonl: no lines to grade
grade good.jsonl --answer answer.0.x | line 1: no text in field 'answer.0.x'
grade cut.jsonl.gz | cut.jsonl.gz cannot be read: Compressed file ended before
evaluate --problems odd.jsonl |
odd.jsonl, line 1: level: must be a valid integer, not 'hard'
evaluate --problems empty.jsonl | empty.jsonl has no problems
evaluate --problems pipe | unknown problems 'pipe': give embedded, math500 or
plan --profile hub.yaml | org/name: cannot be downloaded
"""
COMMANDS = COMMANDS.replace("evaluate", "evaluate --model demo --limit 2 --out o")
# A row that would be too long continues on the next line.
LINES = COMMANDS.replace(" |\n", " | ").strip().splitlines()
ROWS = [line.split(" | ") for line in LINES]
# Commands with these words need the hub or load more than the settings.
LATE = ("grade", "org/name", "math500", "hub.yaml")
SHORT = "--problems good.jsonl --max-new-tokens 2 --conditions none,mless"
FOREIGN = (
    "Value error",
    "nput should",
    "tring should",
    "pydantic",
    "Traceback",
    "[type=",
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working folder of the commands, with FILES, two damaged files and a pipe."""
    for name in ("RESULTS", "FIGURES"):
        monkeypatch.setattr(paths, name, tmp_path / name.lower())
    # The repository's data may have a copy of MATH-500.
    monkeypatch.setattr("lib.prompts.problems.DATA", tmp_path)
    monkeypatch.setattr("lib.paths.CACHE", tmp_path / "cache")
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    # Processes that a test starts must find lib.
    monkeypatch.setenv("PYTHONPATH", str(paths.ROOT))
    monkeypatch.chdir(tmp_path)
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    (tmp_path / "latin.jsonl").write_bytes(b'{"problem": "\xe9"}')
    (tmp_path / "cut.jsonl.gz").write_bytes(gzip.compress(PROBLEM.encode())[:-9])
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


@pytest.mark.parametrize("command, said", ROWS, ids=[command for command, _ in ROWS])
def test_a_mistake_in_a_command_is_refused_in_one_line_and_writes_nothing(
    command, said, folder, capsys
):
    before = sorted(os.walk("."))
    assert main(shlex.split(command)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("error: ")
    assert said in line
    assert len(line) < 800
    assert not [text for text in FOREIGN if text in line]
    assert sorted(os.walk(".")) == before


def test_refusals_and_help_need_no_torch(folder):
    early = [command for command, _ in ROWS if not any(map(command.count, LATE))]
    code = f"""if True:
        import contextlib, shlex, sys
        from pathlib import Path
        from reproduction import paths
        from reproduction.__main__ import main
        paths.RESULTS = paths.FIGURES = Path({str(folder)!r})
        for command in {[*early, "--help"]!r}:
            with contextlib.suppress(SystemExit):
                assert main(shlex.split(command)) == 2, command
            assert not {{"torch", "transformers"}} & set(sys.modules), command
    """
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)


def test_a_tokenizer_that_does_not_fit_its_model_is_named_in_one_line(
    folder, tiny_checkpoint, capsys
):
    tokenizer = AutoTokenizer.from_pretrained(tiny_checkpoint)
    tokenizer.add_tokens(["What is"])
    tokenizer.save_pretrained(tiny_checkpoint)
    said = "error: the tokenizer gives token 49152, but the model's embedding ends with"
    for command in (f"evaluate {SHORT}", "likelihood --problems solved.jsonl"):
        command += f" --model {tiny_checkpoint} --out {command[:4]}"
        assert main(command.split()) == 2
        assert capsys.readouterr().err.splitlines()[-1].startswith(said)


def test_a_failing_command_leaves_the_output_of_the_calling_process_open(
    folder, monkeypatch
):
    before = os.fstat(1)
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    monkeypatch.setattr("lib.grading.answer_file.read_pairs", Mock(side_effect=full))
    assert main(["grade", "good.jsonl"]) == 2
    assert os.path.samestat(os.fstat(1), before)


def test_a_command_that_stores_nothing_says_so_when_it_is_interrupted(
    folder, monkeypatch, capsys
):
    stopped = Mock(side_effect=KeyboardInterrupt)
    monkeypatch.setattr("lib.grading.answer_file.read_pairs", stopped)
    handler = signal.getsignal(signal.SIGINT)
    try:
        assert main(["grade", "good.jsonl"]) == 130
    finally:
        signal.signal(signal.SIGINT, handler)
    assert capsys.readouterr().err == "\ninterrupted: nothing is stored\n"


WITHOUT = (
    "-c \"import runpy, sys; sys.modules['{}'] = None; runpy.run_module('reproduction',"
    " run_name='__main__')\" reproduce --only 01"
)
NOT_HERE = "error: {} is not installed here: run `make install` once"
GRADE, FULL = "-m reproduction grade many.jsonl", "error: the output: No space left"
ENDS = [(f"{GRADE} | head -1", 141, ""), (f"{GRADE} > /dev/full", 2, FULL)]
ENDS += [(f"{GRADE} >&-", 0, "0.000 [0.000, ")]  # its summary is on stderr
ENDS += [
    (WITHOUT.format(name), code, NOT_HERE.format(name))
    for name, code in (("pydantic", 1), ("papermill", 2))
]
# A system without fcntl is not Unix.
ENDS.append((WITHOUT.format("fcntl"), 1, f"error: {NO_UNIX.format('fcntl')}"))


@pytest.mark.parametrize("command, code, said", ENDS)
def test_closed_pipes_full_disks_and_missing_libraries_end_in_at_most_one_line(
    command, code, said, folder
):
    row = json.dumps({"answer": "1", "response": "no box " * 20})
    (folder / "many.jsonl").write_text((row + "\n") * 3000)  # enough to fill a pipe
    command = ["bash", "-c", f"set -o pipefail; {sys.executable} {command}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == code
    assert done.stderr.startswith(said)
    assert done.stderr.count("\n") == bool(said)


def test_a_terminal_of_another_encoding_shows_the_code_of_a_letter_that_it_lacks(
    folder, tiny_llama, monkeypatch
):
    shutil.copytree(tiny_llama, folder / "größe")
    # This process has the results of the repository, which may have a folder mine.
    profile = PROFILE.replace("mine", "ascii").replace("demo", "größe", 1)
    (folder / "mine.yaml").write_text(profile, "utf-8")
    monkeypatch.setenv("PYTHONIOENCODING", "ascii")
    command = [sys.executable, "-m", "reproduction", "plan", "--profile", "mine.yaml"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert "gr\\xf6\\xdfe" in done.stdout
