"""Whatever is wrong with what is given from outside is said in one line."""

import pytest
from pydantic import Field

from lib.errors import InputError, Settings, valid


class Inner(Settings):
    length: int = 1


class Outer(Settings):
    name: str
    parts: list[Inner] = Field([])
    maybe: Inner | None = None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        ({}, "f: name: missing field"),
        ({"nam": "x"}, "f: nam: unknown field (did you mean name?)"),
        ({"name": "", "zzz": 1}, "f: zzz: unknown field; name: must not be empty, not ''"),
        (
            {"name": "x", "parts": [{"lenght": 1}], "maybe": {"length": "1"}},
            "f: parts.0.lenght: unknown field (did you mean length?); maybe.length: must be a whole number, not '1'",
        ),
        (7, "f: must be fields with values, not 7"),
    ],
)
def test_every_wrong_field_is_named(content, expected):
    with pytest.raises(InputError) as caught:
        valid(Outer, content, "f")
    assert str(caught.value) == expected


def test_a_notebook_shows_the_line_alone():
    from IPython.testing.globalipapp import start_ipython

    shell = start_ipython()
    shell.user_ns["InputError"] = InputError
    with pytest.MonkeyPatch.context() as patch:
        shown = []
        patch.setattr(shell, "_showtraceback", lambda kind, error, lines: shown.extend(lines))
        shell.run_cell("raise InputError('limit: must be a whole number')")
    assert shown == ["error: limit: must be a whole number"]
