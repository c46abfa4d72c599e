"""vLLM and SGLang as engines, against a real HTTP server that answers in their shapes."""

import asyncio
import gc
import json
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import httpx
import pytest
import torch
from transformers import AutoModelForCausalLM

from kleash.errors import ConfigError
from kleash.models.engine import engine_of
from kleash.models.engine.servers import ServerOptions, SglangEngine, VllmEngine
from kleash.models.language.policy import LanguagePolicy
from kleash.seeds import torch_generator
from kleash.tasks.envs.contract import EndpointDown, EpisodeBroken
from test_engine import STOP, WORDS, conversations, recomputed, replies, said_logp, tiny, together


def sampled(model, ids, most, temperature, stops, seed):
    """A turn as a server samples it: ids and log-probabilities before and after temperature."""
    rng = torch_generator("served", seed)
    made, raw, warm = [], [], []
    while len(made) < most and not (made and made[-1] in stops):
        with torch.no_grad():
            logits = model(torch.tensor([[*ids, *made]])).logits[0, -1]
        law = (logits / (temperature or 1.0)).softmax(-1)
        pick = torch.multinomial(law, 1, generator=rng).item() if temperature else law.argmax()
        made.append(int(pick))
        raw.append(logits.log_softmax(-1)[pick].item())
        warm.append(law[pick].log().item())
    return made, raw, warm, made[-1] in stops


def like_vllm(model, asked):
    """A completion as vLLM gives it."""
    ids, raw, _, stopped = sampled(
        model,
        asked["prompt"],
        asked["max_tokens"],
        asked["temperature"],
        asked["stop_token_ids"],
        asked.get("seed"),
    )
    assert asked["return_token_ids"] and asked["ignore_eos"] and not asked["stream"]
    logprobs = {
        "text_offset": [0] * len(ids),
        "token_logprobs": raw,
        "tokens": [f"w{i}" for i in ids],
        "top_logprobs": [{f"w{i}": p} for i, p in zip(ids, raw, strict=True)],
    }
    choice = {
        "index": 0,
        "text": " ".join(f"w{i}" for i in ids),
        "logprobs": logprobs,
        "finish_reason": "stop" if stopped else "length",
        "stop_reason": ids[-1] if stopped else None,
        "token_ids": ids,
        "prompt_logprobs": None,
        "prompt_token_ids": asked["prompt"],
    }
    return {"id": "cmpl-1", "object": "text_completion", "model": "tiny", "choices": [choice]}


def like_sglang(model, asked):
    """A generation as SGLang gives it."""
    given = asked["sampling_params"]
    assert asked["return_logprob"]
    ids, _, warm, stopped = sampled(
        model,
        asked["input_ids"],
        given["max_new_tokens"],
        given["temperature"],
        given["stop_token_ids"],
        given.get("sampling_seed"),
    )
    ended = {"type": "stop", "matched": ids[-1]} if stopped else {"type": "length", "length": 12}
    told = {
        "id": "1",
        "finish_reason": ended,
        "prompt_tokens": len(asked["input_ids"]),
        "completion_tokens": len(ids),
        "output_token_logprobs": [[p, i, None] for p, i in zip(warm, ids, strict=True)],
    }
    return {"text": "…", "output_ids": ids, "meta_info": told}


KINDS = {
    "vllm": (VllmEngine, "/v1/completions", like_vllm),
    "sglang": (SglangEngine, "/generate", like_sglang),
}


class Served(ThreadingHTTPServer):
    """A server with one model; `mischief` is what it does instead, request by request."""

    daemon_threads = True

    def __init__(self, model):
        super().__init__(("127.0.0.1", 0), Handler)
        self.model = model
        self.mischief = []
        self.asked = []
        self.lock = threading.Lock()

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}"


def reload_weights(server, weights_iterator=None, weights_path=None, is_checkpoint_format=True):
    """With the parameters that vLLM's has: a folder given by position would be the iterator."""
    assert weights_iterator is None and is_checkpoint_format
    server.model = AutoModelForCausalLM.from_pretrained(weights_path)


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        self.answer(200, b"")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        with self.server.lock:
            self.server.asked.append((self.path, body))
            trick = self.server.mischief.pop(0) if self.server.mischief else None
        if callable(trick):
            return trick(self, body)
        if trick is not None:
            return self.answer(*trick)
        if self.path == "/update_weights_from_disk":
            self.server.model = AutoModelForCausalLM.from_pretrained(body["model_path"])
            return self.answer(200, b'{"success": true, "message": "read"}')
        if self.path == "/collective_rpc":
            assert body["method"] == "reload_weights" and not body.get("args")
            reload_weights(self.server, **body["kwargs"])
            return self.answer(200, b'{"results": [null]}')
        if self.path == "/reset_prefix_cache":
            return self.answer(200, b"")
        shaped = {path: shape for _, path, shape in KINDS.values()}[self.path]
        with self.server.lock:
            made = shaped(self.server.model, body)
        return self.answer(200, json.dumps(made).encode())

    def answer(self, status, body, headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("content-length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def served(model):
    server = Served(model)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(params=KINDS)
def kind(request):
    return request.param


@pytest.fixture
def server():
    with served(tiny()) as made:
        yield made


def engine(kind, server, **options):
    made = {"url": server.url, "pause": 0.01, "retries": 2, "timeout": 300.0} | options
    return KINDS[kind][0](ServerOptions(**made), {STOP})


def one(engine, key=("a",), turns=1, **options):
    """One conversation, its connections closed behind it."""

    async def alone():
        from test_engine import played

        try:
            return await played(engine, key, replies(1, turns), **options)
        finally:
            await engine.close()

    return asyncio.run(alone())


def test_sampled_log_probabilities_are_those_of_the_model(kind, server):
    made = engine(kind, server)
    for turns in together(made, conversations(5)):
        assert said_logp(turns) == pytest.approx(recomputed(server.model, turns), abs=1e-4)
        assert all(said.stopped == (said.ids[-1] == STOP) for _, said in turns)
    assert not made._ids


def test_what_a_real_vllm_said_is_read_as_it_was_meant():
    """Exchanges with vLLM 0.32.0 on a CPU: sampled, greedy, and stopped by an id, which is told."""
    keys = [("a",), None, ("b",)]
    recorded = json.loads((Path(__file__).parent / "fixtures/vllm-0.32.json").read_text())
    for key, exchange in zip(keys, recorded, strict=True):
        asked, (choice,) = exchange["asked"], exchange["reply"]["choices"]
        made = VllmEngine(ServerOptions(), exchange["stops"])
        talk = made.talk(key, most=asked["max_tokens"])
        assert made.body(talk, asked["prompt"]) == asked
        said = made._turn(httpx.Response(200, json=exchange["reply"]), asked["prompt"])
        assert list(said.ids) == choice["token_ids"] and said.stopped == (key == ("b",))
        assert len(said.logp) == len(said.ids) and max(said.logp) < 0


def test_a_turn_is_asked_for_with_all_ids_before_it(kind, server):
    turns = one(engine(kind, server), turns=3)
    path, name = {"vllm": ("/v1/completions", "prompt"), "sglang": ("/generate", "input_ids")}[kind]
    before = []
    for (heard, said), (asked_path, body) in zip(turns, server.asked, strict=True):
        before += heard
        assert (asked_path, body[name]) == (path, before)
        before = [*before, *said.ids]


def test_the_same_key_asks_with_the_same_seed_and_each_turn_with_another(kind, server):
    made = engine(kind, server)
    first, again, other = (one(made, key, turns=2) for key in (("a",), ("a",), ("b",)))
    assert [s.ids for _, s in first] == [s.ids for _, s in again] != [s.ids for _, s in other]
    name = {"vllm": "seed", "sglang": "sampling_seed"}[kind]
    bodies = [body.get("sampling_params", body) for _, body in server.asked]
    assert len({body[name] for body in bodies}) == 4
    greedy = one(made, None)
    assert name not in server.asked[-1][1].get("sampling_params", server.asked[-1][1])
    assert greedy[0][1].logp == pytest.approx(recomputed(server.model, greedy), abs=1e-4)


def test_temperatures_whose_log_probabilities_are_not_told_are_refused(server):
    warm = one(engine("sglang", server), temperature=1.5, top_p=0.9)
    assert said_logp(warm) == pytest.approx(recomputed(server.model, warm, 1.5), abs=1e-4)
    vllm = engine("vllm", server)
    with pytest.raises(ConfigError, match="--logprobs-mode processed_logprobs"):
        vllm.talk(("a",), temperature=1.5)
    vllm.talk(("a",), top_p=0.9)  # raw ones are of the whole distribution
    processed = engine("vllm", server, processed=True)
    processed.talk(("a",), temperature=1.5)
    with pytest.raises(ConfigError, match="with top_p"):
        processed.talk(("a",), top_p=0.9)
    with pytest.raises(ConfigError, match="greedy"):
        engine("sglang", server).talk(None, temperature=1.5)


def slow(handler, body):
    """Not a byte, until the client hangs up."""
    handler.connection.recv(1)


def cut(handler, body):
    handler.connection.close()


def other_ids(handler, body):
    """Reads other ids than were sent, as a server does that adds a token of its own."""
    name = "prompt" if "prompt" in body else "input_ids"
    shape = like_vllm if "prompt" in body else like_sglang
    made = shape(handler.server.model, body | {name: [0, *body[name]]})
    handler.answer(200, json.dumps(made).encode())


def no_stop(handler, body):
    """Leaves out the id that stopped the turn."""
    if "prompt" in body:
        made = like_vllm(handler.server.model, body)
        made["choices"][0] |= {"finish_reason": "stop", "token_ids": [9]}
        made["choices"][0]["logprobs"]["token_logprobs"] = [-1.0]
    else:
        made = like_sglang(handler.server.model, body)
        made["meta_info"]["finish_reason"] = {"type": "stop", "matched": STOP}
        made["meta_info"]["output_token_logprobs"] = [[-1.0, 9, None]]
    handler.answer(200, json.dumps(made).encode())


TRICKS = {
    "slow": (slow, "no whole answer within"),
    "cut": (cut, "RemoteProtocolError|ReadError"),
    "busy": ((429, b"later", [("retry-after", "0.01")]), "answered 429"),
    "broken": ((500, b"oh"), "answered 500"),
    "torn": ((200, b'{"choices": [{"tok'), "no turn in"),
    "html": ((200, b"<html>"), "no turn in"),
    "empty": ((200, b"{}"), "no turn in"),
    "null": ((200, b"null"), "no turn in"),
    "other ids": (other_ids, "no turn in"),
    "no stop id": (no_stop, "must be its last id"),
}


@pytest.mark.parametrize("name", TRICKS)
def test_what_goes_wrong_is_tried_again_and_then_breaks_the_episode(kind, name, server):
    trick, said = TRICKS[name]
    # Only who is slow is waited for till the time is out, and an honest answer may be late too.
    patience = {"timeout": 2.0, "retries": 9} if name == "slow" else {}
    made = engine(kind, server, down_after=2, **patience)
    server.mischief = [trick]
    turns = one(made)
    assert said_logp(turns) == pytest.approx(recomputed(server.model, turns), abs=1e-4)
    assert len(server.asked) == 2 or (name == "slow" and len(server.asked) > 2)
    if name == "slow":  # from here on there is no answer to wait for
        made = engine(kind, server, down_after=2, timeout=0.3)
    server.mischief = [trick] * 3
    with pytest.raises(EpisodeBroken, match=said) as broken:
        one(made)
    assert not isinstance(broken.value, EndpointDown)
    server.mischief = [trick] * 3
    with pytest.raises(EndpointDown):  # the second in a row
        one(made)


def test_a_request_that_is_wrong_is_not_repeated(kind, server):
    made = engine(kind, server)
    server.mischief = [(400, b"too long")]
    with pytest.raises(EpisodeBroken, match="answered 400: too long"):
        one(made)
    server.mischief = [(404, b"no such model")]
    with pytest.raises(ConfigError, match="no such model"):
        one(made)
    assert len(server.asked) == 2


def test_a_server_that_is_gone_is_down_until_it_is_back(kind):
    with served(tiny()) as server:
        made = engine(kind, server, retries=0)

        async def gone():
            server.shutdown()
            server.server_close()
            talk = made.talk(("a",))
            for _ in range(2):
                with pytest.raises(EndpointDown):
                    await made.say(talk, [5])
            assert not await made.back()
            await made.close()

        asyncio.run(gone())


def test_a_server_that_is_healthy_again_is_asked_again(kind, server):
    made = engine(kind, server, retries=0, down_after=1)

    async def again():
        talk = made.talk(("a",), most=3)
        server.mischief = [(500, b"")]
        with pytest.raises(EndpointDown):
            await made.say(talk, [5])
        with pytest.raises(EndpointDown):  # without asking
            await made.say(talk, [5])
        assert await made.back()
        said = await made.say(talk, [5])
        await made.close()
        return said

    assert asyncio.run(again()).ids
    assert len(server.asked) == 2


def test_after_an_update_the_server_says_what_the_policy_says(kind, server, tmp_path):
    policy = LanguagePolicy(tiny(seed=5))
    made = engine(kind, server, folder=str(tmp_path))
    made.refresh(policy)
    told = {
        "vllm": [("/collective_rpc", "kwargs"), ("/reset_prefix_cache", None)],
        "sglang": [("/update_weights_from_disk", "flush_cache")],
    }[kind]  # what was computed with the old weights is to be dropped
    assert [path for path, _ in server.asked] == [path for path, _ in told]
    assert all(
        key is None or body[key] for (_, key), (_, body) in zip(told, server.asked, strict=True)
    )
    turns = one(made, turns=2)
    assert said_logp(turns) == pytest.approx(recomputed(policy.model, turns), abs=1e-4)
    server.mischief = [(200, b'{"success": false, "message": "no such folder"}')]
    with pytest.raises(ConfigError, match="still has the old weights"):
        made.refresh(policy)


def test_a_server_that_was_started_again_is_given_the_weights_again(kind, server):
    policy = LanguagePolicy(tiny(seed=5))
    made = engine(kind, server, retries=0, down_after=1)
    made.refresh(policy)
    server.model = tiny(seed=6)  # what it was started with
    server.mischief = [(500, b"")]
    with pytest.raises(EndpointDown):
        one(made)
    assert made.down and asyncio.run(looked(made)) and not made.down
    turns = one(made, turns=2)
    assert said_logp(turns) == pytest.approx(recomputed(policy.model, turns), abs=1e-4)


async def looked(made):
    found = await made.back()
    await made.close()
    return found


def hang_up(handler, body):
    handler.close_connection = True
    handler.connection.close()


def test_weights_for_a_server_that_is_gone_reach_it_when_it_is_back(kind, server):
    policy = LanguagePolicy(tiny(seed=5))
    made = engine(kind, server)
    server.mischief = [hang_up]
    made.refresh(policy)
    with pytest.raises(EndpointDown):
        one(made)
    server.mischief = [hang_up]  # gone again while it reads them
    assert not asyncio.run(looked(made)) and made.down
    assert asyncio.run(looked(made))
    turns = one(made, turns=2)
    assert said_logp(turns) == pytest.approx(recomputed(policy.model, turns), abs=1e-4)


def test_weights_that_were_written_for_a_server_go_with_the_engine(server):
    made = engine("vllm", server)
    made.refresh(LanguagePolicy(tiny()))
    folder = made._weights
    assert (folder / "config.json").exists()
    del made
    gc.collect()
    assert not folder.exists()


def test_engines_go_by_name():
    class Speech:
        stops = frozenset({STOP})

    policy = LanguagePolicy(tiny())
    assert engine_of("own", policy, Speech()).name == "own"
    assert engine_of("vllm:http://a:1/", policy, Speech()).options.url == "http://a:1"
    assert engine_of("sglang:http://a:1", policy, Speech()).name == "sglang"
    for wrong in ("none", "vllm", "own:x"):
        with pytest.raises(ConfigError, match="no engine"):
            engine_of(wrong, policy, Speech())
    assert policy.model.config.vocab_size == WORDS
