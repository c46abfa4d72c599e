import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kleash.errors import DataError
from kleash.tasks.demos.score import MENDED, normalise, vqa_accuracy

repeatable = settings(deadline=None, derandomize=True, database=None)
# Texts of the pieces that the rules are about, and texts of anything.
PIECES = ["the", "A", "none", "ten", "dont", "it's", "1,000", ".5", *" \t\n,.;-?!'\"()1a"]
texts = st.lists(st.sampled_from(PIECES)).map("".join) | st.text()


@pytest.mark.parametrize(
    ("matches", "expected"),
    [(0, 0.0), (1, 0.3), (2, 0.6), (3, 0.9), *((k, 1.0) for k in range(4, 11))],
)
def test_ten_annotators_give_the_official_lattice(matches, expected):
    truths = ["red"] * matches + ["blue"] * (10 - matches)
    assert vqa_accuracy("red", truths) == expected


def test_five_answers_stored_twice_give_the_lattice_of_ok_vqa():
    pairs = [["red"] * k + ["blue"] * (10 - k) for k in (0, 2, 4, 6, 8, 10)]
    assert {vqa_accuracy("red", truths) for truths in pairs} == {0.0, 0.6, 1.0}


def test_the_score_leaves_each_annotator_out_once():
    # Two of five: left out once, a match sees 1 other (1/3), a miss sees both (2/3).
    assert vqa_accuracy("red", ["red", "red", "b", "c", "d"]) == pytest.approx(
        (2 * (1 / 3) + 3 * (2 / 3)) / 5
    )


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ("Yes", "yes"),
        ("  a dog \n", "dog"),
        ("the\tcat", "cat"),
        ("An apple and the pear", "apple and pear"),
        ("theatre", "theatre"),
        ("none", "0"),
        ("two dogs", "2 dogs"),
        ("ten", "10"),
        ("eleven", "eleven"),
        ("one-way", "1 way"),
        ("dont", "don't"),
        ("don't", "don't"),
        ("it's", "it's"),
        ("its", "its"),
        ("itd've", "it'd've"),
        ("it'dve", "it'd've"),
        ("itdve", "itdve"),
        ("twas", "'twas"),
        ("y'allll", "y'all'll"),
        ("somebody'd", "somebodyd"),
        ("im", "im"),
        ("lets", "lets"),
        ("shes", "shes"),
        ("1,000", "1000"),
        ("1,000 a-b", "1000 ab"),
        ("red,blue", "red blue"),
        ("red, blue", "red blue"),
        ("red ,blue-green", "red blue green"),
        ("black/white", "black white"),
        ("black / white", "black white"),
        ("a+b", "b"),
        ("what?!", "what"),
        ("(left)", "left"),
        ("under_score", "under score"),
        ("3.", "3"),
        ("3.5", "3.5"),
        (".5", ".5"),
        ("u.s.a.", "usa"),
        ("10:30", "10:30"),
        ("rock & roll", "rock & roll"),
        ("50%", "50%"),
        ("ÉCOLE", "école"),
        ("ice cream", "ice cream"),
        ("狗。", "狗。"),
        ("٣,٤", "٣٤"),
        ("don’t", "don’t"),
        ("", ""),
        ("the", ""),
        ("?", ""),
        (". " * 40, " ".join("." * 8)),
    ],
)
def test_normalising_by_hand(written, expected):
    assert normalise(written) == expected


def test_the_table_of_contractions_is_the_evaluators():
    # Its 120 entries, less four with a capital I, which nothing can match, and two that change
    # nothing.
    assert len(MENDED) == 114
    assert MENDED["y'all'dve"] == "y'all'd've"
    assert MENDED["ow's'at"] == "'ow's'at"
    assert "yalldve" not in MENDED


def test_both_sides_are_normalised_when_annotators_differ():
    assert vqa_accuracy("The cat.", ["cat"] * 9 + ["dog"]) == 1.0
    assert vqa_accuracy("2", ["two"] * 9 + ["many"]) == 1.0
    assert vqa_accuracy("none", ["0"] * 2 + ["many"] * 8) == 0.6


def test_neither_side_is_normalised_when_annotators_agree():
    assert vqa_accuracy("two", ["two"] * 10) == 1.0
    assert vqa_accuracy("2", ["two"] * 10) == 0.0
    assert vqa_accuracy("Black.", ["black"] * 10) == 0.0
    assert vqa_accuracy(" black\n", ["black"] * 9 + ["black "]) == 1.0


def test_fewer_than_four_annotators_are_refused():
    assert vqa_accuracy("red", ["red"] * 4) == 1.0
    with pytest.raises(DataError, match="3 annotators' answers"):
        vqa_accuracy("red", ["red"] * 3)


@repeatable
@given(texts)
def test_normalising_again_changes_nothing(text):
    # Beyond 32 periods it would: the evaluator takes away no more at a time.
    once = normalise(text.replace(".", "", max(0, text.count(".") - 32)))
    assert normalise(once) == once


@repeatable
@given(texts)
def test_what_is_normalised_has_no_marks_and_no_spare_space(text):
    words = normalise(text).split(" ")
    assert not set(';/[]"{}()=+\\_-><@`,?!') & set("".join(words))
    assert not {"a", "an", "the", "none"} & set(words)


@repeatable
@given(texts, st.lists(texts, min_size=10, max_size=10))
def test_every_score_is_on_the_lattice(answer, truths):
    assert vqa_accuracy(answer, truths) in {0.0, 0.3, 0.6, 0.9, 1.0}
    assert vqa_accuracy(truths[0], truths) >= 0.3


@repeatable
@given(texts, st.lists(texts, min_size=4), st.randoms())
def test_the_order_of_annotators_does_not_matter(answer, truths, random):
    score = vqa_accuracy(answer, truths)
    random.shuffle(truths)
    assert vqa_accuracy(answer, truths) == score
    assert 0 <= score <= 1
