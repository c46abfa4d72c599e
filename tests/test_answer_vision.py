"""Vision-language models as answerers: the families, their images, spans, and what is kept."""

import copy

import numpy as np
import pytest
import torch
from PIL import Image

from kleash.errors import ConfigError, DataError
from kleash.models.answer import answerer
from kleash.models.answer.asking import Asker
from kleash.models.answer.caching import LruCache
from kleash.models.answer.decoding import Decoding
from kleash.models.answer.local import Local, Parts
from kleash.models.answer.prompting import preset_of, written
from kleash.runs.ledger import Ledger
from kleash.types import Prompt
from made_models import EYED, made_images, made_items, made_prompts, made_qwen, saved

MADE = {}


def made(kind):
    if kind not in MADE:
        MADE[kind] = EYED[kind]()
    model, tokenizer, pictures = MADE[kind]
    return copy.deepcopy(model), tokenizer, pictures


def asked(kind="qwen2_5_vl", images=None, prompt="documents", beams=1, room=10**9, places=0):
    parts = Parts(*made(kind), name=kind)
    images = images or made_images()
    return Local(parts, images, preset_of(prompt), Decoding(beams, 5), places, room)


def plainly(model, prompt, row, images, more=()):
    """What the whole model is called with for one prompt, all images prepared together."""
    names = [item.image for item in (*prompt.demonstrations, prompt.query)]
    nested = "idefics" in model.model.config.model_type
    shown = [images(name) for name in names]
    inputs = model.eyes.pictures(images=[shown] if nested else shown, return_tensors="pt")
    ids = torch.cat([row.ids, torch.tensor(more, dtype=torch.long)])[None]
    taken = ("pixel_values", "pixel_attention_mask", "image_grid_thw")
    given = {name: inputs[name] for name in taken if name in inputs}
    if "image_grid_thw" in given:
        given["mm_token_type_ids"] = (ids == model.eyes.token).int()
    return {"input_ids": ids, "attention_mask": torch.ones_like(ids), **given}


@pytest.mark.parametrize("kind", EYED)
def test_words_and_the_truths_span_are_those_of_the_whole_model(kind):
    images, prompts = made_images(), made_prompts(6)
    model = asked(kind, images, beams=3)
    answers = model.answer(prompts)
    for prompt, row, answer in zip(prompts, model.rows(prompts), answers, strict=True):
        given = plainly(model, prompt, row, images, row.truth)
        with torch.no_grad():
            logp = model.model(**given).logits.double().log_softmax(-1)[0]
        ids, first = given["input_ids"][0], len(row.ids)
        by_hand = sum(logp[at - 1, ids[at]].item() for at in range(first, len(ids)))
        assert answer.truth_logp == pytest.approx(by_hand, abs=2e-4)
        given = plainly(model, prompt, row, images)
        said = model.model.generate(**given, num_beams=3, max_new_tokens=5)[0, first:]
        assert answer.text == model.preset.cut(model.speller.text(said.tolist()))


@pytest.mark.parametrize("kind", ["llava", "idefics2", "idefics3"])
@pytest.mark.parametrize("prompt", ["documents", "chat"])
def test_ids_are_those_that_the_models_own_processor_writes(kind, prompt):
    import transformers

    model, images = asked(kind, prompt=prompt), made_images()
    name = {"llava": "Llava", "idefics2": "Idefics2", "idefics3": "Idefics3"}[kind]
    more = {
        "llava": {"patch_size": 14, "vision_feature_select_strategy": "default"},
        "idefics2": {"image_seq_len": 3},
        "idefics3": {"image_seq_len": 1},
    }[kind]
    if kind == "llava":
        more["num_additional_image_tokens"] = 1
    processor = getattr(transformers, f"{name}Processor")(
        model.eyes.pictures, model.speller.tokenizer, **more
    )
    for prompt_, row in zip(made_prompts(3), model.rows(made_prompts(3)), strict=True):
        text = written(prompt_, model.preset, model.speller.template()).text
        names = [item.image for item in (*prompt_.demonstrations, prompt_.query)]
        shown = [Image.fromarray(images(each)) for each in names]
        wanted = processor(
            text=[text.replace("\ufffc", "<image>")],
            images=shown if kind == "llava" else [shown],
            add_special_tokens=False,
        )
        assert row.ids.tolist() == list(wanted["input_ids"][0])


def test_an_image_is_looked_at_once_by_content_and_company_changes_nothing():
    same = made_images()
    images = lambda name: same("0.png") if name == "copy" else same(name)  # noqa: E731
    items = made_items(6)
    twin = type(items[0])(
        **{f: getattr(items[0], f) for f in items[0].__slots__} | {"image": "copy"}
    )
    prompts = [Prompt((items[0], items[1]), items[2]), Prompt((twin,), items[3])] * 2
    model = asked(images=images)
    together = model.answer(prompts)
    assert (model.eyes.uses, model.eyes.looks) == (10, 4)
    model.answer(prompts)
    assert (model.eyes.uses, model.eyes.looks) == (20, 4)
    alone = [asked(images=images).answer([prompt])[0] for prompt in prompts]
    for one, other in zip(alone, together, strict=True):
        assert one.text == other.text
        assert one.truth_logp == pytest.approx(other.truth_logp, abs=1e-4)


def test_the_order_of_demonstrations_and_each_image_count():
    items, model = made_items(6), asked()
    base, turned, other = model.answer(
        [
            Prompt((items[0], items[1]), items[2]),
            Prompt((items[1], items[0]), items[2]),
            Prompt(
                (items[0], items[1]),
                type(items[2])(
                    items[2].id, "9.png", items[2].question, items[2].answers, items[2].answer
                ),
            ),
        ]
    )
    assert abs(base.truth_logp - turned.truth_logp) > 1e-3
    assert abs(base.truth_logp - other.truth_logp) > 1e-3


def test_only_what_stands_before_the_span_changes_it():
    """The truth's sum: moved by any id before or in it, by nothing that is said after it."""
    model = asked(beams=1)
    (row,) = model.rows(made_prompts(3)[2:])
    read = lambda row: model.decoder.decode([row], model.device)[1][0]  # noqa: E731
    base = read(row)
    words = [at for at, one in enumerate(row.ids.tolist()) if one != model.eyes.token]
    for at in (words[0], words[-1]):
        ids = row.ids.clone()
        ids[at] = 77
        assert abs(read(type(row)(ids, row.place, row.next, row.truth, row.seen)) - base) > 1e-4
    truth = [*row.truth[:-1], 77]
    assert abs(read(type(row)(row.ids, row.place, row.next, truth, row.seen)) - base) > 1e-4
    for tokens in (2, 7):  # how much is said, and what, is no part of the span
        model.decoder.decoding = Decoding(3, tokens)
        assert read(row) == pytest.approx(base, abs=1e-5)


def test_a_model_that_was_taught_holds_the_truth_likelier_than_a_shuffled_one():
    model, images = asked(), made_images()
    prompts = [Prompt((), item) for item in made_items(4)]
    rows = model.rows(prompts)
    network = model.model.requires_grad_(True)
    optimiser = torch.optim.Adam(network.parameters(), lr=1e-2)
    for _ in range(10):
        for prompt, row in zip(prompts, rows, strict=True):
            given = plainly(model, prompt, row, images, row.truth)
            ids, first = given["input_ids"][0], len(row.ids)
            logits = network(**given).logits[0, first - 1 : -1]
            torch.nn.functional.cross_entropy(logits, ids[first:]).backward()
            optimiser.step()
            optimiser.zero_grad()
    network.requires_grad_(False)
    model.eyes.kept = LruCache(10**9)  # its eyes are others now
    turned = [Prompt((), item) for item in made_items(4)]
    shuffled = [
        Prompt((), type(p.query)(p.query.id, p.query.image, p.query.question, p.query.answers, q))
        for p, q in zip(turned, [turned[n - 1].query.answer for n in range(4)], strict=True)
        if p.query.answer != q
    ]
    right = {p.query.id: a.truth_logp for p, a in zip(prompts, model.answer(prompts), strict=True)}
    assert len(shuffled) > 1
    for prompt, answer in zip(shuffled, model.answer(shuffled), strict=True):
        assert right[prompt.query.id] > answer.truth_logp + 1


def test_shared_beginnings_with_images_are_read_once_and_change_nothing():
    items = made_items(20)
    prompts = [Prompt((items[0], items[at]), items[at + 1]) for at in range(1, 13)]
    model = asked(places=600)
    begun = []
    begin = model.decoder.begin
    model.decoder.begin = lambda *given: (begun.append(given), begin(*given))[1]
    together = model.answer(prompts)
    assert len(begun) == 1 and len(begun[0][0].ids) > 20
    for prompt, answer in zip(prompts, together, strict=True):
        (alone,) = model.answer([prompt])
        assert alone.text == answer.text
        assert alone.truth_logp == pytest.approx(answer.truth_logp, abs=2e-4)


def test_an_image_that_is_none_breaks_its_own_prompt_only(tmp_path):
    good = made_images()

    def images(name):
        if name == "1.png":
            raise DataError("1.png is no image")
        if name == "2.png":
            return np.zeros((1, 900, 3), dtype=np.uint8)  # too long for its height
        return good(name)

    items, model = made_items(5), asked(images=images)
    answers = model.answer([Prompt((items[n],), items[0]) for n in (1, 2, 3)])
    assert "1.png is no image" in answers[0].error
    assert "2.png cannot be looked at" in answers[1].error
    assert answers[2].error is None
    with Ledger(tmp_path / "ledger.sqlite") as ledger:
        asker = Asker(model, ledger, lambda name: good(name))
        kept = asker([Prompt((items[n],), items[0]) for n in (1, 3)])
    assert kept[0] is None and kept[1] == answers[2]


@pytest.mark.parametrize("prompt", ["documents", "chat", "captions", "captions-chat"])
def test_a_folder_is_all_that_is_needed(tmp_path, prompt):
    folder = saved(tmp_path / "qwen", *made("qwen2_5_vl"))
    options = {"model": str(folder), "prompt": prompt, "beams": 1}
    model = answerer("transformers", made_images(), options=options)
    held = asked(prompt=prompt)
    prompts = made_prompts(3)
    assert model.identity == held.identity and prompt in model.identity
    assert model.looks is (prompt in ("documents", "chat"))
    assert model.answer(prompts) == held.answer(prompts)


def test_identity_knows_the_image_processor():
    model, tokenizer, pictures = made("qwen2_5_vl")
    other = copy.deepcopy(pictures)
    other.size = {"shortest_edge": 28 * 28, "longest_edge": 28 * 28 * 6}
    preset = preset_of("documents")
    identities = {
        Local(Parts(model, tokenizer, each), made_images(), preset, Decoding(), 0, 0).identity
        for each in (pictures, other)
    }
    assert len(identities) == 2


def test_what_cannot_be_shown_images_is_refused(tmp_path):
    from made_models import made_llama

    folder = saved(tmp_path / "blind", made_llama())
    options = {"model": str(folder), "prompt": "documents"}
    with pytest.raises(ConfigError, match="sees no images, and the prompt 'documents' shows them"):
        answerer("transformers", made_images(), options=options)


def test_what_is_kept_stays_within_its_room():
    kept = LruCache(10)
    for number in range(4):
        kept.keep(number, str(number), 4)
    assert len(kept) == 2 and kept.taken == 8
    assert kept.find(0) is None and kept.find(2) == "2"
    kept.keep(9, "9", 4)
    assert kept.find(3) is None and kept.find(2) == "2"
    kept.keep(7, "7", 11)
    assert kept.find(7) is None


def test_images_that_do_not_fit_together_are_looked_at_again():
    model, prompts = asked(room=4_000), made_prompts(9)
    answers = model.answer(prompts)
    looks = model.eyes.looks
    assert model.eyes.kept.taken <= 4_000
    assert [a.text for a in model.answer(prompts)] == [a.text for a in answers]
    assert model.eyes.looks > looks


def test_places_of_images_have_height_and_width():
    model = asked()
    (row,) = model.rows(made_prompts(2)[1:])
    ids = row.ids[None]
    prompt = made_prompts(2)[1]
    given = plainly(model, prompt, row, made_images())
    wanted, delta = model.model.model.get_rope_index(
        ids, given["mm_token_type_ids"], given["image_grid_thw"]
    )
    assert torch.equal(row.place, wanted[:, 0])
    assert row.next == len(row.ids) + delta.item()


def test_a_tiny_qwen_has_fewer_keys_than_queries():
    model, _, _ = made_qwen()
    config = model.config.get_text_config()
    assert config.num_key_value_heads < config.num_attention_heads
