"""Every sentence about the stored verdicts is true.

Recomputed from their numbers, as a reader would who doubts it.
"""

import re

import numpy as np
import pandas as pd
import pytest
from evidence import CLAIMS, answers, inside, right

from lib import evaluation, paths
from lib.claims.evidence import by_model
from lib.claims.judging import judge
from lib.claims.verdict_tables import (
    counts,
    stored_verdicts,
    totals,
    verdict_table,
    verdicts_of,
)
from lib.profiles import load_profile
from lib.sentences import all_verdicts, findings
from lib.sentences.one_verdict import measured_text
from lib.statistics import holm

NUMBER = re.compile(r"[-+]?\d[\d,]*(?:\.\d+)?")
FINDINGS = (paths.ROOT / "docs" / "findings.md").read_text(encoding="utf-8")


def stored(profile):
    """Return the rows of a profile's verdicts as they lie in the repository."""
    return pd.read_csv(stored_verdicts(profile)).to_dict("records")


def judged():
    """Return verdicts on two models whose numbers are made up here."""
    evidence = {}
    for model, shift in (("a", 0.0), ("b", 0.3)):
        # λ of five networks in six layers: the trained one's last is the evenest.
        means = np.array([0.6 + shift, 0.5, 0.55, 0.45, 0.4])
        lam = np.broadcast_to(means[:, None, None, None, None], (5, 5, 40, 6, 2))
        noise = np.random.default_rng(1).normal(0, 0.02, (5, 1, 40, 6, 2))
        deeper = 0.1 * np.arange(6)[:, None]
        arrays = {"lambda": lam + noise + deeper}
        networks = ("trained", "untrained 0", "untrained 1", "untrained 2", "uniform")
        known = {"measured": inside(layers=6, networks=networks, **arrays)}
        known |= answers(none=right(20), mless=right(30), mful=right(19))
        evidence[model] = known
    return judge(list(CLAIMS.values()), evidence)


@pytest.fixture(params=["demo", "families", "judged"])
def rows(request):
    if request.param == "judged":
        return verdict_table(judged()).to_dict("records")
    return stored(request.param)


@pytest.fixture
def verdicts(rows):
    return verdicts_of(pd.DataFrame(rows))


def test_verdicts_say_the_same_before_they_are_kept_and_after():
    before = judged()
    after = verdicts_of(verdict_table(before))
    assert all_verdicts.lead(before) == all_verdicts.lead(after)
    assert all_verdicts.listing(before) == all_verdicts.listing(after)
    assert all_verdicts.inside(before) == all_verdicts.inside(after)
    assert findings.accuracies(before) == findings.accuracies(after)
    assert list(map(measured_text, before)) == list(map(measured_text, after))


@pytest.mark.parametrize("claim", ["accuracy-mless", "likelihood-gain"])
def test_what_is_stored_is_what_the_stored_answers_and_scores_give(claim):
    run = load_profile("families")
    tables = {"answers": [evaluation.answers(run)], "scores": evaluation.scores(run)}
    verdicts = judge([CLAIMS[claim]], by_model(run, **tables))
    kept = {row["model"]: row for row in stored("families") if row["id"] == claim}
    for row in verdict_table(verdicts).to_dict("records"):
        known = kept[row["model"]]
        for name in ("verdict", "part", "n"):
            assert row[name] == known[name]
        for name in ("effect", "low", "high", "cut", "finished_high", "needed_low"):
            now = np.array(row[name], dtype=float)
            np.testing.assert_allclose(now, known[name], rtol=1e-4)


def numbers(text):
    return [float(number.replace(",", "")) for number in NUMBER.findall(text)]


def names(value):
    return [] if pd.isna(value) or not value else value.split(", ")


def standing(row):
    """Return how a row stands, by hand."""
    if row is None or row["n"] == 0:
        return "not tested"
    return "too few" if row["n"] < 20 else row["verdict"]


def counted(rows):
    """Return how the literal claims stand on each model, by hand."""
    claims = {row["id"] for row in rows if row["reading"] == "literal"}
    by_place = {(row["id"], row["model"]): row for row in rows}
    counts = {}
    for claim in claims:
        for model in {row["model"] for row in rows}:
            word = standing(by_place.get((claim, model)))
            counts[word] = counts.get(word, 0) + 1
    return counts


def test_each_verdict_follows_from_its_own_interval_parts_and_controls(rows):
    for row in (row for row in rows if row["n"] >= 20):
        low = -float("inf") if pd.isna(row["low_end"]) else row["low_end"]
        high = float("inf") if pd.isna(row["high_end"]) else row["high_end"]
        inside = low < row["low"] and row["high"] < high
        outside = row["high"] < low or row["low"] > high
        refuted = bool(names(row["refuted"]))
        supported = row["verdict"] == "supported"
        assert supported == (row["held"] == row["parts"])
        assert inside or not supported
        assert (row["verdict"] == "in part") == (row["held"] > 0 and refuted)
        assert (row["verdict"] == "contradicted") == (row["held"] == 0 and refuted)
        if row["verdict"] == "contradicted" and row["parts"] == 1:
            assert outside
        if not pd.isna(row["training"]):
            assert row["control_verdict"] == row["verdict"]
        assert CLAIMS[row["id"]].reading == row["reading"]


def test_what_is_lost_is_what_holm_loses(rows, verdicts):
    tested = [row for row in rows if row["n"]]
    for row, p in zip(tested, holm([row["p"] for row in tested]), strict=True):
        assert row["p_holm"] == pytest.approx(p, rel=1e-4)
        survives = row["verdict"] != "undecided" and p <= 0.05
        assert bool(row["survives"]) == survives

    enough = [row for row in tested if row["n"] >= 20]
    decided = [row for row in enough if row["verdict"] != "undecided"]
    lost = {row["id"] for row in decided if row["p_holm"] > 0.05}
    sentence = all_verdicts.closing(verdicts)[-1]
    stand = sum(row["p_holm"] <= 0.05 for row in decided)
    assert numbers(sentence)[:2] == [stand, len(decided)]
    assert set(re.findall(r"[\w-]+(?= \(|,|\.$)", sentence.split(": ")[1])) >= lost


def test_the_counts_add_up_to_the_cells_and_are_the_verdicts(rows, verdicts):
    by_hand = counted(rows)
    assert totals(verdicts) == by_hand
    literal = [row for row in rows if row["reading"] == "literal"]
    claims = {row["id"] for row in literal}
    models = {row["model"] for row in literal}
    assert sum(by_hand.values()) == len(claims) * len(models)

    sentence = all_verdicts.lead(verdicts)[0].split(": ", 1)[1].rstrip(".")
    told = dict(reversed(part.split(" ", 1)) for part in sentence.split(", "))
    assert told == {word: str(count) for word, count in by_hand.items()}
    for wide in counts(verdicts).to_dict("records"):
        model = wide.pop("model")
        words = [standing(row) for row in literal if row["model"] == model]
        assert wide["supported"] == words.count("supported")
        assert sum(wide.values()) == len(claims)


def test_claims_of_other_papers_and_controls_are_counted_apart(rows, verdicts):
    lines = all_verdicts.counted_apart(verdicts)
    for reading, word in (("other", "of other papers"), ("control", "controls")):
        tested = [row for row in rows if row["reading"] == reading and row["n"]]
        (line,) = [line for line in lines if word in line] or [""]
        if not tested:
            assert line == ""
            continue
        claims, cells, *stand = numbers(line)
        assert claims == len({row["id"] for row in tested})
        assert cells == len(tested) == sum(stand)


def test_the_checks_tell_what_the_controls_say(rows, verdicts):
    lines = findings.checks(verdicts)
    controls = [row for row in rows if row["reading"] == "control" and row["n"] >= 20]
    by_claim = {}
    for row in controls:
        by_claim.setdefault(row["id"], []).append(row)
    in_nats = [claim for claim in by_claim if claim.startswith("likelihood-")]
    in_points = [row for row in controls if row["unit"] == "points"]
    told_together = {(row["model"], row["n"]) for row in in_points}
    assert len(lines) == len(in_nats) + len(told_together)
    text = "\n".join(lines)
    for model, n in told_together:
        told = rf"In {model} \({n} problems\) .* changes accuracy by .* points\."
        assert re.search(told, text)
    for claim, verdict in (
        ("likelihood-right", "supported"),
        ("likelihood-instruction", "contradicted"),
    ):
        if own := by_claim.get(claim):
            count = sum(row["verdict"] == verdict for row in own)
            assert f"in {count} of {len(own)} models" in text
    if example := by_claim.get("likelihood-example"):
        effects = [row["effect"] for row in example]
        assert f"{min(effects):.1f} to {max(effects):.1f} nats" in text


@pytest.mark.parametrize(
    ("verdicts", "text"),
    [
        (["supported", "supported, weaker than without training"], "yes, in all 2"),
        (["contradicted, and small", "in part (1 of 2)"], "no, in none of 2 models"),
        (["undecided", "too few"], "undecided"),
        (
            ["supported", "undecided"],
            "it holds in 1 of 2 models, undecided in 1.",
        ),
        (
            ["contradicted", "undecided"],
            "no, in none of 2 models, undecided in 1.",
        ),
        (["supported", "small"], "it holds in 1 of 2 models."),
        (["supported"], "yes, in the one model"),
        (["contradicted"], "no, not in the one model"),
    ],
)
def test_a_claim_is_answered_over_all_models(verdicts, text):
    table = pd.DataFrame({"claim": "It rises", "verdict": verdicts})
    other = pd.DataFrame({"claim": ["It falls"], "verdict": ["supported"]})
    table = pd.concat([table.assign(reading="literal"), other.assign(reading="strict")])
    (sentence,) = all_verdicts.claim_sentences(table)
    assert sentence.startswith(f"It rises: {text}")


def test_two_graders_judge_the_same_answers():
    rows = answers(none=right(20), mless=right(30))["answers"]
    table = rows.assign(correct=rows.right == 1, correct_authors=True)
    table["worked_out"] = table["correct_exact"] = table.correct
    table["correct_authors_on_completion"] = table.correct
    for name in ("elicited", "run_on"):
        table[name] = False
    (line,) = findings.graders_apart(table.assign(method="equal"))
    assert line.startswith("By this project's grader 33.3 % of the answers")
    assert "100.0 % of the same answers" in line
    assert "change the first by +16.7 [" in line
    assert "the second by +0.0 [" in line


def test_what_training_does_is_the_range_of_the_models(rows, verdicts):
    diluted = [row for row in rows if row["id"] == "dilution" and row["n"]]
    later = [row for row in rows if row["id"] == "later-layers" and row["n"]]
    lines = findings.finding(verdicts)
    trained, controls, *others = lines
    for text, kind in ((trained, ""), (controls, "control_"), (controls, "uniform_")):
        effects = [row[f"{kind}effect"] for row in diluted]
        assert round(min(effects), 2) in numbers(text)
        assert round(max(effects), 2) in numbers(text)
    if later:
        effects = [row["effect"] for row in later]
        assert numbers(others[-1])[1:] == sorted(
            {round(min(effects), 2), round(max(effects), 2)}
        )


def test_untrained_networks_get_the_same_verdict_so_often(rows, verdicts):
    _, _, _, same, stronger_or_weaker = all_verdicts.inside(verdicts) or [""] * 5
    if not same:
        return
    shared = {"stronger": 0, "weaker": 0, "also": 0}
    for row in rows:
        if row["reading"] == "literal" and isinstance(row["training"], str):
            shared[row["training"]] += 1
    assert numbers(same)[0] == sum(shared.values())
    assert numbers(stronger_or_weaker) == [
        sum(shared.values()),
        shared["weaker"],
        shared["stronger"],
    ]


def test_supported_in_all_some_and_none_is_so(rows, verdicts):
    for sentence in all_verdicts.inside(verdicts)[:3]:
        pattern = r"Supported in (\w+) of \d models: (.*)\.$"
        which, claims = re.match(pattern, sentence).groups()
        for claim in claims.split("; ") if claims != "nothing" else []:
            supported = [
                row["verdict"] == "supported"
                for row in rows
                if row["claim"].startswith(claim) and row["n"] >= 20
            ]
            true_of = {"all": all(supported), "none": not any(supported)}
            true_of["some"] = any(supported) and not all(supported)
            assert true_of[which], claim


@pytest.mark.parametrize(
    ("profile", "block"), [("families", "families"), ("demo", "claims")]
)
def test_the_findings_are_these_sentences_and_no_others(profile, block):
    verdicts = verdicts_of(pd.DataFrame(stored(profile)))
    pattern = rf"<!-- begin {block} -->\n(.*?)<!-- end"
    lines = re.search(pattern, FINDINGS, re.S)[1].strip().split("\n")
    known = [*all_verdicts.inside(verdicts), *all_verdicts.lead(verdicts)]
    known += findings.accuracies(verdicts)
    unknown = [line for line in lines if line.removeprefix("- ") not in known]
    heads = "- With slashes λ is below 1 in"
    assert not [line for line in unknown if not line.startswith(heads)], "make readme"
