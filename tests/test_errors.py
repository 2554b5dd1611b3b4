"""Every error in a user's input is reported in one line."""

import pytest
from pydantic import Field

from lib.errors import InputError, Settings, validated


class Inner(Settings):
    length: int = 1
    share: float = Field(0.5, ge=0)


class Outer(Settings):
    name: str
    parts: list[Inner] = Field([])
    maybe: Inner | None = None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({"nam": "x"}, "name: missing field; nam: unknown field (did you mean name?)"),
        (
            {"name": "x", "maybe": {"share": 1e-320}},
            "maybe.share: must be 0 or between 1e-09 and 1e+15",
        ),
        (
            {"name": "a\ud800"},
            "name: must be a text without half characters (lone surrogates), not"
            " 'a\\ud800'",
        ),
    ],
)
def test_every_wrong_field_is_named(content, expected):
    with pytest.raises(InputError) as caught:
        validated(Outer, content, "f")
    assert str(caught.value) == f"f: {expected}"


def test_a_notebook_shows_only_the_error_line(monkeypatch):
    from IPython.core.interactiveshell import InteractiveShell
    from IPython.testing.globalipapp import start_ipython

    # Another test may have left a different kind of shell in this process.
    InteractiveShell.clear_instance()
    shell = start_ipython()
    shell.user_ns["InputError"] = InputError
    shown = []
    monkeypatch.setattr(
        shell, "_showtraceback", lambda kind, error, lines: shown.extend(lines)
    )
    shell.run_cell("raise InputError('limit: must be a whole number')")
    assert shown == ["error: limit: must be a whole number"]
