"""Packed episodes: the same numbers and gradients as one by one, whoever compiles or recomputes."""

from dataclasses import replace

import pytest
import torch

from kleash.algo.policy import Reference, frozen
from kleash.errors import ConfigError
from kleash.models.language import packed
from kleash.models.language.head import Head, judge_hidden
from kleash.models.language.models import adapted, fresh
from kleash.models.language.packed import Packing, pack_of, plan, spread
from kleash.models.language.policy import LanguagePolicy
from kleash.seeds import generator, torch_generator
from kleash.types import Turn

# Torch's compiler looks at the gradients of what it is given.
pytestmark = pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor:UserWarning")
SIZE = 23
SMALL = Packing(tokens=32, step=8)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def grouped_model(layers=3, **kwargs):
    """Four heads of queries that share two of keys."""
    from transformers import Qwen3Config, Qwen3ForCausalLM

    config = Qwen3Config(
        vocab_size=SIZE,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=layers,
        num_attention_heads=4,
        num_key_value_heads=2,
        head_dim=8,
        max_position_embeddings=128,
        tie_word_embeddings=False,
        **kwargs,
    )
    with torch.random.fork_rng(devices=[]):
        model = Qwen3ForCausalLM(config)
    rng = torch_generator("grouped")
    with torch.no_grad():
        for weight in model.parameters():
            weight.add_(torch.randn(weight.shape, generator=rng), alpha=0.3)
    return model


def policy_of(packing=None, **kwargs):
    return LanguagePolicy(grouped_model(**kwargs).double(), packing=packing)


def talks(count=9):
    rng = generator("packed talks")
    draw = lambda most: tuple(rng.integers(0, SIZE, 1 + rng.integers(most)).tolist())  # noqa: E731
    made = [[Turn(draw(9), draw(6), ()) for _ in range(1 + rng.integers(3))] for _ in range(count)]
    return [*made, [Turn((1, 2), (), ())]]  # the last one said nothing


def judged_and_gradients(policy, batch, reference=None, tokens=10_000):
    """Everything said of the batch, and the gradient of a number that hangs on all of it."""
    policy.zero_grad()
    found = []
    for part, place in policy.parts(batch, tokens):
        judged = policy.judge(part, reference)
        weight = torch.linspace(0.5, 1.5, len(batch), dtype=torch.float64)[place]
        loss = (weight * judged.logp).sum() + 0.3 * (weight * judged.entropy).sum()
        if judged.exact_kl is not None:
            loss = loss + 0.2 * (weight * (judged.exact_kl + judged.forward_kl)).sum()
        loss.backward()
        at = torch.arange(len(batch))[place]
        found.append((at, torch.stack([judged.logp, judged.entropy]).detach()))
    at = torch.cat([each for each, _ in found])
    values = torch.cat([each for _, each in found], dim=1)[:, at.argsort()]
    assert at.sort().values.tolist() == list(range(len(batch)))
    return values, {name: p.grad.clone() for name, p in policy.named_parameters()}


def assert_same(ours, theirs, close=1e-10):
    assert torch.allclose(ours[0], theirs[0], rtol=close, atol=close)
    for name, gradient in theirs[1].items():
        assert torch.allclose(ours[1][name], gradient, rtol=close, atol=close), name


PACKINGS = [
    pytest.param(SMALL, id="plainly"),
    pytest.param(replace(SMALL, recompute=1), id="some layers again"),
    pytest.param(replace(SMALL, recompute=99), id="all layers again"),
    pytest.param(
        replace(SMALL, compile="dynamic", backend="aot_eager"),
        id="compiled for all sizes",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        replace(SMALL, compile="fixed", backend="aot_eager", recompute=1),
        id="compiled for one size",
        marks=pytest.mark.slow,
    ),
]


@pytest.mark.parametrize("packing", PACKINGS)
def test_packs_change_no_number_and_no_gradient(packing):
    plain, ours = policy_of(), policy_of(packing)
    batch, reference = plain.gather(talks()), frozen(policy_of())
    with torch.no_grad():
        for weight in reference.parameters():
            weight.mul_(1.1)
    expected = judged_and_gradients(plain, batch, reference)
    assert_same(judged_and_gradients(ours, batch, reference), expected)
    assert_same(judged_and_gradients(ours, batch, reference, tokens=24), expected)


def test_a_whole_batch_is_judged_in_its_order():
    plain, ours = policy_of(), policy_of(SMALL)
    batch = plain.gather(talks())
    with torch.no_grad():
        assert torch.allclose(ours.judge(batch).logp, plain.judge(batch).logp, rtol=0, atol=1e-12)
    assert ours.judge(ours.gather([[Turn((1,), (), ())]])).logp.shape == (0,)


def test_another_episode_in_the_pack_is_not_seen():
    policy = policy_of(SMALL)
    first, second = talks()[:2]
    alone = policy.judge(policy.gather([second])).logp
    beside = policy.judge(policy.gather([first, second])).logp
    assert torch.allclose(beside[-len(alone) :], alone, rtol=0, atol=1e-12)
    other = [replace(turn, observation=(3,) * len(turn.observation)) for turn in first]
    again = policy.judge(policy.gather([other, second])).logp
    assert torch.equal(again[-len(alone) :], beside[-len(alone) :])


def test_a_reference_that_comes_layer_by_layer_says_the_same():
    policy = policy_of(SMALL, layers=5)
    reference = Reference(policy, pinned=True)
    with torch.no_grad():
        for weight in policy.parameters():
            weight.mul_(1.1)
    beside = frozen(policy_of(SMALL, layers=5))
    batch = policy.gather(talks())
    for judged in (batch, policy.parts(batch, 24)[0][0]):
        ours, theirs = (policy.judge(judged, each) for each in (reference.policy, beside))
        assert torch.allclose(ours.logp_ref, theirs.logp_ref, rtol=0, atol=1e-12)
        assert torch.allclose(ours.exact_kl, theirs.exact_kl, rtol=0, atol=1e-12)
        assert ours.exact_kl.max() > 1e-3
    assert reference.fingerprint() == reference.declared == Reference(beside).declared


def test_an_adapter_is_packed_too():
    pytest.importorskip("peft")
    plain = LanguagePolicy(adapted(grouped_model().double(), torch_generator("lora")))
    with torch.no_grad():
        for name, weight in plain.named_parameters():
            if ".lora_B." in name:
                weight.fill_(0.05)
    batch = plain.gather(talks())
    expected = plain.judge(batch).logp
    plain.packing = SMALL
    assert torch.allclose(plain.judge(batch).logp, expected, rtol=0, atol=1e-12)
    with plain.adapter_off():
        assert not torch.allclose(plain.judge(batch).logp, expected)


@pytest.mark.slow
def test_sizes_of_packs_share_what_was_compiled_for_any():
    counted = torch._dynamo.testing.CompileCounter()
    run = torch.compile(packed.block, dynamic=True, backend=counted)
    model = grouped_model(layers=2)
    for size in (24, 40, 32):
        pack = pack_of(torch.arange(20) % SIZE, [12, 8], size)
        found = model.model.embed_tokens(pack.ids_T)
        rope = packed.rope_of(model.model.rotary_emb, found, pack)
        for layer in model.model.layers:
            found = run(layer, found, *rope, pack.borders, 64)
    assert counted.frame_count == 1


@pytest.mark.slow
def test_all_layers_share_what_was_compiled():
    counted = torch._dynamo.testing.CompileCounter()
    run = torch.compile(packed.block, dynamic=False, backend=counted)
    model = grouped_model(layers=5)
    pack = pack_of(torch.arange(20) % SIZE, [12, 8], 24)
    found = model.model.embed_tokens(pack.ids_T)
    rope = packed.rope_of(model.model.rotary_emb, found, pack)
    for layer in model.model.layers:
        found = run(layer, found, *rope, pack.borders, pack.longest)
    assert counted.frame_count == 1
    expected = packed.hidden_rows(model, pack, torch.arange(24), Packing())
    assert torch.allclose(packed.model_norm(model.model.norm, found), expected)


# --- the plan


@pytest.mark.parametrize("compiled", ["off", "dynamic"])
def test_every_episode_is_in_one_pack_that_holds_it(compiled):
    lengths = generator("lengths").integers(0, 40, 50).tolist()
    how = Packing(tokens=64, step=8, compile=compiled)
    packs = plan(lengths, how)
    assert sorted(at for held, _ in packs for at in held) == [
        at for at, length in enumerate(lengths) if length
    ]
    sizes = [size for _, size in packs]
    assert all(sum(lengths[at] for at in held) <= size <= 64 for held, size in packs)
    assert all(size % 8 == 0 for size in sizes) and held_in_order(packs)
    assert compiled == "dynamic" or len(set(sizes)) <= 2
    assert sum(sizes) <= 1.05 * sum(lengths)


def held_in_order(packs):
    return all(held == sorted(held) for held, _ in packs)


def test_a_long_episode_gets_its_room_and_nothing_gets_none():
    assert plan([100, 3], Packing(tokens=64, step=8)) == [([0, 1], 104)]
    assert plan([0, 0], SMALL) == [] and plan([], SMALL) == []


def test_packs_of_two_sizes_waste_less_than_packs_of_one():
    lengths = [5120, 3072, 4096, 4096, 6144, 6144]
    expected = [([0, 1], 8192), ([2, 3], 8192), ([4], 6144), ([5], 6144)]  # and nothing is wasted
    assert sorted(plan(lengths, Packing(tokens=8192, step=512))) == expected


def test_a_batch_that_is_small_has_no_more_places_than_it_needs():
    assert plan([9, 8, 4], Packing(tokens=64, step=8)) == [([0, 1, 2], 24)]


def test_a_thousand_short_episodes_are_packed_without_trying_every_way():
    lengths = generator("short").integers(20, 60, 1000).tolist()
    sizes = [size for _, size in plan(lengths, Packing(tokens=8192, step=512))]
    assert sum(sizes) <= 1.05 * sum(lengths)


def test_a_row_is_filled_up_by_an_episode_of_its_own():
    pack = pack_of(torch.tensor([5, 6, 7]), [2, 0, 1], 6)
    assert pack.ids_T.tolist() == [5, 6, 7, 0, 0, 0]
    assert pack.place_T.tolist() == [0, 1, 0, 0, 1, 2]
    assert pack.borders.tolist() == [0, 2, 3, 6, *[6] * 12]


def test_layers_that_are_worked_out_again_lie_evenly():
    assert spread(36, 0) == set() and spread(36, 36) == spread(36, 99) == set(range(36))
    assert spread(6, 2) == {1, 4}


def test_what_cannot_be_packed_is_refused():
    from transformers import GPT2Config, GPT2LMHeadModel

    model = GPT2LMHeadModel(GPT2Config(vocab_size=SIZE, n_embd=8, n_layer=1, n_head=2))
    with pytest.raises(ConfigError, match=r"GPT2LMHeadModel.*scale\.packed=off"):
        LanguagePolicy(model, packing=SMALL)


# --- the compiled head


@pytest.mark.slow
@pytest.mark.parametrize("biased", [False, True])
def test_a_compiled_head_is_the_head(monkeypatch, biased):
    monkeypatch.setattr("kleash.models.language.head.COMPILED_ROWS", 4)
    monkeypatch.setattr("kleash.models.language.head.ROWS_BACK", 8)
    rng = torch_generator("compiled head")
    draw = lambda *shape: torch.randn(*shape, generator=rng, dtype=torch.float64)  # noqa: E731
    own = [draw(10, 5), draw(7, 5), draw(7) if biased else None]
    theirs = Head(draw(10, 5), draw(7, 5), None)
    chosen, found = torch.arange(10) % 7, []
    for backend in ("", "aot_eager"):
        given = [None if each is None else each.clone().requires_grad_() for each in own]
        told = judge_hidden(Head(*given), chosen, theirs, temperature=0.7, backend=backend)
        numbers = [told.logp, told.entropy, told.exact_kl, told.forward_kl]
        sum((at + 1) * (each**2).sum() for at, each in enumerate(numbers)).backward()
        found.append([*numbers, told.logp_ref, *(each.grad for each in given if each is not None)])
    for plain, compiled in zip(*found, strict=True):
        assert torch.allclose(plain, compiled, rtol=1e-10, atol=1e-12)


def test_the_tiny_model_packs_in_float32():
    policy = LanguagePolicy(fresh(SIZE, torch_generator("tiny")))
    batch = policy.gather(talks())
    plain = policy.judge(batch).logp
    policy.packing = SMALL
    assert torch.allclose(policy.judge(batch).logp, plain, rtol=0, atol=1e-5)
