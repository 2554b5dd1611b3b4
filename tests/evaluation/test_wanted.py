"""What the demo profile asks for is what is stored with the repository, key by key."""

import pytest

from lib import paths
from lib.evaluation.of_profile import STORED_DEMO, agreement
from lib.evaluation.store import read_records
from lib.evaluation.wanted import wanted
from lib.profiles import PARTS, load_profile, variation
from lib.prompts.problems import load_problems


@pytest.mark.parametrize("part", ["completions", *PARTS])
def test_stored_completions_keep_their_keys(demo, part):
    profile = load_profile("demo")
    accuracy = profile.accuracy if part == "completions" else variation(profile.accuracy, part)
    problems = load_problems(accuracy.problems, limit=accuracy.limit, seed=profile.seed)[:3]
    asked = wanted(demo, accuracy, profile.filler, profile.seed, problems)
    stored = {record["key"]: record for record in read_records(paths.DATA / f"demo_{part}.jsonl")}
    assert len(asked) == 3 * len(accuracy.conditions) * accuracy.samples
    for key, one in asked.items():
        assert (stored[key]["problem_id"], stored[key]["condition"]) == (one.problem.id, one.condition)


def test_agreement_compares_texts_of_the_same_problem_and_condition():
    records = read_records(STORED_DEMO)[:20]
    assert agreement(records) == (20, 20)
    assert agreement([records[0] | {"response": "other"}, records[1], records[2] | {"condition": "he"}]) == (1, 2)
