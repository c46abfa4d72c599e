"""Pages of the dashboard: what they show, whom they answer, and what hostile folders cannot do."""

import asyncio
import html
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from itertools import cycle
from pathlib import Path
from threading import Event, Thread
from urllib.parse import unquote

import httpx
import pytest
from starlette.testclient import TestClient
from typer.testing import CliRunner

from kleash import report
from kleash.cli import app as kleash
from kleash.errors import ConfigError, DataError
from kleash.report.serve import Rules, answers, dashboard
from kleash.runs.run import write_json
from kleash.study.plan.folder import held, read_plan
from kleash.study.results import results
from made_agents import made_agents
from made_study import EMBEDDED, made_study

HERE = "http://127.0.0.1:8321"
SCRIPT = "<script>alert(1)</script>"
PICTURE = "<img src=x onerror=alert(1)>"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """Nobody else waits for a page."""
    monkeypatch.setattr("kleash.report.serve.answers.PAUSE", 0.0)


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """A folder with one study. Copy it to change it."""
    folder = tmp_path_factory.mktemp("finished")
    made_study(folder / "made", base=EMBEDDED)
    return folder


@pytest.fixture
def folder(finished, tmp_path):
    """The same, for one test to spoil."""
    shutil.copytree(finished, tmp_path / "served")
    return tmp_path / "served"


def client(folder, rules=None, **more):
    app = dashboard(folder, rules)
    return TestClient(app, base_url=HERE, follow_redirects=False, **more)


def whole(asked, address, **keys):
    """A page, once what takes long is worked out."""
    end = time.monotonic() + 60
    while True:
        page = asked.get(address, **keys)
        if "Being worked out" not in page.text and "正在" not in page.text.split("<main")[1]:
            return page
        assert time.monotonic() < end, "it is never worked out"
        time.sleep(0.02)


def status(folder, address, rules=None, **headers):
    """The answer to an address exactly as written: a client would tidy it up first."""
    path, _, query = address.partition("?")
    named = {"host": "127.0.0.1"} | headers
    scope = {
        "type": "http",
        "method": "GET",
        "scheme": "http",
        "http_version": "1.1",
        "path": unquote(path),
        "raw_path": path.encode(),
        "query_string": query.encode(),
        "headers": [(name.encode(), value.encode()) for name, value in named.items()],
    }
    told = []

    async def receive():
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message):
        told.append(message)

    asyncio.run(dashboard(folder, rules)(scope, receive, send))
    return told[0]["status"], dict(told[0]["headers"])


def links(answer, start):
    """The addresses on a page that begin so."""
    found = [html.unescape(each) for each in re.findall(r'href="([^"]+)"', answer.text)]
    return [each for each in found if each.startswith(start)]


# --- what is shown


def test_the_index_lists_studies_and_runs_that_are_in_none(folder):
    shutil.copytree(folder / "made/runs/none-s0", folder / "alone")
    page = client(folder).get("/")
    assert page.status_code == 200
    assert links(page, "/study/") == ["/study/made"]
    plan = read_plan(folder / "made")
    assert f"{plan['counts']['done']} / {len(plan['cells'])}" in page.text
    assert 'value="alone"' in page.text
    assert "return_to_go" in page.text
    assert page.text.count("▁") == 2  # each rose from its lowest
    assert re.search(r"▁\S+ 0\.400", page.text)


def test_the_index_tells_what_the_last_report_recommends(folder):
    assert "use kl0.15" not in client(folder).get("/").text
    report.write(results(folder / "made"))
    assert "use kl0.15" in client(folder).get("/").text
    (folder / "made/recommended.toml").unlink()
    assert "none recommended" in client(folder).get("/").text


@pytest.mark.parametrize(
    ("query", "studies", "runs"),
    [
        ("q=kl0.15-s3", 0, ["made/runs/kl0.15-s3"]),
        ("q=S3+runs", 0, [f"made/runs/{arm}-s3" for arm in ("kl0.15", "kl1.5", "none")]),
        ("q=by+hand", 1, []),
        ("q=none-s1&state=done&tag=scenes", 0, ["made/runs/none-s1"]),
        ("q=none-s1&state=running", 0, []),
        ("tag=intention&q=none-s1", 0, ["talking/runs/none-s1"]),
        ("tag=intention", 1, [f"talking/runs/{a}-s{n}" for a in ("none", "tight") for n in (0, 1)]),
        ("state=unfinished&q=talking", 1, []),
    ],
)
def test_runs_and_studies_are_found_by_name_tag_and_state(both, query, studies, runs):
    page = client(both).get(f"/?{query}")
    assert len(links(page, "/study/")) == studies
    found = [unquote(each).partition("run=")[2] for each in links(page, "/run")]
    assert sorted(each for each in found if "base-s" not in each) == sorted(runs)
    if not studies and not runs:
        assert "No study and no run fits." in page.text


@pytest.fixture(scope="session")
def both(finished, tmp_path_factory):
    """A study of selectors and one of agents."""
    folder = tmp_path_factory.mktemp("both")
    shutil.copytree(finished / "made", folder / "made")
    made_agents(folder / "talking")
    return folder


def test_what_lies_below_is_listed_too(folder):
    asked = client(folder.parent)
    shutil.copytree(folder / "made/runs/none-s0", folder / "some/runs/alone")
    page = asked.get("/")
    name = folder.name
    assert links(page, "/study/") == [f"/study/{name}/made"]
    assert f'value="{name}/some/runs/alone"' in page.text
    study = asked.get(f"/study/{name}/made")
    assert study.status_code == 200
    for address in [*links(study, "/run")[:2], *links(page, "/run")]:
        run = whole(asked, address)
        assert run.status_code == 200
        assert "return_to_go" in run.text
        assert run.text.count("<figure>") >= 2
    assert asked.get("/run", params={"run": name}).status_code == 404
    assert asked.get("/run", params={"run": f"{name}/../.."}).status_code == 404


def test_a_study_by_itself_can_be_served(folder):
    asked = client(folder / "made")
    assert links(asked.get("/"), "/study/") == ["/study/made"]
    assert asked.get("/study/made").status_code == 200


def test_a_study_shows_the_blocks_of_its_report_the_matrix_and_curves(finished):
    page = whole(client(finished), "/study/made").text
    assert "Use kl0.15: accuracy +50.0" in page
    assert "[L3]" in page
    assert 'class="stated"' in page and 'class="cards"' in page and "start (rce-1)" in page
    jobs = {(cell[0], cell[1]) for cell in read_plan(finished / "made")["cells"]}
    assert len(re.findall(r'class="mark-done"', page)) == len(jobs)
    assert page.count("<figure>") >= 2
    assert page.count('type="checkbox"') == 24


def test_a_study_is_told_in_chinese_by_address_or_by_browser(finished):
    asked = client(finished)
    by_browser = whole(asked, "/study/made", headers={"accept-language": "zh-CN,zh;q=0.9"}).text
    by_address = asked.get("/study/made?lang=zh")
    assert "结论" in by_browser
    assert "用 kl0.15" in by_browser
    assert all("lang=zh" in each for each in links(by_address, "/run"))
    english = {"accept-language": "zh"}
    assert "Verdict" in whole(asked, "/study/made?lang=en", headers=english).text


def test_a_run_shows_every_measurement_and_leads_to_its_items(finished):
    asked = client(finished)
    run = asked.get("/run?run=made/runs/kl0.15-s0")
    assert "epoch-3" in run.text
    [one, two] = links(run, "/study/made/items")
    assert ("shots=1" in one, "shots=2" in two) == (True, True)
    scores = [
        line["score"]
        for line in map(json.loads, open_lines(finished / "made/runs/kl0.15-s0/scores.jsonl"))
        if (line["checkpoint"], line["split"], line["shots"]) == ("epoch-3", "test", 1)
    ]
    assert f"{100 * sum(scores) / len(scores):.1f}%" in run.text
    items = asked.get(one)
    assert len(links(items, "/study/made/item?")) == 40
    assert "All 40 items of kl0.15 (seed 0, 1 shots)." in items.text
    start = asked.get("/run?run=made/base-s0")
    for below in links(start, "/study/made/items"):
        shown = asked.get(below)
        assert len(links(shown, "/study/made/item?")) == 40, below
        assert asked.get(links(shown, "/study/made/item?")[0]).status_code == 200


def open_lines(path):
    return path.read_text(encoding="utf-8").splitlines()


def test_items_on_which_two_arms_disagree(finished):
    asked = client(finished)
    query = "ours=none&theirs=kl0.15&seed=0&shots=2"
    page = asked.get(f"/study/made/items?{query}")
    # 0.4 and 0.8 of 40 items are right, and the better arm has all that the other has.
    assert "16 of 40 items differ" in page.text
    items = links(page, "/study/made/item?")
    assert len(items) == 16
    same = asked.get("/study/made/items?ours=none&theirs=none&seed=0&shots=2")
    assert "0 of 40 items differ" in same.text
    chosen = asked.get(f"/study/made/items?{query}&in=pointer")
    assert "40 of 40 items differ" in chosen.text
    item = asked.get(items[0]).text
    assert re.search(r">no KL</a></th>.*?>blue</td><td>0</td>", item, re.S)
    assert re.search(r">kl0.15</a></th>.*?>red</td><td>1</td>", item, re.S)


def test_an_item_shows_pictures(finished):
    asked = client(finished)
    page = asked.get("/study/made/item?item=test-3&shots=2")
    assert page.status_code == 200
    pictures = re.findall(r'src="([^"]+)"', page.text.split("<main")[1])
    assert len(pictures) == 1 + 3 * 2
    picture = asked.get(html.unescape(pictures[0]))
    assert picture.headers["content-type"] == "image/png"
    assert picture.content.startswith(b"\x89PNG")


def test_ticked_runs_are_compared(finished):
    asked = client(finished)
    names = ["made/runs/none-s0", "made/runs/kl0.15-s0"]
    page = whole(asked, "/compare", params={"run": names})
    assert page.status_code == 200
    assert "<h2>Verdict</h2>" in page.text
    assert page.text.count("checked") == 2
    assert "<h2>Training curves</h2>" in page.text
    assert "<figure>" in page.text
    assert asked.get("/compare", params={"run": names[:1]}).status_code == 400


def test_what_takes_long_is_made_once_while_pages_go_on(finished, monkeypatch):
    begun, go_on = [], Event()

    def slow(*given):
        begun.append(given)
        assert go_on.wait(60)
        return "the answer"

    monkeypatch.setattr("kleash.report.serve.pages.study_answer", slow)
    asked = client(finished)
    for _ in range(3):
        assert "Being worked out" in asked.get("/study/made").text
    go_on.set()
    assert "the answer" in whole(asked, "/study/made").text
    assert len(begun) == 1


def test_an_answer_stays_till_there_is_a_newer_one():
    background, go_on = answers.Background(), Event()
    made = iter(["first", "second"])

    def ask(stamp):
        return background.ask("name", stamp, lambda: go_on.wait(60) and next(made))

    def until(answer, stamp):
        end = time.monotonic() + 60
        while ask(stamp) != answer:
            assert time.monotonic() < end
            time.sleep(0.01)

    assert ask(1) is None
    go_on.set()
    until("first", 1)
    go_on.clear()
    assert ask(2) == "first"
    go_on.set()
    until("second", 2)
    assert ask(2) == "second"


def test_a_page_that_looks_again_hears_only_what_changed(folder):
    study = folder / "made"
    plan = read_plan(study)
    with client(folder) as asked, held(study):
        for cell in plan["cells"]:
            if cell[:2] == ["none", 0]:
                cell[-1] = "running"
        write_json(study / "plan.json", plan)
        page = asked.get("/study/made")
        assert "data-live" in page.text
        assert re.search(r'class="mark-running"[^>]*>▶ 0/\d', page.text)
        assert "Running: process" in page.text
        page = whole(asked, "/study/made")

        def again(tag):
            time.sleep(1.01)  # what is made within a second is shared
            return asked.get("/study/made", headers={"if-none-match": tag})

        same = again(page.headers["etag"])
        assert (same.status_code, same.content) == (304, b"")
        for cell in plan["cells"]:
            cell[-1] = "done"
        write_json(study / "plan.json", plan)
        changed = again(page.headers["etag"])
        assert changed.status_code == 200
        assert "mark-running" not in changed.text.replace("Running", "")


def test_running_cells_of_a_study_that_nobody_runs_are_missing(folder):
    plan = read_plan(folder / "made")
    plan["cells"][0][-1] = "running"
    write_json(folder / "made/plan.json", plan)
    page = client(folder).get("/study/made").text
    assert "mark-running" not in page
    assert "mark-missing" in page
    assert "To go on: kleash study" in page


def test_fifty_readers_while_the_plan_changes(folder, monkeypatch):
    monkeypatch.setattr("kleash.report.serve.pages.study_answer", lambda *given: "")
    study = folder / "made"
    plan, stop = read_plan(study), Event()

    def rewrite():
        for cell in cycle(plan["cells"]):
            cell[-1] = "missing" if cell[-1] == "done" else "done"
            write_json(study / "plan.json", plan)
            if stop.wait(0.01):
                return

    asked = client(folder)
    addresses = ["/", "/study/made", "/run?run=made/runs/none-s0", "/study/made/items"]
    writer = Thread(target=rewrite)
    writer.start()
    try:
        with ThreadPoolExecutor(50) as readers:
            found = list(readers.map(asked.get, addresses * 25))
    finally:
        stop.set()
        writer.join()
    assert {answer.status_code for answer in found} == {200}


# --- whom it answers


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:8321", "127.0.0.1.evil.example", "", "[::1", "0.0.0.0"]
)
def test_another_name_is_not_answered(finished, host):
    assert client(finished).get("/", headers={"host": host}).status_code == 421


@pytest.mark.parametrize("host", ["127.0.0.1:1", "localhost:8321", "[::1]:8321"])
def test_names_of_this_machine_are_answered(finished, host):
    assert client(finished).get("/", headers={"host": host}).status_code == 200


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "https://127.0.0.1", "[::1"])
def test_another_site_is_not_answered(finished, origin):
    assert client(finished).get("/", headers={"origin": origin}).status_code == 403


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE"])
def test_only_get_is_answered(finished, method):
    assert client(finished).request(method, "/study/made").status_code == 405


@pytest.mark.parametrize("path", ["/", "/study/made", "/nowhere", "/study/none", "/page.css"])
def test_every_answer_says_what_a_page_may_do(finished, path):
    headers = client(finished).get(path).headers
    assert "default-src 'none'" in headers["content-security-policy"]
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["cache-control"] == "no-store"
    assert "access-control-allow-origin" not in headers


def test_in_public_a_token_is_needed_once(finished):
    rules = Rules(hosts=("box.lan",), token="t0ken")
    asked = client(finished, rules)
    headers = {"host": "box.lan"}
    assert asked.get("/", headers=headers).status_code == 401
    assert asked.get("/?token=other", headers=headers).status_code == 401
    assert asked.get("/?token=t0ken", headers={"host": "evil.example"}).status_code == 421
    shown = asked.get("/study/made?lang=zh&token=t0ken", headers=headers)
    assert (shown.status_code, shown.headers["location"]) == (303, "/study/made?lang=zh")
    cookie = shown.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert asked.get("/", headers=headers | {"cookie": "kleash=t0ken"}).status_code == 200
    for address in ("//evil.example/?token=t0ken", "/\\evil.example/?token=t0ken"):
        _, away = status(finished, address, rules, host="box.lan")
        assert away[b"location"] == b"/evil.example/"
    assert "t0ken" not in repr(rules)


# --- hostile folders


RUN = "/run?run=made/runs/none-s0"
ITEM = "/study/made/item?item=test-3&shots=2"
ADDRESSES = ("/", "/?q=s0", "/study/made", RUN, "/study/made/items", ITEM)


def pages(folder):
    """Every kind of page, whatever its status; never a bug of ours."""
    asked = client(folder)
    first = [whole(asked, address) for address in ADDRESSES]
    more = links(first[3], "/study/made/item")[:1] + links(first[4], "/study/made/item")[:1]
    found = first + [whole(asked, each) for each in more]
    assert {each.status_code for each in found} <= {200, 404, 422}
    return found


def test_contents_are_shown_as_text(folder):
    study = folder / "made"
    about = (study / "study.toml").read_text(encoding="utf-8")
    text = about.replace('"a study made by hand"', json.dumps(SCRIPT))
    (study / "study.toml").write_text(text, encoding="utf-8")
    for path in study.glob("runs/*/scores.jsonl"):
        lines = [json.loads(line) for line in open_lines(path)]
        for line in lines:
            line["answer"], line["pointer"] = SCRIPT, [PICTURE, "\ud800"]
            if line["item"] == "test-0":
                line["item"] = '"><script>alert(2)</script>'
        text = "".join(json.dumps(line) + "\n" for line in lines)
        path.write_text(text, encoding="utf-8")
    plan = read_plan(study)
    plan["cells"].append([PICTURE, 0, SCRIPT, SCRIPT, 1, 1, "missing"])
    plan["failures"] = {f"{PICTURE}-s0": SCRIPT}
    write_json(study / "plan.json", plan)
    found = pages(folder)
    asked = client(folder)
    found.append(asked.get("/", params={"q": PICTURE, "tag": SCRIPT}))
    found.append(asked.get("/study/made/items", params={"ours": PICTURE, "theirs": SCRIPT}))
    found.append(asked.get("/compare", params={"run": [SCRIPT, PICTURE]}))
    found.append(asked.get("/study/made/item", params={"item": '"><script>alert(2)</script>'}))
    for page in found:
        assert "<script>alert" not in page.text
        assert "<img src=x" not in page.text
    for page in (found[2], found[5]):
        assert "&lt;script&gt;alert(1)" in page.text


def test_names_are_shown_as_text(folder):
    shutil.copytree(folder / "made", folder / PICTURE)
    shutil.copytree(folder / "made/runs/none-s0", folder / f"{PICTURE}-s0")
    asked = client(folder)
    index = asked.get("/")
    assert "<img src=x" not in index.text
    address = links(index, "/study/%3C")[0]
    page = asked.get(address)
    assert page.status_code == 200
    assert "<img src=x" not in page.text


@pytest.mark.parametrize("name", ["study.toml", "plan.json", "asked.jsonl", "spent.jsonl"])
@pytest.mark.parametrize("content", [b"", b"{", b'{"cells": [[1]]}', b"\xff\xfe\x00", b"[" * 9999])
def test_a_torn_file_of_a_study_is_one_clear_error(folder, name, content):
    (folder / "made" / name).write_bytes(content)
    for page in pages(folder):
        assert "Traceback" not in page.text
    assert client(folder).get("/").status_code == 200


@pytest.mark.parametrize("name", ["config.json", "meta.json", "metrics.jsonl", "scores.jsonl"])
@pytest.mark.parametrize(
    "content", [b"", b'{"score"', b'{"item": []}\n', b"\xff\n", b"7\n", b"[" * 9999 + b"\n"]
)
def test_a_torn_file_of_a_run_is_one_clear_error(folder, name, content):
    for path in (folder / "made/runs").iterdir():
        (path / name).write_bytes(content)
    shutil.copytree(folder / "made/runs/none-s0", folder / "alone")
    for page in pages(folder):
        assert "Traceback" not in page.text


def test_scores_that_are_no_numbers_are_one_clear_error(folder):
    path = folder / "made/runs/none-s0/scores.jsonl"
    path.write_text(path.read_text().replace('"score": 1.0', '"score": "1.0"'))
    page = client(folder).get("/study/made/items?ours=none&theirs=kl0.15&seed=0&shots=2")
    assert page.status_code == 422
    assert "a score that is no number" in page.text


def test_lines_of_ten_megabytes_are_survived(folder):
    long = "x" * 10_000_000
    run = folder / "made/runs/none-s0"
    line = json.loads(open_lines(run / "scores.jsonl")[-1]) | {"answer": long, "item": "test-3"}
    for name, record in (("scores.jsonl", line), ("metrics.jsonl", {"kind": "epoch", "x": long})):
        with (run / name).open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")
    plan = read_plan(folder / "made")
    plan["failures"] = {"none-s1": long}
    write_json(folder / "made/plan.json", plan)
    for page in pages(folder):
        assert len(page.content) < 1_000_000


# --- nothing outside the folder


WATCHED = []
OPENED = []


def watch(event, given):
    """Hears of every file that this process opens, by whatever means."""
    file = given[0] if event == "open" and WATCHED else None
    if isinstance(file, str | Path) and os.path.realpath(file) in WATCHED:
        OPENED.append(file)


sys.addaudithook(watch)


@pytest.fixture
def outside(tmp_path):
    """A file beside the served folder that nobody may open."""
    secret = tmp_path / "secret"
    secret.write_text("root:x:0:0:secret", encoding="utf-8")
    WATCHED.append(str(secret))
    yield secret
    WATCHED.clear()
    OPENED.clear()


@pytest.mark.parametrize(
    "name",
    [
        "made/study.toml",
        "made/plan.json",
        "made/spent.jsonl",
        "made/lock",
        "made/calibration.json",
        "made/runs/none-s0/scores.jsonl",
        "made/runs/none-s0/metrics.jsonl",
        "made/runs/none-s0/config.json",
        "made/runs/none-s0/meta.json",
        "made/runs/none-s0/given.json",
        "made/base-s0/config.json",
        "made/base-s0/scores.jsonl",
    ],
)
def test_a_link_out_of_the_folder_is_not_followed(folder, outside, name):
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(outside)
    pages(folder)
    runs = {"run": ["made/runs/none-s0", "made/runs/kl0.15-s0"]}
    whole(client(folder), "/compare", params=runs)
    assert not OPENED
    outside.read_text(encoding="utf-8")
    assert len(OPENED) == 1, "the watch sleeps"


def test_folders_that_are_links_out_are_not_there(folder, finished):
    (folder / "linked").symlink_to(finished / "made")
    shutil.rmtree(folder / "made/runs")
    (folder / "made/runs").symlink_to(finished / "made/runs")
    asked = client(folder)
    assert links(asked.get("/"), "/study/") == ["/study/made"]
    assert asked.get("/study/linked").status_code in (404, 422)
    assert asked.get("/study/made").status_code in (200, 422)
    assert "Use kl0.15" not in whole(asked, "/study/made").text
    runs = {"run": ["linked/runs/none-s0", "linked/runs/kl0.15-s0"]}
    assert asked.get("/compare", params=runs).status_code in (404, 422)


@pytest.mark.parametrize(
    "path",
    [
        "/study/..",
        "/study/%2e%2e",
        "/study/..%2f..%2fetc",
        "/study/%2fetc",
        "/study/.hidden",
        "/../../etc/passwd",
        "/study/made/../../../etc/passwd",
        "/compare?run=../x&run=made/../../x",
        "/compare?run=/etc&run=/tmp",
        "/compare?run=made/runs/none-s0&run=made/runs/none-s0/../../../../finished",
        "/study/made/image?name=../../../etc/passwd",
        "/run?run=made/runs/../../../x",
        "/run?run=/etc",
    ],
)
def test_paths_that_lead_out_lead_nowhere(folder, path):
    assert status(folder, path)[0] in (404, 422)


def test_pipes_are_not_waited_for(folder):
    for name in ("spent.jsonl", "runs/none-s0/scores.jsonl", "runs/none-s0/config.json"):
        (folder / "made" / name).unlink()
        os.mkfifo(folder / "made" / name)
    shutil.copytree(folder / "made/runs/kl0.15-s0", folder / "alone")
    (folder / "alone/config.json").unlink()
    os.mkfifo(folder / "alone/config.json")
    pages(folder)


def test_a_folder_cannot_name_code_to_run(folder, tmp_path, monkeypatch):
    (tmp_path / "hostile_code.py").write_text("raise SystemExit('ran')", encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    path = folder / "made/study.toml"
    base = '[base]\ndata = "hostile_code:Set"\nanswerer = "hostile_code:Set"\n'
    path.write_text(path.read_text().replace("[base]\n", base), encoding="utf-8")
    found = pages(folder)
    assert "hostile_code" not in sys.modules
    assert "kleash serve --data hostile_code:Set" in found[5].text or found[5].status_code == 404


# --- the verb


def test_it_ends_at_once_and_without_a_traceback_though_something_is_worked_out(folder):
    command = [str(Path(sys.executable).with_name("kleash")), "serve", str(folder), "--port", "0"]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        address = server.stdout.readline().strip().rstrip("/")
        with httpx.Client(timeout=600) as reader:
            assert "Being worked out" in reader.get(f"{address}/study/made").text
            server.send_signal(signal.SIGINT)
            said = server.communicate(timeout=600)[1]
    assert said == "Ctrl-C ends it\n"


@pytest.fixture
def served(monkeypatch):
    """What `kleash serve` would listen at, without listening for long."""
    found = []
    monkeypatch.setattr(
        "uvicorn.Server.run", lambda self, sockets: found.append(sockets[0].getsockname())
    )
    return found


def serve(*words):
    done = CliRunner().invoke(kleash, ["serve", *map(str, words)])
    if done.exception:
        raise done.exception
    return done.stdout.strip()


def test_only_this_machine_can_reach_it(folder, served):
    address = serve(folder, "--port", 0)
    assert served[0][0] == "127.0.0.1"
    assert address == f"http://127.0.0.1:{served[0][1]}/"


def test_in_public_a_token_is_in_the_address(folder, served):
    first = serve(folder, "--port", 0, "--public", "--host", "box.lan")
    second = serve(folder, "--port", 0, "--public", "--host", "box.lan")
    assert served[0][0] == "0.0.0.0"
    tokens = [
        re.fullmatch(r"http://box\.lan:\d+/\?token=(.{32})", each)[1] for each in (first, second)
    ]
    assert tokens[0] != tokens[1]


def test_mistakes_are_one_line(folder, tmp_path, served):
    with pytest.raises(DataError, match="no folder"):
        serve(tmp_path / "nothing")
    with pytest.raises(ConfigError, match="--host needs --public"):
        serve(folder, "--host", "box.lan")
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        with pytest.raises(DataError, match="try --port 0"):
            serve(folder, "--port", taken.getsockname()[1])
    assert not served
