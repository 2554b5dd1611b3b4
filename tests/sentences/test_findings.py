"""What was found beside the answer is said with its own numbers."""

from lib.claims.verdict import Verdict
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
        effect=effect,
        low=effect - 1,
        high=effect + 1,
        n=n,
        survives=True,
    )


def test_controls_of_the_same_problems_stand_together():
    lines = checks(
        [
            control("accuracy-example", "small", 4, 75),
            control("accuracy-instruction", "small", -2, 75),
            control("accuracy-sentence", "small", 3, 75),
            control("accuracy-example", "large", 5, 75),
            control("accuracy-instruction", "large", 9, 19),  # too few to tell
        ]
    )
    assert lines == [
        "In small (75 problems) a worked example changes accuracy by +4.0 [+3.0, +5.0]"
        " points. The instruction changes it by -2.0 [-3.0, -1.0]. An ordinary sentence"
        " changes it by +3.0 [+2.0, +4.0].",
        "In large (75 problems) a worked example changes accuracy by +5.0 [+4.0, +6.0]"
        " points.",
    ]
