"""The process that compares answers by algebra: one JSON pair a line in, one JSON verdict a line out.

`python -m lib.grading.worker` prints "ready" when its imports are done. Hostile answers can take any time and memory,
and some abort the interpreter: memory is limited here, time by the parent.
"""

import contextlib
import json
import os
import resource
import signal
import sys

MEMORY = 2 << 30
# Only for an orphan: the parent kills a slow worker long before.
ORPHAN_SECONDS = 30


def main() -> None:
    """Answer pairs until the input ends."""
    # Raises where a lower limit is in force, which then does the same.
    with contextlib.suppress(ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    # The LaTeX parser prints its complaints; they must not mix with the replies.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    from lib.grading.rules import decide
    from lib.grading.verify import equal_by_algebra

    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        signal.alarm(ORPHAN_SECONDS)
        gold, answer = json.loads(line)
        try:
            verdict = decide(gold, answer, equal_by_algebra)
        except MemoryError:
            # Whatever was cut short may be half done; a fresh process takes over.
            os._exit(1)
        except Exception:
            verdict = (False, "crash")
        signal.alarm(0)
        print(json.dumps(verdict), file=replies, flush=True)


if __name__ == "__main__":
    main()
