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
    elements = all_of(page, selector)
    return [element.text for element in elements if element.is_displayed()]


def choose(page, tool: str, text: str) -> None:
    Select(one(page, tool)).select_by_visible_text(text)


def test_claims_are_sorted_by_verdict(page):
    assert len(shown(page, ".claim h3")) == 4
    Select(one(page, "#claim-tools [name=order]")).select_by_value("verdict")
    verdicts = [text.split()[1] for text in shown(page, ".claim .top")]
    assert verdicts == ["supported", "contradicted", "undecided", "not"]


@pytest.mark.parametrize(
    "verdict, claim",
    [("undecided", "Long fillers hurt."), ("not tested", "ARM helps.")],
)
def test_claims_are_filtered_by_verdict_and_model(page, verdict, claim):
    choose(page, "#claim-tools [name=verdict]", verdict)
    assert shown(page, ".claim h3") == [claim]
    choose(page, "#claim-tools [name=model]", "other")
    assert shown(page, ".claim h3") == []
    assert one(page, "#claim-tools output").text == "0 of 4"


def test_the_map_has_a_head_per_cell(page):
    heads = [head.text for head in all_of(page, "#map button")]
    assert heads == ["0.50", "0.68", "0.86", "1.04", "1.22", "1.40"]


@pytest.fixture
def clicked(page):
    """The page after a click on the second head of layer 2, whose curve is drawn."""
    before = one(page, "#curve svg").get_attribute("innerHTML")
    all_of(page, "#map button")[4].click()
    WebDriverWait(page, 10).until(
        lambda page: one(page, "#curve svg").get_attribute("innerHTML") != before
    )
    return page


def test_a_click_on_a_head_names_it_and_its_lambda(clicked):
    assert one(clicked, "#head-title").text == "tiny, layer 2 head 2: λ 1.22"
    interval = "λ 1.220, 95 % interval 1.177 to 1.263 over n = 24 problems"
    assert interval in one(clicked, "#head-text").text


def test_a_click_on_a_head_colours_the_prompt_by_what_its_tokens_receive(clicked):
    tokens = all_of(clicked, "#prompt span")
    assert one(clicked, "#prompt").text == "Please is? / / 4"
    assert tokens[3].get_attribute("class") == "inserted"
    assert "token 1, instruction: receives 0.3" in tokens[1].get_attribute("title")
    assert tokens[-1].get_attribute("title").endswith("no later token looks at it")


def test_the_pointer_tells_the_token_below_it(clicked):
    curve = one(clicked, "#curve svg")
    centre = "arguments[0].scrollIntoView({block: 'center'})"
    clicked.execute_script(centre, curve)
    pointer = webdriver.ActionChains(clicked)
    pointer.move_to_element(curve).move_by_offset(150, 5).perform()
    tip = one(clicked, "#tip")
    WebDriverWait(clicked, 10).until(lambda page: tip.is_displayed())
    assert "token: " in tip.text
    assert "part: inserted" in tip.text
    marked = one(clicked, "#prompt .marked")
    assert marked.get_attribute("class") == "inserted marked"


def test_one_prompt_is_told_step_by_step(page):
    first, second, third = all_of(page, "#steps > li")
    assert "layer 1, head 1 of tiny" in first.text
    assert "Please is?" in first.text
    assert "/" not in first.text
    assert second.text.startswith("2 tokens are inserted (mless)")
    assert "/ /" in second.text
    assert "λ = " in third.text
    assert "0.50 [0.46, 0.54] over 24 problems" in third.text


def test_a_head_that_was_clicked_is_the_pages_address(clicked):
    assert clicked.current_url.endswith("#head/tiny/mless/2/2")


ADDRESSES = [
    ("#head/tiny/mless/1/3", "#head-title", "tiny, layer 1 head 3"),
    (
        "#answer/accuracy%20%C2%B7%20tiny/sum%2F2",
        ".texts pre",
        "sum/2 under none: \\boxed{4}",
    ),
]


@pytest.mark.parametrize("fragment, place, text", ADDRESSES)
def test_a_head_and_an_answer_have_addresses(page, fragment, place, text):
    address = page.current_url.partition("#")[0]
    page.get("about:blank")
    page.get(address + fragment)
    WebDriverWait(page, 20).until(lambda page: all_of(page, "#curve svg"))
    assert one(page, place).text.startswith(text)


def test_a_claims_address_shows_it_though_it_was_filtered_out(page):
    choose(page, "#claim-tools [name=verdict]", "supported")
    last = all_of(page, ".claim")[-1]
    page.execute_script("location.hash = arguments[0]", last.get_attribute("id"))
    WebDriverWait(page, 10).until(lambda page: last.is_displayed())


def test_a_claim_links_to_the_numbers_of_its_figures(page):
    link = one(page, "#claim-dilution-tiny [data-file='fig13.csv']")
    assert link.get_attribute("href").startswith("data:text/csv")


def test_a_page_that_was_sent_names_its_notebooks_without_a_link(
    page, profile, tmp_path
):
    link, *_ = all_of(page, ".links [data-beside]")
    assert link.text == "01_attention_maps.ipynb"
    assert link.get_attribute("href").endswith(link.text)
    shutil.copy(profile.results / "report.html", tmp_path / "sent.html")
    page.get((tmp_path / "sent.html").as_uri())
    assert not all_of(page, ".links [data-beside]")
    assert "01_attention_maps.ipynb" in one(page, ".claim .links").text


def test_heads_are_reached_with_the_keyboard(page):
    page.execute_script(
        "document.querySelector('#head-tools [name=condition]').focus()"
    )
    for key in (Keys.TAB, Keys.ARROW_DOWN, Keys.ARROW_RIGHT):
        page.switch_to.active_element.send_keys(key)
    label = page.switch_to.active_element.get_attribute("aria-label")
    assert label.startswith("layer 2 head 2")
    assert one(page, "#head-title").text.startswith("tiny, layer 2 head 2")


def test_answers_are_filtered_and_open(page):
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


def test_answers_are_sorted_and_searched(page):
    rows = "#answer-table tbody th"
    by_none = "#answer-table thead button"
    for mark, order in (("▴", ["sum/2", "sum/1"]), ("▾", ["sum/1", "sum/2"])) * 2:
        all_of(page, by_none)[3].click()
        assert shown(page, rows) == order
        assert one(page, "th[aria-sort]").text == f"none {mark}"
    one(page, "#answer-tools [name=search]").send_keys("SUM/2 under")
    assert shown(page, rows) == ["sum/2"]
    assert one(page, "#answer-tools output").text == "1 of 2 problems"


def test_formulas_are_drawn_and_nothing_but_formulas(show, profile):
    text = "So $\\frac{1}{2}$ and \\(\\text{<img src=x>}\\), but 5 $."
    drawn = answer(
        "embedded/draw/159", "none", True, response=text, answer="\\frac{5}{12}"
    )
    write(profile, CLAIMS, [drawn], measured())
    page = show()
    assert len(all_of(page, "#answer-table tbody mfrac")) == 1
    one(page, "#answer-table tbody button").click()
    assert "A bag holds" in one(page, ".asked").text
    assert len(all_of(page, ".asked mn")) == 2
    assert len(all_of(page, ".texts mfrac")) == 1
    assert "\\text{<img src=x>}" in one(page, ".texts pre").text
    assert not all_of(page, "img[src=x]")


@pytest.mark.parametrize("width", [390, 1440])
def test_nothing_scrolls_sideways(show, width):
    page = show(width)
    one(page, "#answer-table tbody button").click()
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


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
    page = show(scheme=scheme)
    one(page, "#answer-table tbody button").click()
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
    """The page of a model that wrote a script, with one head and one answer open."""
    records = [
        answer(EVIL, name, True, response=EVIL, model=EVIL, extracted=EVIL)
        for name in ("none", "mless", EVIL)
    ]
    claims = [claim(model=EVIL, id=EVIL, claim=EVIL), *CLAIMS]
    write(profile, claims, records, measured(EVIL, EVIL))
    page = show()
    all_of(page, "#map button")[1].click()
    one(page, "#answer-table tbody button").click()
    return page


def test_what_a_model_wrote_is_shown_and_runs_nothing(evil_page):
    for place in (".texts pre", "#prompt"):
        assert EVIL.strip("\u2028") in one(evil_page, place).text
    state = "return [typeof window.pwned, document.scripts.length]"
    assert evil_page.execute_script(state) == ["undefined", 3]
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
