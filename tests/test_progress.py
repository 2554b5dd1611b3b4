"""Progress bars are drawn only if a program switches them on."""

import pytest

from lib import progress


@pytest.fixture(autouse=True)
def shown(monkeypatch):
    monkeypatch.setattr(progress, "shown", True)


def test_a_bar_that_is_switched_off_prints_nothing(capsys, monkeypatch):
    monkeypatch.setattr(progress, "shown", False)
    with progress.bar("layer 1", 2) as bar:
        bar.update(2)
    assert not capsys.readouterr().err


def test_a_bar_is_drawn_and_removed_where_somebody_watches_a_cell(capsys, monkeypatch):
    monkeypatch.setattr(progress, "shown", False)
    monkeypatch.setattr(progress, "accepts_input", lambda: True)
    with progress.bar("layer 1", 2) as bar:
        bar.update(2)
    *_, drawn, blank, end = capsys.readouterr().err.split("\r")
    assert drawn.startswith("layer 1:")
    assert not blank.strip() and not end


@pytest.mark.parametrize("kernel, watched, lines", [(0, 0, 1), (1, 0, 0), (1, 1, 1)])
def test_a_line_is_not_said_in_a_notebook_that_nobody_watches(
    capsys, monkeypatch, kernel, watched, lines
):
    monkeypatch.setattr(progress, "_kernel", lambda: kernel)
    monkeypatch.setattr(progress, "accepts_input", lambda: watched)
    progress.say("is converted")
    assert capsys.readouterr().err == "is converted\n" * lines


def test_few_units_have_no_bar(capsys):
    for total, written in ((4, False), (5, True)):
        with progress.bar("layer 1", total, least=5) as bar:
            bar.update(total)
        assert bool(capsys.readouterr().err) is written


def test_a_bar_is_one_line_in_a_log_and_moves_in_a_terminal(capsys, monkeypatch):
    with progress.bar("layer 1", 200, done=1) as bar:
        for _ in range(199):
            bar.update()
    written = capsys.readouterr().err
    assert written.startswith("\rlayer 1: 100%")
    assert "200/200" in written
    assert written.count("\r") == 1
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with progress.bar("layer 1", 2) as bar:
        bar.update()
    assert "\rlayer 1:  50%" in capsys.readouterr().err
