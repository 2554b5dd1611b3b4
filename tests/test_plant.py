"""The script that plants mistakes reports which ones the tests notice."""

import pytest
from plant import notices

SOURCE = "def total(a, b):\n    return a + b\n"
TESTS = "from sums import total\n\n\ndef test_total():\n    assert total(2, 2) == 4\n"


@pytest.fixture
def repository(tmp_path, monkeypatch):
    # The tests need no plugins, and loading them takes time.
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    (tmp_path / "sums.py").write_text(SOURCE)
    (tmp_path / "test_sums.py").write_text(TESTS)
    return tmp_path


@pytest.mark.parametrize(
    "mistake, noticed", [("a - b", True), ("a * b", False), ("a +", True)]
)
def test_a_planted_mistake_is_noticed_or_survives_and_the_repository_is_unchanged(
    repository, mistake, noticed
):
    tests = ["test_sums.py"]
    assert notices("sums.py", "a + b", mistake, tests, repository) is noticed
    assert (repository / "sums.py").read_text() == SOURCE


def test_a_mistake_that_cannot_be_planted_is_an_error(repository):
    with pytest.raises(ValueError, match=r"has 'b' 2 times, not once"):
        notices("sums.py", "b", "a", ["test_sums.py"], repository)
    with pytest.raises(ValueError, match="pytest cannot run no_such_test"):
        notices("sums.py", "a + b", "a - b", ["no_such_test.py"], repository)
