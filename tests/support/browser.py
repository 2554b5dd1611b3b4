"""A headless Chromium for the tests that need a real browser; where there is none they
are skipped with the reason.
"""

import shutil

import pytest

pytest.importorskip(
    "selenium", reason="selenium drives the browser: pip install selenium"
)
from selenium import webdriver

CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
if not (CHROMIUM and DRIVER):
    pytest.skip(
        "no Chromium: apt-get install chromium chromium-driver", allow_module_level=True
    )


def start_chromium() -> webdriver.Chrome:
    """Start a browser without a window, that keeps what pages write to its console."""
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for argument in (
        "--headless=new",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-dev-shm-usage",
    ):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
