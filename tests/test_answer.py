import dataclasses
import shutil

import numpy as np
import pytest
import torch

from kleash.errors import CheckpointError, ConfigError, DataError, KleashError
from kleash.models.answer import ANSWERERS, answerer
from kleash.models.answer.embedded import WEIGHTS, Embedded, known_words
from kleash.models.answer.network import (
    ASKED,
    END,
    MAX_BLOCKS,
    TOKEN,
    VOCABULARY,
    Network,
    Size,
    answer_tokens,
    question_tokens,
)
from kleash.runs.run import read_json, write_json
from kleash.seeds import generator, torch_generator
from kleash.tasks.data.scenes import LANGUAGES, VALUES, Scenes, say
from kleash.tasks.demos.embeddings import SIMILARITIES
from kleash.tasks.demos.pool import Pooling, make_pools
from kleash.tasks.demos.propose import Pooled, similar
from kleash.tasks.demos.score import vqa_accuracy
from kleash.types import Item, Prompt

SAYABLE = [say(value, language) for value in VALUES for language in range(LANGUAGES)]


pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture(scope="module")
def scenes():
    return Scenes()


@pytest.fixture(scope="module")
def embedded(scenes):
    return answerer("embedded", scenes.image)


@pytest.fixture(scope="module")
def pooled(scenes, embedded):
    """The first 200 test queries with their pools."""
    queries, shown = scenes.queries("test")[:200], scenes.demonstrations
    asked, rows = embedded.embed(queries), embedded.embed(shown)
    pools = make_pools(Pooling(), 0, queries, asked, shown, rows)
    return Pooled(queries, asked, shown, rows, pools)


@pytest.fixture(scope="module")
def prompts(scenes):
    """200 prompts of 0 to 4 shots, in no order."""
    rng = generator("test", "prompts")
    demonstrations, queries = scenes.demonstrations[:100], scenes.queries("test")[:200]
    made = []
    for i in range(200):
        rows = rng.choice(len(demonstrations), i % 5, replace=False)
        shown = tuple(demonstrations[row] for row in rows)
        made.append(Prompt(shown, queries[int(rng.integers(len(queries)))]))
    return [made[i] for i in rng.permutation(len(made))]


def scores(embedded, prompts):
    answers = embedded.answer(prompts)
    return np.array(
        [vqa_accuracy(a.text, p.query.answers) for a, p in zip(answers, prompts, strict=True)]
    )


# --- loading


def test_the_shipped_weights_are_small_and_described():
    assert WEIGHTS.stat().st_size <= 8_000_000
    recipe = read_json(WEIGHTS.with_suffix(".json"))
    assert recipe.keys() == {"config", "scores", "weights"}
    assert recipe["scores"]["both"] > 0.99
    assert recipe["scores"]["plain_first"] > 0.99
    assert recipe["scores"]["neither"] < 0.1


def copied(tmp_path, **changes):
    """The shipped answerer elsewhere, with another recipe."""
    path = tmp_path / WEIGHTS.name
    shutil.copy(WEIGHTS, path)
    recipe = read_json(WEIGHTS.with_suffix(".json"))
    write_json(path.with_suffix(".json"), recipe | changes)
    return path


def test_a_copy_of_the_weights_is_the_same_answerer(scenes, embedded, tmp_path):
    assert Embedded(scenes.image, copied(tmp_path)).identity == embedded.identity


def test_weights_of_another_size_do_not_load(scenes, tmp_path):
    config = read_json(WEIGHTS.with_suffix(".json"))["config"]
    wider = {**config, "size": {**config["size"], "hidden": 512}}
    path = copied(tmp_path, config=wider)
    with pytest.raises(CheckpointError, match=r"of another shape .*rise"):
        Embedded(scenes.image, path)


def test_weights_that_the_recipe_does_not_describe_do_not_load(scenes, tmp_path):
    path = copied(tmp_path, weights="0" * 64)
    with pytest.raises(CheckpointError, match=r"not hold the weights that scenes\.json describes"):
        Embedded(scenes.image, path)


def test_files_that_are_missing_or_torn_are_one_clear_line(scenes, tmp_path):
    path = copied(tmp_path)
    path.write_bytes(path.read_bytes()[:1000])
    with pytest.raises(CheckpointError, match=f"cannot read {path}"):
        Embedded(scenes.image, path)
    path.unlink()
    with pytest.raises(KleashError, match=f"cannot read {path}"):
        Embedded(scenes.image, path)
    with pytest.raises(DataError, match="cannot read"):
        Embedded(scenes.image, tmp_path / "nothing.safetensors")


def test_an_unknown_answerer_is_named(scenes):
    with pytest.raises(ConfigError, match="no answerer 'qwen': there is embedded"):
        answerer("qwen", scenes.image)
    assert ANSWERERS["embedded"] == "kleash.models.answer.embedded:Embedded"


def test_any_change_of_any_weight_changes_the_identity(scenes, embedded, tmp_path):
    from kleash.algo.policy import fingerprint

    tensors = embedded.network.state_dict()
    assert embedded.identity.startswith(fingerprint(tensors))
    for name, tensor in tensors.items():
        changed = tensor.clone()
        changed.view(-1)[-1] += 1e-3
        assert not embedded.identity.startswith(fingerprint({**tensors, name: changed})), name


# --- the arithmetic


def whole_sequence(embedded, prompt, words):
    """Log-probabilities of two words after a prompt, by the forward pass of training."""
    network = embedded.network
    blocks = []
    for item in (*prompt.demonstrations, prompt.query):
        seen = network.see(torch.from_numpy(embedded.images(item.image))[None])[0]
        said = words if item is prompt.query else answer_tokens(item.answer)
        tokens = torch.tensor([*question_tokens(item.question), *said])
        blocks.append(torch.cat([seen, network.word(tokens)]))
    logp = network(network.place(torch.stack(blocks)[None]))[0].log_softmax(-1)
    after_question = logp[len(prompt.demonstrations) * 7 + ASKED - 1]
    after_first = logp[len(prompt.demonstrations) * 7 + ASKED]
    return after_question, after_first


def test_the_log_probability_is_that_of_exactly_the_answers_tokens(embedded, prompts):
    answers = embedded.answer(prompts[:40])
    lengths = set()
    for prompt, answer in zip(prompts[:40], answers, strict=True):
        words = answer_tokens(prompt.query.answer)
        lengths.add(len(prompt.query.answer.split()))
        first, second = whole_sequence(embedded, prompt, words)
        by_hand = (first[words[0]] + second[words[1]]).item()
        assert answer.truth_logp == pytest.approx(by_hand, abs=5e-5)
    assert lengths == {1, 2}


def test_the_answer_is_the_likeliest_word_after_the_likeliest_word(embedded, prompts):
    for prompt, answer in zip(prompts[:40], embedded.answer(prompts[:40]), strict=True):
        first = int(whole_sequence(embedded, prompt, [0, 0])[0].argmax())
        second = int(whole_sequence(embedded, prompt, [first, 0])[1].argmax())
        said = [VOCABULARY[word] for word in (first, second)]
        kept = said[: said.index(END)] if END in said else said
        assert answer.text == " ".join(kept)


def test_probabilities_of_all_that_can_be_said_sum_to_at_most_one(embedded, prompts):
    for prompt in prompts[:5]:
        asked = [
            Prompt(prompt.demonstrations, dataclasses.replace(prompt.query, answer=answer))
            for answer in SAYABLE
        ]
        total = np.exp([answer.truth_logp for answer in embedded.answer(asked)]).sum()
        assert 0.9 < total <= 1 + 1e-5


def test_reading_and_going_on_equals_reading_at_once():
    """With fresh weights, where every path through the network counts."""
    network = Network(Size(width=16, layers=3, picture_layers=1, heads=2, hidden=24))
    rng = torch_generator("test", "network")
    network.draw_weights(rng)
    network.requires_grad_(False)
    with torch.no_grad():  # larger, or all that attention sees looks the same
        for parameter in network.parameters():
            parameter.mul_(4.0)
    blocks = torch.randn(5, 3, 7, 16, generator=rng)
    whole = network(network.place(blocks))
    asked = network.place(blocks)[:, : 14 + ASKED]
    first, memory = network.read(asked)
    assert torch.allclose(first, whole[:, 14 + ASKED - 1], atol=1e-5)

    earlier = network.remember(network.place(blocks[:, :1]))
    again, longer = network.read(network.place(blocks[:, 1:], first=1)[:, : 7 + ASKED], earlier)
    assert torch.allclose(again, first, atol=1e-5)
    for left, right in zip(memory, longer, strict=True):
        assert torch.allclose(left, right, atol=1e-5)

    words = torch.randint(0, len(VOCABULARY), (5, 3), generator=rng)
    where = network.slot[ASKED] + network.block[2]
    after = network.go_on(words, where, memory)
    for way in range(3):
        longer_x = torch.cat([asked, (network.word(words[:, way]) + where)[:, None]], dim=1)
        assert torch.allclose(after[:, way], network(longer_x)[:, -1], atol=1e-5)


def test_a_position_looks_back_only(embedded):
    network = embedded.network
    x = torch.randn(2, 14, network.size.width, generator=torch_generator("test", "causal"))
    before = network(x)
    x[:, 9:] += 1.0
    after = network(x)
    assert torch.equal(before[:, :9], after[:, :9])
    assert not torch.allclose(before[:, 9:], after[:, 9:])


def test_words_and_answers_become_tokens_and_strangers_an_error(embedded, scenes):
    assert question_tokens("bax northeast?") == [TOKEN["bax"], TOKEN["northeast"]]
    assert answer_tokens("mo red") == [TOKEN["mo"], TOKEN["red"]]
    assert answer_tokens("red") == [TOKEN["red"], TOKEN[END]]
    stranger = Item("x", "test-0", "zebra northeast?", ("red",) * 10, "red")
    with pytest.raises(DataError, match=r"item x: .* does not know the word 'zebra'"):
        known_words(stranger)
    with pytest.raises(DataError, match="zebra"):
        embedded.answer([Prompt((), stranger)])


def test_more_shots_than_were_taught_are_refused(embedded, scenes):
    shown = tuple(scenes.demonstrations[:MAX_BLOCKS])
    query = scenes.queries("test")[0]
    assert len(embedded.answer([Prompt(shown[:-1], query)])) == 1
    with pytest.raises(DataError, match=r"9 shots are too many: .* taught at most 8"):
        embedded.answer([Prompt(shown, query)])


def test_an_item_whose_answer_was_changed_is_another_item(embedded, scenes):
    """Nothing kept under an item's name may outlive its content."""
    shown, query = scenes.demonstrations[0], scenes.queries("test")[0]
    other = dataclasses.replace(shown, answer="mo red" if shown.answer != "mo red" else "red")
    one, two = embedded.answer([Prompt((shown,), query), Prompt((other,), query)])
    assert one.truth_logp != two.truth_logp


# --- the same to the last bit


@pytest.mark.parametrize("count", [50, pytest.param(200, marks=pytest.mark.slow)])
def test_answers_are_the_same_alone_together_and_shuffled(scenes, embedded, prompts, count):
    prompts = prompts[:count]
    assert {len(prompt.demonstrations) for prompt in prompts} == {0, 1, 2, 3, 4}
    together = Embedded(scenes.image).answer(prompts)
    one_by_one = Embedded(scenes.image)
    # Looking at pictures one by one has its own test.
    one_by_one.embed([*scenes.demonstrations[:100], *scenes.queries("test")[:200]])
    assert [one_by_one.answer([prompt])[0] for prompt in prompts] == together
    assert embedded.answer(prompts) == together  # after much else was asked
    order = generator("test", "shuffle").permutation(len(prompts))
    shuffled = Embedded(scenes.image).answer([prompts[i] for i in order])
    assert [shuffled[i] for i in np.argsort(order)] == together
    assert len({answer.truth_logp for answer in together}) > 0.75 * count


def test_embeddings_are_the_same_alone_and_together(scenes, embedded):
    items = scenes.demonstrations[:70]
    together = embedded.embed(items)
    for place in (0, 13, 69):
        alone = Embedded(scenes.image).embed([items[place]])
        assert (alone.image_ND[0] == together.image_ND[place]).all()
        assert (alone.text_ND[0] == together.text_ND[place]).all()


def test_asking_nothing_gives_nothing(embedded):
    assert embedded.answer([]) == []


# --- what it learnt


def test_embeddings_find_the_question_and_the_look(scenes, embedded):
    items = scenes.demonstrations[:300]
    rows = embedded.embed(items)
    assert np.allclose(np.linalg.norm(rows.part("both"), axis=1), 1, atol=1e-5)
    text = rows.text_ND @ rows.text_ND.T
    same = [[a.question == b.question for b in items] for a in items]
    assert text[np.array(same)].min() > 0.999
    image = rows.image_ND @ rows.image_ND.T
    np.fill_diagonal(image, np.nan)
    village = np.array([item.facts["village"] for item in items])
    alike = village[:, None] == village
    assert np.nanmean(image[alike]) > np.nanmean(image[~alike])


def test_each_rung_of_the_ladder_leaves_room_for_the_next(scenes, embedded, pooled):
    everything = range(len(pooled))
    rng = generator("test", "ladder")
    random = [tuple(rng.choice(64, 2, replace=False)) for _ in everything]
    pointers = {
        "zero": [()] * len(pooled),
        "random": random,
        "planted": [scenes.planted(pooled.queries[q], pooled.pool(q), 2) for q in everything],
        **{kind: [similar(pooled, q, kind, 2) for q in everything] for kind in SIMILARITIES},
    }
    rungs = {
        name: scores(embedded, [pooled.prompt(q, p) for q, p in enumerate(chosen)]).mean()
        for name, chosen in pointers.items()
    }
    assert rungs["zero"] <= 0.30, rungs
    assert rungs["random"] <= 0.40, rungs
    assert max(rungs[kind] for kind in SIMILARITIES) <= 0.55, rungs
    assert rungs["planted"] >= 0.85, rungs


def test_plain_questions_are_better_asked_alone(scenes, embedded):
    plain = [item for item in scenes.queries("test") if item.facts["kind"] == "plain"]
    rng = generator("test", "plain")
    pairs = [rng.choice(len(scenes.demonstrations), 2, replace=False) for _ in plain]
    alone = scores(embedded, [Prompt((), item) for item in plain])
    shown = scores(
        embedded,
        [
            Prompt(tuple(scenes.demonstrations[row] for row in pair), item)
            for pair, item in zip(pairs, plain, strict=True)
        ],
    )
    assert alone.mean() > 0.9
    assert alone.mean() > shown.mean() + 0.2


def helpers(scenes, query, fact):
    return [
        item
        for item in scenes.demonstrations
        if item.facts["village"] == query.facts["village"] and item.facts[fact] == query.facts[fact]
    ]


def test_two_complementary_demonstrations_beat_two_copies(scenes, embedded):
    coded = [i for i in scenes.queries("test") if i.facts["kind"] == "coded"]
    complementary, two_words, two_manners = [], [], []
    for query in coded[:150]:
        words, manners = helpers(scenes, query, "word"), helpers(scenes, query, "frame")
        complementary.append(Prompt((manners[0], words[0]), query))
        two_words.append(Prompt((words[1], words[0]), query))
        two_manners.append(Prompt((manners[1], manners[0]), query))
    both = scores(embedded, complementary).mean()
    assert both > 0.9
    assert both > scores(embedded, two_words).mean() + 0.4
    assert both > scores(embedded, two_manners).mean() + 0.4


def test_a_misleading_demonstration_is_believed(scenes, embedded):
    """The same word from another village, where it means something else, does harm."""
    misled, told = [], []
    for query in [i for i in scenes.queries("test") if i.facts["kind"] == "coded"][:200]:
        words, manners = helpers(scenes, query, "word"), helpers(scenes, query, "frame")
        strangers = [
            item
            for item in scenes.demonstrations
            if item.facts["word"] == query.facts["word"]
            and item.facts["village"] != query.facts["village"]
        ]
        misled.append(Prompt((manners[0], strangers[0]), query))
        told.append(Prompt((manners[0], words[0]), query))
    assert scores(embedded, misled).mean() < scores(embedded, told).mean() - 0.4


def test_the_truth_is_likelier_than_a_shuffled_answer(scenes, embedded, pooled):
    coded = [q for q, item in enumerate(pooled.queries) if item.facts["kind"] == "coded"]
    prompts = [
        pooled.prompt(q, scenes.planted(pooled.queries[q], pooled.pool(q), 2)) for q in coded
    ]
    shuffled = []
    for prompt, other in zip(prompts, [*prompts[7:], *prompts[:7]], strict=True):
        lie = dataclasses.replace(prompt.query, answer=other.query.answer)
        shuffled.append(Prompt(prompt.demonstrations, lie))
    true = np.array([answer.truth_logp for answer in embedded.answer(prompts)])
    lies = np.array([answer.truth_logp for answer in embedded.answer(shuffled)])
    differ = [a.query.answer != b.query.answer for a, b in zip(prompts, shuffled, strict=True)]
    assert (true > lies)[differ].mean() > 0.95
    assert true.mean() > lies.mean() + 3
