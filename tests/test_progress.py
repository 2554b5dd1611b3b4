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


def test_a_log_gets_a_line_a_stage_and_no_carriage_return(capsys, monkeypatch):
    with progress.switched_on(), progress.bar("layer 1", 200) as bar:
        for _ in range(200):
            bar.update()
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 1 and lines[0].startswith("layer 1: 100%") and "200/200" in lines[0]
    monkeypatch.setattr(progress, "BETWEEN_LINES", 0)
    with progress.switched_on(), progress.bar("layer 2", 3) as bar:
        for _ in range(3):
            bar.update()
    assert "\r" not in capsys.readouterr().err


def test_a_terminal_gets_a_bar(capsys, monkeypatch):
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with progress.switched_on(), progress.bar("layer 1", 2) as bar:
        bar.update()
    assert "\rlayer 1:  50%" in capsys.readouterr().err


def test_lines_are_folded_between_words_at_the_end_of_a_terminal_and_nowhere_else(monkeypatch):
    line = "mless             36.5 %  [27.5, 46.5]  n = 96"
    assert progress.folded(line) == line
    monkeypatch.setattr(progress.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "30")
    assert progress.columns(118) == 30 and progress.columns(20) == 20
    folded = progress.folded(f"{line}\n{line}").splitlines()
    assert max(map(len, folded)) <= 30 and folded[0].split() == ["mless", "36.5", "%"]
    assert len(folded) == 4 and folded[1] == "    [27.5, 46.5]  n = 96"
