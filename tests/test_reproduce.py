"""What a run computes before its notebooks start."""

import pandas as pd
import pytest

from lib import evaluation, paths, reproduce
from lib.errors import InputError
from lib.profiles import load_profile


def test_the_demos_stored_answers_are_checked_in_a_folder_of_their_own_unless_all_are_made_anew(
    monkeypatch, tmp_path, capsys
):
    asked, some = [], evaluation.answers(load_profile("demo"))[:3]
    monkeypatch.setattr(paths, "RESULTS", tmp_path)

    def answers(profile, folder):
        asked.append((profile.accuracy.limit, folder))
        return some

    monkeypatch.setattr(evaluation, "answers", answers)
    for fresh in (False, True):
        reproduce._prepare("main", load_profile("demo"), fresh)
    assert asked == [
        (reproduce.CHECKED, tmp_path / "demo" / "check"),
        (96, tmp_path / "demo"),
    ]
    assert (
        capsys.readouterr().out.count("3 of 3 completions agree with the stored demo's")
        == 2
    )


def test_a_profile_without_likelihoods_leaves_their_notebook_out(
    monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(paths, "RESULTS", tmp_path)
    for name in ("_execute", "_prepare", "read_verdicts"):
        monkeypatch.setattr(reproduce, name, lambda *given: None)
    monkeypatch.setattr(
        reproduce,
        "counts",
        lambda verdicts: pd.DataFrame({"model": ["m"], "supported": [3]}),
    )
    both, families = (
        paths.notebooks(["06", "07"]),
        ["[1/2] 06_claims", "[2/2] 07_does_it_help"],
    )
    for profile, expected in (("demo", ["[1/1] 06_claims"]), ("families", families)):
        reproduce.reproduce(load_profile(profile), both, fresh=False)
        printed = capsys.readouterr().out.splitlines()
        assert [line for line in printed if line.startswith("[")] == expected
        assert ["m", "3"] in [line.split() for line in printed]
    with pytest.raises(
        InputError,
        match="profile demo has no section `likelihood`, which notebook 07 shows",
    ):
        reproduce.reproduce(load_profile("demo"), both[1:], fresh=False)
