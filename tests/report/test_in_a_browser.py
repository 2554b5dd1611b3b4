"""The report as people use it: a real Chromium clicks, filters, narrows and listens,
and runs nothing but our code.
"""

import shutil
import subprocess

import pytest
from browser import start_chromium
from report_folder import CLAIMS, EVIL, answer, claim, made_profile, measured, write
from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from lib.report.page import write_report

profile = made_profile


@pytest.fixture(scope="module")
def chromium():
    driver = start_chromium()
    yield driver
    driver.quit()


@pytest.fixture
def show(chromium, profile):
    """Open the profile's report; at the end the console must be empty."""

    def open_page(width: int = 1440, scheme: str = "light"):
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
        chromium.get(write_report(profile).as_uri())
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
    return [found.text for found in all_of(page, selector) if found.is_displayed()]


def choose(page, tool: str, text: str) -> None:
    Select(one(page, tool)).select_by_visible_text(text)


def test_claims_are_filtered_by_verdict_and_model_and_sorted(page):
    assert len(shown(page, ".claim h3")) == 4
    Select(one(page, "#claim-tools [name=order]")).select_by_value("verdict")
    assert [text.split()[1] for text in shown(page, ".claim .top")] == [
        "supported",
        "contradicted",
        "undecided",
        "not",
    ]
    for verdict, claims in (
        ("undecided", ["Long fillers hurt."]),
        ("not tested", ["ARM helps."]),
    ):
        choose(page, "#claim-tools [name=verdict]", verdict)
        assert shown(page, ".claim h3") == claims
    choose(page, "#claim-tools [name=model]", "other")
    assert (
        shown(page, ".claim h3") == []
        and one(page, "#claim-tools output").text == "0 of 4"
    )


def test_a_click_on_a_head_draws_its_curve_and_the_pointer_tells_a_tokens_text(
    page,
):
    heads, before = (
        all_of(page, "#map button"),
        one(page, "#curve svg").get_attribute("innerHTML"),
    )
    assert [head.text for head in heads] == [
        "0.50",
        "0.68",
        "0.86",
        "1.04",
        "1.22",
        "1.40",
    ]
    heads[4].click()
    assert one(page, "#head-title").text == "tiny, layer 2 head 2: λ 1.22"
    assert (
        "λ 1.220, 95 % interval 1.177 to 1.263 over n = 24 problems"
        in one(page, "#head-text").text
    )
    WebDriverWait(page, 10).until(
        lambda page: one(page, "#curve svg").get_attribute("innerHTML") != before
    )
    tokens = all_of(page, "#prompt span")
    assert (
        one(page, "#prompt").text == "Please is? / / 4"
        and tokens[3].get_attribute("class") == "inserted"
    )
    assert "token 1, instruction: receives 0.3" in tokens[1].get_attribute("title")
    assert tokens[-1].get_attribute("title").endswith("no later token looks at it")
    at = one(page, "#curve svg")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", at)
    webdriver.ActionChains(page).move_to_element(at).move_by_offset(150, 5).perform()
    WebDriverWait(page, 10).until(lambda page: one(page, "#tip").is_displayed())
    assert (
        "token: " in one(page, "#tip").text
        and "part: inserted" in one(page, "#tip").text
    )
    assert one(page, "#prompt .marked").get_attribute("class") == "inserted marked"


def test_one_prompt_is_told_step_by_step(page):
    first, second, third = all_of(page, "#steps > li")
    assert (
        "layer 1, head 1 of tiny" in first.text
        and "Please is?" in first.text
        and "/" not in first.text
    )
    assert (
        second.text.startswith("2 tokens are inserted (mless)") and "/ /" in second.text
    )
    assert "λ = " in third.text and "0.50 [0.46, 0.54] over 24 problems" in third.text


def test_a_head_a_claim_and_an_answer_have_addresses(page):
    address = page.current_url.partition("#")[0]
    all_of(page, "#map button")[4].click()
    assert page.current_url == f"{address}#head/tiny/mless/2/2"
    for hash, place, text in (
        ("#head/tiny/mless/1/3", "#head-title", "tiny, layer 1 head 3"),
        (
            "#answer/accuracy%20%C2%B7%20tiny/sum%2F2",
            ".texts pre",
            "sum/2 under none: \\boxed{4}",
        ),
    ):
        page.get("about:blank")
        page.get(address + hash)
        WebDriverWait(page, 20).until(lambda page: all_of(page, "#curve svg"))
        assert one(page, place).text.startswith(text)
    choose(page, "#claim-tools [name=verdict]", "supported")
    page.execute_script(
        "location.hash = arguments[0]", all_of(page, ".claim")[-1].get_attribute("id")
    )
    WebDriverWait(page, 10).until(
        lambda page: all_of(page, ".claim")[-1].is_displayed()
    )


def test_a_claim_links_to_its_files_and_on_a_page_that_was_sent_names_its_notebooks(
    page, profile, tmp_path
):
    assert (
        one(page, "#claim-dilution-tiny [data-file='fig13.csv']")
        .get_attribute("href")
        .startswith("data:text/csv")
    )
    link, *_ = all_of(page, ".links [data-beside]")
    assert link.text == "01_attention_maps.ipynb" and link.get_attribute(
        "href"
    ).endswith(link.text)
    shutil.copy(profile.results / "report.html", tmp_path / "sent.html")
    page.get((tmp_path / "sent.html").as_uri())
    assert (
        not all_of(page, ".links [data-beside]")
        and "01_attention_maps.ipynb" in one(page, ".claim .links").text
    )


def test_heads_are_reached_with_the_keyboard(page):
    page.execute_script(
        "document.querySelector('#head-tools [name=condition]').focus()"
    )
    for key in (Keys.TAB, Keys.ARROW_DOWN, Keys.ARROW_RIGHT):
        page.switch_to.active_element.send_keys(key)
    assert page.switch_to.active_element.get_attribute("aria-label").startswith(
        "layer 2 head 2"
    )
    assert one(page, "#head-title").text.startswith("tiny, layer 2 head 2")


def test_answers_are_filtered_and_open(page):
    rows, button = "#answer-table tbody tr", "#answer-table tbody button"
    first, second = "sum/1 1 4 ✓ 4 ✓ 4 ≠", "sum/2 2 4 ✕ 5 ✓ 4"
    changed, disagree = (
        one(page, f"#answer-tools [name={name}]") for name in ("changed", "disagree")
    )
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


def test_answers_are_sorted_and_searched(page):
    rows, by_none = "#answer-table tbody th", "#answer-table thead button"
    for mark, order in (("▴", ["sum/2", "sum/1"]), ("▾", ["sum/1", "sum/2"])) * 2:
        all_of(page, by_none)[3].click()
        assert (
            shown(page, rows) == order
            and one(page, "th[aria-sort]").text == f"none {mark}"
        )
    one(page, "#answer-tools [name=search]").send_keys("SUM/2 under")
    assert (
        shown(page, rows) == ["sum/2"]
        and one(page, "#answer-tools output").text == "1 of 2 problems"
    )


def test_formulas_are_drawn_and_nothing_but_formulas(show, profile):
    text = "So $\\frac{1}{2}$ and \\(\\text{<img src=x>}\\), but 5 $."
    drawn = answer(
        "embedded/draw/159", "none", True, response=text, answer="\\frac{5}{12}"
    )
    write(profile, CLAIMS, [drawn], measured())
    page = show()
    assert len(all_of(page, "#answer-table tbody mfrac")) == 1
    one(page, "#answer-table tbody button").click()
    assert (
        "A bag holds" in one(page, ".asked").text
        and len(all_of(page, ".asked mn")) == 2
    )
    assert (
        len(all_of(page, ".texts mfrac")) == 1
        and "\\text{<img src=x>}" in one(page, ".texts pre").text
    )
    assert not all_of(page, "img[src=x]")


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_scrolls_sideways(show, width):
    page = show(width)
    one(page, "#answer-table tbody button").click()
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


@pytest.fixture(scope="module")
def axe(tmp_path_factory):
    """The script of axe-core, from npm."""
    npm, folder = (
        shutil.which("npm") or pytest.skip("no npm: apt-get install npm"),
        tmp_path_factory.mktemp("npm"),
    )
    command = [
        npm,
        "install",
        "--no-save",
        "--silent",
        "--prefix",
        str(folder),
        "axe-core@4.14.1",
    ]
    if subprocess.run(command, timeout=120, check=False).returncode:
        pytest.skip("npm cannot install axe-core")
    return (folder / "node_modules" / "axe-core" / "axe.min.js").read_text(
        encoding="utf-8"
    )


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_no_barrier(show, axe, scheme):
    page = show(scheme=scheme)
    one(page, "#answer-table tbody button").click()
    page.execute_script(axe)
    found = page.execute_async_script("axe.run().then(arguments[arguments.length - 1])")
    assert [
        (rule["id"], [node["html"][:200] for node in rule["nodes"][:3]])
        for rule in found["violations"]
    ] == []


def test_what_a_model_wrote_runs_nothing_and_the_policy_stops_a_script_that_got_in(
    show, profile
):
    records = [
        answer(EVIL, name, True, response=EVIL, model=EVIL, extracted=EVIL)
        for name in ("none", "mless", EVIL)
    ]
    write(
        profile,
        [claim(model=EVIL, id=EVIL, claim=EVIL), *CLAIMS],
        records,
        measured(EVIL, EVIL),
    )
    page = show()
    all_of(page, "#map button")[1].click()
    one(page, "#answer-table tbody button").click()
    assert (
        EVIL.strip("\u2028") in one(page, ".texts pre").text
        and EVIL.strip("\u2028") in one(page, "#prompt").text
    )
    assert page.execute_script(
        "return [typeof window.pwned, document.scripts.length]"
    ) == ["undefined", 3]
    assert not all_of(page, "img[src=x]")
    assert page.get_log("browser") == []
    page.execute_script(
        "const s = document.createElement('script'); s.textContent = 'pwned = 1';"
        " document.body.append(s);document.body.setAttribute('onclick', 'window.pwned ="
        " 1'); document.body.click()"
    )
    assert page.execute_script("return typeof window.pwned") == "undefined"
    assert {
        "Content Security Policy" in line["message"] for line in page.get_log("browser")
    } == {True}
