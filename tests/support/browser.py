"""A headless Chromium for the tests that need a real browser; where there is none they are skipped with the reason."""

import shutil
import subprocess
from pathlib import Path

import pytest

selenium = pytest.importorskip("selenium", reason="selenium drives the browser: pip install selenium")
from selenium import webdriver  # noqa: E402

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
if not (CHROMIUM and DRIVER):
    pytest.skip("no Chromium: apt-get install chromium chromium-driver", allow_module_level=True)


def start_chromium() -> webdriver.Chrome:
    """Start a browser without a window, that keeps what pages write to its console."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))


def axe_source(folder: Path) -> str:
    """Return axe-core's script, installed from npm into `folder`; where that fails the test is skipped."""
    npm = shutil.which("npm") or pytest.skip("no npm to install axe-core with: apt-get install npm")
    command = [npm, "install", "--no-save", "--silent", "--prefix", str(folder), "axe-core@4.14.1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if done.returncode:
        pytest.skip(f"npm cannot install axe-core: {done.stderr.strip()[-200:]}")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(encoding="utf-8")
