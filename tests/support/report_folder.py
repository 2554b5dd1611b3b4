"""Results and figures of a small profile, made by hand, as input for a report page."""

import gzip
import json

from hand_written import keep, record

from lib.claims.verdict_files import write_verdicts
from lib.claims.verdicts import Verdict
from lib.measurement.animated_prompt import AnimatedPromptPart
from lib.profiles import Profile

ANSWERED = "SmolLM2-135M-Instruct"  # the demo model's name in results
# A text of a model that tries to run code on the page.
EVIL = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned ="
    " 1'>\"'\u2028"
)


def verdict(id: str = "dilution", model: str = ANSWERED, **changes) -> Verdict:
    """Return a verdict: supported with n = 40, except for the changed fields."""
    fields = {
        "claim": "Every head drops",
        "reading": "literal",
        "source": "Fig. 2",
        "unit": "λ",
        "range": (None, 1),
        "written": "after",
        "verdict": "supported",
        "effect": 0.8,
        "low": 0.7,
        "high": 0.9,
        "n": 40,
        "survives": True,
    }
    return Verdict(id=id, model=model, **fields | changes)


def answer(problem: str, condition: str, correct: bool, **changes) -> dict:
    """Return a completion whose response names its problem and condition."""
    fields = {"model": ANSWERED, "response": f"{problem} under {condition}"}
    return record(condition, problem, correct, **fields | changes)


def write_answers(profile: Profile, *records: dict) -> None:
    """Write completions into the profile's results."""
    keep(profile.results / "completions.jsonl", records)


def make_evil(profile: Profile) -> None:
    """Replace every text of a model in a profile's results by EVIL."""
    write_verdicts(profile, [verdict(EVIL, EVIL, claim=EVIL, reading=EVIL)])
    evil = {"response": f"{EVIL}\ud800"}
    pair = answer("a", "none", False, **evil), answer("a", "mless", True, **evil)
    write_answers(profile, *pair)
    (profile.figures / "<img src=x onerror=alert(1)>.png").touch()
    file = AnimatedPromptPart(profile).files()[ANSWERED]
    prompt = json.loads(gzip.decompress(file.read_bytes()))
    prompt["tokens"][0] = EVIL
    file.write_bytes(gzip.compress(json.dumps(prompt).encode()))
