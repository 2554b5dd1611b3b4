"""Fill a folder with what benchmarks/gpu.py needs on a node without network: `make
gpu-folder`.

    python benchmarks/gpu_folder.py [--out results/gpu-folder] [--python 3.12]

Code, tests, the wheels that such a node lacks (requirements/gpu.txt) and the demo
model's tokenizer: 20 MiB. Copy it there and run `python3 benchmarks/gpu.py` inside,
with the node's own torch and transformers.
"""

import argparse
import shutil
import subprocess
import sys
from pathlib import Path

from lib.models.conversion import converted
from lib.models.names import resolve
from lib.paths import RESULTS, ROOT

CODE = (
    "lib",
    "tests",
    "benchmarks/*.py",
    "pyproject.toml",
    "data/*.yaml",
    "data/profiles",
    "data/embedded.jsonl",
)
MOST = 64 * 2**20  # bytes: what may travel to such a node
LINUX = ("manylinux_2_28_x86_64", "manylinux_2_17_x86_64", "manylinux2014_x86_64")


def main() -> None:
    """Fill the folder anew and print its size."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=RESULTS / "gpu-folder")
    parser.add_argument("--python", default="3.12", help="the node's version")
    options = parser.parse_args()
    shutil.rmtree(options.out, ignore_errors=True)
    listed = subprocess.run(
        ["git", "ls-files", *CODE], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    for name in listed.splitlines():
        target = options.out / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target)
    wheels = [
        "--requirement=requirements/gpu.txt",
        "--constraint=requirements.txt",
        "--constraint=constraints.txt",
    ]
    node = [
        f"--python-version={options.python}",
        "--implementation=cp",
        *(f"--platform={name}" for name in LINUX),
    ]
    asked = [
        "--quiet",
        "--no-deps",
        "--only-binary=:all:",
        f"--target={options.out / 'packages'}",
        *node,
        *wheels,
    ]
    subprocess.run(
        [sys.executable, "-m", "pip", "install", *asked], cwd=ROOT, check=True
    )
    weights = shutil.ignore_patterns("*.safetensors")
    shutil.copytree(
        converted(resolve("demo"), "float32"), options.out / "tokenizer", ignore=weights
    )
    size = sum(path.stat().st_size for path in options.out.rglob("*") if path.is_file())
    print(f"{options.out}: {size / 2**20:.1f} MiB")
    if size > MOST:
        sys.exit(f"that is more than {MOST / 2**20:.0f} MiB")


if __name__ == "__main__":
    main()
