"""The dashboard in a real browser, while a real study runs. Skipped where there is no browser."""

import re
import shutil
import subprocess
import sys

import pytest

from browser_tools import SOON, browser, needs_browser, served, silent_page, surroundings, until
from study_tools import small_study

pytest.importorskip("playwright", reason="no playwright: pip install -e '.[dev]'")
# In the short run test_access_browser.py opens the same pages of a made study.
pytestmark = [needs_browser, pytest.mark.slow]
__all__ = ["browser", "small_study"]


@pytest.fixture(scope="module")
def studies(tmp_path_factory, small_study):
    """A folder with a finished study, and room for one that is watched as it runs."""
    folder = tmp_path_factory.mktemp("studies")
    shutil.copytree(small_study, folder / "small")
    return folder


@pytest.fixture(scope="module")
def address(studies):
    with served(studies) as address:
        yield address


@pytest.fixture
def running(studies):
    """A real study, begun in another process; with a cell that runs it waits to be seen."""
    code = "from pathlib import Path; from study_tools import run_seen;"
    code += f"run_seen(Path({str(studies / 'watched')!r}))"
    with subprocess.Popen(
        [sys.executable, "-c", code], env=surroundings(), stdin=subprocess.PIPE
    ) as driver:
        yield driver
        driver.kill()


@pytest.fixture
def page(browser, address):
    with silent_page(browser, address, locale="en-US") as opened:
        yield opened


def test_a_cell_changes_from_running_to_done_without_reload(page, address, studies, running):
    while not (studies / "watched/plan.json").exists():
        assert running.poll() is None
        page.wait_for_timeout(100)
    page.goto(address)
    page.get_by_role("link", name="watched").click()
    page.locator("td .mark-running").first.wait_for()
    page.evaluate("window.stayed = true")
    running.stdin.close()
    page.locator("td .mark-done").first.wait_for()
    assert page.evaluate("window.stayed") is True
    assert running.wait(SOON / 1000) == 0
    page.get_by_text("Nobody is running it now.").wait_for()
    page.locator("#verdict .stated").wait_for()
    assert page.locator("#curves svg").count() >= 2
    assert page.evaluate("window.stayed") is True


def test_from_a_study_to_why_two_arms_differ_and_back(page, address):
    page.goto(f"{address}/study/small")
    page.select_option("select[name=ours]", "none")
    page.select_option("select[name=theirs]", "tight")
    page.select_option("select[name=in]", "pointer")
    page.get_by_role("button", name="Show").click()
    page.wait_for_url("**/items?*")
    told = page.get_by_role("status").inner_text()
    assert int(re.match(r"(\d+) of 60 items differ", told)[1]) > 0
    listed = page.url
    assert "ours=none" in listed and "theirs=tight" in listed
    page.locator("tbody a").first.click()
    page.locator("h1", has_text="item").wait_for()
    rows = page.locator("table.small tbody tr")
    assert rows.count() == 2
    assert rows.nth(0).locator("img").count() == 2
    shown = "[...document.images].every((i) => i.complete && i.naturalWidth > 0)"
    until(page, shown)
    deep = page.url
    page.go_back()
    assert page.url == listed
    page.goto(deep)
    page.keyboard.press("u")
    page.wait_for_url("**/items?*")


def test_runs_are_compared_by_ticking_them(page, address):
    page.goto(f"{address}/study/small")
    page.get_by_label("none-s0").check()
    page.get_by_label("tight-s0").check()
    page.get_by_role("button", name="Compare what is ticked").click()
    page.wait_for_url("**/compare?*")
    page.get_by_role("heading", name="Verdict").wait_for()
    assert page.url.count("run=") == 2
    assert page.get_by_label("small/runs/none-s0").is_checked()


def test_the_keyboard_is_enough(page, address):
    page.goto(address)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(10):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "small":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/study/small")
    page.locator("td a[class^=mark]").first.focus()
    page.keyboard.press("Enter")
    page.wait_for_url("**/run?run=*")
    page.keyboard.press("u")
    page.wait_for_url("**/study/small")


def test_a_run_is_found_by_its_name(page, address):
    page.goto(address)
    page.get_by_label("name or setting").fill("tight s0")
    page.keyboard.press("Enter")
    page.get_by_role("link", name="small/runs/tight-s0").click()
    page.wait_for_url("**/run?*")
    page.locator("#curves svg").first.wait_for()


@pytest.mark.parametrize("width", [400, 1000, 1600])
def test_no_page_is_wider_than_its_window(page, address, width):
    page.set_viewport_size({"width": width, "height": 900})
    for below in ("/", "/study/small", "/run?run=small/runs/tight-s0&lang=zh"):
        page.goto(address + below)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
