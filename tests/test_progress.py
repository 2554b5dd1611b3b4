"""Bars are drawn for programs that switch them on, and for nobody else."""

from lib import progress


def test_bars_that_a_library_forgets_end_with_the_block_and_empty_ones_say_nothing(
    capsys,
):
    with progress.ending_bars() as bar_class:
        forgotten = [bar_class(total=2, desc=name) for name in ("counted", "empty")]
        forgotten[0].update(2)
        for bar in forgotten:
            bar.set_description_str(f"{bar.desc}, done")
    assert capsys.readouterr().err.count("done") == 1


def test_a_bar_shows_only_while_it_is_switched_on_in_a_log_as_one_line_a_stage(
    capsys, monkeypatch
):
    for on in (False, True):
        monkeypatch.setattr(progress, "shown", on)
        with progress.bar("layer 1", 200, done=1) as bar:
            for _ in range(199):
                bar.update()
    written = capsys.readouterr().err
    assert (
        written.startswith("\rlayer 1: 100%")
        and "200/200" in written
        and written.count("\r") == 1
    )
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with progress.bar("layer 1", 2) as bar:
        bar.update()
    assert "\rlayer 1:  50%" in capsys.readouterr().err


def test_a_bar_counts_prompts_unless_it_is_told_what_else(monkeypatch):
    monkeypatch.setattr(progress, "shown", True)
    with progress.bar("layer 1", 2) as bar:
        assert "prompt/s" in str(bar)
    with progress.bar("likelihood", 2, unit="text") as bar:
        assert "text/s" in str(bar)


def test_a_bar_that_is_switched_off_may_be_drawn_anew():
    with progress.bar("layer 1", 2) as bar:
        bar.refresh()
        bar.set_description("layer 2")


def test_in_a_terminal_an_empty_bar_is_wiped_out(capsys, monkeypatch):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with progress.ending_bars() as bar_class:
        bar_class(total=2, desc="empty")
    written = capsys.readouterr().err
    assert "empty:   0%" in written
    *_, wiped, end = written.split("\r")
    assert not wiped.strip()
    assert end == ""
