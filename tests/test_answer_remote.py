"""Endpoints: a server of the tests that computes with a real tiny model, as vLLM would answer."""

import base64
import io
import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import httpx
import numpy as np
import pytest
from PIL import Image

from kleash.errors import ConfigError, KleashError
from kleash.models.answer import answerer
from kleash.models.answer.asking import as_fact
from kleash.models.answer.decoding import Decoding
from kleash.models.answer.local import Local, Parts, Spelt
from kleash.models.answer.prompting import Written, preset_of
from kleash.models.answer.remote import Chatted
from kleash.tasks.envs.line import found_in
from kleash.types import Prompt
from made_models import made_images, made_items, made_llama, made_prompts, made_qwen, made_tokenizer


class Server(ThreadingHTTPServer):
    """Reads requests in OpenAI's form with vLLM's additions, and computes what it answers."""

    daemon_threads = True

    def __init__(self, local, *, tells=True):
        super().__init__(("127.0.0.1", 0), Handler)
        self.local, self.tells = local, tells
        self.shown, self.failures, self.requests, self.lock = {}, [], [], threading.Lock()
        local.eyes and setattr(local.eyes, "images", self.shown.__getitem__)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.server_port}/v1"

    def text(self, body):
        """A request as text with images, and where the truth would begin."""
        if "prompt" in body:
            return Written(body["prompt"], "x")
        names, messages = [], []
        for message in body["messages"]:
            parts = message["content"]
            for part in parts if isinstance(parts, list) else ():
                if part["type"] == "image_url":
                    raw = base64.b64decode(part["image_url"]["url"].split(",")[1])
                    name = str(hash(raw))
                    self.shown[name] = np.array(Image.open(io.BytesIO(raw)))
                    names.append(name)
                    part["type"] = "image"
            messages.append({"role": message["role"], "content": parts})
        ahead = body.get("continue_final_message")
        last = messages.pop()["content"] if ahead else ""
        return Written(self.local.speller.template()(messages) + last, "x", tuple(names), True)

    def ids(self, text):
        tokenizer = self.local.speller.tokenizer
        spelt = tokenizer.encode(text.text, add_special_tokens=False)
        seen = self.local.eyes.see(text.images) if text.images else {}
        return self.local.row(Spelt(spelt, [0]), [seen[name] for name in text.images])

    def answer(self, body):
        with self.lock:
            self.requests.append(body)
            text = self.text(json.loads(json.dumps(body)))
            row = self.ids(text)
            tokenizer = self.local.speller.tokenizer
            said, _ = self.local.decoder.decode([row], self.local.device)
            words = tokenizer.decode(said[0][: body["max_tokens"]], skip_special_tokens=True)
            ids = row.ids.tolist()
            # Only the end is computed: a truth that reached further back would be wrong by nats.
            far = max(1, len(ids) - 10) if self.judging(body) else len(ids)
            logps = [-9.0] * (far - 1) + [self.logp(row, at) for at in range(far, len(ids))]
        letters = [tokenizer.decode([one]) for one in ids]
        tells = self.tells and self.judging(body)
        if "prompt" in body:
            choice = {"text": words}
            if tells:
                offsets = [sum(map(len, letters[:at])) for at in range(len(ids))]
                choice["logprobs"] = {"text_offset": offsets, "token_logprobs": [None, *logps]}
            return {"choices": [choice]}
        found = {"choices": [{"message": {"content": words}}]}
        if tells:
            entries = [
                {str(ids[at]): {"logprob": logp, "decoded_token": letters[at]}}
                for at, logp in enumerate(logps, 1)
            ]
            found["prompt_logprobs"] = [None, *entries]
        return found

    def judging(self, body):
        return "prompt_logprobs" in body or body.get("echo")

    def logp(self, row, at):
        """Of one id of the prompt: the truth of the prompt before it."""
        cut = row.part(0, at)
        end = int(cut.place.max()) + 1
        one = type(row)(cut.ids, cut.place, end, [int(row.ids[at])], cut.seen)
        return self.local.decoder.decode([one], self.local.device)[1][0]


class Handler(BaseHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        failing = self.server.failures.pop() if self.server.failures else None
        status = failing or 200
        said = {"error": "no"} if failing else self.server.answer(body)
        raw = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("content-length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)


@pytest.fixture
def serve():
    servers = []

    def start(local, **options):
        server = Server(local, **options)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        servers.append(server)
        return server

    yield start
    for server in servers:
        server.shutdown()
        server.server_close()


def held(prompt):
    eyed = preset_of(prompt).looks
    parts = Parts(*made_qwen()) if eyed else Parts(made_llama(), made_tokenizer())
    return Local(parts, made_images(), preset_of(prompt), Decoding(1, 5), 0, 10**8)


def asked(server, prompt, **options):
    given = {"model": "tiny", "url": server.url, "prompt": prompt, "pause": 0.01} | options
    return answerer("endpoint", made_images(), options=given)


@pytest.mark.parametrize("prompt", ["chat", "captions", "captions-chat"])
def test_an_endpoint_answers_as_the_model_behind_it_does(serve, prompt):
    prompts = made_prompts(3)
    wanted = held(prompt).answer(prompts)
    remote = asked(serve(held(prompt)), prompt)
    for one, other in zip(remote.answer(prompts), wanted, strict=True):
        assert one.error is None and one.text == other.text
        assert one.truth_logp == pytest.approx(other.truth_logp, abs=1e-3)


@pytest.mark.parametrize("prompt", ["captions", "captions-chat"])
def test_a_server_that_does_not_tell_is_refused_and_no_number_is_made_up(serve, prompt):
    remote = asked(serve(held(prompt), tells=False), prompt)
    with pytest.raises(ConfigError, match="nothing can stand in for it"):
        remote.answer(made_prompts(1))


def test_what_fails_once_is_asked_again_and_what_fails_for_good_breaks_alone(serve):
    server = serve(held("captions"))
    remote = asked(server, "captions", retries=1, concurrency=1)
    (wanted,) = held("captions").answer(made_prompts(1))
    server.failures = [503]
    assert remote.answer(made_prompts(1))[0].text == wanted.text
    server.failures = [400]
    bad, good = remote.answer(made_prompts(2))
    assert {bad.error is None, good.error is None} == {True, False}
    broken = bad if bad.error else good
    assert "answered 400" in as_fact(broken).error and as_fact(broken).text is None


def test_a_server_that_is_not_there_stops_everything(serve):
    server = serve(held("captions"))
    url = server.url
    server.shutdown()
    server.server_close()
    options = {"model": "tiny", "url": url, "prompt": "captions", "retries": 0}
    with pytest.raises(KleashError, match="cannot be reached"):
        answerer("endpoint", made_images(), options=options).answer(made_prompts(1))


def test_a_prompt_that_ends_with_something_else_is_no_truth(serve):
    server = serve(held("captions-chat"))
    remote = asked(server, "captions-chat", retries=0)
    plain = server.answer

    def melted(body):
        found = plain(body)
        if "prompt_logprobs" in found:
            (last,) = found["prompt_logprobs"][-1].values()
            last["decoded_token"] += "!"
        return found

    server.answer = melted
    (answer,) = remote.answer([Prompt((), made_items(1)[0])])
    assert "not with" in answer.error


def chat_body(content):
    return b'{"choices": [{"message": {"content": ' + content + b"}}]}"


def told_body(logprob):
    place = b'{"5": {"logprob": ' + logprob + b', "decoded_token": "red"}}'
    return b'{"prompt_logprobs": [null, ' + place + b"]}"


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        b"null",
        b'{"choices": ' + b"[" * 200_000,
        chat_body(b"9" * 5000),
        chat_body(b"[" * 900 + b"]" * 900),
        chat_body(b"7"),
        chat_body(b"{}"),
    ],
)
def test_words_that_are_none_are_asked_for_again(body):
    found = found_in(httpx.Response(200, content=body), one_chat().said)
    assert found.value is None and "cannot be read" in found.problem and not found.final


@pytest.mark.parametrize(
    "body",
    [
        b"[]",
        told_body(b"NaN"),
        told_body(b"Infinity"),
        told_body(b"null"),
        told_body(b"9" * 400),
        told_body(b"9" * 5000),
        b'{"prompt_logprobs": [null, 3]}',
    ],
)
def test_a_log_probability_that_is_none_is_asked_for_again(body):
    found = found_in(httpx.Response(200, content=body), one_chat().truth_logp)
    assert found.value is None and "cannot be read" in found.problem and not found.final


def test_half_a_character_in_words_becomes_one_that_is_missing():
    found = found_in(httpx.Response(200, content=chat_body(b'"a\\ud800b"')), one_chat().said)
    assert found.value == "a\ufffdb"
    found = found_in(httpx.Response(200, content=chat_body(b"null")), one_chat().said)
    assert found.value == ""


def one_chat():
    remote = answerer(
        "endpoint", made_images(), options={"model": "tiny", "prompt": "captions-chat"}
    )
    item = made_items(1)[0]
    chat = Chatted(remote, Prompt((), item))
    chat.truth = "red"
    return chat


def test_running_text_with_images_is_refused_and_names_are_in_the_identity():
    with pytest.raises(ConfigError, match="set prompt = 'chat'"):
        answerer("endpoint", made_images(), options={"model": "m", "prompt": "documents"})
    one, other = (
        answerer("endpoint", made_images(), options={"model": "m", "revision": r}) for r in "ab"
    )
    assert one.identity != other.identity and one.looks
