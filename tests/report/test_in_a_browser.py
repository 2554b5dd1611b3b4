"""The page as people use it: a real Chromium drags, chooses and reads, also with the
keyboard alone, and runs nothing but our code.
"""

import re
import shutil
import subprocess

import pytest
from browser import start_chromium
from report_folder import make_evil, make_profile
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from lib import paths
from lib.profiles import load_profile
from lib.report.page import write_report


@pytest.fixture(scope="module")
def chromium():
    driver = start_chromium()
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    """The page of the families as the repository stores them, with no notebook."""
    folder = tmp_path_factory.mktemp("results")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(paths, "RESULTS", folder)
        patch.setattr(paths, "NOTEBOOKS", folder)
        profile = load_profile("families")
        profile.results.mkdir()
        shutil.copy(paths.DATA / "families" / "claims.json", profile.results)
        return write_report(profile).as_uri()


@pytest.fixture
def show(chromium, address):
    """Open the page; at the end the console must be empty."""

    def open_page(width: int = 1440, scheme: str = "light"):
        size = {"width": width, "height": 900, "deviceScaleFactor": 1}
        size["mobile"] = width < 500
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chromium.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})
        return opened(chromium, address)

    yield open_page
    assert chromium.get_log("browser") == []


def opened(chromium, address: str):
    """Return the browser once the page has drawn the prompt of its first model."""
    chromium.get("about:blank")
    chromium.get(address)
    WebDriverWait(chromium, 20).until(said)
    return chromium


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
    """Return what share of their attention the other tokens keep, in %."""
    return int(re.search(r"keep (\d+) %", said(page))[1])


def choose(page, name: str, value: str) -> None:
    """Choose one of the buttons that look like chips."""
    before = said(page)
    one(page, f"input[name={name}][value='{value}'] + span").click()
    WebDriverWait(page, 20).until(lambda page: said(page) != before)


def test_the_slider_inserts_more_and_the_other_tokens_get_less(page):
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


def test_it_opens_on_the_head_that_fades_most_and_the_median_is_a_key_away(page):
    assert said(page).startswith("Head 1 of 12, which fades most: with 55 tokens")
    assert kept(page) == 47
    heights = page.execute_script(HEIGHTS)
    assert len(heights) == 54
    assert sum(now for now, _ in heights) < 0.6 * sum(line for _, line in heights)
    assert max(line for _, line in heights) == 1
    one(page, "[name=head]").send_keys(Keys.ARROW_DOWN)
    assert said(page).startswith("Head 12 of 12, the median one: with 55 tok")
    assert kept(page) == 94


def test_a_head_is_chosen_by_its_number(page):
    one(page, "[name=head]").send_keys("5")
    assert said(page).startswith("Head 5 of 12: with")
    assert kept(page) == 96


def test_a_chip_changes_what_is_inserted(page):
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
    # Of gemma the first token takes more than there is room for.
    torn = one(page, "#prompt span:first-child").get_attribute("class")
    assert torn == "torn"
    choose(page, "model", "packed-1")
    assert not all_of(page, "#prompt .torn")
    assert blank.is_enabled()


def test_the_tab_key_reaches_every_tool(page):
    wanted = {"model", "filler", "count", "head"}
    reached = []
    for _ in range(20):
        page.switch_to.active_element.send_keys(Keys.TAB)
        reached.append(page.switch_to.active_element.get_attribute("name"))
    assert wanted <= set(reached)
    filler = one(page, "[name=filler]:checked")
    filler.send_keys(Keys.ARROW_RIGHT)
    assert "55 tokens of he" in said(page)
    filler.send_keys(Keys.ENTER)
    assert "55 tokens of he" in said(page)


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_scrolls_sideways(show, width):
    page = show(width)
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


COLOURS = """
const style = getComputedStyle(document.body);
return [style.backgroundColor, style.color].map(
    (colour) => Math.max(...colour.match(/\\d+/g).slice(0, 3).map(Number)));
"""


@pytest.mark.parametrize("scheme, dark", [("light", False), ("dark", True)])
def test_the_page_follows_the_readers_light(show, scheme, dark):
    ground, ink = show(scheme=scheme).execute_script(COLOURS)
    assert (ground < ink) == dark


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


@pytest.mark.parametrize("width, scheme", [(1440, "light"), (390, "dark")])
def test_axe_finds_no_barrier(show, axe, width, scheme):
    page = show(width, scheme)
    page.execute_script(axe)
    run = "axe.run().then(arguments[arguments.length - 1])"
    violations = page.execute_async_script(run)["violations"]
    barriers = {
        rule["id"]: [node["html"][:200] for node in rule["nodes"][:3]]
        for rule in violations
    }
    assert barriers == {}


BREAK_IN = """
const script = document.createElement("script");
script.textContent = "pwned = 1";
document.body.append(script);
document.body.setAttribute("onclick", "window.pwned = 1");
document.body.click();
"""


def test_what_a_model_wrote_runs_nothing_and_the_policy_stops_what_got_in(
    chromium, tmp_path, monkeypatch
):
    profile = make_profile(tmp_path, monkeypatch)
    make_evil(profile)
    page = opened(chromium, write_report(profile).as_uri())
    state = (
        "return [typeof window.pwned, document.querySelectorAll('img[src=x]').length]"
    )
    assert page.execute_script(state) == ["undefined", 0]
    assert "<script>window.pwned" in one(page, "#prompt span").text
    assert page.get_log("browser") == []
    page.execute_script(BREAK_IN)
    assert page.execute_script(state) == ["undefined", 0]
    messages = [line["message"] for line in page.get_log("browser")]
    assert messages
    assert all("Content Security Policy" in message for message in messages)
