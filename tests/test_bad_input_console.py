"""What a real console sees of bad input: pipes that close, disks that are full, narrow encodings, and no wait."""

import json
import os
import subprocess
import sys

import pytest
from refusals import EVALUATE, LONG, OVERRIDES, PROFILES, write_files
from report_folder import claim

from lib import paths

PYTHON = [sys.executable, "-m", "lib"]
LATE = ("nested", "org/name", "math500")  # which ask the hub, or its library


@pytest.fixture
def many(tmp_path):
    """A file of enough lines to fill a pipe."""
    row = json.dumps({"answer": "1", "response": "no box " * 20})
    (tmp_path / "many.jsonl").write_text((row + "\n") * 3000)
    return tmp_path / "many.jsonl"


def shell(command, **environment):
    started = {"cwd": paths.ROOT, "env": os.environ | environment, "capture_output": True, "text": True}
    return subprocess.run(["bash", "-c", f"set -o pipefail; {' '.join(PYTHON)} {command}"], check=False, **started)


def test_a_reader_that_has_seen_enough_is_no_error(many):
    done = shell(f"grade {many} | head -1")
    assert done.stderr == "" and len(done.stdout.splitlines()) == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="this system has no /dev/full")
def test_a_full_disk_under_the_output_is_one_line(many):
    done = shell(f"grade {many} > /dev/full")
    assert (done.returncode, done.stderr) == (2, "error: the output: No space left on device\n")


def test_output_never_fails_on_an_encoding(tmp_path):
    name = "\N{GREEK SMALL LETTER LAMDA}.jsonl"
    done = shell(f"grade {tmp_path}/{name}", PYTHONIOENCODING="ascii")
    assert done.returncode == 2 and done.stderr.endswith("?.jsonl cannot be read: No such file or directory\n")


@pytest.mark.parametrize("command", ["evaluate --out ''", "grade", "reproduce --limit x", "nonsense", "report 3"])
def test_wrong_words_are_one_line_without_a_usage(command):
    done = shell(command)
    assert done.returncode == 2 and done.stdout == "" and "Traceback" not in done.stderr
    assert done.stderr.startswith("error: ") and done.stderr.count("\n") == 1


def test_refusals_help_and_the_report_need_no_torch(tmp_path):
    write_files(tmp_path)
    (tmp_path / "demo").mkdir()
    (tmp_path / "demo" / "claims.json").write_text(json.dumps([claim()]))
    commands = [f"evaluate --model demo --out o {options}" for options, _ in EVALUATE]
    commands += [f"reproduce --profile {profile}" for profile, _ in PROFILES]
    commands += [f"reproduce {options}" for options, _ in OVERRIDES]
    commands = [c.replace("LONG", LONG) for c in commands if not any(word in c for word in LATE)] + ["report", "--help"]
    code = f"""if True:
        import os, shlex, sys
        from pathlib import Path
        from lib import paths
        from lib.__main__ import main
        os.chdir({str(tmp_path)!r})
        paths.RESULTS = paths.FIGURES = Path({str(tmp_path)!r})
        for command in {commands!r}:
            try:
                code = main(shlex.split(command))
            except SystemExit as end:
                code = end.code
            assert code == (0 if command in ("report", "--help") else 2), command
            assert not {{"torch", "transformers"}} & set(sys.modules), command
    """
    subprocess.run([sys.executable, "-c", code], cwd=paths.ROOT, check=True, capture_output=True)
