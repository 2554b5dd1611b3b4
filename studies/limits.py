"""The stored greedy answers under lower token limits.

An answer that is longer than the limit counts as truncated, and so as wrong.

    python -m studies.limits

Writes studies/results/limits.csv and prints it: a row per model and limit, with the
accuracy and the share of truncated answers under either condition, the change in
accuracy by slashes, and their change in the length of answers that end under both
conditions.
"""

from lib import evaluation
from lib.evaluation.answer_tables import by_limit
from lib.profiles import load_profile
from studies.keeping import RESULTS, keep

LIMITS = (256, 320, 384, 448, 512, 576, 640, 704, 768)


def main() -> None:
    """Write the table of the families' answers."""
    table = by_limit(evaluation.answers(load_profile("families")), LIMITS)
    keep(RESULTS / "limits.csv", table)


if __name__ == "__main__":
    main()
