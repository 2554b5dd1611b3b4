"""What a lower token limit would have made of the stored answers.

An answer that is longer than the limit counts as wrong, as one that was cut does.

    python -m studies.limits

Writes studies/results/limits.csv and prints it: a row per model and limit, with the
accuracy and the share of answers that are cut under either condition, the change by
slashes, and by how many tokens slashes change the answers that end in both.
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
