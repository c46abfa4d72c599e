import hashlib
from collections import Counter

import numpy as np
import pytest

from kleash.errors import ConfigError
from kleash.seeds import generator
from kleash.tasks.data import DATASETS, dataset, majority
from kleash.tasks.data.scenes import (
    _PALETTE,
    ATTRIBUTES,
    COLOURS,
    FRAMES,
    LANGUAGES,
    NO_FRAME,
    PLACES,
    SIDE,
    SIZES,
    STRANGE,
    VALUES,
    VILLAGES,
    WORDS,
    Looks,
    Scenes,
    annotate,
    draw,
    draw_looks,
    say,
)
from kleash.tasks.demos.score import vqa_accuracy
from made_data import options_for

SPLITS = ("train", "validation", "test")
GROUND = ((205, 205, 205), (40, 40, 48), (196, 216, 240), (240, 212, 200))
FRAME_INK = ((0, 0, 0), (255, 255, 255), (255, 0, 128), (0, 160, 255))
INK = {
    "red": (220, 30, 30),
    "orange": (245, 140, 20),
    "yellow": (235, 220, 40),
    "green": (30, 150, 50),
    "cyan": (50, 200, 210),
    "blue": (40, 70, 210),
    "purple": (150, 50, 180),
    "brown": (120, 75, 45),
}


@pytest.fixture(scope="module")
def scenes():
    return Scenes()


@pytest.fixture(scope="module")
def parts(scenes):
    return {"demonstrations": scenes.demonstrations, **{s: scenes.queries(s) for s in SPLITS}}


def place_of(item):
    return PLACES.index(item.question.rstrip("?").split()[1])


def cell(scenes, item):
    """The quarter of an item's picture that its question is about."""
    top, left = 4 + 20 * (place_of(item) // 2), 4 + 20 * (place_of(item) % 2)
    return scenes.image(item.image)[top : top + 20, left : left + 20]


def attribute_of(scenes, item):
    """What the question asks for, by the tables that only the generator knows."""
    if item.facts["kind"] == "plain":
        return item.facts["word"]
    word = WORDS.index(item.facts["word"])
    return list(ATTRIBUTES)[scenes.meaning[item.facts["village"], word]]


# --- repeatable


def test_the_data_set_of_a_seed_has_the_same_bytes_everywhere(scenes):
    golden = "4b31b82bfe8760411c73d5585a7231f756a4feb9666c472ac7f86453a1ef1a7b"
    assert scenes.content == golden
    assert dataset("scenes", 0).content == golden


def test_another_seed_is_another_data_set(scenes):
    small = {"demonstrations": 8, "train": 4, "validation": 2, "test": 2}
    assert Scenes(0, sizes=small).content == Scenes(0, sizes=small).content
    assert len({Scenes(seed, sizes=small).content for seed in range(5)}) == 5


def test_the_content_hash_sees_every_question_answer_and_pixel(scenes):
    small = {"demonstrations": 4, "train": 2, "validation": 2, "test": 2}
    made = Scenes(0, sizes=small)
    digest = hashlib.sha256()
    for part in ("demonstrations", *SPLITS):
        for item in made.demonstrations if part == "demonstrations" else made.queries(part):
            digest.update(repr((item.id, item.question, item.answers)).encode())
            digest.update(made.image(item.image).tobytes())
    assert made.content == digest.hexdigest()


def test_a_part_does_not_depend_on_the_size_of_a_later_one():
    few = Scenes(3, sizes={"demonstrations": 20, "train": 5, "validation": 5, "test": 5})
    more = Scenes(3, sizes={"demonstrations": 20, "train": 5, "validation": 5, "test": 50})
    assert few.queries("train") == more.queries("train")


def test_every_data_set_of_the_table_is_one(tmp_path):
    for name in [name for name, where in DATASETS.items() if where.startswith("kleash.")]:
        made = dataset(name, 7, options_for(name, tmp_path / name))
        item = made.queries("test")[0]
        assert made.name == name
        if name not in ("lxmert", "sst2"):  # for whoever reads captions, or no image at all
            assert made.image(item.image).shape[2] == 3
        assert item.answer == majority(item.answers)
        assert made.demonstrations and len(made.content) == 64


def test_unknown_data_sets_and_splits_are_named():
    with pytest.raises(ConfigError, match="no data set 'scene': there is scenes"):
        dataset("scene")
    with pytest.raises(ConfigError, match="no split 'dev' in scenes: there is train, validation"):
        Scenes().queries("dev")
    with pytest.raises(ConfigError, match="no split 'demonstrations'"):
        Scenes().queries("demonstrations")


# --- nothing leaks


def test_parts_have_the_sizes_promised(parts):
    sizes = {name: len(items) for name, items in parts.items()}
    assert sizes == {"demonstrations": 2048, "train": 800, "validation": 200, "test": 800}
    ids = [item.id for items in parts.values() for item in items]
    assert len(set(ids)) == len(ids)


def test_no_picture_occurs_twice_in_the_data_set(scenes, parts):
    seen = Counter(scenes.image(item.image).tobytes() for items in parts.values() for item in items)
    assert seen.total() == 3848
    assert max(seen.values()) == 1


def test_a_picture_that_was_drawn_before_is_drawn_again(monkeypatch):
    """With eyes for one colour and one size only, pictures run short and repeat."""

    def coarse(looks):
        pictures = np.zeros((len(looks), SIDE, SIDE, 3), dtype=np.uint8)
        pictures[:, 0, 0, 0] = looks.colour_NQ[:, 0]
        pictures[:, 0, 0, 1] = looks.size_NQ[:, 0]
        return pictures

    monkeypatch.setattr("kleash.tasks.data.scenes.draw", coarse)
    made = Scenes(sizes={"demonstrations": 12, "train": 6, "test": 6})
    items = [*made.demonstrations, *made.queries("train"), *made.queries("test")]
    assert len({made.image(item.image).tobytes() for item in items}) == 24 == 8 * 3
    assert [item.id for item in made.queries("test")] == [f"test-{i}" for i in range(6)]


def test_no_demonstration_has_the_word_and_the_frame_of_any_query(parts):
    """The chessboard: demonstrations stand on black squares, queries on white ones."""
    shown = {(i.facts["word"], i.facts["frame"]) for i in parts["demonstrations"]}
    asked = {
        (item.facts["word"], item.facts["frame"])
        for split in SPLITS
        for item in parts[split]
        if item.facts["kind"] == "coded"
    }
    assert len(shown) == len(asked) == 32 * FRAMES // 2
    assert not shown & asked


def test_plain_questions_are_queries_only_and_about_one_in_eight(parts):
    kinds = {name: Counter(i.facts["kind"] for i in items) for name, items in parts.items()}
    assert kinds["demonstrations"]["plain"] == 0
    for split in SPLITS:
        share = kinds[split]["plain"] / kinds[split].total()
        assert share == pytest.approx(0.125, abs=0.05)
    plain = [i for i in parts["test"] if i.facts["kind"] == "plain"]
    assert {i.facts["word"] for i in plain} == set(ATTRIBUTES)
    assert {i.facts["frame"] for i in plain} == {NO_FRAME}
    assert {i.facts["language"] for i in plain} == {0}


def test_word_and_frame_alone_do_not_tell_meaning_or_manner(scenes):
    """Each attribute and each language is about equally common, whatever the word or frame."""
    meaning = np.stack([Scenes(seed).meaning for seed in range(40)])
    manner = np.stack([Scenes(seed).manner for seed in range(40)])
    assert (np.bincount(meaning.ravel()) / meaning.size).tolist() == pytest.approx(
        [1 / len(ATTRIBUTES)] * len(ATTRIBUTES), abs=0.01
    )
    assert (np.bincount(manner.ravel()) / manner.size).tolist() == pytest.approx(
        [1 / LANGUAGES] * LANGUAGES, abs=0.03
    )
    # In one data set the same word means different things in different villages.
    assert (scenes.meaning[:4, :32] != scenes.meaning[0, :32]).any(axis=0).mean() > 0.9


# --- annotators


def test_annotators_give_the_values_of_official_accuracy(parts):
    """Random answers out of all that can be said meet all five values of the lattice."""
    sayable = [say(value, language) for value in VALUES for language in range(LANGUAGES)]
    rng = generator("test", "lattice")
    scores = Counter()
    for item in parts["test"]:
        # The item's own answers too: random words alone rarely meet the rarer values.
        for answer in {*item.answers, sayable[int(rng.integers(len(sayable)))]}:
            scores[round(vqa_accuracy(answer, item.answers), 6)] += 1
    assert set(scores) == {0, 0.3, 0.6, 0.9, 1}
    assert min(scores.values()) > 20


def test_the_majority_answer_is_worth_showing(parts):
    for items in parts.values():
        assert all(len(item.answers) == 10 for item in items)
        scores = [vqa_accuracy(item.answer, item.answers) for item in items]
        assert np.mean(scores) >= 0.9


def test_the_majority_is_the_most_frequent_and_the_first_of_equals():
    assert majority(("b", "a", "a", "c")) == "a"
    assert majority(("b", "a", "a", "b")) == "b"


def test_annotators_doubt_and_slip_and_yet_mostly_agree():
    rng = generator("test", "annotate")
    truth = say("red", 2)
    rows = [annotate("red", "colour", 2, rng) for _ in range(400)]
    agreement = [row.count(truth) / 10 for row in rows]
    assert np.mean(agreement) == pytest.approx(0.85 * 0.97, abs=0.03)
    assert {True, False} == {len(set(row)) == 1 for row in rows}


def test_a_value_is_said_in_four_ways_and_no_two_values_alike():
    assert [say("red", language) for language in range(4)] == ["red", "barou", "mo red", "barou ti"]
    said = {say(value, language) for value in VALUES for language in range(LANGUAGES)}
    assert len(said) == len(VALUES) * LANGUAGES
    names = [*VALUES, *STRANGE, *WORDS, *PLACES, *ATTRIBUTES, "mo", "ti"]
    assert len(set(names)) == len(names)


# --- pictures


def test_every_place_asked_holds_an_object(scenes, parts):
    for items in parts.values():
        for item in items:
            assert len(np.unique(cell(scenes, item).reshape(-1, 3), axis=0)) > 1, item.id


def test_ground_and_frame_tell_village_and_manner(scenes, parts):
    """Corners of a quarter are never covered; the edge is inked, whole or every other dash."""
    for item in [*parts["demonstrations"][:200], *parts["test"][:200]]:
        picture = scenes.image(item.image)
        assert picture.shape == (SIDE, SIDE, 3)
        ground = GROUND[item.facts["village"]]
        assert tuple(picture[4, 4]) == tuple(picture[24, 24]) == ground
        edge = picture[0]
        if item.facts["frame"] == NO_FRAME:
            assert (edge == ground).all()
            continue
        dashed, ink = divmod(item.facts["frame"], len(FRAME_INK))
        assert tuple(edge[0]) == FRAME_INK[ink]
        assert (edge == FRAME_INK[ink]).all(axis=1).mean() == (0.5 if dashed else 1.0)


def seen_value(scenes, item, attribute):
    """A colour, size or pattern read off the pixels with nothing but the inks."""
    pixels = cell(scenes, item)
    covered = (pixels != GROUND[item.facts["village"]]).any(axis=2)
    if attribute == "colour":
        found = [n for n, ink in INK.items() if (pixels[covered] == ink).all(axis=1).any()]
        assert len(found) == 1
        return found[0]
    if attribute == "size":
        height = int(covered.any(axis=1).sum())
        return SIZES[0] if height <= 9 else SIZES[1] if height <= 14 else SIZES[2]
    inks = np.array([(pixels[covered] == ink).all(axis=1) for ink in INK.values()]).any(axis=0)
    assert attribute == "pattern"
    return "solid" if inks.all() else None


def test_answers_are_what_the_pictures_show(scenes, parts):
    """Colours and sizes decoded from pixels, and solid patterns, said in the right language."""
    told, checked = 0, Counter()
    for item in parts["test"]:
        attribute = attribute_of(scenes, item)
        if attribute == "shape":
            continue
        value = seen_value(scenes, item, attribute)
        if value is None:
            continue
        checked[attribute] += 1
        truth = say(value, item.facts["language"])
        assert truth in item.answers, item
        told += item.answer == truth
    assert min(checked.values()) > 30 and set(checked) == {"colour", "size", "pattern"}
    # Sometimes the doubtful are in the majority, as among people.
    assert told / checked.total() > 0.95


def test_manner_follows_village_and_frame(scenes, parts):
    for item in parts["demonstrations"]:
        language = scenes.manner[item.facts["village"], item.facts["frame"]]
        assert item.facts["language"] == language


def test_a_picture_drawn_by_hand():
    """One large red solid square north-west on ground 0, framed black: counted pixel by pixel."""
    one = np.zeros((1, 4), dtype=np.int64)
    looks = Looks(
        village=np.array([0]),
        frame=np.array([0]),
        present_NQ=np.array([[True, False, False, False]]),
        colour_NQ=one + COLOURS.index("red"),
        shape_NQ=one + 1,
        pattern_NQ=one,
        size_NQ=one + 2,
        nudge_NQ=one + 4,
    )
    picture = draw(looks)[0]
    # Half a side is 18 · 7/8 half pixels: 16 pixels wide, in the middle of 4…23.
    assert (picture[6:22, 6:22] == INK["red"]).all()
    assert (picture == INK["red"]).all(axis=2).sum() == 16 * 16
    assert (picture == 0).all(axis=2).sum() == SIDE**2 - (SIDE - 8) ** 2
    assert (picture == GROUND[0]).all(axis=2).sum() == (SIDE - 8) ** 2 - 16 * 16


def test_objects_are_two_to_four_and_every_look_occurs():
    rng = generator("test", "looks")
    n = 3000
    looks = draw_looks(rng, rng.integers(0, VILLAGES, n), rng.integers(0, FRAMES + 1, n))
    assert np.unique(looks.present_NQ.sum(axis=1)).tolist() == [2, 3, 4]
    for attribute, values in ATTRIBUTES.items():
        assert np.unique(looks.value_NQ(attribute)).tolist() == list(range(len(values)))


def test_no_two_inks_have_the_same_colour():
    """Pictures are told apart by the numbers of their inks."""
    assert len(np.unique(_PALETTE, axis=0)) == len(_PALETTE)


def test_every_look_of_an_object_is_another_picture():
    """No two of shape, colour, pattern and size look the same, even in the smallest size."""
    grid = np.array(list(np.ndindex(6, 8, 4, 3)), dtype=np.int64)
    at = np.zeros((len(grid), 4), dtype=np.int64)
    looks = Looks(
        village=at[:, 0],
        frame=at[:, 0] + NO_FRAME,
        present_NQ=np.tile([True, False, False, False], (len(grid), 1)),
        shape_NQ=at + grid[:, :1],
        colour_NQ=at + grid[:, 1:2],
        pattern_NQ=at + grid[:, 2:3],
        size_NQ=at + grid[:, 3:],
        nudge_NQ=at + 4,
    )
    assert len({picture.tobytes() for picture in draw(looks)}) == len(grid)


# --- the planted pointer


def helpers(query, pool, fact):
    return [
        i
        for i, item in enumerate(pool)
        if item.facts["village"] == query.facts["village"] and item.facts[fact] == query.facts[fact]
    ]


def test_the_planted_pointer_has_a_word_helper_and_a_manner_helper(scenes, parts):
    rng = generator("test", "planted")
    tried = 0
    for query in parts["test"]:
        rows = rng.choice(len(parts["demonstrations"]), 64, replace=False)
        pool = [parts["demonstrations"][row] for row in rows]
        words, manners = helpers(query, pool, "word"), helpers(query, pool, "frame")
        if query.facts["kind"] == "plain" or not (words and manners):
            continue
        tried += 1
        for shots in (2, 3, 4):
            pointer = scenes.planted(query, pool, shots)
            assert len(set(pointer)) == shots
            assert pointer[-1] in words and pointer[-2] in manners
        redundant = scenes.planted(query, pool, len(words) + len(manners))
        assert set(redundant) == {*words, *manners}
    assert tried > 100


def test_the_planted_pointer_of_a_plain_query_shows_the_plain_manner(scenes, parts):
    pool = parts["demonstrations"][:64]
    for query in [i for i in parts["test"] if i.facts["kind"] == "plain"][:10]:
        assert all(pool[i].facts["language"] == 0 for i in scenes.planted(query, pool, 2))


def test_without_helpers_the_planted_pointer_is_still_one(scenes, parts):
    query = next(i for i in parts["test"] if i.facts["kind"] == "coded")
    pool = [i for i in parts["demonstrations"] if i.facts["village"] != query.facts["village"]]
    assert scenes.planted(query, pool[:5], 2) == (1, 0)


def test_items_are_the_same_whichever_part_is_asked_for_first():
    sizes = {"demonstrations": 12, "train": 6, "validation": 3, "test": 6}
    one, other = Scenes(3, sizes=sizes), Scenes(3, sizes=sizes)
    first = one.queries("test"), one.demonstrations, one.queries("train")
    again = other.queries("train"), other.demonstrations, other.queries("test")
    assert first == again[::-1]


def test_a_picture_that_is_there_already_is_drawn_anew_after_the_items_of_the_others():
    pictures, _ = Scenes()._part("train", 12, set())
    taken = {pictures[at].tobytes() for at in (0, 5)}
    shown, (made, rest) = Scenes()._part("train", 12, set(taken))
    items = [*made, *rest()]
    assert len(made) == 10 and len(shown) == 12
    assert not taken & {each.tobytes() for each in shown}
    told = repr([(item.id, item.question, item.answers) for item in items])
    # As it was when items and pictures were made one by one.
    assert hashlib.sha256(told.encode()).hexdigest() == (
        "69d7fc59528c311b67a6609170f61a6057fd011a83e5812e2775f9b93130b741"
    )
