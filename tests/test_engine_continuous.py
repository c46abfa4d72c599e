"""transformers' continuous batching as an engine, run on the CPU."""

import asyncio

import pytest
import torch

from kleash.engine.continuous import ContinuousEngine
from kleash.engine.own import OwnEngine
from kleash.errors import ConfigError
from test_engine import STOP, conversations, recomputed, replies, said_logp, tiny, together


@pytest.fixture
def engine():
    made = ContinuousEngine(tiny(), {STOP}, places=4096)
    yield made
    made.refresh(None)


@pytest.mark.parametrize("temperature", [1.0, 1.5])
def test_sampled_log_probabilities_are_those_of_one_pass_over_the_conversation(temperature, engine):
    played = together(engine, conversations(24), temperature=temperature)
    for turns in played:
        wanted = recomputed(engine.model, turns, temperature)
        assert said_logp(turns) == pytest.approx(wanted, abs=1e-4)
    said = [said for turns in played for _, said in turns]
    assert {each.stopped for each in said} == {True, False}
    for each in said:
        assert each.stopped == (each.ids[-1] == STOP)
        assert each.stopped or len(each.ids) == 12
    assert not engine._talks._ids


def test_greedy_it_says_what_our_own_engine_says(engine):
    asked = [(None, replies(c)) for c in range(6)]
    ours = together(OwnEngine(engine.model, {STOP}), asked)
    for mine, theirs in zip(ours, together(engine, asked), strict=True):
        assert [said.ids for _, said in mine] == [said.ids for _, said in theirs]
        assert said_logp(mine) == pytest.approx(said_logp(theirs), abs=1e-4)


def test_after_an_update_it_speaks_with_the_new_weights(engine):
    together(engine, conversations(2))
    with torch.no_grad():
        for weight, other in zip(engine.model.parameters(), tiny(seed=3).parameters(), strict=True):
            weight.copy_(other)
    engine.refresh(None)
    for turns in together(engine, conversations(2)):
        assert said_logp(turns) == pytest.approx(recomputed(engine.model, turns), abs=1e-4)


def test_laws_whose_log_probabilities_are_not_told_are_refused(engine):
    for options in ({"top_p": 0.9}, {"key": None, "temperature": 0.5}):
        with pytest.raises(ConfigError, match="use the engine own"):
            engine.talk(**{"key": ("a",)} | options)

    async def wrong():
        with pytest.raises(ValueError, match="nothing heard"):
            await engine.say(engine.talk(("a",)), [])

    asyncio.run(wrong())
