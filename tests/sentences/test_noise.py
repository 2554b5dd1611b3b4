"""What changes with slashes is told beside what changes without any."""

import pandas as pd
import pytest

from lib.sentences import noise


@pytest.fixture
def asked_again(tmp_path, monkeypatch):
    table = {"model": ["a"], "dtype": ["float32"], "n": [60], "lost": [1]}
    file = tmp_path / "again.csv"
    pd.DataFrame(table | {"gained": [2]}).to_csv(file, index=False)
    monkeypatch.setattr(noise, "AGAIN", file)
    return file


def test_changes_with_slashes_stand_beside_those_without(asked_again):
    power = pd.DataFrame(
        {"model": ["a", "b"], "condition": "mless", "discordant": [11.14, 4]}
    )
    (sentence,) = noise.noise_sentences(power)
    assert sentence == (
        "With slashes 11.1 % of the answers of a change between right and wrong; asked"
        " again without any, 5.0 % of 60 do (studies/again.py, float32)."
    )
    assert noise.noise_sentences(power[:0]) == []
    asked_again.unlink()
    assert noise.noise_sentences(power) == []
