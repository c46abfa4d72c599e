"""Fifty readers for a minute while a study runs: every page is whole, the study loses nothing."""

import asyncio
import http.client
import subprocess
import sys
import time

import httpx
import pytest

from browser_tools import served, surroundings
from study_tools import lasting, run_small

READERS, SECONDS = 50, 60
PAGES = (
    "/",
    "/study/small",
    "/run?run=small/runs/none-s0",
    "/study/small/items?ours=none&theirs=tight&seed=0&shots=2&in=pointer",
    "/study/small/item?item=test-3&seed=0&shots=2",
)
SEEDS = 2


async def read_on(client, number, until, told):
    """One reader: a page after the other, and at times whether one has changed."""
    turn = number
    while time.monotonic() < until:
        page = PAGES[turn % len(PAGES)]
        turn += 1
        answer = await client.get(page)
        told.append((page, answer.status_code, answer.text.rstrip().endswith("</html>")))
        if page == "/study/small" and turn % 4 == 0:
            tag = answer.headers["etag"]
            again = await client.get(page, headers={"if-none-match": tag})
            told.append(("again", again.status_code, again.status_code != 304 or not again.content))


async def crowd(address):
    told = []
    until = time.monotonic() + SECONDS
    limits = httpx.Limits(max_connections=None)
    async with httpx.AsyncClient(base_url=address, timeout=60, limits=limits) as client:
        await asyncio.gather(*(read_on(client, n, until, told) for n in range(READERS)))
    return told


@pytest.mark.slow
def test_fifty_readers_for_a_minute_see_no_error_and_the_study_loses_nothing(tmp_path):
    quiet = tmp_path / "quiet/small"
    ran, _ = run_small(quiet, seeds=SEEDS)
    assert not ran.failures
    folder = tmp_path / "watched"
    folder.mkdir()
    code = "from pathlib import Path; from study_tools import run_small;"
    code += f"ran, _ = run_small(Path({str(folder / 'small')!r}), seeds={SEEDS});"
    code += "assert not ran.failures"
    with (
        served(folder) as address,
        subprocess.Popen([sys.executable, "-c", code], env=surroundings()) as driver,
    ):
        while not (folder / "small/plan.json").exists() and driver.poll() is None:
            time.sleep(0.1)
        told = asyncio.run(crowd(address))
        assert driver.wait(timeout=600) == 0
    # Items are not there before the first scores are: their pages say so, with 404.
    early = {page: {200, 404} for page in PAGES if "/item" in page or "/run" in page}
    early["again"] = {200, 304}
    wrong = [each for each in told if each[1] not in early.get(each[0], {200}) or not each[2]]
    assert not wrong[:3]
    assert len(told) > 10 * READERS
    assert {page for page, *_ in told} >= set(PAGES)
    assert lasting(folder / "small") == lasting(quiet)


@pytest.mark.slow
def test_a_connection_that_waited_longer_than_clients_keep_one_is_still_answered(tmp_path):
    """Else a client that sends just as it is closed sees an error; httpx keeps one for 5 s."""
    with served(tmp_path) as address:
        kept = http.client.HTTPConnection(address.removeprefix("http://"), timeout=60)
        for pause in (6.0, 0.0):
            kept.request("GET", "/")
            assert kept.getresponse().read().rstrip().endswith(b"</html>")
            time.sleep(pause)
        kept.close()
