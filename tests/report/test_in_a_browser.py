"""The page in a real Chromium: its controls work with mouse and keyboard, and texts of
models are not interpreted as HTML.
"""

import re
import subprocess
from pathlib import Path

import pytest
from browser import start_chromium
from report_folder import make_evil
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from lib.report.page import write_report


@pytest.fixture(scope="module")
def chromium():
    driver = start_chromium()
    yield driver
    driver.quit()


@pytest.fixture
def show(chromium, published):
    """A function that opens a page and waits until it has drawn the prompt of its first
    model; at the end of the test the console must be empty.
    """

    def opened(
        page: Path = published / "index.html", width: int = 1440, scheme: str = "light"
    ):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1}
        size["mobile"] = width < 500
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        chromium.get("about:blank")
        chromium.get(page.as_uri())
        WebDriverWait(chromium, 20).until(said)
        return chromium

    yield opened
    assert chromium.get_log("browser") == []


@pytest.fixture
def page(show):
    return show()


def all_of(page, selector: str) -> list:
    return page.find_elements(By.CSS_SELECTOR, selector)


def one(page, selector: str):
    return page.find_element(By.CSS_SELECTOR, selector)


def said(page) -> str:
    return one(page, "#says").text


def kept(page) -> int:
    """Return the share of attention that the other tokens keep, in %."""
    return int(re.search(r"keep (\d+) %", said(page))[1])


def choose(page, name: str, value: str) -> None:
    """Choose one of the chips (radio buttons) and wait until the page changes."""
    before = said(page)
    one(page, f"input[name={name}][value='{value}'] + span").click()
    WebDriverWait(page, 20).until(lambda page: said(page) != before)


def test_more_inserted_tokens_leave_less_attention_for_the_others(page):
    slider = one(page, "[name=count]")
    assert one(page, "[name=number]").text == "55"
    slider.send_keys(Keys.HOME)
    assert "nothing is inserted yet" in said(page)
    assert not all_of(page, "#prompt .inserted")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert len(all_of(page, "#prompt .inserted")) == 11
    few = kept(page)
    slider.send_keys(Keys.END)
    assert len(all_of(page, "#prompt .inserted")) == 110
    assert kept(page) < few < 100


HEIGHTS = """
const number = (span, name) => Number(span.style.getPropertyValue(name));
return [...document.querySelectorAll("#prompt span:not(.inserted)")].map(
    (span) => [number(span, "--share"), number(span, "--line")]);
"""


def test_the_page_opens_on_the_head_that_loses_most_and_keys_choose_others(page):
    assert said(page).startswith(
        "Head 1 of 12, which fades most: with 55 tokens of sla"
    )
    assert kept(page) == 47
    heights = page.execute_script(HEIGHTS)
    bars, lines = zip(*heights, strict=True)
    assert len(bars) == 54
    assert sum(bars) < 0.6 * sum(lines)
    assert max(lines) == 1
    head = one(page, "[name=head]")
    for key, name, share in (
        (Keys.ARROW_DOWN, "Head 12 of 12, the median one: with", 94),
        ("5", "Head 5 of 12: with", 96),
    ):
        head.send_keys(key)
        assert said(page).startswith(name)
        assert kept(page) == share
        assert page.execute_script(HEIGHTS) != heights


def test_a_chip_changes_the_inserted_filler(page):
    assert {token.text.strip() for token in all_of(page, "#prompt .inserted")} == {"/"}
    choose(page, "filler", "sentence")
    assert "55 tokens of sentence" in said(page)
    assert "harbour" in one(page, "#prompt").text.replace("\n", "")


def test_another_model_has_its_own_heads_and_fillers(page):
    one(page, "[name=head]").send_keys("9")
    choose(page, "filler", "blank")
    choose(page, "model", "packed-3")
    assert said(page).startswith("Head 1 of 4, which fades most: with 55 tokens of sla")
    blank = one(page, "input[value=blank]")
    assert not blank.is_enabled()
    # The first token of gemma receives too much for the height of the bars.
    assert all_of(page, "#prompt .torn:first-child")
    choose(page, "model", "packed-1")
    assert not all_of(page, "#prompt .torn")
    assert blank.is_enabled()


def test_the_tab_key_reaches_every_tool(page):
    reached = set()
    for _ in range(20):
        page.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(page.switch_to.active_element.get_attribute("name"))
    assert {"model", "filler", "count", "head"} <= reached
    for key in (Keys.ARROW_RIGHT, Keys.ENTER):
        one(page, "[name=filler]:checked").send_keys(key)
        assert "55 tokens of he" in said(page)


LOOK = """
const style = getComputedStyle(document.body);
const [ground, ink] = [style.backgroundColor, style.color].map(
    (colour) => Math.max(...colour.match(/\\d+/g).slice(0, 3).map(Number)));
return [document.documentElement.scrollWidth <= arguments[0], ground < ink];
"""
SCREENS = pytest.mark.parametrize("width, scheme", [(1440, "light"), (390, "dark")])


@SCREENS
def test_nothing_scrolls_sideways_and_the_page_follows_the_colour_scheme(
    show, width, scheme
):
    page = show(width=width, scheme=scheme)
    assert page.execute_script(LOOK, width) == [True, scheme == "dark"]


FIGURES_LOADED = """
return [...document.images].every((image) => image.complete && image.naturalWidth)
"""
PRINTS_BARS = """
const token = document.querySelector("#prompt span");
return getComputedStyle(token).printColorAdjust === "exact";
"""


def test_a_print_has_the_bars_and_the_figures_that_nobody_scrolled_to(show):
    page = show()
    WebDriverWait(page, 20).until(lambda page: page.execute_script(FIGURES_LOADED))
    page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        assert page.execute_script(PRINTS_BARS)
        assert not one(page, "#tools").is_displayed()
    finally:
        page.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


def test_without_scripts_a_sentence_replaces_the_tools(chromium, published):
    chromium.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        chromium.get((published / "index.html").as_uri())
        assert one(chromium, "noscript p").is_displayed()
        assert not one(chromium, "#tools").is_displayed()
    finally:
        chromium.execute_cdp_cmd(
            "Emulation.setScriptExecutionDisabled", {"value": False}
        )


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The script of axe-core, from npm."""
    folder = tmp_path_factory.mktemp("npm")
    options = f"install --no-save --silent --prefix {folder} axe-core@4.14.1"
    done = subprocess.run(["npm", *options.split()], timeout=120, check=False)
    if done.returncode:
        pytest.skip("npm cannot install axe-core")
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    return script.read_text(encoding="utf-8")


@SCREENS
def test_axe_finds_no_accessibility_violation(show, axe, width, scheme):
    page = show(width=width, scheme=scheme)
    page.execute_script(axe)
    run = "axe.run().then(arguments[arguments.length - 1])"
    violations = page.execute_async_script(run)["violations"]
    barriers = {
        rule["id"]: [node["html"][:200] for node in rule["nodes"][:3]]
        for rule in violations
    }
    assert barriers == {}


def test_a_models_text_stays_text_in_the_browser(show, profile):
    make_evil(profile)
    page = show(write_report(profile))
    assert "<script>window.pwned" in one(page, "#prompt span").text
    assert not all_of(page, "img[src=x]")
    assert page.execute_script("return typeof window.pwned") == "undefined"
