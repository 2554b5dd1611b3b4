"""Bars are drawn for the command line and for nobody else; lines are as wide as the terminal."""

from lib import progress


def test_a_bar_shows_only_while_it_is_switched_on_in_a_log_as_one_line_a_stage(capsys, monkeypatch):
    with progress.bar("silent", 2) as bar:
        bar.update()
    with progress.switched_on(), progress.bar("layer 1", 200, done=1) as bar:
        for _ in range(199):
            bar.update()
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("layer 1: 100%") and "200/200" in line and "\r" not in line
    monkeypatch.setattr(progress.sys.stderr, "isatty", lambda: True, raising=False)
    with progress.switched_on(), progress.bar("layer 1", 2) as bar:
        bar.update()
    assert "\rlayer 1:  50%" in capsys.readouterr().err


def test_lines_are_folded_between_words_at_the_end_of_a_terminal_and_nowhere_else(monkeypatch):
    line = "mless             36.5 %  [27.5, 46.5]  n = 96"
    assert progress.folded(line) == line
    monkeypatch.setattr(progress.sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("COLUMNS", "30")
    folded = progress.folded(f"{line}\n{line}").splitlines()
    assert max(map(len, folded)) <= 30 and len(folded) == 4 and folded[1] == "    [27.5, 46.5]  n = 96"
