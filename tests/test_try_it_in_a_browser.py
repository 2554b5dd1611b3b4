"""Notebook 00_try_it in JupyterLab, in a real Chromium: typed text is drawn after a
pause, and a saved notebook has the picture.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.request

import pytest
from browser import start_chromium
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from lib import paths

PATIENCE = 180  # seconds, for a kernel and the demo model on a busy machine
STORED = "return document.querySelector('.jp-RenderedImage img')"
PICTURE = ".jp-OutputArea:has(.widget-textarea) .jp-RenderedImage img"
# Each drawing is a new image; between two drawings there is none.
SOURCE = f"return document.querySelector('{PICTURE}')?.src"
# Returns the bytes of the displayed picture.
BYTES = f"""
    const done = arguments[arguments.length - 1];
    fetch(document.querySelector('{PICTURE}').src)
        .then(picture => picture.text())
        .then(done);
"""


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The address of a JupyterLab with separate settings on a copy of the notebook."""
    folder = tmp_path_factory.mktemp("lab")
    shutil.copy(paths.NOTEBOOKS / "00_try_it.ipynb", folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folders = {
        f"JUPYTER_{name}_DIR": str(folder / name.lower())
        for name in ("CONFIG", "DATA", "RUNTIME")
    }
    options = [
        f"--ServerApp.root_dir={folder}",
        f"--port={port}",
        "--no-browser",
        "--allow-root",
    ]
    options += [
        "--IdentityProvider.token=",
        "--LabApp.expose_app_in_browser=True",
        "--LabApp.news_url=",
    ]
    server = subprocess.Popen(
        [sys.executable, "-m", "jupyterlab", *options],
        env=os.environ | folders | {"PYTHONPATH": str(paths.ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    found = f"http://127.0.0.1:{port}"
    try:
        _wait_for(f"{found}/api")
        yield found
    finally:
        server.terminate()
        server.wait(30)


def _wait_for(address: str) -> None:
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        try:
            return urllib.request.urlopen(address, timeout=5).close()
        except OSError:
            time.sleep(0.5)
    raise TimeoutError(address)


@pytest.fixture(scope="module")
def lab(address):
    """The notebook after all its cells ran."""
    page = start_chromium()
    page.set_window_size(1440, 1100)
    page.set_script_timeout(PATIENCE)
    page.get(f"{address}/lab/tree/00_try_it.ipynb")
    ready = (
        "return !!(window.jupyterapp &&"
        " jupyterapp.shell.currentWidget?.context?.sessionContext?.session?.kernel)"
    )
    WebDriverWait(page, PATIENCE).until(lambda page: page.execute_script(ready))
    # The stored picture is there before any run.
    WebDriverWait(page, PATIENCE).until(lambda page: page.execute_script(STORED))
    page.execute_script("void jupyterapp.commands.execute('notebook:run-all-cells')")
    idle = (
        "return"
        " jupyterapp.shell.currentWidget.context.sessionContext.session.kernel.status"
        " === 'idle'"
    )
    WebDriverWait(page, PATIENCE).until(
        lambda page: page.execute_script(SOURCE) and page.execute_script(idle)
    )
    yield page
    page.quit()


def test_a_letter_is_drawn_after_a_pause(lab):
    _, filler = lab.find_elements(By.CSS_SELECTOR, ".widget-textarea textarea")
    lab.execute_script("arguments[0].scrollIntoView({block: 'start'})", filler)
    pictures = [lab.execute_async_script(BYTES)]
    for letter in "!he?a":
        before = lab.execute_script(SOURCE)
        filler.send_keys(letter)
        WebDriverWait(lab, PATIENCE, poll_frequency=0.02).until(
            lambda page, before=before: (
                page.execute_script(SOURCE) not in (before, None)
            )
        )
        pictures.append(lab.execute_async_script(BYTES))
    assert len(set(pictures)) == len(pictures)


def test_a_saved_notebook_has_the_picture_that_was_drawn_last(lab, address):
    shown = lab.execute_script(SOURCE)
    lab.execute_script("void jupyterapp.commands.execute('docmanager:save')")
    WebDriverWait(lab, PATIENCE).until(lambda page: shown in saved_pictures(address))


def saved_pictures(address: str) -> list[str]:
    """Return the pictures of the notebook on the disk, as a page's sources."""
    with urllib.request.urlopen(f"{address}/api/contents/00_try_it.ipynb") as answer:
        cells = json.load(answer)["content"]["cells"]
    outputs = [output for cell in cells for output in cell.get("outputs", ())]
    pngs = [output.get("data", {}).get("image/png", "") for output in outputs]
    return [f"data:image/png;base64,{png.strip()}" for png in pngs]
