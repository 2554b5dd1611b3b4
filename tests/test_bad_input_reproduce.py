"""What `reproduce`, `claims`, `report` and a notebook's parameters refuse: profiles, problems, models, folders."""

import json

import pytest
from refusals import OVERRIDES, PROFILES, refused

from lib import paths
from lib.errors import InputError
from lib.profiles import run_profile


@pytest.mark.parametrize("profile, said", PROFILES, ids=[profile for profile, _ in PROFILES])
def test_reproduce_refuses_a_profile_in_one_line(profile, said, tmp_path, capsys, monkeypatch):
    refused(f"reproduce --profile {profile}", said, tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize("options, said", OVERRIDES, ids=[options for options, _ in OVERRIDES])
def test_reproduce_refuses_an_option_in_one_line(options, said, tmp_path, capsys, monkeypatch):
    refused(f"reproduce {options}", said, tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize(
    "options, said",
    [
        ("--profile nope", "unknown profile 'nope'"),
        ("--problems empty.jsonl", "empty.jsonl holds no problems"),
        ("--problems digits.jsonl", "not usable JSON"),
        ("--limit LONG", "--limit: must be a whole number"),
    ],
)
def test_claims_refuses_in_one_line(options, said, tmp_path, capsys, monkeypatch):
    refused(f"claims {options}", said, tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize(
    "content, said",
    [
        (None, "no claims of profile demo yet: python -m lib claims --profile demo"),
        ("", "claims.json holds no claims"),
        ("{}", "claims.json holds no claims (no list)"),
        ("[1]", "claims.json holds no claims (row 1: it is missing or wrong)"),
        ("[" * 100_000, "claims.json holds no claims"),
        ("[" + "9" * 5000 + "]", "claims.json holds no claims"),
        (json.dumps([{"id": "a"}]), "row 1: effect is missing or wrong"),
    ],
)
def test_report_refuses_damaged_claims_in_one_line(content, said, tmp_path, capsys, monkeypatch):
    if content is not None:
        (tmp_path / "results" / "demo").mkdir(parents=True)
        (tmp_path / "results" / "demo" / "claims.json").write_text(content)
    refused("report", said, tmp_path, capsys, monkeypatch)


@pytest.mark.parametrize(
    "parameters, said",
    [
        ({"limit": "abc"}, "parameters: limit: must be a whole number, not 'abc'"),
        ({"limit": 0}, "parameters: limit: must be greater than 0"),
        ({"limit": 10**4000}, "parameters: limit: must be 0 or between"),
        ({"model": 7}, "parameters: model: must be a text, not 7"),
        ({"model": ""}, "parameters: model: must not be empty"),
        ({"problems": 500}, "parameters: problems: must be a text, not 500"),
        ({"name": ["a"]}, "parameters: name: must be a text"),
        ({"name_or_path": 7}, "unknown profile '7'"),
    ],
)
def test_a_notebook_refuses_a_parameter_as_papermill_hands_it_over(parameters, said):
    with pytest.raises(InputError) as caught:
        run_profile(**{"name_or_path": "demo"} | parameters)
    assert said in str(caught.value)


@pytest.mark.parametrize("name", ["1", "01", "01_attention_maps", "01_attention_maps.ipynb"])
def test_a_notebook_is_named_in_every_way_a_person_would(name):
    assert [path.stem for path in paths.notebooks([name])] == ["01_attention_maps"]
