"""The bench of studies: both ways measure the same."""

from __future__ import annotations

import pytest


@pytest.mark.slow
def test_both_ways_give_the_same_scores_and_the_ledger_shares(one_thread: None) -> None:
    from benchmarks.studies import study_bench

    found = study_bench(arms=3, items=8, plain=9)
    assert found["asked"] == 3 * 8 * 4
    assert 8 * 4 <= found["bought"] < found["asked"]
    assert found["one arm, times the plain way"] > 1


@pytest.mark.slow
def test_a_way_that_answers_otherwise_is_not_timed(
    one_thread: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    from benchmarks import studies

    monkeypatch.setattr(studies, "plain_answer", lambda world, prompt: prompt.query.answer)
    with pytest.raises(ValueError, match="cannot be compared"):
        studies.study_bench(arms=1, items=40, plain=40)
