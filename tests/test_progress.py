"""Bars are drawn for the command line and for nobody else."""

from lib import progress


def test_a_bar_shows_only_while_it_is_switched_on(capsys):
    with progress.bar("silent", 2) as bar:
        bar.update()
    with progress.switched_on(), progress.bar("layer 1", 2, done=1) as bar:
        bar.update()
    with progress.bar("silent again", 2) as bar:
        bar.set_postfix_str("x")
    error = capsys.readouterr().err
    assert "layer 1: 100%" in error and "2/2" in error and "silent" not in error
