"""A language model as a policy: its head by hand, its batches, and what its tokens carry."""

import copy
import os
from pathlib import Path

import pytest
import torch

from kleash.algo import grpo, guard
from kleash.algo.kl import FORMS
from kleash.algo.policy import Reference, fingerprint, frozen, judge_logits
from kleash.errors import CheckpointError, ConfigError, DataError
from kleash.models.language.chat import load_chat
from kleash.models.language.head import CHUNK, Head, judge_hidden
from kleash.models.language.llama import CAUSAL, of_this_shape
from kleash.models.language.models import adapted, fresh, load, merged
from kleash.models.language.policy import ROOM, LanguagePolicy
from kleash.models.language.words import Words
from kleash.seeds import generator, torch_generator
from kleash.types import Turn


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def tiny(size=11, *names, **kwargs):
    kwargs = {"width": 16, "layers": 2, "heads": 2, "inner": 24, "context": 64} | kwargs
    return LanguagePolicy(fresh(size, torch_generator("tiny", *names), **kwargs)).double()


def talks(count=6, size=11):
    """Conversations of one to three turns with random ids."""
    rng = generator("talks")
    draw = lambda most: tuple(rng.integers(0, size, 1 + rng.integers(most)).tolist())  # noqa: E731
    return [[Turn(draw(5), draw(4), ()) for _ in range(1 + rng.integers(3))] for _ in range(count)]


def test_the_example_of_the_page_runs():
    page = (Path(__file__).parent.parent / "docs/language.md").read_text(encoding="utf-8")
    known = {}
    exec(page.split("```python\n")[1].split("```")[0], known)
    assert known["judged"].exact_kl.tolist() == [0, 0, 0]


# --- words


def test_words_begin_end_and_read_as_the_token_surface_wants_them():
    words = Words()
    opening = words.opening("", [], "TASK trip GIVEN ;")
    assert opening[0] == 0 and words.text(opening[1:]) == "TASK trip GIVEN ;"
    turn = words.ids("ASK budget ;")
    assert words.ids("ASK budget") == turn and turn[-1] in words.stops
    assert words.text(turn) == "ASK budget ;"
    assert words.size == len({*words.words}) and words.identity == Words().identity
    assert words.identity != Words(["a", ";"]).identity


def test_a_word_that_is_not_there_is_named():
    with pytest.raises(DataError, match="gizmo"):
        Words().reply("USER gizmo ;")
    with pytest.raises(DataError, match="tools"):
        Words().opening("", [{"type": "function"}], "TASK ;")


# --- the head against all logits at once


@pytest.mark.parametrize("temperature", [1.0, 0.7])
@pytest.mark.parametrize("chunk", [1, 21, 10_000])
@pytest.mark.parametrize("biased", [False, True])
def test_the_chunked_head_is_the_head(temperature, chunk, biased):
    rng = torch_generator("head")
    draw = lambda *shape: torch.randn(*shape, generator=rng, dtype=torch.float64)  # noqa: E731
    hidden, weight, bias = draw(9, 5), draw(7, 5), draw(7) if biased else None
    theirs = Head(draw(9, 4), draw(7, 4), draw(7) if biased else None)
    chosen = torch.arange(9) % 7
    pulls = draw(4, 9)

    def outcome(judge):
        leaves = [t.clone().requires_grad_() for t in (hidden, weight, bias) if t is not None]
        judged = judge(Head(*leaves))
        values = [judged.logp, judged.entropy, judged.exact_kl, judged.forward_kl]
        sum(pull @ value for pull, value in zip(pulls, values, strict=True)).backward()
        return [*values, judged.logp_ref, *(leaf.grad for leaf in leaves)]

    def at_once(own):
        logits = own.hidden_ND @ own.weight_VD.T + (0 if own.bias_V is None else own.bias_V)
        ref = theirs.hidden_ND @ theirs.weight_VD.T + (0 if bias is None else theirs.bias_V)
        return judge_logits(logits / temperature, chosen, ref / temperature)

    chunked = outcome(
        lambda own: judge_hidden(own, chosen, theirs, temperature=temperature, chunk=chunk)
    )
    for ours, plain in zip(chunked, outcome(at_once), strict=True):
        torch.testing.assert_close(ours, plain, rtol=1e-10, atol=1e-13)


# --- the policy


def values_and_gradient(policy, batch, reference, parts=None):
    """Judged values, and the gradient of a loss with fixed weights summed over parts."""
    pull = torch.randn(4, len(batch), generator=torch_generator("pull"), dtype=torch.float64)
    policy.zero_grad()
    found = []
    for part, where in parts or [(batch, slice(0, len(batch)))]:
        judged = policy.judge(part, reference)
        values = torch.stack([judged.logp, judged.entropy, judged.exact_kl, judged.forward_kl])
        (pull[:, where] * values).sum().backward()
        found.append(values.detach())
    return torch.cat(found, 1), [p.grad.clone() for p in policy.parameters()]


def close(ours, theirs, rel=1e-6):
    for one, other in zip(ours, theirs, strict=True):
        assert (one - other).abs().max() <= rel * other.abs().max()


def moved(policy):
    """A reference that is not the policy."""
    other = frozen(policy)
    rng = torch_generator("moved")
    for parameter in other.parameters():
        parameter += 0.05 * torch.randn(parameter.shape, generator=rng, dtype=parameter.dtype)
    return other


def test_every_choice_is_judged_as_the_model_itself_would():
    policy, episodes = tiny(), talks()
    judged = policy.judge(policy.gather(episodes))
    expected = []
    for turns in episodes:
        said = []
        for turn in turns:
            said += turn.observation
            for choice in turn.choices:
                logits = policy.model(torch.tensor([said])).logits[0, -1]
                expected.append(logits.log_softmax(-1)[choice].item())
                said.append(choice)
    assert judged.logp.tolist() == pytest.approx(expected, rel=1e-6)  # norms there are in float32


@pytest.mark.parametrize("name", sorted(CAUSAL))
@pytest.mark.parametrize("heads", [1, 2])
def test_the_lean_pass_is_that_of_transformers(name, heads):
    """Heads of queries share those of keys, or do not; value and gradient."""
    import transformers

    config = getattr(transformers, name.replace("ForCausalLM", "Config"))(
        vocab_size=11,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=heads,
        head_dim=8,
        tie_word_embeddings=False,
        sliding_window=None,
    )
    with torch.random.fork_rng():
        policy = LanguagePolicy(getattr(transformers, name)(config))
    with torch.no_grad():
        for parameter in policy.parameters():
            parameter += 0.3 * torch.randn(parameter.shape, generator=torch_generator(name))
    assert of_this_shape(policy.model) is not None
    batch, found = policy.gather(talks()), []
    (ids, rows), *_ = batch.blocks[0]
    for hidden in (
        policy._rows(ids, rows),
        policy.model.model(input_ids=ids, use_cache=False).last_hidden_state.flatten(0, 1)[rows],
    ):
        policy.zero_grad()
        hidden.square().sum().backward()
        trained = [p.grad.clone() for p in policy.parameters() if p.grad is not None]
        found.append([hidden.detach(), *trained])
    for ours, theirs in zip(*found, strict=True):
        assert (ours - theirs).abs().max() <= 1e-4 * theirs.abs().max()


def test_a_model_of_another_shape_goes_through_its_own_forward():
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.random.fork_rng():
        model = GPT2LMHeadModel(GPT2Config(vocab_size=11, n_embd=16, n_layer=2, n_head=2)).double()
    policy = LanguagePolicy(model).train()
    episodes = talks()
    said = [*episodes[0][0].observation, *episodes[0][0].choices]
    expected = model(torch.tensor([said])).logits[0].log_softmax(-1)
    first = len(episodes[0][0].observation)
    judged = policy.judge(policy.gather(episodes))
    for index, choice in enumerate(episodes[0][0].choices):
        logp = expected[first + index - 1, choice].item()
        assert judged.logp[index].item() == pytest.approx(logp, rel=1e-10)
    assert judged.logp.equal(policy.judge(policy.gather(episodes)).logp)  # nothing drops out


def test_a_model_that_does_more_to_its_logits_is_refused_by_name():
    from transformers import Gemma2Config, Gemma2ForCausalLM

    sizes = {"hidden_size": 16, "intermediate_size": 16, "num_hidden_layers": 1, "head_dim": 8}
    heads = {"num_attention_heads": 2, "num_key_value_heads": 2}
    config = Gemma2Config(vocab_size=11, final_logit_softcapping=0.01, **sizes, **heads)
    with torch.random.fork_rng():
        model = Gemma2ForCausalLM(config)
    with pytest.raises(ConfigError, match="Gemma2ForCausalLM is refused"):
        LanguagePolicy(model)


def test_splitting_a_batch_changes_neither_gradient_nor_kl():
    policy = tiny()
    reference, batch = moved(policy), policy.gather(talks(20))
    whole, gradient = values_and_gradient(policy, batch, reference)
    for tokens in (1, 30, 10_000):
        parts = policy.parts(batch, tokens)
        assert sum(len(part) for part, _ in parts) == len(batch)
        assert len(parts) == {1: 20, 10_000: 1}.get(tokens, len(parts))
        values, slopes = values_and_gradient(policy, batch, reference, parts)
        close(values, whole)
        close(slopes, gradient)


def test_the_size_of_blocks_and_chunks_changes_neither_gradient_nor_kl(monkeypatch):
    policy = tiny()
    reference, episodes = moved(policy), talks(20)
    whole, gradient = values_and_gradient(policy, policy.gather(episodes), reference)
    monkeypatch.setitem(ROOM, "cpu", 16)
    monkeypatch.setitem(CHUNK, "cpu", 23)
    batch = policy.gather(episodes)
    assert len(batch.blocks[0]) > 5
    values, slopes = values_and_gradient(policy, batch, reference)
    close(values, whole)
    close(slopes, gradient)


def test_the_order_of_episodes_changes_neither_gradient_nor_kl():
    policy, episodes = tiny(), talks(20)
    reference = moved(policy)
    order = generator("order").permutation(20).tolist()
    batch = policy.gather(episodes)
    mixed = policy.gather([episodes[i] for i in order])
    back = torch.cat([(batch.episode == i).nonzero()[:, 0] for i in order])
    policy.judge(batch, reference)
    weight = torch.rand(len(batch), generator=torch_generator("w"), dtype=torch.float64)
    found = []
    for one, of in ((batch, weight), (mixed, weight[back])):
        policy.zero_grad()
        judged = policy.judge(one, reference)
        (of @ (judged.logp + judged.exact_kl)).backward()
        found.append((judged, [p.grad.clone() for p in policy.parameters()]))
    (ours, gradient), (theirs, mixed_gradient) = found
    close([theirs.exact_kl, theirs.logp], [ours.exact_kl[back], ours.logp[back]])
    close(mixed_gradient, gradient)


def test_choices_lie_in_order_of_episodes_turns_and_tokens():
    policy = tiny()
    batch = policy.gather(
        [
            [Turn((1, 2), (3,), ()), Turn((4,), (5, 6), ())],
            [Turn((7,), (), ())],
            [Turn((8,), (9,), ())],
        ]
    )
    assert batch.chosen.tolist() == [3, 5, 6, 9]
    assert batch.episode.tolist() == [0, 0, 0, 2]
    assert batch.turn.tolist() == [0, 1, 1, 0]
    assert batch.lengths == (5, 0, 1) and batch.counts == (3, 0, 1)
    assert len(policy.judge(batch).logp) == 4
    assert len(policy.judge(policy.gather([[Turn((7,), (), ())]]), frozen(policy)).logp) == 0
    with pytest.raises(DataError, match="episode 1 begins with a choice"):
        policy.gather([[Turn((1,), (2,), ())], [Turn((), (2,), ())]])


def test_what_the_user_says_is_context_and_nothing_else():
    policy = tiny()

    def logp(opening, reply, last=(3,)):
        turns = [Turn(opening, (1, 2), ()), Turn(reply, (4,), ()), Turn(last, (), ())]
        judged = policy.judge(policy.gather([turns]))
        return judged.logp.tolist()

    plain = logp((5,), (6,))
    assert logp((5,), (6,), last=(9, 9)) == plain
    assert logp((5,), (7,))[:2] == pytest.approx(plain[:2], rel=1e-12)
    assert logp((5,), (7,))[2] != pytest.approx(plain[2], rel=1e-6)
    assert logp((7,), (6,))[0] != pytest.approx(plain[0], rel=1e-6)


def test_temperature_divides_every_logit():
    policy = tiny()
    reference, batch = moved(policy), policy.gather(talks())
    policy.temperature = 0.5
    judged = policy.judge(batch, reference)
    theirs = reference.head(reference.hidden(batch))
    own = policy.head(policy.hidden(batch))
    plain = judge_logits(
        2 * own.hidden_ND @ own.weight_VD.T, batch.chosen, 2 * theirs.hidden_ND @ theirs.weight_VD.T
    )
    close([judged.logp, judged.exact_kl], [plain.logp, plain.exact_kl], rel=1e-10)


# --- the leash at the start


@pytest.mark.parametrize("form", FORMS)
def test_at_the_start_kl_is_zero_and_every_ratio_one(form):
    policy = tiny()
    episodes = talks(6)
    batch = policy.gather(episodes)
    judged = policy.judge(batch, frozen(policy))
    assert judged.exact_kl.abs().max().item() == 0
    assert judged.forward_kl.abs().max().item() == 0
    assert judged.logp_ref.equal(judged.logp)
    guard.zero_kl_at_start(judged.logp, judged.logp_ref, judged.exact_kl, reference="start")
    group = torch.arange(6) % 2
    reward = grpo.leash_reward(
        torch.arange(6).double(),
        judged.logp.detach(),
        judged.logp_ref,
        batch.episode,
        form=form,
        coefficient=0.3,
    )
    choices = grpo.Choices(
        logp=judged.logp,
        logp_old=judged.logp.detach(),
        logp_ref=judged.logp_ref,
        advantage=grpo.leave_one_out(reward, group)[batch.episode],
        weight=grpo.by_choice(batch.episode, group),
        episode=batch.episode,
        exact_kl=judged.exact_kl,
    )
    leashed = grpo.leash_advantage(choices, form=form, coefficient=0.3)
    assert leashed.advantage.equal(choices.advantage)
    loss = grpo.grpo_loss(leashed, grpo.Clip(), form=form, coefficient=0.3)
    assert loss.metrics["leash/value"] == 0 and loss.metrics["clip_fraction"] == 0
    expected = -(choices.weight @ choices.advantage).item()
    assert loss.total.item() == pytest.approx(expected, rel=1e-12)


# --- models


def test_a_fresh_model_is_drawn_from_its_generator_alone():
    before = torch.get_rng_state()
    first, second, other = tiny(11, "a"), tiny(11, "a"), tiny(11, "b")
    assert torch.get_rng_state().equal(before)
    assert fingerprint(first.state_dict()) == fingerprint(second.state_dict())
    assert fingerprint(first.state_dict()) != fingerprint(other.state_dict())


def test_the_embedded_worlds_model_is_as_small_as_it_says():
    made = fresh(Words().size, torch_generator("size"))
    assert sum(p.numel() for p in made.parameters()) == 115_584


def test_tied_embeddings_are_one_tensor_trained_from_both_ends():
    policy = tiny()
    names = [name for name in policy.state_dict() if "embed" in name or "head" in name]
    assert names == ["model.model.embed_tokens.weight"]
    batch = policy.gather([[Turn((1,), (2,), ())]])
    policy.judge(batch).logp.sum().backward()
    gradient = policy.model.get_output_embeddings().weight.grad
    assert (gradient.abs().sum(1) > 0).all()  # the head's: every row
    own = policy.head(policy.hidden(batch))
    alone = torch.autograd.grad(
        judge_hidden(Head(own.hidden_ND.detach(), own.weight_VD), batch.chosen).logp.sum(),
        own.weight_VD,
    )[0]
    differ = ((gradient - alone).abs().sum(1) > 1e-9).nonzero()[:, 0].tolist()
    assert differ == [1]  # the embedding's: only what was read


def test_what_is_kept_loads_strictly_and_says_the_same():
    policy, other = tiny(11, "a"), tiny(11, "b")
    batch = policy.gather(talks())
    kept = {name: tensor.clone() for name, tensor in policy.state_dict().items()}
    guard.load_strictly(other, kept)
    assert other.judge(batch).logp.equal(policy.judge(batch).logp)
    guard.every_tensor_matters(policy, lambda: policy.judge(batch).logp)
    kept.pop("model.model.norm.weight")
    with pytest.raises(CheckpointError, match=r"model\.model\.norm\.weight"):
        guard.load_strictly(other, kept)
    with pytest.raises(RuntimeError, match="missing"):
        other.load_state_dict(kept)


def test_a_model_comes_back_from_a_folder(tmp_path):
    policy = tiny().float()
    merged(policy.model).save_pretrained(tmp_path)
    batch = policy.gather(talks())
    again = LanguagePolicy(load(tmp_path))
    assert again.judge(batch).logp.equal(policy.judge(batch).logp)


def test_what_is_no_model_is_an_error_in_one_line(tmp_path):
    with pytest.raises(DataError, match=r"no language model at .*hf download"):
        load(tmp_path / "absent")
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(DataError, match="cannot be loaded as a causal LM"):
        load(tmp_path)
    with pytest.raises(ConfigError, match="even width"):
        fresh(5, torch_generator("x"), width=12, heads=4)


# --- adapters


def lora():
    """A tiny policy with an adapter, and the policy without one that it was put on."""
    plain = tiny().float()
    model = adapted(copy.deepcopy(plain.model), torch_generator("lora"), rank=2, alpha=4)
    return LanguagePolicy(model), plain


def shifted(policy):
    with torch.no_grad():
        for name, parameter in policy.named_parameters():
            if "lora_B" in name:
                parameter.add_(0.1)


def test_an_adapter_adds_nothing_at_first_and_alone_trains():
    before = torch.get_rng_state()
    policy, plain = lora()
    assert torch.get_rng_state().equal(before)
    batch = policy.gather(talks())
    assert policy.judge(batch).logp.equal(plain.judge(batch).logp)
    trained = {name for name, p in policy.named_parameters() if p.requires_grad}
    assert trained == policy.state_dict().keys()
    assert len(trained) == 2 * 7 * 2 and all(".lora_" in name for name in trained)
    (-policy.judge(batch).logp.mean()).backward()
    assert {name for name, p in policy.named_parameters() if p.grad is not None} == trained
    guard.every_tensor_matters(policy, lambda: policy.judge(batch).logp)


def test_with_the_adapter_off_it_is_the_model_it_was_put_on():
    policy, plain = lora()
    batch = policy.gather(talks())
    shifted(policy)
    assert not policy.judge(batch).logp.equal(plain.judge(batch).logp)
    with policy.adapter_off():
        assert policy.judge(batch).logp.equal(plain.judge(batch).logp)
    assert not policy.judge(batch).logp.equal(plain.judge(batch).logp)
    with pytest.raises(ConfigError, match="no adapter"), plain.adapter_off():
        pass


def test_the_reference_may_be_the_policy_with_its_adapter_off():
    policy, plain = lora()
    reference = Reference(policy, "adapter_off")
    batch = policy.gather(talks())
    assert policy.judge(batch, reference.policy).exact_kl.abs().max().item() == 0
    assert len(reference.tensors()) == len([*plain.parameters(), *plain.buffers()])
    shifted(policy)
    judged, beside = policy.judge(batch, reference.policy), policy.judge(batch, frozen(plain))
    assert judged.exact_kl.min().item() > 0
    assert judged.exact_kl.equal(beside.exact_kl) and judged.logp_ref.equal(beside.logp_ref)
    judged.exact_kl.sum().backward()
    assert reference.fingerprint() == reference.declared
    with torch.no_grad():
        next(p for p in policy.parameters() if not p.requires_grad).add_(1)
    assert reference.fingerprint() != reference.declared


def test_an_adapters_checkpoint_is_the_adapter():
    policy, _ = lora()
    other, _ = lora()
    shifted(policy)
    batch = policy.gather(talks())
    guard.load_strictly(other, {n: t.clone() for n, t in policy.state_dict().items()})
    assert other.judge(batch).logp.equal(policy.judge(batch).logp)
    assert frozen(policy).state_dict().keys() == policy.state_dict().keys()


def test_a_merged_model_says_the_same_and_has_no_adapter(tmp_path):
    policy, _ = lora()
    shifted(policy)
    batch = policy.gather(talks())
    merged(policy.model).save_pretrained(tmp_path)
    again = LanguagePolicy(load(tmp_path))
    assert not again.adapted and policy.adapted
    close([again.judge(batch).logp], [policy.judge(batch).logp], rel=1e-5)


@pytest.mark.skipif("KLEASH_SMOLLM2" not in os.environ, reason="no GGUF file of SmolLM2 is named")
def test_smollm2_speaks_from_its_gguf_file():
    path = os.environ["KLEASH_SMOLLM2"]
    policy, speech = LanguagePolicy(load(path)), load_chat(path)
    heard = speech.opening("", [], "What is the capital of France?")
    said = speech.ids("The capital of France is Paris.")
    judged = policy.judge(policy.gather([[Turn(heard, tuple(said), ())]]))
    assert speech.stop == "<|im_end|>" and len(judged.logp) == len(said) == 8
    assert judged.logp.sum().item() == pytest.approx(-2.84, abs=0.1)
