"""What one verdict says, in words that follow from its numbers alone."""

from lib.claims.verdict import EVEN, OTHER_HEADS, SMALL, UNTRAINED, Control, Verdict
from lib.statistics import rounded

LOST = " †"  # marks a verdict that does not stand when corrected for all rows
TRAINING = {
    "also": ", also without training",
    "stronger": ", stronger than without training",
    "weaker": ", weaker than without training",
}


def verdict_text(verdict: Verdict, mark_lost: bool = True) -> str:
    """Return how a claim stands: of how many parts, and what training adds to it."""
    text = verdict.stands
    if verdict.stands == "in part":
        text += f" ({len(verdict.holds)} of {verdict.parts})"
    if verdict.small and verdict.decided and verdict.stands != SMALL:
        text += f", and {SMALL}"
    if verdict.lost and mark_lost:
        text += LOST
    return text + TRAINING.get(verdict.training or "", "")


def measured_text(verdict: Verdict) -> str:
    """Return in one line what was measured and claimed, and what belongs beside it.

    The parts, the controls, and the answers that were cut.
    """
    if verdict.n == 0:
        return f"Not tested: {verdict.reason}"
    clusters = verdict.clusters or 0
    parts = [f"{verdict.part}: {verdict.estimate} {verdict.unit}"]
    parts[0] += f", claimed {_range_text(verdict)}, n = {verdict.n}"
    if 0 < clusters < verdict.n:
        parts[0] += f" of {clusters} templates"
    if verdict.heads:
        parts.append(f"as claimed in {verdict.heads_held} of {verdict.heads} heads")
    if verdict.parts > 1:
        parts.append(_parts_text(verdict))
    if verdict.paper is not None:
        parts.append(f"the paper {verdict.paper:g} ({verdict.paper_of})")

    controls = verdict.controls
    if UNTRAINED in controls:
        parts.append(untrained_text(controls[UNTRAINED]))
    if OTHER_HEADS in controls:
        parts.append(f"with other heads' keys {controls[OTHER_HEADS]}")
    if EVEN in controls:
        parts.append(f"evenly spread attention {controls[EVEN]}")
    return "; ".join(parts) + answers_text(verdict)


def _range_text(verdict: Verdict) -> str:
    low, high = verdict.range
    if low is None:
        return f"< {high:g}"
    if high is None:
        return f"> {low:g}"
    return f"{low:g} to {high:g}"


def _parts_text(verdict: Verdict) -> str:
    if len(verdict.holds) == verdict.parts:
        return f"all {verdict.parts} parts hold"
    holds = ", ".join(verdict.holds) or "none"
    refuted = ", ".join(verdict.refuted) or "none"
    return f"of {verdict.parts} parts hold: {holds}; refuted: {refuted}"


def answers_text(verdict: Verdict) -> str:
    """Return what belongs beside an accuracy.

    The answers that were cut, the effect on the others, and the n that decides.
    """
    text = ""
    if answers := verdict.answers:
        text += (
            f"; {answers.cut:.0f} and {answers.cut_less:.0f} % of answers were cut at"
            " the token limit"
        )
        if finished := answers.finished:
            text += f"; {finished:+} where both ended (n = {finished.n})"
    if power := verdict.power:
        text += (
            f"; an effect of {abs(verdict.paper or 0):g}, the paper's for"
            f" {verdict.paper_of}, needs n = {power.needed:,.0f}"
        )
        if power.low:
            text += f" ({power.low:,.0f} to {power.high:,.0f})"
    return text


def untrained_text(control: Control) -> str:
    """Return between which ends untrained networks lie."""
    low, high = control.low, control.high
    return f"untrained {rounded(low, low, high)} to {rounded(high, low, high)}"
