"""What a claim on answers asks of the evidence: a number per problem for each component, in % or points."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from lib.claims.evidence import Evidence, Untestable
from lib.claims.verdicts import Component
from lib.evaluation.records import groups, matrix, shares
from lib.evaluation.samples import by_problem, distinct_2
from lib.statistics import POINTS, pass_at_k


def _records(evidence: Evidence, part: str, condition: str) -> pd.DataFrame:
    found = groups(evidence.records.get(part, [])).get((evidence.model, condition))
    if found is None:
        raise Untestable(f"the profile answers no problems under {condition} with {evidence.model} ({part})")
    return found


def _accuracies(evidence: Evidence, part: str, condition: str) -> dict[str, float]:
    """Return the accuracy in % of each problem over its samples."""
    return shares(_records(evidence, part, condition), evidence.outcome).to_dict()


def _apart(label: str, more: dict[str, float], less: dict[str, float]) -> Component:
    """Return the paired differences of what both have."""
    common = [problem for problem in more if problem in less]
    return Component(label, np.array([more[problem] - less[problem] for problem in common]), "difference", common)


def accuracy_unaided(evidence: Evidence, part: str, condition: str) -> list[Component]:
    """Return the accuracy under a condition in %, where the model is left to write its answer itself."""
    found = _accuracies(evidence, part, condition)
    if not evidence.plain:
        raise Untestable(f"{evidence.model} is asked in chat form, or its answer is elicited after what was inserted")
    return [Component(condition, np.array(list(found.values())), "share", list(found))]


def accuracy_differences(evidence: Evidence, part: str, pairs: Sequence[Sequence[str]]) -> list[Component]:
    """Return for each pair of conditions the accuracy of the first minus that of the second, in points."""
    return [
        _apart(f"{more} - {less}", _accuracies(evidence, part, more), _accuracies(evidence, part, less))
        for more, less in pairs
    ]


def largest_gain(evidence: Evidence, part: str) -> list[Component]:
    """Return each condition's accuracy minus that of none: the best of them is to be more than choosing it gives."""
    conditions = dict.fromkeys(record["condition"] for record in evidence.records.get(part, []))
    found = {name: _accuracies(evidence, part, name) for name in ("none", *conditions)}
    if len(found) < 3:
        raise Untestable(f"the profile compares fewer than two conditions with none ({part})")
    common = [problem for problem in found["none"] if all(problem in some for some in found.values())]
    before = found.pop("none")
    values = np.array([[some[problem] - before[problem] for some in found.values()] for problem in common])
    return [Component(f"best of {len(found)}", values, "largest", common)]


def _solved(evidence: Evidence, condition: str, k: int) -> dict[str, float]:
    group = _records(evidence, "sampling", condition)
    values = matrix(group, evidence.outcome).to_numpy()
    if values.shape[1] < k or np.isnan(values).any():
        raise Untestable(f"pass@{k} needs {k} samples of each problem, and {values.shape[1]} were taken")
    return dict(zip(by_problem(group), (POINTS * pass_at_k(values, k)).tolist(), strict=True))


def pass_differences(evidence: Evidence, condition: str, k: int) -> list[Component]:
    """Return a condition minus none: pass@k, in points."""
    return [_apart(f"pass@{k}", _solved(evidence, condition, k), _solved(evidence, "none", k))]


def sampling_differences(evidence: Evidence, condition: str, k: int) -> list[Component]:
    """Return a condition minus none: pass@k and the share of distinct 2-grams of a problem's samples, in points."""
    groups_of = (by_problem(_records(evidence, "sampling", name)) for name in (condition, "none"))
    after, before = ({problem: POINTS * distinct_2(texts) for problem, texts in some.items()} for some in groups_of)
    return [*pass_differences(evidence, condition, k), _apart("distinct 2-grams", after, before)]
