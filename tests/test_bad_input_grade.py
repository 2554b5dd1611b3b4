"""What `grade` refuses, in one line and with exit code 2, and what it takes."""

import json

import pytest
from refusals import refused

from lib.__main__ import main

BAD = [
    ("''", "file: must not be empty"),
    ("missing.jsonl", "missing.jsonl cannot be read: No such file or directory"),
    (".", "cannot be read: Is a directory"),
    ("broken.jsonl", "broken.jsonl, line 2: not valid JSON"),
    ("empty.jsonl", "empty.jsonl: no lines to grade"),
    ("three.jsonl", "three.jsonl, line 1: no text in field 'answer'"),
    ("three.json", "three.json: must be a list of rows"),
    ("fields.json", "fields.json: must be a list of rows"),
    ("deep.json", "deep.json: not usable JSON (nested too deeply)"),
    ("deep.jsonl", "line 1: not usable JSON (nested too deeply)"),
    ("digits.json", "digits.json: not usable JSON (a number has too many digits)"),
    ("digits.jsonl", "line 1: not usable JSON (a number has too many digits)"),
    ("latin.jsonl", "latin.jsonl is not UTF-8 text"),
    ("not.parquet", "not.parquet is no parquet file that can be read"),
    ("good.jsonl --from lm-eval", "good.jsonl, line 1: no text in field 'doc.answer'"),
    ("good.jsonl --from steam", "--from: invalid choice: 'steam'"),
    ("good.jsonl --response text", "line 1: no text in field 'text'"),
    ("good.jsonl --answer ''", "--answer: must not be empty"),
    ("good.jsonl --response ''", "--response: must not be empty"),
    ("good.jsonl --answer LONG", "no text in field"),
    ("good.jsonl --answer answer.LONG", "no text in field"),
]


@pytest.mark.parametrize("options, said", BAD, ids=[options for options, _ in BAD])
def test_grade_refuses_in_one_line(options, said, tmp_path, capsys, monkeypatch):
    refused(f"grade {options}", said, tmp_path, capsys, monkeypatch)


def test_grade_takes_a_mark_blank_lines_separators_numbers_and_broken_characters(tmp_path, capsys):
    rows = [
        {"answer": 7, "response": "a\u2028\\boxed{7}"},
        {"answer": 0.5, "response": "\\boxed{1/2}"},
        {"answer": "1", "response": "\ud800 \\boxed{1}"},
    ]
    lines = [json.dumps(row, ensure_ascii=row["answer"] == "1") for row in rows]
    (tmp_path / "rows.jsonl").write_bytes(("\ufeff" + "\r\n\r\n".join(lines)).encode())
    assert main(["grade", str(tmp_path / "rows.jsonl")]) == 0
    assert [json.loads(line)["correct"] for line in capsys.readouterr().out.splitlines()] == [True] * 3
