"""A whole run whose episodes a server samples: it gets the weights, and every step is measured."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

from kleash.config import merge
from kleash.errors import GuardError
from kleash.language.models import fresh
from kleash.ledger import Ledger
from kleash.recipe import AgentRecipe, recipe_from
from kleash.rollout import Groups
from kleash.rollout.agent import AgentWorld
from kleash.seeds import torch_generator
from kleash.train import train
from kleash.train.packs import PackedLeash
from test_engine_servers import Handler, Served, served
from test_train_player import SMALL, steps_of

pytestmark = [pytest.mark.usefixtures("one_thread"), pytest.mark.slow]


@pytest.fixture
def server() -> Iterator[Served]:
    """It begins with weights that are nobody's."""
    words = AgentWorld(agent(), None).speech.size  # type: ignore[arg-type]
    with served(fresh(words, torch_generator("nobody's")).eval()) as made:
        yield made


def agent(**changes: Any) -> AgentRecipe:
    made = recipe_from(merge(SMALL, changes))
    assert isinstance(made, AgentRecipe)
    return made


def trained(folder: Path, **changes: Any) -> list[dict[str, Any]]:
    recipe = agent(**changes)
    with Ledger(folder / "ledger.sqlite") as ledger:
        run = train(folder / "run", recipe, merge(SMALL, changes), AgentWorld(recipe, ledger))
    return steps_of(run)


@pytest.mark.parametrize("kind", ["vllm", "sglang"])
def test_a_server_has_the_weights_from_the_first_step_on(
    tmp_path: Path, server: Served, kind: str
) -> None:
    steps = trained(tmp_path, engine=f"{kind}:{server.url}", epochs=1)
    assert len(steps) == 3
    for line in steps:
        assert abs(line["kl/sampler/k1/choice/mean"]) < 1e-5 and line["staleness"] == 0


def test_a_server_that_keeps_its_weights_stops_the_run(
    tmp_path: Path, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Handler.do_POST

    def deaf(self: Handler) -> None:
        if self.path != "/collective_rpc":
            return real(self)
        self.rfile.read(int(self.headers["content-length"]))
        return self.answer(200, b"{}")

    monkeypatch.setattr(Handler, "do_POST", deaf)
    with pytest.raises(GuardError, match=r"between sampling and training.*sampler\.cap=2"):
        trained(tmp_path, engine=f"vllm:{server.url}", epochs=1)


def test_a_server_plays_ahead_with_the_weights_it_was_given_last(
    tmp_path: Path, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    weights: list[dict[str, torch.Tensor]] = []
    batches: list[Groups] = []
    real = PackedLeash.learn

    def learn(self: PackedLeash, groups: Groups, *given: Any) -> Any:
        weights.append({n: t.clone() for n, t in self.policy.state_dict().items()})
        batches.append(groups)
        return real(self, groups, *given)

    monkeypatch.setattr(PackedLeash, "learn", learn)
    sampler = {"cap": 2.0, "staleness": 1}
    steps = trained(tmp_path, engine=f"vllm:{server.url}", epochs=1, sampler=sampler)
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        policy = AgentWorld(agent(), ledger).empty_policy()
    for number, (groups, line) in enumerate(zip(batches, steps, strict=True)):
        policy.load_state_dict(weights[max(0, number - 1)])
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
    tmp_path: Path, server: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("plain", "again"):
        (tmp_path / name).mkdir()
    plain = trained(tmp_path / "plain", engine=f"vllm:{server.url}", epochs=1)
    monkeypatch.setattr("kleash.rollout.agent.WAIT", 0.01)
    monkeypatch.setattr("kleash.envs.line.LONGEST_WAIT", 0.01)
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
    steps = trained(tmp_path / "again", engine=f"vllm:{server.url}", epochs=1)
    assert told and server.url in told[0] and "wait" in told[0] and "back" in told[1]
    assert all(abs(line["kl/sampler/k1/choice/mean"]) < 1e-5 for line in steps)
    assert [line["reward"] for line in steps] == [line["reward"] for line in plain]
