"""Processes that must end with the one that started them, even if that one is killed."""

import subprocess
import sys

import psutil
import pytest

from lib import paths

PARENT = """
import subprocess, sys, time
from lib.generation.reaper import end_with_this_process
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"], start_new_session=True)
end_with_this_process([child.pid, 2**22 + 1])  # the second is no process
print(child.pid, flush=True)
{end}
"""


@pytest.mark.parametrize("end", ["time.sleep(600)", "sys.exit(0)"], ids=["killed", "exits"])
def test_what_a_process_leaves_behind_is_ended(end):
    command = [sys.executable, "-c", PARENT.format(end=end)]
    parent = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=paths.ROOT)
    child = psutil.Process(int(parent.stdout.readline()))
    if "sleep" in end:
        assert child.is_running()
        parent.kill()
    parent.communicate()
    child.wait(timeout=60)
