"""A whole run whose episodes a server samples: it gets the weights, and every step is measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from agent_tools import steps_of, watch_learning
from kleash.errors import GuardError
from kleash.models.language.models import fresh
from kleash.runs.ledger import Ledger
from kleash.seeds import torch_generator
from kleash.train.rollout.agent import AgentWorld
from test_engine_servers import Handler, Served, served
from test_train_player import SMALL, STALE

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]


@pytest.fixture
def server(ledger: Ledger) -> Iterator[Served]:
    """It begins with weights that are nobody's."""
    words = AgentWorld(SMALL.recipe(), ledger).speech.size
    with served(fresh(words, torch_generator("nobody's")).eval()) as made:
        yield made


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_a_server_has_the_weights_from_the_first_step_on(
    tmp_path: Path, ledger: Ledger, server: Served, kind: str
) -> None:
    run = SMALL.trained(tmp_path / "run", ledger, f"engine={kind}:{server.url}", "epochs=1")
    steps = steps_of(run)
    assert len(steps) == 3
    for line in steps:
        assert abs(line["kl/sampler/k1/choice/mean"]) < 1e-5 and line["staleness"] == 0


def test_a_server_that_keeps_its_weights_stops_the_run(
    tmp_path: Path, ledger: Ledger, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Handler.do_POST

    def deaf(self: Handler) -> None:
        if self.path != "/collective_rpc":
            return real(self)
        self.rfile.read(int(self.headers["content-length"]))
        return self.answer(200, b"{}")

    monkeypatch.setattr(Handler, "do_POST", deaf)
    with pytest.raises(GuardError, match=r"between sampling and training.*sampler\.cap=2"):
        SMALL.trained(tmp_path / "run", ledger, f"engine=vllm:{server.url}", "epochs=1")


def test_a_server_plays_ahead_with_the_weights_it_was_given_last(
    tmp_path: Path, ledger: Ledger, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen = watch_learning(monkeypatch)
    keys = (f"engine=vllm:{server.url}", "epochs=1", *STALE)
    steps = steps_of(SMALL.trained(tmp_path / "run", ledger, *keys))
    policy = AgentWorld(SMALL.recipe(), ledger).empty_policy()
    for number, (groups, line) in enumerate(zip(seen.batches, steps, strict=True)):
        policy.load_state_dict(seen.weights[max(0, number - 1)])
        logp = policy.judge(groups.batch).logp.detach()
        torch.testing.assert_close(groups.logp, logp, atol=1e-5, rtol=0)
        assert line["staleness"] == min(number, 1)
        assert (abs(line["kl/sampler/k1/choice/p99"]) > 1e-3) == (number > 0)


def heard_waiting(told: list[str]) -> Any:
    real = AgentWorld.until_back

    async def until_back(self: AgentWorld, *given: Any) -> None:
        self.notice = told.append
        await real(self, *given)

    return until_back


def test_a_run_waits_for_a_server_that_goes_away_and_gives_it_the_weights_again(
    tmp_path: Path, ledger: Ledger, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    keys = (f"engine=vllm:{server.url}", "epochs=1")
    plain = steps_of(SMALL.trained(tmp_path / "plain", ledger, *keys))
    monkeypatch.setattr("kleash.train.rollout.agent.WAIT", 0.01)
    monkeypatch.setattr("kleash.tasks.envs.line.LONGEST_WAIT", 0.01)
    told: list[str] = []
    monkeypatch.setattr(AgentWorld, "until_back", heard_waiting(told))
    nobodys, real = server.model, Handler.do_POST
    asked = 0

    def failing(self: Handler) -> None:
        nonlocal asked
        asked += self.path == "/v1/completions"
        if 20 <= asked < 60 and self.path == "/v1/completions":
            self.rfile.read(int(self.headers["content-length"]))
            server.model = nobodys  # as one that is started again
            return self.answer(500, b"{}")
        return real(self)

    monkeypatch.setattr(Handler, "do_POST", failing)
    steps = steps_of(SMALL.trained(tmp_path / "again", ledger, *keys))
    assert told and server.url in told[0] and "wait" in told[0] and "back" in told[1]
    assert all(abs(line["kl/sampler/k1/choice/mean"]) < 1e-5 for line in steps)
    assert [line["reward"] for line in steps] == [line["reward"] for line in plain]
