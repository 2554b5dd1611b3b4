"""A headless Chromium for the tests that need a real browser; where something lacks,
they are skipped, and one line says how to install it all.
"""

import shutil

import pytest

INSTALL = "apt-get install chromium chromium-driver npm; pip install selenium==4.45.0"
REASON = f"no browser to test with: {INSTALL}"
webdriver = pytest.importorskip("selenium.webdriver", reason=REASON)
CHROMIUM, DRIVER = (shutil.which(name) for name in ("chromium", "chromedriver"))
if not (CHROMIUM and DRIVER and shutil.which("npm")):
    pytest.skip(REASON, allow_module_level=True)


def start_chromium():
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
