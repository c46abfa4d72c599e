"""Claims in words, on small made tables: each is marked only where it is not so."""

import pytest

from kleash.written.words import unsupported


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("loose is significantly better", "check.word"),
        ("the gap is not significant", None),
        ("没有做显著性检验", None),
        ("两者没有本质差别", "check.word"),
        ("看不出收敛", None),
        ("不加 KL 的一组显著更好", "check.word"),
        ("只差 0.33, 小于各自的标准差 0.79, loose 显著更优", "check.word"),
        ("loose 与 tight 之差 p = 0.574, 差异不显著", None),
        ("loose 与 tight 之差 p = 0.574, 差异显著", "check.against-test"),
        ("1.2 points below (p = 0.11), significant at 5%", "check.against-test"),
        ("1.2 points below (p = 0.02), not significant", "check.against-test"),
        ("1.2 points below (p = 0.02), not significant at 1%", None),
    ],
)
def test_a_word_needs_a_statistic_that_says_the_same_and_none_where_it_is_denied(text, code):
    found = {mark.code for mark in unsupported(1, text, tested=True)}
    assert found - {"check.word"} == {code} - {None, "check.word"}
    assert ("check.word" in found) >= (code == "check.word")
    assert bool(found) == (code is not None)
