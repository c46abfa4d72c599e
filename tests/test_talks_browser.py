"""Transcripts of agents in a real browser. Skipped where there is no browser."""

import pytest

from browser_tools import browser, needs_browser, served, silent_page
from made_agents import made_agents

pytest.importorskip("playwright", reason="no playwright: pip install -e '.[dev]'")
pytestmark = needs_browser
__all__ = ["browser"]


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    studies = tmp_path_factory.mktemp("studies")
    made_agents(studies / "talking")
    with served(studies) as address:
        yield address


@pytest.fixture
def page(browser, address):
    with silent_page(browser, address, locale="en-US") as opened:
        yield opened


def test_from_a_study_to_the_transcripts_of_a_task_on_which_two_arms_disagree(page, address):
    page.goto(f"{address}/study/talking")
    page.select_option("select[name=ours]", "none")
    page.select_option("select[name=theirs]", "tight")
    page.select_option("select[name=in]", "pointer")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/items?*")
    assert page.get_by_role("status").inner_text().startswith("3 of 6 tasks differ")
    listed = page.url
    page.locator("tbody a", has_text="test-1").click()
    page.locator("h1", has_text="task test-1").wait_for()
    page.wait_for_load_state()
    heads = page.locator("table.talks thead th").all_inner_texts()
    assert heads == ["arm", "no KL", "tight"]
    second = page.locator("table.talks tr", has=page.locator("th", has_text="turn 2"))
    ours, theirs = second.locator("td").all_inner_texts()
    assert "date" in ours and "covered: Date or deadline" in ours
    assert "STOP" in theirs and "covered" not in theirs
    assert "the agent ended it" in page.locator("table.talks").inner_text()
    page.go_back()
    assert page.url == listed


def test_kl_is_seen_as_tint_underline_title_and_number(page, address):
    page.goto(f"{address}/study/talking/item?item=test-0&ours=none&theirs=tight")
    near = page.locator("table.talks .kl0", has_text="ASK").first
    far = page.locator("table.talks .kl4").first
    assert far.get_attribute("title") == "KL 2.500 · log p -0.100"

    def style(token, what):
        return token.evaluate(f"(each) => getComputedStyle(each).{what}")

    assert style(near, "backgroundColor") != style(far, "backgroundColor")
    assert (style(near, "borderBottomWidth"), style(far, "borderBottomWidth")) == ("0px", "4px")
    assert page.locator("p .token").count() == 5
    page.get_by_text("no KL: every token's KL as numbers").click()
    page.locator("details[open]").wait_for()
    shown = page.locator("details[open] tbody tr").all_inner_texts()
    assert [row.split() for row in shown][2] == ["1", ";", "-0.100", "2.500"]


def test_the_same_in_chinese(page, address):
    page.goto(f"{address}/study/talking/item?item=test-1&ours=none&theirs=tight")
    page.get_by_role("link", name="中文").click()
    page.locator("h1", has_text="任务 test-1").wait_for()
    page.wait_for_load_state()
    text = page.locator("table.talks").inner_text()
    for word in ("轮次 2", "智能体自行结束", "奖励", "问出：", "用户："):
        assert word in text
    page.keyboard.press("u")
    page.wait_for_url("**/items?*")
    assert "6 个任务中" in page.get_by_role("status").inner_text()


@pytest.mark.parametrize("width", [400, 1000])
def test_arms_side_by_side_scroll_in_their_own_frame(page, address, width):
    page.set_viewport_size({"width": width, "height": 900})
    page.goto(f"{address}/study/talking/item?item=test-0")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("scheme", ["light", pytest.param("dark", marks=pytest.mark.slow)])
def test_axe_finds_no_serious_fault(page, address, scheme):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    page.emulate_media(color_scheme=scheme)
    page.goto(f"{address}/study/talking/item?item=test-1&ours=none&theirs=tight")
    found = axe.Axe().run(page).response["violations"]
    assert not [each["id"] for each in found if each["impact"] in ("serious", "critical")]
