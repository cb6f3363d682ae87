"""The page in a real browser: it draws itself without a word to the network, by pointer and by keyboard."""

import shutil

import pytest

from seq2seq.report.compare import compare
from tests.report.conftest import REFERENCES, SOURCES, forgetful, slips, write_run

sync_api = pytest.importorskip("playwright.sync_api", reason="no playwright: pip install '.[test]'")
BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason="no Chromium on the path: apt-get install chromium")


@pytest.fixture(scope="module")
def page_file(tmp_path_factory):
    folder = tmp_path_factory.mktemp("page")
    write_run(folder / "runs" / "0", "none", 1, forgetful)
    write_run(folder / "runs" / "1", "scaled", 1, slips(10))
    write_run(folder / "runs" / "2", "multihead", 1, slips(12), heads=2)
    return compare([folder / "runs"], folder / "report", resamples=50)


@pytest.fixture(scope="module")
def browser():
    with sync_api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def opened(browser, page_file):
    """Opens the page, and afterwards holds it to silence: no message, no error, no request but the file itself."""
    contexts, heard = [], []

    def open_page(width=1200, height=900, scheme="light"):
        context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme, offline=True)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: heard.append(f"console: {message.text}"))
        page.on("pageerror", lambda error: heard.append(f"error: {error}"))
        page.on("request", lambda request: heard.append(request.url))
        page.goto(page_file.as_uri())
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert [each for each in heard if each not in (page_file.as_uri(), "data:,")] == []


def test_it_renders(opened):
    page = opened()
    assert page.title() == "Attention compared: none, multihead, scaled on trees"
    assert page.locator(".headline li").count() == 3
    assert page.locator("figure svg").count() == 6
    assert all(drawing.bounding_box()["height"] > 100 for drawing in page.locator("figure svg").all())
    assert page.locator(".panel").count() == 3
    assert "no weights to show" in page.locator(".panel").first.text_content()
    # Sentence 3 has 7 words and the end, on both sides.
    assert page.locator(".heat td[aria-label]").count() == 2 * 8 * 8


def test_pointing_at_a_cell_shows_its_weight_and_tokens(opened):
    page = opened()
    word, capital = SOURCES[3].split()[1], REFERENCES[3].split()[1]
    page.locator(".heat tbody tr").nth(1).locator("td").nth(1).hover()
    tip = page.locator("#tip")
    assert tip.is_visible()
    assert tip.text_content() == f"source {word}, target {capital}: weight 0.900"
    assert page.locator(".heat th.on").all_text_contents() == [word, capital]
    page.locator("h1").hover()
    assert not tip.is_visible()


def test_the_focus_keeps_its_weight_when_the_pointer_leaves(opened):
    page = opened()
    cells = page.locator(".heat tbody td")
    cells.nth(0).focus()
    shown = page.locator("#tip").text_content()
    assert f"source {SOURCES[3].split()[0]}," in shown
    cells.nth(9).hover()
    assert page.locator("#tip").text_content() != shown
    page.locator("h1").hover()
    assert page.locator("#tip").text_content() == shown
    assert page.locator("#tip").is_visible()


def test_the_keyboard_reaches_everything(opened):
    page = opened()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    assert page.evaluate("getComputedStyle(document.activeElement).outlineStyle") == "solid"
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    reached = set()
    for _ in range(120):
        page.keyboard.press("Tab")
        reached.add(page.evaluate("document.activeElement.id || document.activeElement.tagName"))
        if page.evaluate("document.activeElement.tagName") == "TD":
            break
    assert {"sentence", "next", "TD"} <= reached
    words = SOURCES[3].split()
    for key, row, column in (("ArrowRight", 0, 1), ("ArrowDown", 1, 1), ("ArrowUp", 0, 1), ("ArrowLeft", 0, 0)):
        page.keyboard.press(key)
        assert f"source {words[column]}, target {words[row].upper()}: weight" in page.locator("#tip").text_content()
    page.keyboard.press("ArrowLeft")
    assert f"source {words[0]}," in page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("Escape")
    assert not page.locator("#tip").is_visible()


def test_another_sentence_is_chosen_by_button_and_by_list(opened):
    page = opened()
    assert page.locator("#previous").is_disabled()
    page.locator("#next").click()
    assert SOURCES[11] in page.locator("#panels").text_content()
    assert page.locator("#next").is_disabled()
    page.locator("#sentence").select_option("3")
    assert SOURCES[3] in page.locator("#panels").text_content()
    page.locator("[data-sentence='11']").click()
    assert SOURCES[11] in page.locator("#panels").text_content()


def test_heads_and_the_encoder_are_chosen_from_a_list(opened):
    page = opened()
    panel = page.locator(".panel[aria-label='multihead']")
    choose = panel.locator("select")
    assert choose.locator("option").all_text_contents() == [
        "decoder, mean of its heads",
        "decoder, head 1",
        "decoder, head 2",
        "encoder, layer 1, mean of its heads",
        "encoder, layer 1, head 1",
        "encoder, layer 1, head 2",
    ]
    assert page.locator(".panel[aria-label='scaled'] select").count() == 0
    words = SOURCES[3].split()
    choose.select_option("decoder, head 1")
    first = panel.locator(".heat tbody tr").nth(2).locator("td").nth(0)
    assert first.get_attribute("aria-label") == f"source {words[0]}, target {words[2].upper()}: weight 1.000"
    choose.select_option("encoder, layer 1, mean of its heads")
    assert first.get_attribute("aria-label") == f"source {words[0]}, token {words[2]}: weight 0.500"
    graph = panel.locator(".graph svg")
    # Each of the 8 tokens looks at the first and at itself, which is one for the first.
    assert graph.locator("path").count() == 7
    assert graph.locator("circle").count() == 8
    assert graph.locator("text").all_text_contents() == [*words, "</s>"]
    page.locator("#next").click()
    assert panel.locator("select").input_value() == "encoder, layer 1, mean of its heads"


@pytest.mark.parametrize("width", [360, 768, 1400])
def test_no_width_scrolls_sideways(opened, width):
    page = opened(width=width)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_dark_and_light_differ_and_both_are_readable(opened):
    def brightness(page, what):
        colour = page.evaluate(f"getComputedStyle(document.body).{what}")
        return sum(float(part) for part in colour.strip("rgba()").split(",")[:3]) / 3

    light, dark = opened(scheme="light"), opened(scheme="dark")
    assert brightness(light, "backgroundColor") - brightness(light, "color") > 150
    assert brightness(dark, "color") - brightness(dark, "backgroundColor") > 150
    fills = [
        page.locator("figure svg text", has_text="corpus BLEU").first.evaluate("text => getComputedStyle(text).fill")
        for page in (light, dark)
    ]
    assert fills[0] != fills[1]


def test_print_shows_the_figures_and_no_controls(opened):
    page = opened(scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert not page.locator("nav").is_visible()
    assert not page.locator("#next").is_visible()
    assert page.locator("figure svg").first.is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(253, 253, 251)"
