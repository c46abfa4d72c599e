"""Whoever reads with a screen reader, a keyboard or on paper: axe-core finds no serious fault."""

from contextlib import contextmanager

import pytest

from browser_tools import (
    browser,
    needs_browser,
    opened_page,
    served,
    silent_page,
    until,
)
from kleash import report
from kleash.study.results import results
from made_study import EMBEDDED, made_study

axe = pytest.importorskip(
    "axe_playwright_python.sync_playwright", reason="no axe-core: pip install -e '.[dev]'"
)
pytestmark = needs_browser
__all__ = ["browser"]
CHOSEN = "ours=none&theirs=kl0.15&seed=0&shots=2"
PAGES = {
    "index": "/",
    "study": "/study/made",
    "run": "/run?run=made/runs/none-s0",
    "items": f"/study/made/items?{CHOSEN}&in=score",
    "item": f"/study/made/item?item=test-3&{CHOSEN}",
    "compare": "/compare?run=made/runs/none-s0&run=made/runs/kl0.15-s0",
    "nothing": "/study/made/nowhere",
}
# A narrow window is where tables and charts scroll on their own.
SIZES = {"light": {"width": 1280, "height": 900}, "dark": {"width": 400, "height": 800}}
LOOKS = [
    ("light", "en"),
    pytest.param("light", "zh", marks=pytest.mark.slow),
    pytest.param("dark", "en", marks=pytest.mark.slow),
    pytest.param("dark", "zh", marks=pytest.mark.slow),
]


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    folder = tmp_path_factory.mktemp("studies")
    made_study(folder / "made", seeds=2, base=EMBEDDED)  # as `serve` has its pictures
    made = results(folder / "made")
    for language in ("en", "zh"):
        report.write(made, language=language)
        (folder / "made/report.html").rename(folder / f"{language}.html")
    return folder


@pytest.fixture(scope="module")
def address(studies):
    with served(studies) as address:
        yield address


@contextmanager
def reading(browser, **keys):
    """A page of a reader."""
    with opened_page(browser, **keys) as opened:
        yield opened


@pytest.fixture
def page(browser):
    with reading(browser, locale="en") as opened:
        yield opened


def go_to(page, address, kind, language="en"):
    """Open a page and wait till it is whole."""
    below = PAGES[kind]
    page.goto(f"{address}{below}{'&' if '?' in below else '?'}lang={language}")
    whole = {"study": ".stated", "compare": ".stated", "run": "#curves svg >> nth=0"}
    if kind in whole:
        page.locator(whole[kind]).wait_for()


def faults(page):
    """What axe-core calls serious or critical, with the first place of each."""
    found = axe.Axe().run(page).response["violations"]
    return [
        f"{each['id']}: {each['nodes'][0]['html'][:200]} {each['nodes'][0]['failureSummary']}"
        for each in found
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.slow
@pytest.mark.parametrize(("theme", "language"), LOOKS)
def test_a_report_has_no_serious_fault(browser, studies, theme, language):
    place = (studies / f"{language}.html").as_uri()
    size = SIZES[theme]
    with silent_page(browser, place, color_scheme=theme, viewport=size) as page:
        page.goto(place)
        page.evaluate("document.querySelectorAll('details').forEach((each) => (each.open = true))")
        assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]
        assert not faults(page)


@pytest.mark.parametrize(("theme", "language"), LOOKS)
def test_no_page_of_the_dashboard_has_a_serious_fault(browser, address, theme, language):
    found = {}
    keys = {"color_scheme": theme, "locale": language, "viewport": SIZES[theme]}
    with reading(browser, **keys) as page:
        for kind in PAGES:
            go_to(page, address, kind, language)
            found[kind] = faults(page)
    assert not {kind: told for kind, told in found.items() if told}


OUTLINED = """() => {
  const style = getComputedStyle(document.activeElement);
  return style.outlineStyle !== "none" && parseFloat(style.outlineWidth) > 0;
}"""


@pytest.mark.parametrize("kind", ["index", "study", "items", "compare"])
def test_what_has_the_focus_is_seen_and_follows_the_page(page, address, kind):
    go_to(page, address, kind)
    tops, unseen = [], []
    for at in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement === document.body"):
            break  # past the last of them
        if not page.evaluate(OUTLINED):
            unseen.append(page.evaluate("document.activeElement.outerHTML.slice(0, 200)"))
        if at:  # the first is the way past the header
            tops.append(page.evaluate("document.activeElement.compareDocumentPosition(before)"))
        page.evaluate("window.before = document.activeElement")
    assert not unseen
    assert len(tops) >= 3
    precedes = 2
    assert all(place & precedes for place in tops)


def test_the_first_key_leads_past_the_header(page, address):
    go_to(page, address, "study")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    # A browser takes the focus there with the next picture that it draws.
    until(page, "document.activeElement.id === 'content'")
    assert page.url.endswith("#content")
    page.keyboard.press("Tab")
    assert page.evaluate("document.querySelector('main').contains(document.activeElement)")


NOTED = """
window.heard = window.touched = 0;
const real = window.fetch;
window.fetch = async (...given) => {
  const answer = await real(...given);
  heard++;
  return answer;
};
addEventListener("DOMContentLoaded", () => {
  const noted = new MutationObserver((all) => (touched += all.length));
  const every = { attributes: true, characterData: true, childList: true, subtree: true };
  noted.observe(document.querySelector("main"), every);
});
"""


def test_a_page_on_which_nothing_is_new_is_not_touched(page, address):
    go_to(page, address, "study")
    page.add_init_script(NOTED)
    go_to(page, address, "study")
    until(page, "heard > 1")  # the first has the page whole, the second that it is the same
    assert page.evaluate("touched") == 0


FOCUSED = [".cards + .cap + .wide", "#curves summary >> nth=1", "td input >> nth=1"]


@pytest.mark.parametrize("focused", FOCUSED)
def test_what_has_the_focus_is_open_or_ticked_stays_so_when_a_page_changes(page, address, focused):
    go_to(page, address, "study")
    page.locator("#curves summary").nth(0).click()
    page.locator("td input").nth(0).check()
    page.locator(focused).focus()
    page.evaluate("window.before = document.activeElement")
    page.evaluate("""() => {
      const main = document.querySelector("main"), made = main.cloneNode(true);
      made.querySelectorAll("details").forEach((each) => each.removeAttribute("open"));
      made.querySelector("#progress").textContent = "new";
      made.querySelector("td .mark-done").className = "mark-running";
      made.querySelector("form").append("new");
      morph(main, made);
    }""")
    assert page.locator("#progress").inner_text() == "new"
    assert page.locator("td .mark-running").count() == 1
    assert page.evaluate("document.activeElement === before && before.isConnected")
    assert page.locator("#curves details").nth(0).evaluate("each => each.open")
    assert page.locator("td input").nth(0).is_checked()


def test_every_view_opens_from_its_address_and_back_leads_back(page, address):
    for below in PAGES.values():
        page.goto(address + below)
    for below in list(PAGES.values())[-2::-1]:
        page.go_back()
        assert page.url == address + below
        assert page.locator("h1").count() == 1


@pytest.mark.parametrize("kind", ["study", "run", "items", "item"])
def test_on_paper_a_page_is_dark_on_white_and_has_no_buttons(browser, address, kind):
    with reading(browser, locale="en", color_scheme="dark") as page:
        go_to(page, address, kind)
        page.emulate_media(media="print", color_scheme="dark")
        ground = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert ground == "rgb(255, 255, 255)"
        ink = page.evaluate("getComputedStyle(document.querySelector('h1')).color")
        assert ink == "rgb(26, 26, 26)"
        seen = page.locator("button, select, header").all()
        assert not [each for each in seen if each.is_visible()]
        assert page.pdf(format="A4")[:5] == b"%PDF-"


def test_the_check_sees_a_fault(page):
    page.set_content("<html lang=en><title>x</title><main><img src='data:,'><h1>x</h1></main>")
    assert [told.split(":")[0] for told in faults(page)] == ["image-alt"]
