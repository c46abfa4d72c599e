"""A language model as a policy: its head by hand, its batches, and what its tokens carry."""

import pytest
import torch

from kleash.errors import DataError
from kleash.language.head import Head, judge_hidden
from kleash.language.models import fresh
from kleash.language.policy import LanguagePolicy
from kleash.language.words import Words
from kleash.policy import frozen, judge_logits
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
    assert judged.logp.tolist() == pytest.approx(expected, rel=1e-6)


def test_a_policy_is_its_own_reference_at_the_start():
    policy = tiny()
    judged = policy.judge(policy.gather(talks()), frozen(policy))
    assert judged.exact_kl.abs().max().item() == 0
    assert judged.forward_kl.abs().max().item() == 0
    assert judged.logp_ref.equal(judged.logp)


def test_the_lean_pass_is_that_of_transformers():
    policy = tiny().float()
    batch = policy.gather(talks())
    (ids, rows), *_ = batch.blocks[0]
    theirs = policy.model.model(input_ids=ids, use_cache=False).last_hidden_state
    ours = policy._rows(ids, rows)
    torch.testing.assert_close(ours, theirs.flatten(0, 1)[rows], rtol=1e-4, atol=1e-6)
