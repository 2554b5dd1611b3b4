"""End the processes whose ids are given as soon as the process at the other end of standard input has ended, however.

Ray's agents look for their cluster for a minute after a SIGKILL of the process that started it.
"""

import contextlib
import subprocess
import sys
from collections.abc import Iterable

import psutil


def end_with_this_process(pids: Iterable[int]) -> None:
    """Let a process of its own wait for the end of this one, and end these then."""
    command = [sys.executable, __file__, *map(str, pids)]
    # In a session of its own, which Ctrl-C in a terminal does not reach; the pipe closes when this process ends.
    subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)


def main() -> None:
    """Wait, then end what is left; a process that took over one of the ids is left alone."""
    processes = [psutil.Process(int(pid)) for pid in sys.argv[1:] if psutil.pid_exists(int(pid))]
    sys.stdin.read()
    for process in processes:
        with contextlib.suppress(psutil.Error):
            process.kill()


if __name__ == "__main__":
    main()
