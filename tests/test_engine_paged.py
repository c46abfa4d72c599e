"""The decoder for GPUs, on a CPU with its operations in plain torch: what it says, and how."""

import asyncio
from functools import partial

import pytest
import torch
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from kleash.errors import ConfigError
from kleash.models.engine import decoder, engine_of, pages
from kleash.models.engine.decoder import put_side_by_side
from kleash.models.engine.decoder import together as joined
from kleash.models.engine.own import OwnEngine
from kleash.models.engine.paged import PagedEngine
from kleash.models.language.models import adapted
from kleash.models.language.policy import LanguagePolicy
from kleash.seeds import torch_generator
from test_engine import (
    STOP,
    conversations,
    played,
    recomputed,
    replies,
    said_logp,
    shapes,
    tiny,
    together,
)

LEAN = [(name, model) for name, model, lean in shapes() if lean]


@pytest.mark.slow
@pytest.mark.parametrize("steps", [1, 4])
@pytest.mark.parametrize("shape", LEAN, ids=lambda shape: shape[0])
def test_sampled_log_probabilities_are_those_of_one_pass_over_the_conversation(shape, steps):
    model = shape[1]
    engine = PagedEngine(model, {STOP}, steps=steps)
    for turns in together(engine, conversations(12)):
        assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)


def test_a_conversation_is_said_as_one_pass_judges_it():
    engine = PagedEngine(tiny(), {STOP})
    for turns in together(engine, conversations(4)):
        assert said_logp(turns) == pytest.approx(recomputed(engine.model, turns), abs=1e-5)


@pytest.mark.slow
def test_it_says_what_the_other_decoder_says():
    model, asked = tiny(), [*conversations(10), (None, replies(3))]
    ours = together(PagedEngine(model, {STOP}, steps=3), asked)
    theirs = together(OwnEngine(model, {STOP}), asked)
    assert [[s.ids for _, s in t] for t in ours] == [[s.ids for _, s in t] for t in theirs]
    assert [s.stopped for t in ours for _, s in t] == [s.stopped for t in theirs for _, s in t]
    for temperature, top_p in ((1.6, 1.0), (1.0, 0.6), (0.7, 0.8)):
        options = {"temperature": temperature, "top_p": top_p}
        ours = together(PagedEngine(model, {STOP}), asked, **options)
        theirs = together(OwnEngine(model, {STOP}), asked, **options)
        assert [[s.ids for _, s in t] for t in ours] == [[s.ids for _, s in t] for t in theirs]
        for turns in ours:
            found = recomputed(model, turns, temperature)
            assert said_logp(turns) == pytest.approx(found, abs=1e-5)


@pytest.mark.slow
def test_an_adapter_speaks_too():
    model = adapted(tiny(), torch_generator("adapter"), rank=4)
    with torch.no_grad():
        for name, weight in model.named_parameters():
            if "lora_B" in name:
                weight.normal_(0, 0.3, generator=torch_generator(name))
    engine = PagedEngine(model, {STOP})
    put_side_by_side(engine.inner)  # of weights under an adapter none are moved
    for turns in together(engine, conversations(4)):
        assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)
    before = decoder.whereabouts(model)
    with model.disable_adapter():
        assert decoder.whereabouts(model) != before  # graphs with it on do not hold


@pytest.mark.slow
def test_long_and_short_replies_and_openings_of_several_pages():
    model = tiny()
    engine = PagedEngine(model, {STOP}, steps=4)
    long = [[4 + i % 30 for i in range(n)] for n in (200, 3, 150, 1, 40)]
    asked = [((c,), long[c % 3 :]) for c in range(5)]
    for turns in together(engine, asked, most=9):
        assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)


def test_what_a_user_said_is_in_the_first_of_some_steps_alone(monkeypatch):
    """And every token of it is in one block, also those that are none."""
    engine = PagedEngine(tiny(), (), steps=4)
    sizes, honest = [], engine.decoder._one

    def one(size, *, truncated, mixed=False):
        sizes.append(size)
        if mixed:
            sizes.append("mixed")
            _, _, first, count = engine.decoder.blocks_4B[:, :size].tolist()
            held = [at + n for at, count in zip(first, count, strict=True) for n in range(count)]
            assert sorted(held) == list(range(size)) and max(count) == engine.decoder.longest
        return honest(size, truncated=truncated, mixed=mixed)

    monkeypatch.setattr(engine.decoder, "_one", one)
    replies = [[4 + place % 30 for place in range(44 - number)] for number in range(2)]
    talks = together(engine, [((c,), [[5, 6], replies[c]]) for c in range(2)], most=5)
    for turns in talks:
        assert said_logp(turns) == pytest.approx(recomputed(engine.model, turns), abs=1e-5)
    assert sizes == [2] * 5 + [96, "mixed", 2, 2, 2, 2]


@pytest.mark.slow
def test_what_is_read_in_pieces_is_what_is_read_at_once(monkeypatch):
    model, asked = tiny(), [((0,), [list(range(4, 40)) * 7])]
    whole = together(PagedEngine(model, {STOP}), asked)[0]
    monkeypatch.setattr(decoder, "READ", 100)
    parts = together(PagedEngine(model, {STOP}), asked)[0]
    assert said_logp(parts) == pytest.approx(said_logp(whole), abs=1e-5)


def ahead(**how):
    """An engine that goes on before it has heard what was said, as on a GPU."""
    engine = PagedEngine(tiny(), {STOP}, **how)
    engine.runs_ahead = True
    return engine


@pytest.mark.slow
@pytest.mark.parametrize(
    "how",
    [{"steps": 1}, {"steps": 3}, {"slots": 3}, {"places": 4 * 128}],
    ids=["one", "three", "few slots", "few pages"],
)
def test_going_on_before_it_is_heard_changes_nothing_that_is_said(how, monkeypatch):
    asked = conversations(9)
    plain = together(PagedEngine(tiny(), {STOP}), asked)
    engine, more = ahead(**how), []
    honest = decoder.Decoder.go_on
    monkeypatch.setattr(
        decoder.Decoder, "go_on", lambda self, *given: (more.append(given), honest(self, *given))[1]
    )
    found = together(engine, asked)
    assert more
    assert [[s.ids for _, s in t] for t in found] == [[s.ids for _, s in t] for t in plain]
    for turns in found:
        assert said_logp(turns) == pytest.approx(recomputed(engine.model, turns), abs=1e-5)
    for slot, held in enumerate(engine.decoder.pages.held):
        assert not held, slot


def test_nobody_who_waits_is_run_past_for_long():
    """A user who answers while others speak is heard after the steps that are under way."""
    engine, order = ahead(steps=2), []

    async def talked(name, most, ticks):
        talk = engine.talk((name,), most=most)
        while engine.ticks < ticks:
            await asyncio.sleep(0)
        await engine.say(talk, [5, 6, 7])
        order.append((name, engine.ticks))
        engine.forget(talk)

    async def both():
        await asyncio.gather(talked("long", 60, 0), talked("short", 2, 3))

    engine.stops = frozenset()
    engine.decoder._stops = engine.decoder._stops[:0]
    asyncio.run(both())
    assert [name for name, _ in order] == ["short", "long"]
    assert order[1][1] <= 60 + 4  # at most one tick was in vain at the end


# --- groups


def read_tokens(engine, monkeypatch):
    """How many tokens were read, and in how many passes."""
    told = []
    honest = engine.decoder._read

    def reading(pieces):
        told.append(sum(len(ids) for _, ids, _ in pieces))
        honest(pieces)

    monkeypatch.setattr(engine.decoder, "_read", reading)
    return told


def test_what_a_group_begins_with_is_read_once_and_held_once(monkeypatch):
    model = tiny()
    engine = PagedEngine(model, {STOP}, steps=2)
    told = read_tokens(engine, monkeypatch)
    opening = [4 + i % 30 for i in range(300)]
    asked = [(("group", c), [opening, [5, 6]]) for c in range(8)]

    async def watched():
        talks = [engine.talk(key, most=4) for key, _ in asked]
        first = await asyncio.gather(*(engine.say(talk, opening) for talk in talks))
        free = engine.decoder.pages.free
        second = await asyncio.gather(*(engine.say(talk, [5, 6]) for talk in talks))
        late = engine.talk(("group", 8), most=4)
        turns = [[(opening, await engine.say(late, opening))]]
        turns += [[(opening, a), ([5, 6], b)] for a, b in zip(first, second, strict=True)]
        for talk in (*talks, late):
            engine.forget(talk)
        return turns, free

    turns, free = asyncio.run(watched())
    assert told == [299]
    assert engine.decoder.pages.count - free == 2 + 8  # two whole pages, and one that differs
    assert engine.decoder.pages.free == engine.decoder.pages.count
    for each in turns:
        assert said_logp(each) == pytest.approx(recomputed(model, each), abs=1e-5)
    assert len({said.ids for each in turns for _, said in each}) > 8


# --- pages that run out


def test_when_pages_run_out_talks_are_put_aside_and_go_on():
    model, asked = tiny(), [((c,), [[4 + c] * 90, [5] * 60, [6] * 50]) for c in range(7)]
    wide = together(PagedEngine(model, {STOP}), asked)
    narrow = PagedEngine(model, {STOP}, places=4 * 128)
    for ours, theirs in zip(
        together(narrow, asked, wait=partial(asyncio.sleep, 0.01)), wide, strict=True
    ):
        assert [said.ids for _, said in ours] == [said.ids for _, said in theirs]
        assert said_logp(ours) == pytest.approx(said_logp(theirs), abs=1e-5)
    assert narrow.decoder.pages.count == 4 == narrow.decoder.pages.free
    with pytest.raises(ConfigError, match="does not fit the 512 places"):
        together(
            PagedEngine(tiny(max_position_embeddings=1024), {STOP}, places=512),
            [((1,), [[5] * 600])],
        )
    with pytest.raises(ConfigError, match="the model has room for 512"):
        together(PagedEngine(model, {STOP}), [((1,), [[5] * 600])])


def test_a_talk_that_was_put_aside_is_still_of_its_weights():
    engine = PagedEngine(tiny(), {STOP})

    async def across():
        talk = engine.talk(("a",), most=6)
        turns = [([5], await engine.say(talk, [5]))]
        engine.release()
        turns.append(([6], await engine.say(talk, [6])))
        engine.release()
        engine.refresh(None)
        with pytest.raises(RuntimeError, match="the weights have changed"):
            await engine.say(talk, [7])
        return turns

    turns = asyncio.run(across())
    assert said_logp(turns) == pytest.approx(recomputed(engine.model, turns), abs=1e-5)


def test_what_was_read_with_other_weights_is_not_shared():
    model, heard = tiny(), list(range(5, 12))
    engine = PagedEngine(model, {STOP})

    async def before_and_after():
        await engine.say(engine.talk(("before",), most=4), heard)  # it keeps its pages
        with torch.no_grad():
            for weight in model.parameters():
                weight.mul_(1.2)
        engine.refresh(None)
        return [(heard, await engine.say(engine.talk(("after",), most=8), heard))]

    turns = asyncio.run(before_and_after())
    assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)


def test_pages_are_not_given_back_under_who_speaks():
    engine = PagedEngine(tiny(), {STOP})

    async def speaks():
        turn = asyncio.ensure_future(engine.say(engine.talk(("a",), most=12), [5, 6]))
        await asyncio.sleep(0)
        with pytest.raises(RuntimeError, match="in the middle of a turn"):
            engine.release()
        said = await turn
        engine.release()
        return [([5, 6], said)]

    turns = asyncio.run(speaks())
    assert said_logp(turns) == pytest.approx(recomputed(engine.model, turns), abs=1e-5)


def test_who_thinks_makes_room_before_who_waits(monkeypatch):
    engine = PagedEngine(tiny(), set(), places=3 * pages.PAGE)  # every turn has its length
    aside, real = [], PagedEngine._put_aside

    def put_aside(self, row):
        aside.append(row.talk.key)
        real(self, row)

    monkeypatch.setattr(PagedEngine, "_put_aside", put_aside)

    async def talks():
        await engine.say(engine.talk(("thinks",), most=2), [5, 6])
        grows, waits = (engine.talk((name,), most=16) for name in ("grows", "waits"))
        long = [5 + at % 30 for at in range(pages.PAGE - 8)]  # into a second page, the fourth
        return await asyncio.gather(engine.say(grows, long), engine.say(waits, [7, 8]))

    assert [len(said.ids) for said in asyncio.run(talks())] == [16, 16]
    assert aside == [("thinks",)]


def test_pages_are_given_back_only_by_the_last_who_holds_them():
    size = pages.Size(1, 1, 2, 6 * pages.PAGE, 3, 1000, torch.float32, torch.device("cpu"))
    made = pages.Pages(size)
    assert made.take(0, 300) and made.free == 3
    assert not made.take(1, 500) and made.free == 3
    pairs = made.share(0, 1, 260)
    assert made.free == 2 and made.held[1][:2] == made.held[0][:2]
    assert pairs == [(made.held[0][2], made.held[1][2])]
    made.keys_APHLD[:, made.held[0][2]] = 7
    made.copy(pairs)
    assert (made.keys_APHLD[:, made.held[1][2]] == 7).all()
    made.leave(0)
    assert made.free == 3
    made.leave(1)
    assert made.free == 6
    assert size.bytes_of_token == 16
    assert made.take(0, 6 * pages.PAGE)
    with pytest.raises(MemoryError):
        made.share(0, 1, 260)
    assert made.held[1] == []  # nor two that are whole
    made.leave(0)
    assert made.free == 6


def test_a_conversation_may_fill_the_model_s_context_and_no_more():
    engine, heard = PagedEngine(tiny(), set()), [5 + at % 30 for at in range(505)]
    fits = (("fits",), [heard])
    [turns] = together(engine, [fits], most=8)  # what is said last needs no place
    assert said_logp(turns) == pytest.approx(recomputed(engine.model, turns), abs=1e-5)
    with pytest.raises(ConfigError, match="of 513 tokens: the model has room for 512"):
        together(engine, [fits], most=9)


@pytest.mark.parametrize(
    ("places", "kept"),
    [(None, 2 * (512 + pages.PAGE)), (10**9, 2 * (512 + pages.PAGE)), (640, 640)],
)
def test_no_more_places_are_taken_than_slots_can_fill(places, kept):
    engine = PagedEngine(tiny(), {STOP}, slots=2, places=places)
    assert engine.decoder.pages.size.places == kept


# --- no lock-step


def test_others_finish_while_one_user_thinks():
    engine = PagedEngine(tiny(), {STOP})

    async def thinking(until):
        talk = engine.talk(("slow",), most=12)
        said = [([5], await engine.say(talk, [5]))]
        await until.wait()
        return [*said, ([6], await engine.say(talk, [6]))]

    async def all_of_them():
        until = asyncio.Event()
        slow = asyncio.create_task(thinking(until))
        await played(engine, ("quick",), replies(1))  # would never end if it waited for the other
        until.set()
        return await slow

    turns = asyncio.run(asyncio.wait_for(all_of_them(), 60))
    assert said_logp(turns) == pytest.approx(recomputed(engine.model, turns), abs=1e-5)


@pytest.mark.slow
def test_few_slots_and_small_batches_only_make_one_wait(monkeypatch):
    asked = conversations(11)
    wide = together(PagedEngine(tiny(), {STOP}), asked)
    assert [
        [s.ids for _, s in t] for t in together(PagedEngine(tiny(), {STOP}, slots=3), asked)
    ] == [[s.ids for _, s in t] for t in wide]
    engine = PagedEngine(tiny(), {STOP})
    engine.decoder.sizes = (2, 4)
    few = together(engine, asked)
    assert [[s.ids for _, s in t] for t in few] == [[s.ids for _, s in t] for t in wide]


# --- weights


def test_weights_side_by_side_are_the_same_parameters_and_one_product(tmp_path):
    model = tiny()
    parameters, before = list(model.parameters()), model(torch.tensor([[5, 6, 7]])).logits
    part = model.model.layers[0].self_attn
    assert joined(part.q_proj, part.k_proj, part.v_proj) is None
    put_side_by_side(model)
    whole = joined(part.q_proj, part.k_proj, part.v_proj)
    assert torch.equal(
        whole, torch.cat([p.weight for p in (part.q_proj, part.k_proj, part.v_proj)])
    )
    assert all(a is b for a, b in zip(parameters, model.parameters(), strict=True))
    assert torch.equal(model(torch.tensor([[5, 6, 7]])).logits, before)
    adam = torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)
    model(torch.tensor([[5, 6, 7]])).logits.sum().backward()
    adam.step()
    assert torch.equal(whole[: part.q_proj.out_features], part.q_proj.weight)  # they moved with it
    engine = PagedEngine(model, {STOP})
    assert engine.decoder._net.layers[0].qkv is not None
    assert engine.decoder._net.layers[1].gate_up is not None
    for turns in together(engine, conversations(4)):
        assert said_logp(turns) == pytest.approx(recomputed(model, turns), abs=1e-5)
    model.save_pretrained(tmp_path)
    again = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert all(
        torch.equal(a, b) for a, b in zip(again.parameters(), model.parameters(), strict=True)
    )


@pytest.mark.slow
def test_weights_that_move_are_read_where_they_are_then():
    model = tiny()
    put_side_by_side(model)
    engine = PagedEngine(model, {STOP})
    together(engine, conversations(2))
    other = tiny(seed=1)
    for ours, theirs in zip(model.parameters(), other.parameters(), strict=True):
        ours.data = theirs.data  # as a swap with a reference does
    for turns in together(engine, conversations(2)):
        assert said_logp(turns) == pytest.approx(recomputed(other, turns), abs=1e-5)


def test_it_is_chosen_where_it_can_run_and_refuses_other_shapes():
    model = tiny(LlamaForCausalLM, LlamaConfig)
    speech = type("Speech", (), {"stops": {STOP}})
    assert type(engine_of("own", LanguagePolicy(model), speech)) is OwnEngine  # there is no GPU
    gpt2 = next(model for name, model, _ in shapes() if name == "gpt2")
    with pytest.raises(ConfigError, match="not of a shape"):
        PagedEngine(gpt2, {STOP})


def test_graphs_that_are_forgotten_take_their_memory_with_them():
    """A pool whose graphs are gone can hold no others: CUDA refuses the next capture."""
    decoder = PagedEngine(tiny(), (), steps=2).decoder
    decoder._graphs[8, False, False], decoder._pool = (None, None, None), "pool"
    decoder.reread()
    assert decoder._graphs and decoder._pool  # nothing has moved
    moved = decoder.model.model.layers[0].mlp.up_proj.weight
    moved.data = moved.data.clone()
    decoder.reread()
    assert not decoder._graphs and decoder._pool is None
