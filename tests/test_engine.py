"""Engines: sampled = recomputed log-probability, whoever else talks and however long users wait."""

import asyncio
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import chisquare, kstest
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    GPTNeoXConfig,
    GPTNeoXForCausalLM,
    LlamaConfig,
    LlamaForCausalLM,
    Olmo2Config,
    Olmo2ForCausalLM,
    Qwen2Config,
    Qwen2ForCausalLM,
    Qwen3Config,
    Qwen3ForCausalLM,
)

from kleash.errors import ConfigError, GuardError
from kleash.models.engine import Talk
from kleash.models.engine.draws import exponential, stream
from kleash.models.engine.forward import FoldedForward, LlamaForward, ModuleForward, foldable
from kleash.models.engine.kv_cache import Feed, KvCache
from kleash.models.engine.own import OwnEngine
from kleash.models.engine.paged import PagedEngine
from kleash.models.language.llama import of_this_shape
from kleash.models.language.models import adapted
from kleash.models.language.policy import LanguagePolicy
from kleash.seeds import torch_generator
from kleash.types import Turn

WORDS, STOP = 41, 3
BOTH = pytest.mark.parametrize(
    "engine_of", [OwnEngine, pytest.param(PagedEngine, marks=pytest.mark.slow)]
)


def tiny(kind=Qwen3ForCausalLM, config=Qwen3Config, seed=0, scale=0.3, **changes):
    """A model with weights large enough that its distributions are far from uniform."""
    settings = {
        "vocab_size": WORDS,
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": 8,
        "max_position_embeddings": 512,
        "pad_token_id": 0,
        "bos_token_id": 0,
        "eos_token_id": STOP,
    }
    model = kind(config(**settings | changes))
    rng = torch_generator("tiny model", seed)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if weight.dim() > 1:
                weight.normal_(0, scale, generator=rng)
            elif "norm" in name:
                weight.uniform_(0.5, 1.5, generator=rng)
    return model.eval()


def replies(seed, turns=3):
    """What a user will say, turn by turn: ids of several lengths."""
    rng = np.random.default_rng(seed)
    return [rng.integers(4, WORDS, size=rng.integers(1, 9)).tolist() for _ in range(turns)]


async def played(engine, key, heard, *, wait=None, **options):
    """A conversation: what was heard and said in each turn."""
    talk = engine.talk(key, **{"most": 12} | options)
    turns = []
    for ids in heard:
        turns.append((ids, await engine.say(talk, ids)))
        if wait is not None:
            await wait()
    engine.forget(talk)
    return turns


def together(engine, conversations, **options):
    """Conversations at once, each a key and what its user says."""

    async def all_of_them():
        return await asyncio.gather(*(played(engine, k, h, **options) for k, h in conversations))

    return asyncio.run(all_of_them())


def recomputed(model, turns, temperature=1.0):
    """Log-probabilities of what was said, by one pass of the model over the whole conversation."""
    ids = [i for heard, said in turns for i in [*heard, *said.ids]]
    with torch.no_grad():
        logp = (model(torch.tensor([ids])).logits[0] / temperature).log_softmax(-1)
    found, at = [], 0
    for heard, said in turns:
        at += len(heard)
        found += [logp[at + step - 1, choice].item() for step, choice in enumerate(said.ids)]
        at += len(said.ids)
    return found


def said_logp(turns):
    return [each for _, said in turns for each in said.logp]


def conversations(count, turns=3):
    return [(("test", 0, "task", c), replies(c, turns)) for c in range(count)]


def shapes():
    """Models of several families, and whether our lean forward knows them."""
    small = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 3}
    gpt2 = {"n_embd": 32, "n_head": 4, "n_layer": 2, "n_positions": 512}
    yield "qwen3", tiny(), True
    yield "qwen3 tied", tiny(tie_word_embeddings=True), True
    yield "qwen2", tiny(Qwen2ForCausalLM, Qwen2Config, **small), True
    yield "llama", tiny(LlamaForCausalLM, LlamaConfig, attention_bias=True, mlp_bias=True), True
    yield "one head of keys", tiny(LlamaForCausalLM, LlamaConfig, num_key_value_heads=1), True
    yield "gpt2", tiny(GPT2LMHeadModel, GPT2Config, **gpt2), False
    yield "gpt-neox", tiny(GPTNeoXForCausalLM, GPTNeoXConfig, **small), False
    yield "olmo2", tiny(Olmo2ForCausalLM, Olmo2Config, **small), False


@pytest.fixture(params=list(shapes()), ids=lambda shape: shape[0])
def shape(request):
    return request.param


def test_sampled_log_probabilities_are_those_of_one_pass_over_the_conversation(shape):
    _, model, lean = shape
    engine = OwnEngine(model, {STOP})
    assert isinstance(engine._forward, LlamaForward) == lean
    for turns in together(engine, conversations(12)):
        assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)


def test_lean_forwards_give_the_logits_of_the_models_own(shape):
    _, model, lean = shape
    if not lean:
        assert of_this_shape(model) is None
        return
    rng = np.random.default_rng(0)
    inner = of_this_shape(model)
    kinds = [ModuleForward, LlamaForward, *([FoldedForward] if foldable(inner) else [])]
    ways = [(kind(inner), KvCache()) for kind in kinds]
    lengths = [0] * 6
    for slots in ([0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], [1, 4], [5, 0, 2], [3]):
        owed = [rng.integers(0, WORDS, size=rng.integers(1, 60)).tolist() for _ in slots]
        if slots == [1, 4]:
            owed = [each[:1] for each in owed]
        if slots == [5, 0, 2]:
            owed = [[7, 8, 9, 10]] * 3
        feed = Feed(slots, owed, [lengths[slot] for slot in slots])
        found = []
        for forward, kept in ways:
            kept.make_room(6, feed.reach)
            with torch.no_grad():
                found.append(forward(feed, kept))
        for ours in found[1:]:
            assert torch.allclose(ours, found[0], atol=1e-5), (ours - found[0]).abs().max()
        for slot, ids in zip(slots, owed, strict=True):
            lengths[slot] += len(ids)


def test_an_adapter_speaks_too():
    model = adapted(tiny(), torch_generator("adapter"), rank=4)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(0, 0.3, generator=torch_generator(name))
    engine = OwnEngine(model, {STOP})
    assert type(engine._forward) is LlamaForward
    for turns in together(engine, conversations(4)):
        found = said_logp(turns)
        assert found == pytest.approx(recomputed(model, turns), abs=1e-5)
        with model.disable_adapter():
            assert found != pytest.approx(recomputed(model, turns), abs=1e-2)


@BOTH
def test_what_was_said_is_judged_alike_by_the_policy(engine_of):
    policy = LanguagePolicy(tiny(), temperature=1.4)
    played = together(engine_of(policy.model, {STOP}), conversations(9), temperature=1.4)
    episodes = [[Turn(tuple(h), s.ids, s.logp) for h, s in turns] for turns in played]
    judged = policy.judge(policy.gather(episodes)).logp.tolist()
    assert judged == pytest.approx([p for turns in played for p in said_logp(turns)], abs=1e-5)


def test_a_sliding_window_is_not_forgotten():
    model = tiny(use_sliding_window=True, sliding_window=16, max_window_layers=1)
    assert of_this_shape(model) is None
    short, long = [5, 6, 7], list(range(4, 24))
    engine = OwnEngine(model, {STOP})
    turns = together(engine, [((1,), [short])], most=2)[0]
    assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)
    with pytest.raises(ConfigError, match="sliding window of 16"):
        together(engine, [((1,), [long])])


# --- the same whoever else is there


def test_what_is_said_does_not_depend_on_who_else_talks():
    engine = OwnEngine(tiny(), {STOP})
    asked = conversations(24)
    crowd = together(engine, asked)
    for one, turns in list(zip(asked, crowd, strict=True))[::3]:
        alone = together(engine, [one])[0]
        assert [said.ids for _, said in alone] == [said.ids for _, said in turns]
        assert said_logp(alone) == pytest.approx(said_logp(turns), abs=1e-5)
    assert len({said.ids for turns in crowd for _, said in turns}) > 40


def test_groups_of_several_openings_are_read_once_each_and_go_on_from_all_of_it():
    model = tiny()
    short, long = [[5, 6], [7]], [list(range(4, 40)), [8]]
    asked = [((name, at), heard) for name, heard in (("a", short), ("b", long)) for at in range(3)]
    for turns in together(OwnEngine(model, {STOP}), asked):
        assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)


def test_few_slots_only_make_one_wait():
    asked = conversations(11)
    narrow, wide = OwnEngine(tiny(), {STOP}, slots=3), OwnEngine(tiny(), {STOP})
    few, all_at_once = together(narrow, asked), together(wide, asked)
    for ours, theirs in zip(few, all_at_once, strict=True):
        assert [said.ids for _, said in ours] == [said.ids for _, said in theirs]
    assert narrow._cache.slots == 8  # the first ones; nobody needed more
    assert narrow.ticks > 2 * wide.ticks


def test_a_cache_kept_between_turns_says_what_a_fresh_one_says():
    engine = OwnEngine(tiny(), {STOP})

    async def fresh(turns, key):
        """The last turn again, after hearing all that came before in one piece."""
        talk = engine.talk(key, most=12)
        talk.turns = len(turns) - 1
        heard = [i for ids, said in turns for i in [*ids, *said.ids]]
        return await engine.say(talk, heard[: -len(turns[-1][1].ids)])

    asked = conversations(8)
    for (key, _), turns in zip(asked, together(engine, asked), strict=True):
        again = asyncio.run(fresh(turns, key))
        assert again.ids == turns[-1][1].ids
        assert again.logp == pytest.approx(turns[-1][1].logp, abs=1e-5)


SCRIPT = """
import sys
sys.path.insert(0, sys.argv[1])
from test_engine import OwnEngine, STOP, conversations, tiny, together
played = together(OwnEngine(tiny(), {STOP}), conversations(6))
print([said.ids for turns in played for _, said in turns])
"""


@pytest.mark.slow
def test_the_same_key_says_the_same_in_two_processes():
    here = str(Path(__file__).parent)
    command = [sys.executable, "-c", SCRIPT, here]
    theirs = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    ours = together(OwnEngine(tiny(), {STOP}), conversations(6))
    assert theirs == f"{[said.ids for turns in ours for _, said in turns]}\n"


def test_another_seed_task_rollout_or_turn_is_another_draw():
    engine = OwnEngine(tiny(scale=0.01), {STOP})  # nearly uniform: only the noise decides
    keys = [(0, "train", "t1", 0), (1, "train", "t1", 0), (0, "train", "t2", 0)]
    keys += [(0, "train", "t1", 1), (0, "validation", "t1", 0)]
    said = together(engine, [(key, [[5], [5]]) for key in keys])
    assert len({turn.ids for turns in said for _, turn in turns}) == 10


# --- no lock-step


def test_others_finish_while_users_think_and_users_think_at_once():
    engine = OwnEngine(tiny(), {STOP})
    thinking, ended = set(), []

    async def all_of_them():
        both, quick = asyncio.Event(), asyncio.Event()

        async def think(name):
            thinking.add(name)
            if len(thinking) == 2:
                both.set()
            await both.wait()
            await quick.wait()

        async def one(name, wait):
            await played(engine, (name,), replies(1), wait=wait)
            ended.append(name)
            if wait is None:
                quick.set()

        slow = [one(name, lambda name=name: think(name)) for name in ("slow", "also slow")]
        await asyncio.gather(slow[0], one("quick", None), slow[1])

    # In lock-step nobody would say a second turn before all have said the first and heard a reply.
    asyncio.run(asyncio.wait_for(all_of_them(), 60))
    assert ended[0] == "quick" and len(ended) == 3


def test_rule_users_make_no_tick_more_than_the_longest_conversation_needs():
    engine = OwnEngine(tiny(), {STOP})
    said = together(engine, conversations(16))
    assert engine.ticks == max(sum(len(said.ids) for _, said in turns) for turns in said)


# --- how it is drawn


def exact(model, heard, temperature):
    with torch.no_grad():
        return (model(torch.tensor([heard])).logits[0, -1] / temperature).softmax(-1)


@pytest.mark.parametrize("temperature", [0.5, 1.0, 1.7])
def test_draws_follow_the_distribution_at_the_temperature(temperature):
    model, heard, n = tiny(scale=0.2), [7, 8, 9], 4000
    engine = OwnEngine(model, {STOP})
    asked = [(("draw", c), [heard]) for c in range(n)]
    said = together(engine, asked, most=1, temperature=temperature)
    truth = exact(model, heard, temperature).double().numpy()
    counts = np.bincount([turns[0][1].ids[0] for turns in said], minlength=WORDS)
    order = truth.argsort()
    rare = order[: (truth[order].cumsum() * n < 20).sum() + 1]  # together one kind, seen often
    often = np.setdiff1d(np.arange(WORDS), rare)
    seen = np.append(counts[often], counts[rare].sum())
    wanted = np.append(truth[often], truth[rare].sum()) * n / truth.sum()
    assert chisquare(seen, wanted).pvalue > 1e-3
    for turns in said[:50]:
        assert said_logp(turns) == pytest.approx(recomputed(model, turns, temperature), abs=1e-5)


def test_top_p_draws_only_the_likeliest_and_keeps_the_log_probability_of_the_whole():
    model, heard = tiny(scale=0.2), [7, 8, 9]
    truth = exact(model, heard, 1.0)
    order = truth.argsort(descending=True).tolist()
    total, kept = 0.0, set()
    for word in order:
        kept.add(word)
        total += truth[word].item()
        if total >= 0.6:
            break
    asked = [(("draw", c), [heard]) for c in range(600)]
    said = together(OwnEngine(model, {STOP}), asked, most=1, top_p=0.6)
    assert {turns[0][1].ids[0] for turns in said} == kept
    assert 2 < len(kept) < WORDS
    for turns in said[:50]:
        assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)


def test_without_a_key_the_likeliest_is_said():
    model = tiny()
    engine = OwnEngine(model, {STOP})
    mixed = together(engine, [(None, replies(3)), (("a",), replies(4)), (None, replies(3))])
    # The rows of a batch may be added up in another order each: the last bits of logp differ.
    assert [said.ids for _, said in mixed[0]] == [said.ids for _, said in mixed[2]]
    assert said_logp(mixed[0]) == pytest.approx(said_logp(mixed[2]), abs=1e-5)
    ids = []
    for heard, said in mixed[0]:
        ids += heard
        for choice in said.ids:
            with torch.no_grad():
                assert model(torch.tensor([ids])).logits[0, -1].argmax() == choice
            ids.append(choice)
    # The temperature changes how likely it is said to have been, not what is said.
    hot = together(engine, [(None, replies(3))], temperature=2.0)[0]
    assert [said.ids for _, said in hot] == [said.ids for _, said in mixed[0]]
    assert said_logp(hot) == pytest.approx(recomputed(model, hot, 2.0), abs=1e-5)


def test_a_turn_ends_with_a_stop_id_or_is_cut():
    engine = OwnEngine(tiny(scale=0.02), {STOP, 5, 6})
    said = [s for turns in together(engine, conversations(40), most=10) for _, s in turns]
    assert {s.stopped for s in said} == {True, False}
    for each in said:
        assert each.stopped == (each.ids[-1] in {STOP, 5, 6})
        assert each.stopped or len(each.ids) == 10
        assert not {STOP, 5, 6} & set(each.ids[:-1])
        assert len(each.logp) == len(each.ids)


def test_noise_is_exponential_and_differs_from_stream_to_stream():
    streams = torch.tensor([stream(Talk((c,))) for c in range(500)])
    noise = exponential(streams, torch.zeros(500, dtype=torch.long), 400)
    assert kstest(noise.flatten().double().numpy(), "expon").pvalue > 1e-3
    assert abs(np.corrcoef(noise[:40].numpy())[~np.eye(40, dtype=bool)]).max() < 0.25
    whole = exponential(streams[:1], torch.tensor([0]), 400)[0]
    steps = exponential(streams[:1].expand(4), torch.arange(4), 100)
    assert torch.equal(steps.flatten(), whole)


# --- weights and slots


def test_a_talk_ends_with_the_weights_it_began_with():
    model = tiny()
    engine = OwnEngine(model, {STOP})
    adam = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)

    async def across(change):
        talk = engine.talk(("a",), most=6)
        turns = [([5], await engine.say(talk, [5]))]
        change()
        turns.append(([6], await engine.say(talk, [6])))
        return turns

    def update():
        model(torch.tensor([[5, 6, 7]])).logits.sum().backward()
        adam.step()

    before = asyncio.run(across(lambda: None))
    assert said_logp(before) == pytest.approx(recomputed(model, before), abs=1e-5)
    loaded = tiny(seed=1).state_dict()
    changes = (update, lambda: model.load_state_dict(loaded), lambda: engine.refresh(model))
    for change in changes:
        with pytest.raises(RuntimeError, match="the weights have changed"):
            asyncio.run(across(change))
        after = asyncio.run(across(lambda: None))  # a new one has the new weights
        assert said_logp(after) == pytest.approx(recomputed(model, after), abs=1e-5)
    assert said_logp(after) != pytest.approx(said_logp(before), abs=1e-2)


def test_dropout_is_off_while_talking_and_training_goes_on_as_it_was():
    model = tiny(attention_dropout=0.5).train()
    engine = OwnEngine(model, {STOP})
    turns = together(engine, conversations(3))[0]
    assert model.training and model.model.layers[0].training
    assert said_logp(turns) == pytest.approx(recomputed(model.eval(), turns), abs=1e-5)


def test_slots_and_places_never_become_fewer():
    slots, like = KvCache(), torch.ones(1, 2)
    slots.make_room(20, 10)
    slots.layer(0, like)[0][19] = 7
    for wanted, held in (((2, 200), (32, 256)), ((40, 5), (64, 256))):
        slots.make_room(*wanted)
        assert (slots.slots, slots.places) == held
        assert (slots.layer(0, like)[0][19, :, :64] == 7).all()


def test_slots_are_freed_and_taken_again():
    engine = OwnEngine(tiny(), {STOP})

    async def many():
        open_ones = {}
        for c in range(40):
            open_ones[c] = engine.talk((c,), most=4)
            await engine.say(open_ones[c], [5, 6])
            if c >= 5:
                engine.forget(open_ones.pop(c - 5 if c % 2 else min(open_ones)))
        return sum(row is not None for row in engine._by_slot), engine._cache.slots

    assert asyncio.run(many()) == (5, 8)


def test_what_cannot_be_said_is_refused():
    engine = OwnEngine(tiny(), {STOP})

    async def refused():
        talk = engine.talk(("a",), most=4)
        with pytest.raises(ValueError, match="nothing heard"):
            await engine.say(talk, [])
        both = await asyncio.gather(
            engine.say(talk, [5]), engine.say(talk, [6]), return_exceptions=True
        )
        assert "one turn at a time" in str(both[1])
        engine.forget(talk)
        engine.forget(talk)
        with pytest.raises(RuntimeError, match="forgotten"):
            await engine.say(talk, [5])

    asyncio.run(refused())
    for wrong in ({"temperature": 0.0}, {"top_p": 0.0}, {"top_p": 1.5}, {"most": 0}):
        with pytest.raises(ValueError, match="a talk needs"):
            engine.talk(("a",), **wrong)


async def broken_off(engine, talk):
    """A turn is cancelled in its midst."""
    before, turn = engine.ticks, asyncio.create_task(engine.say(talk, [5]))
    while engine.ticks < before + 3 and not turn.done():
        await asyncio.sleep(0)
    turn.cancel()
    with pytest.raises(asyncio.CancelledError):
        await turn


@BOTH
def test_a_turn_that_is_cancelled_leaves_the_others_alone(engine_of):
    engine = engine_of(tiny(scale=0.01), set())

    async def cancelled():
        talk = engine.talk(("a",), most=400)
        await broken_off(engine, talk)
        with pytest.raises(RuntimeError, match="broke off"):
            await engine.say(talk, [5])
        engine.forget(talk)
        return await played(engine, ("b",), replies(2))

    alone = together(engine, [(("b",), replies(2))])[0]
    assert [s.ids for _, s in asyncio.run(cancelled())] == [s.ids for _, s in alone]


@pytest.mark.parametrize("engine_of", [OwnEngine, PagedEngine])
def test_a_policy_that_is_broken_stops_all_who_wait(engine_of):
    model = tiny()
    with torch.no_grad():
        model.model.norm.weight[0] = torch.nan
    with pytest.raises(GuardError, match="not a number"):
        together(engine_of(model, {STOP}), conversations(3))
