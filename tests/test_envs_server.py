"""The chat user talks to a real server with a real model: `transformers serve` and 20,000 weights.

Needs FastAPI and the `openai` package, which only `make test-all` installs.
"""

import asyncio
import os
import socket
import subprocess
import sys
import time

import httpx
import pytest

from kleash.runs.ledger import Ledger
from kleash.tasks.envs import gym
from kleash.tasks.envs.intents import task_from

pytest.importorskip("fastapi", reason="transformers serve needs it")
pytest.importorskip("openai", reason="transformers serve needs it")

SAYS = '{"covered": ["1"]}'  # whatever it is asked, as judge and as user
TEMPLATE = "{% for m in messages %}{{ m['content'] }}{% endfor %}<assistant>"
TASK = task_from(
    {
        "task": "Plan a dinner.",
        "missing_details": [
            {"description": "Cuisine", "importance": 3, "options": ["Thai"]},
            {"description": "Guests", "importance": 1, "options": ["Four"]},
        ],
    }
)


def make_model(folder):
    """A decoder that has learnt one sentence: after <assistant> it says it, then it ends."""
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = ["<unk>", "<end>", "<assistant>", SAYS]
    bare = Tokenizer(models.WordLevel({w: n for n, w in enumerate(words)}, unk_token="<unk>"))
    bare.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=bare,
        unk_token="<unk>",
        eos_token="<end>",
        pad_token="<end>",
        additional_special_tokens=["<assistant>"],
    )
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=4,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=1,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=4096,
        bos_token_id=None,
        eos_token_id=1,
        pad_token_id=1,
    )
    model = LlamaForCausalLM(config)
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for step in range(60):
        ids = torch.tensor([[0] * (1 + 5 * step) + [2, 3, 1]])
        labels = ids.clone()
        labels[:, : 2 + 5 * step] = -100
        loss = model(input_ids=ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    assert loss.item() < 0.01
    model.save_pretrained(folder)


@pytest.fixture(scope="module")
def url(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model")
    make_model(folder)
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    code = "import sys; from transformers.cli.transformers import main; sys.exit(main())"
    words = ["serve", str(folder), "--host", "127.0.0.1", "--port", str(port), "--device", "cpu"]
    log = (folder / "log").open("wb")
    server = subprocess.Popen(
        [sys.executable, "-c", code, *words],
        stdout=log,
        stderr=log,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"},
    )
    try:
        address = f"http://127.0.0.1:{port}/v1"
        deadline = time.monotonic() + 600
        while not answers(address):
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.2)
        yield address, str(folder)
    finally:
        server.terminate()
        server.wait(300)
        log.close()


def answers(address):
    try:
        return httpx.get(address.replace("/v1", "/health")).status_code == 200
    except httpx.TransportError:
        return False


def play(made):
    async def game():
        env = made.make(TASK, seed=0, rollout=0)
        steps = [env.start()]
        while not steps[1:] or not steps[-1].done:
            steps.append(await env.step("[action] What shall it be?"))
        await made.close()
        return steps

    return asyncio.run(game())


async def is_back(made):
    back = await made.endpoint.back()
    await made.close()
    return back


def test_a_real_model_behind_a_real_server_is_a_user(url, tmp_path):
    address, model = url
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        endpoint = {"url": address, "model": model, "timeout": 600.0}
        options = {
            "user": "chat",
            "chat": {"endpoint": endpoint, "max_tokens": 16},
            "world": dict.fromkeys(("train", "validation", "test"), 1),
        }
        live = gym("intention", options, ledger=ledger)
        steps = play(live)
        assert [step.reward for step in steps[1:]] == [1.0, 0.4]
        assert [step.observation for step in steps[1:]] == [SAYS, SAYS]
        assert steps[-1].stop_reason == "covered"
        assert live.endpoint.traffic.failed_tries == 0
        assert asyncio.run(is_back(live))
        assert play(gym("intention", options | {"user": "replay"}, ledger=ledger)) == steps
