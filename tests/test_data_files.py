"""Data sets read from files: the official formats, what is wrong with files, and how large."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from kleash.errors import ConfigError, DataError, KleashError
from kleash.tasks.data import dataset
from kleash.tasks.data.cider import Cider
from kleash.tasks.data.files import PICTURES_KEPT, Pictures, records, split_by_image
from kleash.tasks.demos.lemmas import lemmatise, lemmatised_score
from kleash.tasks.demos.score import item_score, scorer
from kleash.types import Item
from made_data import coco_captions, glue_sst2, official_vqa, soft_vqa


def annotations(options, split="train"):
    return Path(options["folder"]) / f"mscoco_{split}2014_annotations.json"


def questions(options, split="train"):
    return Path(options["folder"]) / f"OpenEnded_mscoco_{split}2014_questions.json"


def changed(path, key, change):
    """Write a JSON file again with its list changed."""
    whole = json.loads(path.read_text())
    whole[key] = change(whole[key])
    path.write_text(json.dumps(whole))


@pytest.fixture
def mini(tmp_path):
    return official_vqa(tmp_path / "okvqa")


def test_questions_and_annotations_are_joined_and_sorted(mini):
    data = dataset("okvqa", 0, mini)
    ids = [int(item.id) for item in data.demonstrations]
    assert ids == sorted(ids) and len(ids) == 60
    first = data.demonstrations[0]
    assert (first.id, first.image, first.question) == ("1000", "100", "What shape is it?")
    assert len(first.answers) == 10 and first.answer == first.answers[0] != "something"
    assert data.image(first.image).shape == (28, 28, 3)
    assert data.excluded == {}


def test_the_official_validation_set_is_split_by_image_and_by_seed(mini):
    zero, one = dataset("okvqa", 0, mini), dataset("okvqa", 1, mini)
    for data in (zero, one):
        images = [{i.image for i in data.queries(s)} for s in ("train", "validation", "test")]
        assert not images[0] & images[1] and not images[1] & images[2]
        assert sum(len(data.queries(s)) for s in ("validation", "test")) == 60
        assert 12 <= len(data.queries("validation")) <= 13
    assert zero.queries("test") != one.queries("test")
    assert zero.content != one.content
    assert zero.content == dataset("okvqa", 0, mini).content
    with pytest.raises(ConfigError, match="no split 'dev'"):
        zero.queries("dev")


def test_another_data_set_has_another_prefix_and_names_what_it_lacks(tmp_path, mini):
    with pytest.raises(ConfigError, match=r"v2_OpenEnded.*questions of vqav2.*visualqa.org"):
        dataset("vqav2", 0, mini)
    assert len(dataset("vqav2", 0, official_vqa(tmp_path / "v2", "v2_")).demonstrations) == 60
    with pytest.raises(ConfigError, match=r"no folder .*okvqa.allenai.org"):
        dataset("okvqa", 0, mini | {"folder": str(tmp_path / "nowhere")})
    with pytest.raises(ConfigError, match=r"no folder .*train2014.zip"):
        dataset("okvqa", 0, mini | {"images": str(tmp_path / "nowhere")})
    with pytest.raises(ConfigError, match="give data_options"):
        dataset("okvqa", 0, {"folder": mini["folder"]})


def test_captions_do_in_place_of_images(mini):
    captions = str(Path(mini["folder"]) / "captions.json")
    data = dataset("okvqa", 0, {"folder": mini["folder"], "captions": captions, "validation": 12})
    assert all(item.caption.startswith("a ") for item in data.demonstrations)
    with pytest.raises(DataError, match="give data_options"):
        data.image(data.demonstrations[0].image)


@pytest.mark.parametrize("at", [0.3, 0.9, 0.999])
def test_a_file_that_breaks_off_is_one_clear_line(mini, at):
    path = annotations(mini)
    text = path.read_text()
    path.write_text(text[: int(len(text) * at)])
    with pytest.raises(DataError, match=r"train2014_annotations.json (breaks off|has no list)"):
        dataset("okvqa", 0, mini)


def test_what_cannot_be_used_is_left_out_and_counted(mini):
    folder = Path(mini["images"]) / "train2014"
    (folder / "COCO_train2014_000000000101.jpg").unlink()  # an odd number: two questions
    (folder / "COCO_train2014_000000000102.jpg").write_text("<html>not found</html>")
    changed(questions(mini), "questions", lambda all: [*all, all[0], all[1]])
    changed(annotations(mini), "annotations", lambda all: all[:-1])
    changed(
        annotations(mini),
        "annotations",
        lambda all: [*all[:-1], all[-1] | {"answers": []}, all[0] | {"question_id": 1}],
    )
    data = dataset("okvqa", 0, mini)
    assert data.excluded == {
        "without image": 2,
        "image that is none": 1,
        "question id met before": 2,
        "question without annotation": 1,
        "annotation without question": 1,
        "without answers": 1,
    }
    assert len(data.demonstrations) == 60 - 2 - 1 - 1 - 1


def test_nothing_left_is_an_error_that_says_why(mini):
    changed(annotations(mini), "annotations", lambda all: [a | {"answers": []} for a in all])
    with pytest.raises(DataError, match="no items for 'demonstrations'; left out: 60 without answ"):
        dataset("okvqa", 0, mini)


def test_an_image_that_breaks_off_is_named_when_it_is_looked_at(mini):
    path = Path(mini["images"]) / "train2014" / "COCO_train2014_000000000100.jpg"
    path.write_bytes(path.read_bytes()[:200])
    data = dataset("okvqa", 0, mini)
    with pytest.raises(DataError, match=r"000000000100.jpg is not an image"):
        data.image("100")


def test_an_image_too_large_to_be_one_is_named_when_it_is_looked_at(mini, monkeypatch):
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 10)
    with pytest.raises(DataError, match=r"000000000100.jpg is not an image \(.*bomb"):
        dataset("okvqa", 0, mini).image("100")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"a": [1, 2]}', "no list 'questions'"),
        ('{"questions": [3]}', "where a record should be"),
        ('{"questions": [{"question_id": 1}]}', "without 'image_id'"),
        ("", "no list"),
    ],
)
def test_a_file_of_another_kind_is_one_clear_line(mini, text, said):
    questions(mini).write_text(text)
    with pytest.raises(KleashError, match=said):
        dataset("okvqa", 0, mini)


def test_records_are_the_same_wherever_a_chunk_ends(tmp_path, monkeypatch):
    made = [{"n": n, "text": '[]{},\\"é' * (n % 5)} for n in range(50)]
    path = tmp_path / "file.json"
    path.write_text(json.dumps({"info": {"a": 1}, "list": made, "after": [1]}), encoding="utf-8")
    for chunk in (1, 7, 64, 1 << 20):
        monkeypatch.setattr("kleash.tasks.data.files.CHUNK", chunk)
        assert list(records(path, "list")) == made


def test_few_images_are_in_memory(mini):
    pictures = Pictures([Path(mini["images"]) / "train2014", Path(mini["images"]) / "val2014"])
    for name in pictures.paths:
        pictures(name)
    assert len(pictures._seen) == PICTURES_KEPT < len(pictures.paths) == 80
    again = pictures("539")
    assert again is pictures("539")


def test_a_split_by_image_holds_all_of_an_image_together():
    items = [Item(str(n), str(n // 3), "q", ("a",), "a") for n in range(30)]
    parts = split_by_image(items, {"a": 5, "b": 7}, "made", 0)
    assert [len(parts[name]) for name in ("a", "b", "rest")] == [6, 9, 15]
    with pytest.raises(ConfigError, match="too few for 5 of a and 70 of b"):
        split_by_image(items, {"a": 5, "b": 70}, "made", 0)


def test_soft_labels_become_scores_on_their_lattice(tmp_path):
    options = soft_vqa(tmp_path)
    data = dataset("lxmert", 0, options)
    assert len(data.queries("test")) in (20, 21) and len(data.queries("validation")) in (10, 11)
    images = [{i.image for i in data.queries(s)} for s in ("train", "validation", "test")]
    assert not (images[0] & images[1] or images[0] & images[2] or images[1] & images[2])
    item = next(item for item in data.demonstrations if item.answer == "red")
    assert item.scores == (("red", 1.0), ("rose", 2 / 3))
    assert item.caption == f"thing number {item.image}"
    scores = [item_score(said, item) for said in ("red", "Rose", "green")]
    assert scores == [1, 2 / 3, 0]


def test_soft_labels_that_are_wrong_are_told_of_or_counted(tmp_path):
    options = soft_vqa(tmp_path)
    path = Path(options["file"])
    made = json.loads(path.read_text())
    path.write_text(json.dumps([*made, made[0], made[1] | {"question_id": 1, "label": {" ": 1}}]))
    assert dataset("lxmert", 0, options).excluded == {
        "question id met before": 1,
        "without answers": 1,
    }
    path.write_text(json.dumps([*made, made[0] | {"question_id": 1, "label": {"red": 3}}]))
    with pytest.raises(DataError, match="'red' is worth 3, which is not from 0 to 1"):
        dataset("lxmert", 0, options)
    path.write_text(json.dumps(made)[:-30])
    with pytest.raises(DataError, match="breaks off"):
        dataset("lxmert", 0, options)


def test_captions_are_scored_by_cider(tmp_path):
    data = dataset("captions", 0, coco_captions(tmp_path))
    item = data.queries("test")[0]
    score = scorer(data)
    assert len(item.answers) == 5 and item.answer == item.answers[0]
    assert score(item.answer, item) > 0.3 > score("a dog in a park", item) >= 0


def test_cider_of_a_caption_by_hand():
    """Two images; every n-gram of 'red cat' is in one: each weighs ln 2, so equals are worth 1."""
    cider = Cider([["red cat"], ["blue dog"]])
    # Only unigrams and bigrams exist: two of four n-gram lengths match wholly.
    assert cider("red cat", ["red cat"]) == pytest.approx(0.5)
    assert cider("red dog", ["red cat"]) == pytest.approx(0.125)
    longer = cider("red cat " * 4, ["red cat"])
    assert longer < 0.5 * np.exp(-(6**2) / 72) + 1e-9


def test_sentences_have_a_word_each(tmp_path):
    data = dataset("sst2", 0, glue_sst2(tmp_path))
    assert len(data.demonstrations) == 40 and len(data.queries("test")) == 20
    item = data.demonstrations[1]
    assert (item.question, item.answer) == ('a fine "film 1', "positive")
    assert [item_score(said, item) for said in ("Positive.", "negative")] == [1, 0]
    with pytest.raises(ConfigError, match=r"train.tsv: sentences of SST-2.*glue"):
        dataset("sst2", 0, {"folder": str(tmp_path / "nowhere")})


@pytest.mark.parametrize(
    ("said", "lemma"),
    [
        ("Horses", "horse"), ("the bus", "bus"), ("buses", "bus"), ("cherries", "cherry"),
        ("surfing", "surf"), ("surfed", "surf"), ("riding", "ride"), ("rides", "ride"),
        ("baking", "bake"), ("running", "run"), ("men", "man"), ("churches", "church"),
        ("grass", "grass"), ("tennis", "tennis"), ("jumping", "jump"), ("dancing", "dance"),
        ("playing", "play"), ("glasses", "glasses"), ("wedding", "wedding"), ("ring", "ring"),
        ("skiing", "ski"), ("wine glasses", "wine glasses"), ("2 cats", "2 cat"),
    ],
)  # fmt: skip
def test_words_go_by_their_lemmas(said, lemma):
    assert lemmatise(said) == lemma


def test_the_lemmatised_score_stands_beside_the_official_one():
    item = Item("q", "i", "?", ("horse",) * 6 + ("pony",) * 4, "horse")
    assert (item_score("horses", item), lemmatised_score("horses", item)) == (0.0, 1.0)
    soft = Item("q", "i", "?", ("riding",), "riding", scores=(("riding", 2 / 3),))
    assert (item_score("ride", soft), lemmatised_score("ride", soft)) == (0.0, 2 / 3)


def large_vqa(folder: Path, count: int) -> dict[str, str]:
    """Official files with many training questions, written record by record, and no images."""
    folder.mkdir()
    sizes = {"train": count, "val": 3000}
    for split, many in sizes.items():
        base = 0 if split == "train" else 10_000_000
        with questions({"folder": folder}, split).open("w") as file:
            file.write('{"info": {}, "questions": [')
            file.writelines(
                f'{", " if n else ""}{{"image_id": {base + n // 5}, "question": "What is number'
                f' {n}?", "question_id": {base + n}}}'
                for n in range(many)
            )
            file.write("]}")
        with annotations({"folder": folder}, split).open("w") as file:
            file.write('{"annotations": [')
            for n in range(many):
                answers = ", ".join(
                    f'{{"answer": "{n % 3000 if a < 7 else "no"}", "answer_confidence": "yes",'
                    f' "answer_id": {a}}}'
                    for a in range(10)
                )
                file.write(
                    f'{", " if n else ""}{{"question_id": {base + n}, "image_id":'
                    f' {base + n // 5}, "answers": [{answers}]}}'
                )
            file.write("]}")
    (folder / "captions.json").write_text('{"0": "nothing"}')
    return {"folder": str(folder), "captions": str(folder / "captions.json")}


def peak_of_reading(options) -> tuple[int, int]:
    """Bytes at the most, and how many demonstrations there are."""
    tracemalloc.start()
    try:
        data = dataset("okvqa", 0, options)
        return tracemalloc.get_traced_memory()[1], len(data.demonstrations)
    finally:
        tracemalloc.stop()


def test_reading_takes_room_for_the_items_and_not_for_the_file(tmp_path):
    options = large_vqa(tmp_path / "large", 5000)
    peak, count = peak_of_reading(options)
    size = annotations(options).stat().st_size
    assert count == 5000
    # The file itself is 3.9 MB, as objects 25: an item is about a kilobyte.
    assert peak < 12_000_000, (peak, size)


@pytest.mark.slow
def test_as_many_candidates_as_vqav2_has_are_read_in_bounded_memory(tmp_path):
    options = large_vqa(tmp_path / "large", 443_757)
    peak, count = peak_of_reading(options)
    assert count == 443_757
    assert peak < 600_000_000, peak
