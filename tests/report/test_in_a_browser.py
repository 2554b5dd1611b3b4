"""The report as people use it: a real Chromium drags, points, searches, narrows and
listens, and runs nothing but our code.
"""

import json
import re
import shutil
import subprocess

import pytest
from browser import start_chromium
from report_folder import CLAIMS, EVIL, answer, claim, made_profile, measured, write
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import WebDriverWait

from lib.report.page import write_report

profile = made_profile


@pytest.fixture(scope="module")
def chromium():
    driver = start_chromium()
    yield driver
    driver.quit()


@pytest.fixture
def show(chromium, profile):
    """Open the profile's page, whose prompt is the stored one of the demo model; at the
    end the console must be empty.
    """

    def open_page(width: int = 1440, scheme: str = "light", fragment: str = ""):
        size = {
            "width": width,
            "height": 900,
            "deviceScaleFactor": 1,
            "mobile": width < 500,
        }
        chromium.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        features = [{"name": "prefers-color-scheme", "value": scheme}]
        chromium.execute_cdp_cmd(
            "Emulation.setEmulatedMedia", {"media": "", "features": features}
        )
        chromium.get("about:blank")
        chromium.get(write_report(profile).as_uri() + fragment)
        WebDriverWait(chromium, 20).until(lambda page: all_of(page, "#curve svg"))
        return chromium

    yield open_page
    assert chromium.get_log("browser") == []


@pytest.fixture
def page(show):
    return show()


def all_of(page, selector: str) -> list:
    return page.find_elements(By.CSS_SELECTOR, selector)


def one(page, selector: str):
    return page.find_element(By.CSS_SELECTOR, selector)


def shown(page, selector: str) -> list[str]:
    elements = all_of(page, selector)
    return [element.text for element in elements if element.is_displayed()]


def chip(page, name: str, value: str) -> None:
    """Choose one of the buttons that look like chips."""
    one(page, f"input[name={name}][value='{value}'] + span").click()


def says(page) -> str:
    return one(page, "#watch-says").text


def kept(page) -> int:
    """Return what share of their attention the original tokens keep, in %."""
    return int(re.search(r"get (\d+) %", says(page))[1])


# Section 2 ----------------------------------------------------------------------------


def test_the_slider_inserts_more_and_the_original_tokens_get_less(page):
    slider = one(page, "#watch-tools [name=count]")
    slider.send_keys(Keys.HOME)
    assert "Nothing is inserted yet" in says(page)
    assert not all_of(page, "#prompt .inserted")
    slider.send_keys(Keys.ARROW_RIGHT)
    assert len(all_of(page, "#prompt .inserted")) == 11
    few = kept(page)
    slider.send_keys(Keys.END)
    assert one(page, "#watch-length").text == "110"
    assert len(all_of(page, "#prompt .inserted")) == 110
    assert kept(page) < few < 100


def test_a_chip_changes_what_is_inserted(page):
    assert set(one(page, "#prompt .inserted").text.strip()) == {"/"}
    before = one(page, "#curve svg").get_attribute("innerHTML")
    chip(page, "filler", "sentence")
    assert "tokens of sentence" in says(page)
    assert "harbour" in one(page, "#prompt").text
    assert one(page, "#curve svg").get_attribute("innerHTML") != before


def test_the_prompt_is_shown_with_without_and_as_a_ratio(page):
    chip(page, "view", "without")
    assert not all_of(page, "#prompt .inserted")
    assert len(all_of(page, "#curve .line")) == 1
    chip(page, "view", "ratio")
    ratio = one(page, "#prompt .less").get_attribute("title")
    assert re.search(r"0\.\d\d times as much as without", ratio)
    chip(page, "view", "with")
    assert len(all_of(page, "#curve .line")) == 2


def test_arrows_walk_through_the_heads_from_the_middle_one(page):
    head = one(page, "#watch-head")
    first = head.text
    assert re.fullmatch(r"head \d of 9, the median head", first)
    said = says(page)
    one(page, "#head-on").click()
    assert head.text != first
    assert says(page) != said
    one(page, "#head-back").click()
    assert head.text == first


def test_a_deep_link_shows_its_model_filler_length_and_head(show):
    page = show(fragment="#watch/SmolLM2-135M-Instruct/he/22/3")
    assert one(page, "#watch-length").text == "22"
    assert one(page, "#watch-head").text.startswith("head 3 of 9")
    assert "22 tokens of he" in says(page)
    link = one(page, "#watch-link").get_attribute("href")
    assert link.endswith("#watch/SmolLM2-135M-Instruct/he/22/3")


# Heads, layers, effects ---------------------------------------------------------------


def test_a_head_under_the_pointer_is_named(page):
    dots = all_of(page, "#columns .dot")
    assert len(dots) == 3
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", dots[1])
    webdriver.ActionChains(page).move_to_element(dots[1]).perform()
    named = "tiny, head 2, slashes: λ 0.68"
    assert named in one(page, "#tip").text
    assert named in one(page, "#columns-says").text
    assert "lit" in dots[1].get_attribute("class")


def test_a_head_that_is_pointed_at_lights_up_in_the_prompt(show, profile):
    name = "SmolLM2-135M-Instruct"
    write(profile, CLAIMS, [], measured(name))
    page = show()
    dot = all_of(page, "#columns .dot")[2]
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", dot)
    webdriver.ActionChains(page).move_to_element(dot).perform()
    assert one(page, "#watch-head").text.startswith("head 3 of 9")


def test_heads_are_walked_with_the_arrow_keys(page):
    first, second, _ = all_of(page, "#columns .dot")
    page.execute_script("arguments[0].focus()", first)
    page.switch_to.active_element.send_keys(Keys.ARROW_RIGHT)
    assert page.switch_to.active_element == second
    assert "tiny, head 2" in one(page, "#columns-says").text


def test_a_row_of_the_forest_opens_its_problems(show, profile):
    answers = [
        answer(f"sum/{i}", name, right, key=f"{name}-{i}")
        for i in range(30)
        for name, right in (("none", i % 3 == 0), ("mless", i % 2 == 0))
    ]
    gain = claim(
        id="accuracy-mless",
        claim="55 slashes raise accuracy",
        unit="points",
        low_end=0,
        high_end=None,
        effect=16.7,
        low=-10,
        high=40,
        n=30,
        paper=2.0,
        paper_of="a bigger model",
    )
    write(profile, [*CLAIMS, gain], answers, measured())
    page = show()
    row = one(page, "#forests .row[tabindex]")
    page.execute_script("arguments[0].focus()", row)
    row.send_keys(Keys.ENTER)
    assert len(all_of(page, "#cloud circle")) == 30
    assert "10 gain, 5 lose" in one(page, "#cloud").text
    ring = one(page, "#forests .ring title").get_attribute("textContent")
    assert ring == "the paper, a bigger model: +2"


@pytest.fixture
def stepped(show, profile):
    """The page of a profile that answered under other lengths of the slashes, too."""
    answers = [
        answer(f"sum/{i}", name, i % share == 0, key=f"{name}-{i}")
        for i in range(30)
        for name, share in (("none", 3), ("mless:10", 2))
    ]
    folder = profile.results / "fillers"
    folder.mkdir()
    lines = "".join(json.dumps(record) + "\n" for record in answers)
    (folder / "completions.jsonl").write_text(lines)
    return show()


def test_settings_are_stepped_through_with_the_keyboard(stepped):
    page = stepped
    title = one(page, "#course-title")
    assert title.text.startswith("1 of ")
    assert all_of(page, "#course .line")
    one(page, "#course-on").send_keys(Keys.ENTER)
    assert title.text.startswith("2 of 2. Other fillers")
    assert "mless:10" in one(page, "#course").text
    one(page, "#course-on").send_keys(Keys.ENTER)
    assert title.text.startswith("1 of 2")


# Claims and answers -------------------------------------------------------------------


def test_claims_are_closed_and_found_by_a_word(page):
    assert len(shown(page, ".claim summary")) == 3
    assert not shown(page, ".claim .row")
    one(page, "#claim-tools [name=search]").send_keys("long FILLERS")
    (left,) = shown(page, ".claim summary")
    assert left.startswith("Long fillers hurt")
    assert one(page, "#claim-tools output").text == "1 of 3"


def test_an_address_opens_its_claim(show):
    page = show(fragment="#claim-dilution")
    claim = one(page, "#claim-dilution")
    WebDriverWait(page, 10).until(lambda page: claim.get_attribute("open"))
    assert "Cite this: “Every head drops”" in claim.text
    assert len(claim.find_elements(By.CSS_SELECTOR, ".axis")) == 2


@pytest.fixture
def opened(page):
    """The page whose answers somebody opened."""
    return open_answers(page)


def open_answers(page):
    one(page, "#answers summary").click()
    WebDriverWait(page, 10).until(lambda page: all_of(page, "#answer-table tbody tr"))
    return page


def test_answers_are_filtered_and_open(opened):
    page = opened
    rows = "#answer-table tbody tr"
    button = "#answer-table tbody button"
    first = "sum/1 1 4 ✓ 4 ✓ 4 ≠"
    second = "sum/2 2 4 ✕ 5 ✓ 4"
    changed = one(page, "#answer-tools [name=changed]")
    disagree = one(page, "#answer-tools [name=disagree]")
    assert shown(page, rows) == [first, second]
    changed.click()
    assert shown(page, rows) == [second]
    one(page, button).click()
    assert shown(page, ".texts pre") == [
        "sum/2 under none: \\boxed{4}",
        "sum/2 under mless: \\boxed{4}",
    ]
    one(page, button).click()
    assert not all_of(page, ".texts")
    changed.click()
    disagree.click()
    assert shown(page, rows) == [first]


def test_answers_are_sorted_and_searched(opened):
    page = opened
    rows = "#answer-table tbody th"
    by_none = "#answer-table thead button"
    for mark, order in (("▴", ["sum/2", "sum/1"]), ("▾", ["sum/1", "sum/2"])) * 2:
        all_of(page, by_none)[3].click()
        assert shown(page, rows) == order
        assert one(page, "th[aria-sort]").text == f"none {mark}"
    one(page, "#answer-tools [name=search]").send_keys("SUM/2 under")
    assert shown(page, rows) == ["sum/2"]
    assert one(page, "#answer-tools output").text == "1 of 2 problems"


def test_an_answer_has_an_address(show):
    page = show(fragment="#answer/accuracy%20%C2%B7%20tiny/sum%2F2")
    WebDriverWait(page, 10).until(lambda page: shown(page, ".texts pre"))
    assert shown(page, ".texts pre")[0] == "sum/2 under none: \\boxed{4}"


def test_an_answer_that_the_slashes_turned_stands_with_its_graders(page):
    (row,) = shown(page, "#writes table tbody tr")
    assert row.startswith("sum/2 tiny ✕ → ✓")


def test_formulas_are_drawn_and_nothing_but_formulas(show, profile):
    text = "So $\\frac{1}{2}$ and \\(\\text{<img src=x>}\\), but 5 $."
    drawn = answer(
        "embedded/draw/159", "none", True, response=text, answer="\\frac{5}{12}"
    )
    write(profile, CLAIMS, [drawn], measured())
    page = open_answers(show())
    assert len(all_of(page, "#answer-table tbody mfrac")) == 1
    one(page, "#answer-table tbody button").click()
    assert "A bag holds" in one(page, ".asked").text
    assert len(all_of(page, ".asked mn")) == 2
    assert len(all_of(page, ".texts mfrac")) == 1
    assert "\\text{<img src=x>}" in one(page, ".texts pre").text
    assert not all_of(page, "img[src=x]")


# For everybody ------------------------------------------------------------------------


def test_a_term_is_explained_to_the_keyboard(page):
    term = one(page, "dfn")
    assert len(term.get_attribute("data-term")) > 30
    page.execute_script("arguments[0].focus()", term)
    style = "return getComputedStyle(arguments[0], '::after').content"
    assert term.get_attribute("data-term")[:20] in page.execute_script(style, term)


def test_the_tab_key_reaches_every_tool(stepped):
    page = stepped
    wanted = {"model", "filler", "view", "count", "head-back", "head-on", "course-on"}
    reached = set()
    active = "const e = document.activeElement; return e.name || e.id"
    for _ in range(80):
        page.switch_to.active_element.send_keys(Keys.TAB)
        reached.add(page.execute_script(active))
        if wanted <= reached:
            break
    assert not wanted - reached


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_scrolls_sideways(show, width):
    page = open_answers(show(width))
    one(page, "#answer-table tbody button").click()
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


DRAWN_AND_SHOWN = """
return [...document.querySelectorAll('.chart svg[viewBox]')].map(
    (svg) => [svg.viewBox.baseVal.width, svg.getBoundingClientRect().width]);
"""


@pytest.mark.parametrize("width", [390, 1440])
def test_a_picture_is_drawn_for_the_room_that_it_has(show, profile, width):
    opening = [
        claim(id=name, n=30)
        for name in ("dilution", "likelihood-gain", "accuracy-mless")
    ]
    write(profile, opening, [], measured())
    widths = show(width).execute_script(DRAWN_AND_SHOWN)
    assert len(widths) > 3
    assert all(drawn == pytest.approx(there, abs=2) for drawn, there in widths)


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
    npm = shutil.which("npm") or pytest.skip("no npm: apt-get install npm")
    folder = tmp_path_factory.mktemp("npm")
    options = f"install --no-save --silent --prefix {folder} axe-core@4.14.1"
    done = subprocess.run([npm, *options.split()], timeout=120, check=False)
    if done.returncode:
        pytest.skip("npm cannot install axe-core")
    script = folder / "node_modules" / "axe-core" / "axe.min.js"
    return script.read_text(encoding="utf-8")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(show, axe, scheme):
    page = open_answers(show(scheme=scheme))
    one(page, "#answer-table tbody button").click()
    for closed in all_of(page, "details:not([open]) > summary")[:4]:
        page.execute_script("arguments[0].click()", closed)
    page.execute_script(axe)
    run = "axe.run().then(arguments[arguments.length - 1])"
    violations = page.execute_async_script(run)["violations"]
    barriers = {
        rule["id"]: [node["html"][:200] for node in rule["nodes"][:3]]
        for rule in violations
    }
    assert barriers == {}


@pytest.fixture
def evil_page(show, profile):
    """The page of a model that wrote a script, with one answer open."""
    records = [
        answer(EVIL, name, True, response=EVIL, model=EVIL, extracted=EVIL)
        for name in ("none", "mless", EVIL)
    ]
    claims = [claim(model=EVIL, id=EVIL, claim=EVIL), *CLAIMS]
    write(profile, claims, records, measured(EVIL, EVIL))
    page = open_answers(show())
    one(page, "#answer-table tbody button").click()
    return page


def test_what_a_model_wrote_is_shown_and_runs_nothing(evil_page):
    assert EVIL.strip("\u2028") in one(evil_page, ".texts pre").text
    state = "return [typeof window.pwned, document.scripts.length]"
    assert evil_page.execute_script(state) == ["undefined", 7]
    assert not all_of(evil_page, "img[src=x]")
    assert evil_page.get_log("browser") == []


BREAK_IN = """
const script = document.createElement("script");
script.textContent = "pwned = 1";
document.body.append(script);
document.body.setAttribute("onclick", "window.pwned = 1");
document.body.click();
"""


def test_the_policy_stops_a_script_that_got_in(evil_page):
    evil_page.execute_script(BREAK_IN)
    assert evil_page.execute_script("return typeof window.pwned") == "undefined"
    messages = [line["message"] for line in evil_page.get_log("browser")]
    assert messages
    assert all("Content Security Policy" in message for message in messages)
