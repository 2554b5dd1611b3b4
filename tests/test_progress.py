"""Bars are drawn for programs that switch them on, and for nobody else."""

from lib import progress


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
