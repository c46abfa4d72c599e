"""The chat user against a server that misbehaves: nothing becomes a zero and nothing hangs."""

import asyncio
import gzip
import json
import socket
import threading
import time
import tracemalloc
import zlib
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kleash.errors import ConfigError
from kleash.runs.ledger import Ledger
from kleash.seeds import generator
from kleash.tasks.envs import gym
from kleash.tasks.envs.chat import JUDGE, Chat, ChatUser, read_covered
from kleash.tasks.envs.contract import EndpointDown, EpisodeBroken, at_once
from kleash.tasks.envs.endpoint import Endpoint, EndpointOptions
from kleash.tasks.envs.intents import task_from
from kleash.tasks.envs.line import LONGEST_BODY

TASK = task_from(
    {
        "category": "dinner",
        "task": "Plan a dinner.",
        "missing_details": [
            {"description": "Preferred cuisine", "importance": "3", "options": ["Thai"]},
            {"description": "Guest count", "importance": "2", "options": ["Four"]},
            {"description": "Budget", "importance": "1", "options": ["Low"]},
        ],
    }
)
ASKED = ["[action] Which cuisine?", "[action] How is the weather?", "[action] guest and budget?"]


def good_judge(asked):
    """Covers a detail when the question holds the last word of its description."""
    about = asked["question"].lower()
    covered = [d["id"] for d in asked["details"] if d["description"].split()[-1].lower() in about]
    if "guest" in about:
        covered += [d["id"] for d in asked["details"] if d["description"] == "Guest count"]
    return json.dumps({"covered": covered})


class Server(ThreadingHTTPServer):
    """Answers as a model would, unless `faults` says otherwise for the next request."""

    daemon_threads = True
    block_on_close = False

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler, bind_and_activate=False)
        self.server_bind()  # from now on the port is ours, though nobody listens yet
        self.faults = []
        self.always = None
        self.requests = []
        self.schemas = True
        self.under_way = self.peak = 0
        self.delay = 0.0
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_address[1]}/v1"

    def handle_error(self, request, client_address):
        """A client that hung up is what these tests are about."""


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *words):
        pass

    def do_POST(self):
        server = self.server
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with server.lock:
            server.requests.append(body)
            server.under_way += 1
            server.peak = max(server.peak, server.under_way)
            fault = server.faults.pop(0) if server.faults else server.always
        time.sleep(server.delay)
        try:
            self.answer(body, fault)
        finally:
            with server.lock:
                server.under_way -= 1

    def answer(self, body, fault):
        if not self.server.schemas and "response_format" in body:
            return self.send(400, b'{"error": "response_format is not supported"}')
        if len(body["messages"]) == 1:
            asked = {"answers": {}}
        else:
            asked = json.loads(body["messages"][1]["content"])
        is_judge = body["messages"][0]["content"] == JUDGE
        text = good_judge(asked) if is_judge else f"I say {sorted(asked['answers'].values())}."
        if fault is None:
            return self.send(200, completion(text))
        return FAULTS[fault](self, text)

    def send(self, status, content, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("content-length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)


def completion(text):
    return json.dumps({"choices": [{"message": {"role": "assistant", "content": text}}]}).encode()


def drip(handler, text):
    """A byte now and then, for ever: each is in time, the whole never is."""
    handler.send_response(200)
    handler.send_header("content-length", "100000")
    handler.end_headers()
    for _ in range(100_000):  # until the client hangs up
        handler.wfile.write(b" ")
        handler.wfile.flush()
        time.sleep(0.05)


def silence(handler, text):
    """Not a byte, until the client hangs up."""
    handler.connection.recv(1)


def hang_up(handler, text):
    handler.connection.shutdown(socket.SHUT_RDWR)


def gigabytes(handler, text):
    """Without an end, until the client hangs up."""
    handler.send_response(200)
    handler.end_headers()
    for _ in range(4096):
        handler.wfile.write(b" " * 2**20)


def bomb(handler, text):
    """A few hundred kilobytes that unpack to as many megabytes."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)
    packed = b"".join(packer.compress(b" " * 2**20) for _ in range(200)) + packer.flush()
    handler.send(200, packed, content_encoding="gzip")


FAULTS = {
    "429": lambda h, text: h.send(429, b"slow down", retry_after="0.01"),
    "429 until tomorrow": lambda h, text: h.send(429, b"", retry_after="Mon, 01 Jan 2035"),
    "500": lambda h, text: h.send(500, b"oops"),
    "503": lambda h, text: h.send(503, b"loading"),
    "time-out": silence,
    "slow stream": drip,
    "hangs up": hang_up,
    "html": lambda h, text: h.send(200, b"<html>login</html>"),
    "not utf-8": lambda h, text: h.send(200, b"\xff\xfe\xfa"),
    "no choices": lambda h, text: h.send(200, b'{"choices": []}'),
    "an error inside": lambda h, text: h.send(200, b'{"error": "overloaded"}'),
    "no text": lambda h, text: h.send(200, completion(None)),
    "no object": lambda h, text: h.send(200, b'{"choices": [{"message": "hm"}]}'),
    "too deep": lambda h, text: h.send(200, b'{"choices": ' + b"[" * 200_000),
    "deep content": lambda h, text: h.send(
        200, completion("?").replace(b'"?"', b"[" * 900 + b"]" * 900)
    ),
    "5,000 digits": lambda h, text: h.send(200, completion("?").replace(b'"?"', b"9" * 5000)),
    "gigabytes": gigabytes,
    "a bomb": bomb,
    "packed otherwise": lambda h, text: h.send(200, b"?", content_encoding="br"),
    "badly packed": lambda h, text: h.send(200, b"?", content_encoding="gzip"),
    "an odd charset": lambda h, text: h.send(500, b"?", content_type="text/plain;charset=zlib"),
    "a list": lambda h, text: h.send(200, completion([1])),
    "only thoughts": lambda h, text: h.send(200, completion("<think>hm, let me")),
    "think block": lambda h, text: h.send(
        200, completion('<think>{"covered": ["9"]}</think>\n' + text)
    ),
    "unopened think block": lambda h, text: h.send(200, completion("hm</think>" + text)),
    "code fence": lambda h, text: h.send(200, completion(f"Sure!\n```json\n{text}\n```")),
    "half a character": lambda h, text: h.send(200, completion("I say \ud800.")),
    "refused": lambda h, text: h.send(401, b"who are you"),
    "too long": lambda h, text: h.send(413, b"too long"),
}
ENDLESS = ("time-out", "slow stream")  # only these are waited for till the time is out
PASSING = [
    name for name in FAULTS if name not in ("refused", "too long", "code fence", "half a character")
]


@contextmanager
def serving(server):
    server.server_activate()
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def server():
    with serving(Server()) as running:
        yield running


@pytest.fixture
def ledger(tmp_path):
    with Ledger(tmp_path / "ledger.sqlite") as opened:
        yield opened


def chat_gym(ledger, url, user="chat", **endpoint):
    patience = {"url": url, "timeout": 300, "retries": 3, "pause": 0.01} | endpoint
    return gym(
        "intention",
        {"user": user, "chat": {"endpoint": patience}, "world": dict.fromkeys(SPLITS, 1)},
        ledger=ledger,
    )


SPLITS = ("train", "validation", "test")


async def played(made, asked=ASKED, rollout=0):
    env = made.make(TASK, seed=0, rollout=rollout)
    steps = [env.start()]
    for text in asked:
        steps.append(await env.step(text))
    return steps


def play(made, asked=ASKED):
    async def game():
        try:
            return await played(made, asked)
        finally:
            await made.close()

    return asyncio.run(game())


# --- a good server


def test_a_conversation_by_hand(server, ledger):
    steps = play(chat_gym(ledger, server.url))
    assert steps[0] == "Plan a dinner."
    assert [step.reward for step in steps[1:]] == pytest.approx([1.0, 0.0, 0.5])
    assert [step.observation for step in steps[1:]] == [
        "I say ['Thai'].",
        "I say [].",
        "I say ['Four', 'Low'].",
    ]
    assert (steps[-1].done, steps[-1].stop_reason) == (True, "covered")


def test_the_second_time_costs_nothing_and_needs_no_server(server, ledger):
    first = play(chat_gym(ledger, server.url))
    paid = len(server.requests)
    again = chat_gym(ledger, server.url)
    assert play(again) == first
    assert len(server.requests) == paid == 6
    assert (again.endpoint.traffic.asked, again.endpoint.traffic.remembered) == (6, 6)
    replay = chat_gym(ledger, "http://127.0.0.1:9/v1", user="replay")
    assert play(replay) == first
    assert replay.content == again.content


def test_a_replay_of_what_was_never_said_is_broken(server, ledger):
    play(chat_gym(ledger, server.url))
    with pytest.raises(EpisodeBroken, match="recording does not hold"):
        play(chat_gym(ledger, server.url, user="replay"), ["[action] Something new?"])


def test_no_more_requests_are_under_way_than_allowed(server, ledger):
    server.delay = 0.02
    made = chat_gym(ledger, server.url, concurrency=3)

    async def many():
        games = [played(made, [f"[action] {n} cuisine?"], n) for n in range(12)]
        try:
            return await asyncio.gather(*games)
        finally:
            await made.close()

    assert all(steps[1].reward == 1.0 for steps in asyncio.run(many()))
    assert server.peak <= 3
    assert len(server.requests) == 24


def test_a_judge_cannot_name_more_details_than_there_are(server, ledger):
    play(chat_gym(ledger, server.url))
    schemas = [
        body["response_format"]["json_schema"]["schema"]["properties"]["covered"]
        for body in server.requests
        if "response_format" in body
    ]
    assert schemas and all(len(one["items"]["enum"]) == one["maxItems"] for one in schemas)


def test_a_server_without_schemas_is_asked_without_them(server, ledger):
    server.schemas = False
    made = chat_gym(ledger, server.url)
    assert play(made)[1].reward == 1.0
    assert ["response_format" in body for body in server.requests].count(True) == 1
    assert made.endpoint.traffic.failed_tries == 0


def test_the_key_is_sent_and_the_judge_is_greedy(server, ledger, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "sesame")
    seen = []
    normal = Handler.do_POST
    monkeypatch.setattr(
        Handler, "do_POST", lambda self: (seen.append(self.headers["authorization"]), normal(self))
    )
    play(chat_gym(ledger, server.url, key="SOME_KEY"), ASKED[:1])
    assert seen == ["Bearer sesame"] * 2
    assert [body["temperature"] for body in server.requests] == [0, 0]


def test_drawn_replies_have_a_seed_of_their_own_episode(server, ledger):
    options = Chat(temperature=0.7, endpoint=EndpointOptions(url=server.url))
    endpoint = Endpoint(options.endpoint, ledger)

    async def ask(rollout):
        user = ChatUser(endpoint, options)
        return await user.hear("cuisine?", TASK, {}, generator("intention", 0, TASK.id, rollout))

    async def both():
        heard = [await ask(0), await ask(1), await ask(0)]
        await endpoint.close()
        return heard

    asyncio.run(both())
    replies = [body for body in server.requests if body["messages"][0]["content"] != JUDGE]
    assert len({body["seed"] for body in replies}) == len(replies) == 2


# --- a bad one


@pytest.mark.parametrize("fault", PASSING)
def test_a_fault_that_passes_leaves_no_trace(fault, server, ledger, tmp_path):
    with Ledger(tmp_path / "clean.sqlite") as clean:
        expected = play(chat_gym(clean, server.url))
    server.faults = [fault, fault]
    # An honest answer that is late on a slow machine is asked for again too.
    soon = {"timeout": 0.5, "retries": 12} if fault in ENDLESS else {}
    made = chat_gym(ledger, server.url, **soon)
    assert play(made) == expected
    assert not server.faults
    assert play(chat_gym(ledger, server.url, user="replay")) == expected


@pytest.mark.parametrize("fault", ["code fence", "think block"])
def test_talk_around_the_judges_json_is_passed_over(fault, server, ledger):
    server.faults = [fault]
    made = chat_gym(ledger, server.url)
    assert play(made, ASKED[:1])[1].reward == 1.0
    assert made.endpoint.traffic.asked == 2


HARMLESS = ("code fence", "half a character")
LASTING = [name for name in FAULTS if "think block" not in name and name not in HARMLESS]


@pytest.mark.parametrize("fault", [name for name in LASTING if name != "refused"])
def test_a_fault_that_stays_breaks_the_episode_in_time(fault, server, ledger):
    server.always = fault
    made = chat_gym(ledger, server.url, retries=1, timeout=0.3 if fault in ENDLESS else 300)
    started = time.monotonic()

    async def game():
        env = made.make(TASK, seed=0, rollout=0)
        env.start()
        with pytest.raises(EpisodeBroken):
            await env.step(ASKED[0])
        with pytest.raises(RuntimeError, match="broken"):
            await env.step(ASKED[0])
        await made.close()

    asyncio.run(game())
    assert time.monotonic() - started < 60  # and the fault would last for ever


def test_a_server_that_refuses_us_is_the_users_to_mend(server, ledger):
    server.always = "refused"
    with pytest.raises(ConfigError, match=r"401: who are you: check its url"):
        play(chat_gym(ledger, server.url))
    assert len(server.requests) == 1


@pytest.mark.parametrize("fault", ["gigabytes", "a bomb"])
def test_an_answer_without_an_end_takes_no_more_memory_than_the_limit(fault, server, ledger):
    server.always = fault
    made = chat_gym(ledger, server.url, retries=0)
    play_one = played(made, ASKED[:1])
    tracemalloc.start()
    try:
        with pytest.raises(EpisodeBroken, match="longer than 16 MiB"):
            asyncio.run(play_one)
        assert tracemalloc.get_traced_memory()[1] < 4 * LONGEST_BODY
    finally:
        tracemalloc.stop()


def test_a_packed_answer_is_unpacked(server, ledger):
    FAULTS["packed"] = lambda h, text: h.send(
        200, gzip.compress(completion(text)), content_encoding="gzip"
    )
    server.always = "packed"
    assert play(chat_gym(ledger, server.url))[1].reward == 1.0
    del FAULTS["packed"]


def test_half_a_character_is_shown_as_one_that_is_missing(server, ledger):
    server.faults = [None, "half a character"]
    made = chat_gym(ledger, server.url)
    assert play(made, ASKED[:1])[1].observation == "I say \ufffd."
    assert play(chat_gym(ledger, server.url, user="replay"), ASKED[:1])[1].reward == 1.0


def test_a_fault_is_never_remembered_as_an_answer(server, ledger):
    server.always = "500"
    with pytest.raises(EpisodeBroken):
        play(chat_gym(ledger, server.url, retries=0))
    server.always = None
    assert play(chat_gym(ledger, server.url))[1].reward == 1.0


def test_a_dead_endpoint_is_said_to_be_down_and_comes_back(ledger):
    server = Server()
    made = chat_gym(ledger, server.url, retries=1)

    async def night():
        with pytest.raises(EndpointDown, match="cannot be reached"):
            await played(made)
        tries = made.endpoint.traffic.failed_tries
        with pytest.raises(EndpointDown, match=r"cannot be reached.*\(2 tries\)"):
            await played(made)
        assert made.endpoint.traffic.failed_tries == tries  # known to be down: not tried again
        assert not await made.endpoint.back()
        with serving(server):
            assert await made.endpoint.back()
            steps = await played(made)
            await made.close()
        return steps

    assert asyncio.run(night())[-1].stop_reason == "covered"


def test_an_endpoint_that_answers_with_errors_is_not_back(server, ledger):
    server.always = "503"
    made = chat_gym(ledger, server.url)

    async def ask():
        busy = await made.endpoint.back()
        server.always = None
        free = await made.endpoint.back()
        await made.close()
        return busy, free

    assert asyncio.run(ask()) == (False, True)


def test_an_endpoint_that_fails_three_times_in_a_row_is_down(server, ledger):
    server.always = "500"
    made = chat_gym(ledger, server.url, retries=0)

    async def games():
        for expected in (EpisodeBroken, EpisodeBroken, EndpointDown):
            with pytest.raises(EpisodeBroken) as caught:
                await played(made)
            assert type(caught.value) is expected
        await made.close()

    asyncio.run(games())


def test_an_endpoint_serves_one_event_loop_after_the_other(server, ledger):
    made = chat_gym(ledger, server.url)
    for question in ("[action] One cuisine?", "[action] Two cuisine?"):
        assert asyncio.run(played(made, [question]))[1].reward == 1.0


def test_waiting_for_an_endpoint_without_an_event_loop_is_refused(server, ledger):
    env = chat_gym(ledger, server.url).make(TASK, seed=0, rollout=0)
    env.start()
    with pytest.raises(RuntimeError, match="event loop"):
        at_once(env.step(ASKED[0]))


# --- what a judge says


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ('{"covered": ["1"]}', ("1",)),
        ('{"covered": []}', ()),
        ('{"covered": [2, "1", 2]}', ("2", "1")),
        ('["1", "2"]', ("1", "2")),
        ("[]", ()),
        ('Hm. {"covered": ["1"]} That is all.', ("1",)),
        ('{"covered": ["2"]} no, rather {"covered": ["1"]}', ("1",)),
        ("{'covered': ['1']}", ("1",)),
        ('{"covered": ["1",]}', ("1",)),
        ('<think>{"covered": ["2"]}</think>{"covered": ["1"]}', ("1",)),
        ('<think>{"covered": ["2"]}', None),
        ('{"covered": ["3"]}', None),
        ('{"covered": "1"}', None),
        ('{"covered": [["1"]]}', None),
        ('{"covered": [null]}', None),
        ('{"found": ["1"]}', None),
        ("1", None),
        ("", None),
        ("{'covered': __import__('os')}", None),
        ('{"covered": [NaN]}', None),
        ('{"covered": NaN}', None),
        ('[{"a": ' + '{"a": ' * 20_000, None),
        ("[" + '{"a": ' * 20_000 + "1" + "}" * 20_000 + "]", None),
        ('{"covered": [' + "1" * 5_000 + "]}", None),
    ],
)
def test_what_is_read_of_a_judges_answer(text, read):
    assert read_covered(text, ["1", "2"]) == read


@given(st.text(max_size=200))
def test_no_answer_of_a_judge_is_too_strange_to_be_read(text):
    found = read_covered(text, ["1", "2"])
    assert found is None or set(found) <= {"1", "2"}


# --- no secret in a reply's prompt


class Echo:
    """Judges as it is told to, and replies with the whole of what it was shown."""

    def __init__(self, verdicts):
        self.verdicts = verdicts

    async def complete(self, messages, **decoding):
        if messages[0]["content"] != JUDGE:
            return messages[1]["content"]
        left = [detail["id"] for detail in json.loads(messages[1]["content"])["details"]]
        return json.dumps([label for label in self.verdicts.pop(0) if label in left])


MARKED = task_from(
    {
        "task": "Plan a dinner.",
        "missing_details": [
            {
                "description": f"dd{n}mark",
                "importance": 2,
                "inquiry": f"qq{n}mark?",
                "options": [f"vv{n}mark"],
            }
            for n in range(5)
        ],
    }
)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.lists(st.sampled_from("123456"), max_size=4), min_size=1, max_size=8))
def test_a_reply_is_shown_only_what_is_covered(verdicts):
    user = ChatUser(Echo(list(verdicts)), Chat())
    known = {}
    for _ in verdicts:
        heard = at_once(user.hear("What?", MARKED, known, generator("echo")))
        known |= dict.fromkeys(heard.covered)
        for n, detail in enumerate(MARKED.missing_details):
            shown = [mark for mark in (f"dd{n}m", f"vv{n}m", f"qq{n}m") if mark in heard.reply]
            assert shown == ([f"dd{n}m", f"vv{n}m"] if detail.id in known else [])
