"""Causal LMs as answerers: what they say, how likely the truth is; company changes nothing."""

import math

import pytest
import torch

from kleash.errors import ConfigError, DataError
from kleash.models.answer import answerer
from kleash.models.answer.asking import as_fact
from kleash.models.answer.local import alike, of_one_length
from kleash.models.answer.prompting import (
    PRESETS,
    Speller,
    documents_cut,
    first_line,
    preset_of,
    written,
)
from kleash.types import Prompt
from made_models import made_gpt2, made_items, made_llama, made_prompts, made_tokenizer, saved

MODELS = {"llama": made_llama, "gpt2": made_gpt2}


def no_images(name):
    raise AssertionError("a text model looked at an image")


@pytest.fixture(scope="module", params=MODELS)
def folder(request, tmp_path_factory):
    return saved(tmp_path_factory.mktemp("model") / request.param, MODELS[request.param]())


def asked(folder, **options):
    given = {"model": str(folder), "prompt": "captions", "beams": 1} | options
    return answerer("transformers", no_images, options=given)


def by_hand(model, tokenizer, text, truth):
    """The sum over the truth's span, from one plain forward pass over the whole text."""
    before = tokenizer(text, return_tensors="pt").input_ids
    whole = tokenizer(text + truth, return_tensors="pt").input_ids
    with torch.no_grad():
        logp = model(whole).logits.double().log_softmax(-1)
    places = range(before.shape[1], whole.shape[1])
    return sum(logp[0, place - 1, whole[0, place]].item() for place in places)


def test_the_truth_is_judged_over_its_own_tokens_and_nothing_else(folder):
    model = asked(folder)
    for prompt, answer in zip(made_prompts(9), model.answer(made_prompts(9)), strict=True):
        text = written(prompt, model.preset, None)
        wanted = by_hand(model.model, model.speller.tokenizer, text.text, text.truth)
        assert answer.truth_logp == pytest.approx(wanted, abs=1e-4)


@pytest.mark.parametrize("beams", [1, 3])
def test_it_says_what_generate_says(folder, beams):
    model = asked(folder, beams=beams)
    tokenizer, plain = model.speller.tokenizer, model.model
    prompts = made_prompts(24)
    for prompt, answer in zip(prompts, model.answer(prompts), strict=True):
        ids = tokenizer(written(prompt, model.preset, None).text, return_tensors="pt").input_ids
        said = plain.generate(
            ids, attention_mask=torch.ones_like(ids), num_beams=beams, max_new_tokens=5
        )
        text = tokenizer.decode(said[0, ids.shape[1] :], skip_special_tokens=True)
        assert answer.text == model.preset.cut(text)


@pytest.mark.parametrize("beams", [1, 3])
def test_no_answer_depends_on_its_company(folder, beams):
    model, prompts = asked(folder, beams=beams), made_prompts(12)
    together = model.answer(prompts)
    turned = model.answer(prompts[::-1])[::-1]
    alone = [model.answer([prompt])[0] for prompt in prompts]
    narrow = asked(folder, beams=beams, places=200).answer(prompts)
    for answers in (turned, alone, narrow):
        assert [a.text for a in answers] == [a.text for a in together]
        for one, other in zip(answers, together, strict=True):
            assert one.truth_logp == pytest.approx(other.truth_logp, abs=1e-4)


def test_what_prompts_begin_with_is_read_once_and_changes_nothing(folder):
    items = made_items(20)
    prompts = [Prompt((items[0], items[1], items[at]), items[at + 1]) for at in range(2, 14)]
    model = asked(folder, places=400)
    reads = []
    read = model.decoder.reader.read
    model.decoder.reader.read = lambda inputs, *rest: (
        reads.append(inputs.shape[0] * inputs.shape[1]),
        read(inputs, *rest),
    )[1]
    together = model.answer(prompts)
    shared = sum(reads)
    reads.clear()
    alone = [model.answer([prompt])[0] for prompt in prompts]
    assert shared < 0.8 * sum(reads)
    for one, other in zip(alone, together, strict=True):
        assert one.text == other.text
        assert one.truth_logp == pytest.approx(other.truth_logp, abs=1e-4)


def test_a_prompt_that_does_not_fit_breaks_alone(tmp_path):
    folder = saved(tmp_path / "short", made_llama(max_position_embeddings=120))
    items = made_items(12)
    fits, not_fits = Prompt((), items[0]), Prompt(tuple(items[1:10]), items[0])
    good, bad = asked(folder).answer([fits, not_fits])
    assert good.error is None and as_fact(good).text == good.text
    assert math.isnan(bad.truth_logp) and "does not fit into 120" in as_fact(bad).error


def test_identity_tells_weights_prompt_and_decoding_apart(folder):
    plain = asked(folder)
    assert asked(folder).identity == plain.identity
    others = [
        asked(folder, beams=3),
        asked(folder, tokens=4),
        asked(folder, beams=3, length_penalty=0.0),
        asked(folder, prompt="captions-chat"),
        asked(folder, dtype="bfloat16"),
    ]
    assert len({plain.identity, *(other.identity for other in others)}) == 6
    assert asked(folder, places=100).identity == plain.identity
    with torch.no_grad():
        plain.model.get_input_embeddings().weight[3, 3] += 0.01
    plain.model.save_pretrained(folder)
    assert asked(folder).identity != plain.identity


def test_a_chat_is_written_by_the_models_own_template(folder):
    model = asked(folder, prompt="captions-chat")
    items = made_items(3)
    text = written(Prompt((items[0],), items[1]), model.preset, model.speller.template())
    assert text.text.count("<|im_start|>user") == 2 and text.text.endswith("assistant\n")
    assert f"<|im_start|>assistant\n{items[0].answer}<|im_end|>" in text.text
    (answer,) = model.answer([Prompt((items[0],), items[1])])
    wanted = by_hand(model.model, model.speller.tokenizer, text.text, items[1].answer)
    assert answer.truth_logp == pytest.approx(wanted, abs=1e-4)


def test_spans_are_whole_and_end_where_the_answer_ends():
    speller = Speller(made_tokenizer(), "made")
    items = made_items(12)
    for preset in (PRESETS["captions"], PRESETS["documents"]):
        for item in items:
            text = written(Prompt((items[0],), item), preset, None)
            (spelt,) = speller.spelt([text])
            assert speller.text(spelt.truth) == f" {item.answer}"
            ids = speller.tokenizer(text.text.replace("\ufffc", "")).input_ids
            assert spelt.prompt == ids
    sign = written(Prompt((), items[0]), PRESETS["captions"], None)
    emoji = type(sign)(sign.text, " café ☃")
    (spelt,) = speller.spelt([emoji])
    assert speller.text(spelt.truth) == " café ☃"


def test_a_token_that_holds_both_prompt_and_answer_is_an_error_of_that_prompt():
    speller = Speller(made_tokenizer(), "made")
    fine = written(Prompt((), made_items(1)[0]), PRESETS["captions"], None)
    melted = type(fine)("the umbr", "ella")
    good, bad = speller.spelt([fine, melted])
    assert not isinstance(good, DataError)
    assert isinstance(bad, DataError) and "into one token" in str(bad)


def test_answers_are_cut_as_the_documents_cut_them():
    assert documents_cut(" pony Question: what, then") == "pony"
    assert documents_cut(" red, white Short answer") == "red"
    assert documents_cut("Answer") == ""
    assert first_line("\n two dogs.\nQ: what?") == "two dogs"


def test_what_is_missing_is_said(folder, tmp_path):
    items = made_items(2)
    bare = type(items[0])("7", "7.png", "What?", ("x",), "x")
    with pytest.raises(DataError, match="item 7 has no caption"):
        asked(folder).answer([Prompt((), bare)])
    with pytest.raises(ConfigError, match="no prompt preset 'card'"):
        preset_of("card")
    with pytest.raises(ConfigError, match="no number format"):
        asked(folder, dtype="int4")
    with pytest.raises(DataError, match="no language model at"):
        asked(tmp_path / "nowhere")


def test_batches_hold_rows_of_about_one_length_and_stay_in_bounds():
    lengths = [5, 100, 7, 90, 6, 300]
    batches = list(of_one_length(lengths, 200))
    assert sorted(number for batch in batches for number in batch) == list(range(6))
    assert all(len(b) == 1 or len(b) * max(lengths[n] for n in b) <= 200 for b in batches)
    assert [sorted(b) for b in batches] == [[5], [1, 3], [0, 2, 4]]


def test_sharing_takes_the_longest_beginning_that_pays():
    class Fake:
        def __init__(self, key):
            self.key, self.ids = key, list(key)

    tails = [tuple("abcdef" + x) for x in "uvwxyz"]
    groups = alike([Fake(t) for t in tails], [("a", "b")] * 6, worth=8)
    assert [(g.rows, g.shared) for g in groups] == [(list(range(6)), 6)]
    groups = alike([Fake(t) for t in tails], [("a", "b")] * 6, worth=100)
    assert [(g.rows, g.shared) for g in groups] == [(list(range(6)), 0)]
