"""What was measured is found again, and only under the same settings and the same measuring code."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest
import xarray as xr

from lib import paths
from lib.errors import InputError
from lib.measurement.kept import code_digest, kept


class Counted:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        found = {"a": ("problem", np.array([0.5, 1.0, np.nan]))}
        return xr.Dataset(found, {"problem": ["x", "y", "z"]}, {"model": "m", "layers": [1, 2]})


def test_a_dataset_is_computed_once_per_settings(tmp_path):
    compute = Counted()
    first, again = (kept(tmp_path / "new", "one", {"model": "m"}, compute) for _ in range(2))
    assert compute.calls == 1
    xr.testing.assert_identical(first, again)
    kept(tmp_path / "new", "one", {"model": "other"}, compute)
    assert compute.calls == 2


def test_what_older_code_measured_gives_way_to_the_same_measurement_and_no_other(tmp_path, monkeypatch):
    for settings in ({"limit": 1}, {"limit": 2}):
        kept(tmp_path, "layers1-3", settings, Counted())
    kept(tmp_path, "layers1-30", {}, Counted())
    (other,) = tmp_path.glob("layers1-30-*")
    assert len(list(tmp_path.iterdir())) == 3
    monkeypatch.setattr("lib.measurement.kept.code_digest", lambda: "new")
    kept(tmp_path, "layers1-3", {"limit": 1}, Counted())
    (new,) = tmp_path.glob("layers1-3-*")
    assert set(tmp_path.iterdir()) == {new, other}


def test_a_file_is_named_for_people_and_opened_by_xarray(tmp_path):
    kept(tmp_path, "dilution-a/b c", {}, Counted())
    (file,) = tmp_path.iterdir()
    assert file.name.startswith("dilution-a-b-c-") and file.suffix == ".nc"
    xr.testing.assert_identical(xr.open_dataset(file), Counted()())


def test_without_a_folder_nothing_is_kept():
    compute = Counted()
    for _ in range(2):
        kept(None, "one", {}, compute)
    assert compute.calls == 2


@pytest.mark.parametrize("damage", [lambda c: b"", lambda c: c[:-9], lambda c: c[:999] + b"?" + c[1000:]])
def test_a_damaged_file_is_measured_again_and_named(tmp_path, damage, capsys):
    compute = Counted()
    kept(tmp_path, "one", {}, compute)
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    kept(tmp_path, "one", {}, compute)
    assert capsys.readouterr().err == f"{file} is damaged: it is measured again\n"
    kept(tmp_path, "one", {}, compute)
    assert compute.calls == 2 and list(tmp_path.iterdir()) == [file] and not capsys.readouterr().err


@pytest.mark.parametrize("folder", ["taken", "taken/below"])
def test_a_folder_that_cannot_be_written_is_named(tmp_path, folder):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match=r"cannot keep measurements in .*taken"):
        kept(tmp_path / folder, "one", {}, Counted())


@pytest.mark.parametrize(
    ("file", "measures"),
    [
        ("attention/function.py", True),
        ("arm/moving.py", True),
        ("models/loading.py", True),
        ("prompts/building.py", True),
        ("measurement/dilution.py", True),
        ("measurement/tables.py", False),
        ("measurement/findings.py", False),
        ("figures/style.py", False),
        ("statistics.py", False),
    ],
)
def test_the_code_that_measures_makes_the_key_and_no_other(file, measures, tmp_path, monkeypatch):
    def digest(text):
        path = tmp_path / "lib" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        code_digest.cache_clear()
        return code_digest()

    monkeypatch.setattr(paths, "ROOT", tmp_path)
    assert (digest("a = 1") != digest("a = 2")) is measures
    code_digest.cache_clear()


WRITER = """
import numpy as np, sys, xarray as xr
from pathlib import Path
from lib.measurement.kept import kept
print("ready", flush=True)
for number in range(10**6):
    kept(Path(sys.argv[1]), "big", {"number": number % 3}, lambda: xr.Dataset({"a": ("x", np.random.rand(10**6))}))
    [path.unlink() for path in Path(sys.argv[1]).glob("big*.nc")]
"""


@pytest.mark.skipif(os.name == "nt", reason="Windows has no SIGKILL")
def test_killed_while_writing_a_file_is_whole_or_absent(tmp_path, capsys):
    for wait in (0.05, 0.13, 0.21):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(wait)
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        for path in tmp_path.glob("big*.nc"):
            assert xr.load_dataset(path).sizes == {"x": 10**6}
