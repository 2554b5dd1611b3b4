"""The figures of answers show what their tables hold, named and on its scale."""

import pandas as pd
from artists import texts

M = "SmolLM2-135M-Instruct"


def effects(*rows):
    """Return effects of one model with their ends: (condition, effect, low, high)."""
    columns = ["condition", "effect", "effect_low", "effect_high"]
    return pd.DataFrame(rows, columns=columns).assign(model=M, n=40)


ARMS = effects(
    ("none", 0, 0, 0),
    ("arm", 3, 2, 4),
    ("arm:c=0.1:p1=90", 5, 4, 6),
    ("arm:c=0.1:p1=95", 1, -1, 2),
    ("arm:c=0.2:p1=90", -4, -10, -3),
    ("arm:c=0.2:p1=95", 0, -1, 1),
    ("arm:c=0.1:p1=90:layer=2", 9, 8, 10),
    ("arm:layer=3", 2, 1, 3),
)


def test_the_map_of_arm_has_the_settings_that_were_tried_in_layer_1(drawn):
    ax, _ = drawn("fig12", ARMS)
    assert ax.images[0].get_array().tolist() == [[5, 1], [-4, 0]]
    assert ax.texts[0].get_text() == "+5.0\n[+4.0, +6.0]"
    assert ax.get_xlabel() == "p1 (percentile)"
    assert ax.get_ylabel() == "c"
    assert texts(ax.get_xticklabels()) == ["90", "95"]
    assert texts(ax.get_yticklabels()) == ["0.1", "0.2"]
    assert ax.get_title() == f"{M}: ARM in layer 1, points against none"


def test_the_map_of_arm_frames_only_cells_whose_interval_leaves_zero_out(drawn):
    ax, _ = drawn("fig12", ARMS)
    corners = [(round(frame.get_x()), round(frame.get_y())) for frame in ax.patches]
    assert corners == [(0, 0), (0, 1)]  # the gain and the loss that leave 0 out


def test_on_the_map_a_gain_is_orange_and_a_loss_as_large_is_as_dark(drawn):
    ax, _ = drawn("fig12", ARMS)
    (image,) = ax.images
    assert image.norm.vmin == -5
    assert image.norm.vmax == 5
    red, _, blue, _ = image.cmap(image.norm(5))
    assert red > blue
    red, _, blue, _ = image.cmap(image.norm(-5))
    assert blue > red
    # What is written stays readable on either of them.
    assert [text.get_color() for text in ax.texts] == ["white", "black"] * 2


def test_effects_below_a_point_stay_pale_on_the_map(drawn):
    small = ARMS.assign(effect=ARMS.effect / 10)
    ax, _ = drawn("fig12", small)
    (image,) = ax.images
    assert image.norm.vmin == -1
    assert image.norm.vmax == 1


def test_arm_in_other_layers_stands_beside_the_map(drawn):
    _, ax = drawn("fig12", ARMS)
    assert texts(ax.get_xticklabels()) == ["2", "3"]
    (points,) = [line for line in ax.lines if line.get_label() == "ARM"]
    assert points.get_ydata().tolist() == [9, 2]
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("Layer", "points against none")


SAMPLED = pd.DataFrame({"model": M, "condition": ["none", "mless"], "n": 40})
MEASURES = ("pass@1", "pass@3", "distinct 2-grams")
for place, name in enumerate(MEASURES):
    SAMPLED[name] = [10.0 * place + 20, 10.0 * place + 30]
    SAMPLED[f"{name} low"] = SAMPLED[name] - 1
    SAMPLED[f"{name} high"] = SAMPLED[name] + 2


def test_pass_at_k_rises_with_k_and_the_diversity_stands_beside_it_in_per_cent(drawn):
    passed, distinct = drawn("fig06", SAMPLED)
    curves = {line.get_label(): line for line in passed.lines}
    assert curves["None"].get_ydata().tolist() == [20, 30]
    assert curves["Mless"].get_ydata().tolist() == [30, 40]
    assert texts(passed.get_xticklabels()) == ["1", "3"]
    points = {line.get_label(): line for line in distinct.lines}
    assert points["None"].get_ydata().tolist() == [40]
    assert points["Mless"].get_ydata().tolist() == [50]
    assert texts(distinct.get_xticklabels()) == ["None", "Mless"]
    assert passed.get_ylim() == distinct.get_ylim() == (0, 100)


FILLERS = pd.DataFrame(
    {
        "model": M,
        "condition": ["none", "mless", "mless:10"],
        "accuracy": [50.0, 60, 70],
        "low": [40.0, 50, 60],
        "high": [60.0, 70, 80],
        "n": 40,
    }
)


def test_fillers_are_named_as_the_paper_names_them(drawn):
    length, *_ = drawn("fig08", FILLERS)
    assert texts(length.get_xticklabels()) == ["0", "10", "55"]
    (own,) = [line for line in length.lines if line.get_label() == "this run"]
    assert own.get_ydata().tolist() == [50, 70, 60]
