"""What was found beside the answer is said with its own numbers."""

from lib.claims.verdict import Estimate, Verdict
from lib.sentences.findings import checks


def control(claim, model, effect, n):
    """Return a verdict on a control whose interval is two points wide."""
    return Verdict(
        id=claim,
        claim="A control",
        reading="control",
        source="control",
        model=model,
        unit="points",
        range=(0, None),
        written="before",
        part="example - none",
        estimate=Estimate(effect, effect - 1, effect + 1, n),
        survives=True,
    )


def test_controls_of_the_same_problems_share_a_sentence():
    lines = checks(
        [
            control("accuracy-example", "small", 4, 75),
            control("accuracy-instruction", "small", -2, 75),
            control("points-sentence", "small", 3, 120),
            control("accuracy-example", "large", 5, 75),
            control("accuracy-instruction", "large", 9, 19),  # too few to tell
        ]
    )
    assert lines == [
        "In small accuracy changes by +4.0 [+3.0, +5.0] points by a worked example"
        " and by -2.0 [-3.0, -1.0] points by the instruction (75 problems).",
        "In large accuracy changes by +5.0 [+4.0, +6.0] points by a worked example"
        " (75 problems).",
        "In small accuracy changes by +3.0 [+2.0, +4.0] points by an ordinary sentence"
        " in place of the slashes (120 problems).",
    ]
