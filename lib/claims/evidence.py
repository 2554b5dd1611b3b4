"""What was measured on one model, which the functions of internals.py and answers.py turn into a claim's numbers.

Each of them takes the evidence and the claim's arguments and returns components; it raises Untestable, which says why,
when the profile did not measure what it needs.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from lib.evaluation.records import Record
from lib.measurement.run import Measured

EMBEDDED = "embedded/"  # begins the ids of the embedded set, embedded/<template>/<number>
UNIFORM = "uniform"  # names the control without a network, whose queries attend equally to all they may see


class Untestable(Exception):
    """Says why these measurements cannot test a claim."""


@dataclass(frozen=True)
class Evidence:
    """All that a profile measured on one model; `records` by part: main, fillers, sampling, interventions, arm_map.

    plain: the prompts of the answers are the paper's, and nothing is elicited. outcome: what counts as solved, as
    `lib.evaluation.records.outcome_of` says. controls: by seed or name the same attention and activations without
    training, on the same problems in the same order.
    """

    model: str
    attention: Measured | None = None
    activations: Measured | None = None
    records: dict[str, list[Record]] = field(default_factory=dict)
    plain: bool = False
    outcome: str = "correct"
    controls: "dict[str, Evidence]" = field(default_factory=dict)


def templates(problems: Sequence[str]) -> list[str] | None:
    """Return the template of each problem of the embedded set by its id, None for problems of other origin."""
    if not all(problem.startswith(EMBEDDED) for problem in problems):
        return None
    return [problem.split("/")[1] for problem in problems]
