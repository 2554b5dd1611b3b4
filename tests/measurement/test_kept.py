"""What was measured is found again, and only under the same settings."""

import numpy as np
import pytest

from lib.errors import InputError
from lib.measurement.kept import kept


class Counted:
    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return {"a": np.arange(3.0), "b": np.array([[np.nan]])}


def test_arrays_are_computed_once_per_settings(tmp_path):
    compute = Counted()
    first, again = (kept(tmp_path / "new", {"model": "m"}, compute) for _ in range(2))
    assert compute.calls == 1
    for name in ("a", "b"):
        np.testing.assert_array_equal(first[name], again[name])
    kept(tmp_path / "new", {"model": "other"}, compute)
    assert compute.calls == 2


def test_without_a_folder_nothing_is_kept():
    compute = Counted()
    for _ in range(2):
        kept(None, {}, compute)
    assert compute.calls == 2


@pytest.mark.parametrize("content", [b"", b"PK broken", b"not an archive"])
def test_a_damaged_file_is_computed_again(tmp_path, content):
    compute = Counted()
    kept(tmp_path, {}, compute)
    (file,) = tmp_path.iterdir()
    file.write_bytes(content)
    kept(tmp_path, {}, compute)
    kept(tmp_path, {}, compute)
    assert compute.calls == 2 and list(tmp_path.iterdir()) == [file]


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "taken").write_text("a file")
    with pytest.raises(InputError, match=r"cannot keep measurements in .*taken"):
        kept(tmp_path / "taken", {}, Counted())
