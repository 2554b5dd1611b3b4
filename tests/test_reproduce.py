"""What a run computes before its notebooks start."""

from lib import reproduce
from lib.evaluation.of_profile import STORED_DEMO
from lib.evaluation.store import read_records
from lib.profiles import load_profile


def test_the_demos_stored_answers_are_checked_in_a_folder_of_their_own_unless_all_are_made_anew(
    monkeypatch, tmp_path, capsys
):
    asked = []

    def generated(profile, accuracy, folder):
        asked.append((accuracy.limit, folder))
        return read_records(STORED_DEMO)[:3]

    monkeypatch.setattr(reproduce, "generated", generated)
    for anew in (False, True):
        reproduce._prepare("completions", load_profile("demo"), tmp_path, anew)
    assert asked == [(reproduce.CHECKED, tmp_path / "check"), (96, tmp_path)]
    assert capsys.readouterr().out.count("3 of 3 completions agree with the stored demo's") == 2
