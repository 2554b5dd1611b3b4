"""A headless Chromium for the tests that need a real browser.

If a part is missing, these tests are skipped with one line that says how to install
all.
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
    """Return a browser without a window, whose log has what pages write to the
    console.
    """
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
