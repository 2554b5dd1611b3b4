"""Other programs' files are read through field paths; what lacks a field is named."""

import json

import pandas as pd
import pytest

from lib.errors import InputError
from lib.grading.sample_files import FORMATS, read_pairs

ROWS = {
    "lib": {"answer": "7", "response": r"\boxed{7}"},
    "lm-eval": {"doc": {"answer": "7"}, "resps": [[r"\boxed{7}"]]},
    "lighteval": {"doc": {"choices": ["7"]}, "model_response": {"text": [r"\boxed{7}", "other"]}},
}


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("suffix", [".jsonl", ".json", ".parquet"])
def test_each_programs_samples_are_read(tmp_path, name, suffix):
    path = tmp_path / f"samples{suffix}"
    if suffix == ".parquet":
        pd.DataFrame([ROWS[name]] * 2).to_parquet(path)
    else:
        rows = [json.dumps(ROWS[name])] * 2
        path.write_text("\n".join(rows) if suffix == ".jsonl" else f"[{','.join(rows)}]")
    assert read_pairs(path, *FORMATS[name]) == [("7", r"\boxed{7}")] * 2


@pytest.mark.parametrize("field", ["doc.gold", "resps.3.0", "resps.0", "doc.answer.0.1"])
def test_a_field_that_is_not_there_is_named_with_its_line(tmp_path, field):
    path = tmp_path / "samples.jsonl"
    path.write_text(json.dumps(ROWS["lm-eval"]))
    with pytest.raises(InputError, match=f"line 1: no text in field '{field}'"):
        read_pairs(path, field, "resps.0.0")


@pytest.mark.parametrize("name", ["missing.jsonl", "broken.parquet", "broken.json"])
def test_a_file_that_cannot_be_read_is_named(tmp_path, name):
    if name.startswith("broken"):
        (tmp_path / name).write_text("{half")
    with pytest.raises(InputError, match=name.replace(".", r"\.")):
        read_pairs(tmp_path / name, "a", "b")
