"""Plant a mistake in a copy of the repository and say whether its tests notice.

    python tests/support/plant.py FILE OLD NEW TEST...

In FILE the text OLD, which must occur exactly once, becomes NEW; then pytest runs the
TESTs: files, or single tests as pytest names them. The copy is deleted afterwards. If a
mistake survives, a test is missing.

    python tests/support/plant.py lib/statistics/intervals.py "ALPHA = 0.05" \\
        "ALPHA = 0.5" tests/test_statistics.py
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
LEFT_OUT = shutil.ignore_patterns(
    ".git", ".venv", "results", "__pycache__", ".*_cache", "*.egg-info"
)
SURVIVED = 0
# The exit codes of pytest for tests that fail, or that cannot even be collected.
NOTICED = (1, 2)


def notices(file: str, old: str, new: str, tests: list[str], root: Path = ROOT) -> bool:
    """Return whether the tests fail with the mistake.

    Raises ValueError if `old` does not occur exactly once in the file, and if pytest
    finds no such tests.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = shutil.copytree(root, Path(folder) / "copy", ignore=LEFT_OUT)
        path = copy / file
        text = path.read_text(encoding="utf-8")
        if text.count(old) != 1:
            raise ValueError(f"{file} has {old!r} {text.count(old)} times, not once")
        path.write_text(text.replace(old, new), encoding="utf-8")

        # Import the copy's package, not one that is installed.
        environment = os.environ | {"PYTHONPATH": str(copy)}
        command = [sys.executable, "-m", "pytest", "-q", "-x", *tests]
        command += ["-p", "no:cacheprovider"]
        done = subprocess.run(
            command, cwd=copy, env=environment, capture_output=True, text=True
        )
    if done.returncode not in (SURVIVED, *NOTICED):
        raise ValueError(f"pytest cannot run {' '.join(tests)}: {done.stdout[-500:]}")
    return done.returncode in NOTICED


def main() -> None:
    """Plant the mistake of the command line; the exit code is 1 if it survives."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file")
    parser.add_argument("old", help="text that occurs exactly once in the file")
    parser.add_argument("new", help="the mistake that replaces it")
    parser.add_argument("tests", nargs="+", help="as pytest names them")
    options = parser.parse_args()
    noticed = notices(options.file, options.old, options.new, options.tests)
    print("noticed" if noticed else "survived")
    sys.exit(not noticed)


if __name__ == "__main__":
    main()
