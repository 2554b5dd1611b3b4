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
ORPHAN_SECONDS = 30  # the parent kills a slow worker long before


def main() -> None:
    """Answer pairs until the input ends."""
    with contextlib.suppress(ValueError):  # where a lower limit is in force
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    replies = os.fdopen(os.dup(1), "w", encoding="ascii")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for the complaints of the LaTeX parser
    from lib.grading.rules import decide
    from lib.grading.verify import equal_by_algebra

    print("ready", file=replies, flush=True)
    for line in sys.stdin:
        signal.alarm(ORPHAN_SECONDS)
        gold, answer = json.loads(line)
        try:
            verdict = decide(gold, answer, equal_by_algebra)
        except MemoryError:
            os._exit(1)  # what was cut short may be half done; a fresh process takes over
        except Exception:
            verdict = (False, "crash")
        signal.alarm(0)
        print(json.dumps(verdict), file=replies, flush=True)


if __name__ == "__main__":
    main()
