"""Write the tables and numbers of README.md and docs, from stored files and the code.

`make readme`, after verdicts or figures were made anew or the benchmarks run, writes
what stands between their markers. tests/test_readme.py holds them against what this
would write. benchmarks/results/commands.csv, the time and the disk of the two commands,
is kept by hand.
"""

import sys
from collections.abc import Callable

from docs import answer_blocks, cost_blocks, profile_blocks, study_blocks
from docs.markdown import with_blocks
from lib.errors import InputError
from lib.paths import ROOT, write_whole

README = ROOT / "README.md"
PROFILES_PAGE = ROOT / "docs" / "profiles.md"
FINDINGS_PAGE = ROOT / "docs" / "findings.md"
RUNNING_PAGE = ROOT / "docs" / "running.md"
DOCUMENTS = (README, PROFILES_PAGE, FINDINGS_PAGE, RUNNING_PAGE)

BLOCKS: dict[str, Callable[[], str]] = {
    "headline": answer_blocks.headline,
    "models": answer_blocks.models_table,
    "paper-says": answer_blocks.paper_says,
    "checks": answer_blocks.checks,
    "requantised": study_blocks.requantised,
    "plain-prompts": study_blocks.plain_prompts,
    "bfloat16": study_blocks.bfloat16,
    "again": study_blocks.again,
    "commands": cost_blocks.commands,
    "families": answer_blocks.families,
    "claims": answer_blocks.demo_claims,
    "fields": profile_blocks.profile_fields,
    "usual-fields": profile_blocks.usual_fields,
    "first-layers": cost_blocks.first_layers,
    "rehearsal": cost_blocks.rehearsal,
    "rehearsal-end-to-end": cost_blocks.rehearsal_end_to_end,
    "speed": cost_blocks.speed,
}


def main() -> int:
    """Rewrite the documents; 2 with one line when a stored file is missing."""
    try:
        for document in DOCUMENTS:
            text = with_blocks(document.read_text(encoding="utf-8"), BLOCKS)
            write_whole(document, text.encode())
    except InputError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
