"""A small profile's results and figures, made by hand, from which a page is made."""

import gzip
import json

from hand_written import keep, record

from lib.claims.verdicts import Verdict, write_verdicts
from lib.profiles import Profile

ANSWERED = "SmolLM2-135M-Instruct"  # as the demo model is called
# as a model's text
EVIL = (
    "</script><script>window.pwned = 1</script><img src=x onerror='window.pwned ="
    " 1'>\"'\u2028"
)


def verdict(id: str = "dilution", model: str = ANSWERED, **changes) -> Verdict:
    """Return a verdict, supported by 40 problems unless changed."""
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
    """Return a completion that says what it is."""
    own = {"model": ANSWERED, "response": f"{problem} under {condition}"}
    return record(condition, problem, correct, **own | changes)


def write_answers(profile: Profile, *records: dict) -> None:
    """Write completions into the profile's results."""
    keep(profile.results / "completions.jsonl", records)


def make_evil(profile: Profile) -> None:
    """Let every text of a model try to get out of its place on the page."""
    write_verdicts(profile, [verdict(EVIL, EVIL, claim=EVIL, reading=EVIL)])
    evil = {"response": f"{EVIL}\ud800"}
    pair = answer("a", "none", False, **evil), answer("a", "mless", True, **evil)
    write_answers(profile, *pair)
    (profile.figures / "<img src=x onerror=alert(1)>.png").touch()
    file = profile.results / "prompt" / f"{ANSWERED}.json.gz"
    prompt = json.loads(gzip.decompress(file.read_bytes()))
    prompt["tokens"][0] = EVIL
    file.write_bytes(gzip.compress(json.dumps(prompt).encode()))
