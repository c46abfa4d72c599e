"""The dashboard in a real browser, while a real study runs. Skipped where there is no browser."""

import re
import subprocess
import sys

import pytest

from browser_tools import SOON, browser, needs_browser, served, silent_page, surroundings

pytest.importorskip("playwright", reason="no playwright: pip install -e '.[dev]'")
pytestmark = needs_browser
__all__ = ["browser"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory):
    return tmp_path_factory.mktemp("studies")


@pytest.fixture(scope="module")
def address(studies):
    with served(studies) as address:
        yield address


@pytest.fixture(scope="module")
def running(studies):
    """A real study, begun in another process."""
    code = "from pathlib import Path; from study_tools import run_small;"
    code += f"run_small(Path({str(studies / 'small')!r}), jobs=1)"
    with subprocess.Popen([sys.executable, "-c", code], env=surroundings()) as driver:
        yield driver
        driver.kill()


@pytest.fixture
def page(browser, address):
    with silent_page(browser, address, locale="en-US") as opened:
        yield opened


def test_a_cell_changes_from_running_to_done_without_reload(page, address, studies, running):
    for _ in range(600):
        if (studies / "small/plan.json").exists():
            break
        page.wait_for_timeout(100)
    page.goto(address)
    page.get_by_role("link", name="small").click()
    mark = page.locator("a.mark-running").first
    mark.wait_for(timeout=SOON)
    name = mark.get_attribute("id")
    page.evaluate("window.stayed = true")
    page.locator(f"#{name}.mark-done").wait_for(timeout=SOON)
    assert page.evaluate("window.stayed") is True
    assert running.wait(timeout=300) == 0
    page.get_by_text("Nobody is running it now.").wait_for(timeout=SOON)
    page.locator("#verdict h3").wait_for(timeout=SOON)
    assert page.locator("#curves svg").count() == 2
    assert page.evaluate("window.stayed") is True


def test_from_a_study_to_why_two_arms_differ_and_back(page, address, running):
    assert running.wait(timeout=300) == 0
    page.goto(f"{address}/study/small")
    page.select_option("select[name=ours]", "none")
    page.select_option("select[name=theirs]", "tight")
    page.select_option("select[name=in]", "pointer")
    page.get_by_role("button", name="Show").click()
    told = page.get_by_role("status").inner_text()
    assert int(re.match(r"(\d+) of 60 items differ", told)[1]) > 0
    listed = page.url
    assert "ours=none" in listed and "theirs=tight" in listed
    page.locator("tbody a").first.click()
    page.locator("h1", has_text="item").wait_for()
    rows = page.locator("table.small tbody tr")
    assert rows.count() == 2
    assert rows.nth(0).locator("img").count() == 2
    page.locator("h2", has_text="The pool: 8 candidates").wait_for(timeout=SOON)
    assert page.locator("li.taken").count() >= 2
    shown = "[...document.images].every((i) => i.complete && i.naturalWidth > 0)"
    page.wait_for_function(shown, timeout=SOON)
    deep = page.url
    page.go_back()
    assert page.url == listed
    page.goto(deep)
    page.locator("h2", has_text="The pool: 8 candidates").wait_for(timeout=SOON)
    page.keyboard.press("u")
    page.wait_for_url("**/items?*")


def test_runs_are_compared_by_ticking_them(page, address, running):
    assert running.wait(timeout=300) == 0
    page.goto(f"{address}/study/small")
    page.get_by_label("none-s0").check()
    page.get_by_label("tight-s0").check()
    page.get_by_role("button", name="Compare what is ticked").click()
    page.get_by_role("heading", name="Verdict").wait_for(timeout=SOON)
    assert page.url.count("run=") == 2
    assert page.get_by_label("small/runs/none-s0").is_checked()


def test_the_keyboard_is_enough(page, address, running):
    assert running.wait(timeout=300) == 0
    page.goto(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "small":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/study/small")
    page.locator("a[id^=r]").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/arm?arm=*")
    page.keyboard.press("u")
    page.wait_for_url("**/study/small")


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_no_page_is_wider_than_its_window(page, address, running, width):
    assert running.wait(timeout=300) == 0
    page.set_viewport_size({"width": width, "height": 900})
    for below in ("/", "/study/small", "/study/small/arm?arm=tight&lang=zh"):
        page.goto(address + below)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
