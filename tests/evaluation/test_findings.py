"""Rows and sentences of notebooks 03 and 05, on hand-written tables: each sentence, and its opposite."""

import pandas as pd
import pytest

from lib.evaluation import findings
from lib.profiles import load_profile

NAN = float("nan")


def frame(columns, *rows):
    return pd.DataFrame(rows, columns=columns.split())


TABLE = frame(
    "model condition n accuracy effect effect_low effect_high p_value p_holm discordant only_none only_this",
    ("A", "none", 96, 17.7, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN),
    ("A", "mless", 96, 19.8, 2.1, -5.2, 9.4, 0.77, 1.0, 12.5, 5, 7),
    ("A", "arm", 96, 27.0, 9.3, 1.0, 15.0, 0.01, 0.03, 12.5, 1, 10),
    ("B", "none", 48, 60.0, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN),
    ("B", "mless", 48, 40.0, -20.0, -30.0, -9.0, 0.001, 0.002, 1.0, 10, 0),
)
COULD = frame(
    "model condition discordant smallest needed",
    ("A", "mless", 12.5, 9.99, 2451.0),
    ("A", "arm", 12.5, 9.99, 2451.0),
    ("B", "mless", 1.0, 9.99, NAN),
)
ENDS = [f"{measure}{end}" for measure in ("pass@1", "distinct 2-grams") for end in ("", " low", " high")]
WIDE = pd.DataFrame(
    [("A", "none", 32, 8, 19.9, 11.3, 29.3, 63.6, 61.3, 65.8), ("A", "arm", 32, 8, 16.8, 10.5, 23.8, 64.9, 62.7, 67.0)],
    columns=["model", "condition", "n", "samples", *ENDS],
)


def test_conditions_are_compared_beside_what_they_could_show():
    pairs = findings.compared(TABLE, COULD)
    assert pairs.only_this.tolist() == [7, 10, 0] and pairs.only_this.dtype == int
    assert pairs.condition.tolist() == ["mless", "arm", "mless"] and pairs.smallest.tolist() == [9.99] * 3


def test_a_gain_a_loss_and_neither_are_said():
    assert findings.effect_sentences(findings.compared(TABLE, COULD)) == [
        "A, mless: no effect was shown either way; it is +2.1 [-5.2, +9.4] points (n = 96). "
        "Two points would need 2,451 problems.",
        "A, arm: a gain was shown; it is +9.3 [+1.0, +15.0] points (n = 96). Two points would need 2,451 problems.",
        "B, mless: a loss was shown; it is -20 [-30, -9] points (n = 48). "
        "Two points are more than all the answers that changed.",
    ]


@pytest.mark.parametrize(
    "effects, text",
    [
        ([2.1, 3.1, 6.2], "is the same under every grader"),
        ([1.0, -6.2, -4.2], "depends on the grader"),
        ([1.0, 0.0, 1.0], "depends on the grader"),
    ],
)
def test_the_sign_of_an_effect_depends_on_the_grader_or_not(effects, text):
    judged = frame("model condition effect", ("A", "none", NAN), *(("A", "mful", effect) for effect in effects))
    assert findings.grader_sentences(judged) == [f"A, mful: the sign of the effect {text}."]


def test_conditions_become_columns_with_interval_and_n():
    parts = frame(
        "model condition level n accuracy low high",
        ("A", "none", 1, 20, 30.1, 15.4, 52.4),
        ("A", "none", 2, 19, 5.0, 1.0, 25.0),
        ("A", "mless", 1, 20, 35.0, 18.0, 57.0),
    )
    wide = findings.by_part(parts, "level")
    assert wide.columns.tolist() == ["model", "level", "none", "mless"]
    assert wide["none"].tolist() == ["30 [15, 52] n=20", "5 [1, 25] n=19"] and pd.isna(wide["mless"][1])


def test_this_runs_bars_stand_beside_the_papers():
    bars = findings.beside_paper(TABLE.assign(low=1.0, high=2.0).iloc[:2], {"B": {"none": 64}})
    assert bars.source.tolist() == ["this run"] * 2 + ["the paper"] and pd.isna(bars.low[2])
    first, second = findings.bar_groups(bars, "embedded")
    assert first == ("A, embedded set", [("none", 17.7, 1.0, 2.0), ("mless", 19.8, 1.0, 2.0)], False)
    assert second[0] == "B, MATH-500" and second[2] and second[1][0][:2] == ("none", 64)


def test_a_caption_says_how_many_problems_stand_behind_a_bar():
    lines = [findings.accuracy_line(load_profile("demo"), pd.Series(n), "bar") for n in ([96, 96], [80, 80, 200])]
    assert lines[0] == "Problems: embedded set, n = 96 per bar, 95 % intervals."
    assert "n = 80 to 200 per bar" in lines[1]


def test_captions_name_the_weights_that_answered_and_their_dtype():
    answers = frame("model dtype", ("SmolLM2-135M-Instruct", None), ("A", "bfloat16"))
    assert findings.answering(load_profile("demo"), answers) == {
        "SmolLM2-135M-Instruct": "SmolLM2-135M-Instruct, Q4_1, dequantised",
        "A": "A, bfloat16",
    }


def test_a_grid_has_the_settings_of_each_condition():
    grid = findings.arm_grid(pd.DataFrame({"condition": ["none", "arm:c=0.05:p1=90", "arm:layer=15"]}))
    assert grid[["c", "p1", "layer"]].to_numpy().tolist() == [[0.13, 99.5, 1], [0.05, 90, 1], [0.13, 99.5, 15]]


def test_completions_are_said_to_be_there_or_not():
    run = load_profile("demo")
    answers = frame("model", *[("A",)] * 3)
    answers.attrs["origin"] = "stored"
    assert findings.completions_sentence(run, answers, "sampling") == (
        "3 completions on embedded set, chat prompt, with answer elicitation, temperature 0.7; stored."
    )
    assert findings.completions_sentence(load_profile("families"), frame("model"), "fillers") == (
        "Not measured in the profile families: fillers of other lengths, places and kinds. The profile demo has them."
    )


def test_fillers_stand_in_the_panels_of_the_paper_beside_its_numbers():
    panels = {"Length": {"none": {"label": "0"}}, "Place": {"mless": {"label": "between", "reported": 75.0}, "x": {}}}
    points = findings.side_by_side(TABLE, panels)
    assert points[["model", "panel", "label"]].to_numpy().tolist() == [
        ["A", "Length", "0"],
        ["A", "Place", "between"],
        ["B", "Length", "0"],
        ["B", "Place", "between"],
    ]
    assert points.reported.tolist()[1] == 75 and pd.isna(points.reported[0])


def test_measures_of_samples_have_a_row_each():
    long = findings.spread_over_samples(WIDE)
    assert long.measure.tolist() == ["pass@1", "distinct 2-grams"] * 2
    assert long.iloc[1].tolist() == ["A", "none", 32, "distinct 2-grams", 63.6, 61.3, 65.8]


def test_noise_between_seeds_is_said():
    noise = frame("model n samples difference largest discordant", ("A", 32, 8, 4.81, 9.4, 20.2))
    assert findings.noise_sentences(noise) == [
        "A: two seeds of none differ by 4.8 points on average and by 9.4 at most; 20 % of problems change between two "
        "seeds."
    ]


def test_accuracy_has_a_row_per_model_with_its_own_table():
    a, b = findings.accuracy_rows(TABLE.assign(low=TABLE.accuracy - 8, high=TABLE.accuracy + 9))
    assert a["found"] == "none 17.7 [9.7, 26.7] %, mless 19.8 [11.8, 28.8] %, arm 27.0 [19.0, 36.0] %" and a["n"] == 96
    assert b["model"] == "B" and [row["accuracy"] for row in b["table"]] == [60, 40]


def test_fillers_that_surely_hurt_or_help_are_named():
    a, b = findings.filler_rows(TABLE)
    assert a["found"] == "shown to hurt: none; to help: arm"
    assert b["found"] == "shown to hurt: mless; to help: none"
    assert findings.filler_sentences(TABLE) == [
        "A: of 2 fillers shown to hurt: none; to help: arm (Holm, p < 0.05, n = 96).",
        "B: of 1 fillers shown to hurt: mless; to help: none (Holm, p < 0.05, n = 48).",
    ]


def test_interventions_are_said_with_interval_and_p():
    assert findings.arm_sentences(TABLE)[1] == "A: arm +9.3 [+1.0, +15.0] points, p = 0.01 (n = 96)."


@pytest.mark.parametrize("p, more", [(0.51, "no more"), (0.01, "more")])
def test_the_largest_effect_is_more_than_chance_gives_or_not(p, more):
    largest = frame("model conditions n largest expected p_value", ("A", 13, 48, 6.25, 5.8, p))
    assert findings.chance_sentences(largest) == [
        f"A: the largest of 13 effects, +6.2 points, is {more} than chance alone gives: +5.8 on average, at least as "
        f"large with p = {p:.2f} (n = 48)."
    ]


def test_arm_has_a_row_per_figure_that_the_profile_has():
    rows = findings.arm_rows(TABLE, findings.spread_over_samples(WIDE), TABLE[TABLE.condition == "mless"])
    assert [(row["figure"], row["model"]) for row in rows] == [
        ("table 2", "A"),
        ("fig06", "A"),
        ("fig12", "A"),
        ("fig12", "B"),
    ]
    assert rows[0]["found"] == "arm +9.3 [+1.0, +15.0] points, p = 0.01"
    assert rows[1]["found"] == "2-grams: none 63.6 [61.3, 65.8] %, arm 64.9 [62.7, 67.0] %"
    assert rows[3]["found"] == "effects of the map from -20.0 to -20.0 points"


def test_nothing_to_say_of_a_part_that_the_profile_lacks():
    nothing, no_spread = TABLE.iloc[:0], findings.spread_over_samples(pd.DataFrame())
    assert findings.arm_rows(nothing, no_spread, nothing) == findings.filler_rows(nothing) == []
    for sentences in (findings.arm_sentences, findings.filler_sentences):
        assert sentences(nothing) == []
    assert findings.noise_sentences(pd.DataFrame()) == findings.chance_sentences(pd.DataFrame()) == []
