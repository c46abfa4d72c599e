import json
import os

import pytest
import torch

import benchmarks as bench
from benchmarks.__main__ import main
from pace import soon


def test_one_pass_and_the_plain_way_give_the_same_numbers():
    policy, reference = bench.pair()
    work = bench.made_up(3, policy)
    ours = bench.one_pass(policy, reference, work)
    for q in range(3):
        theirs = bench.plain(policy, reference, work.take(q, q + 1))
        rows = slice(q * bench.GROUP, (q + 1) * bench.GROUP)
        for found, expected in zip(ours, theirs, strict=True):
            torch.testing.assert_close(found[rows], expected, rtol=0, atol=1e-4)
    assert not torch.allclose(ours[0], ours[1]), "the reference must differ for KL to matter"


def test_the_two_ways_have_the_same_gradient_and_the_check_would_see_another(monkeypatch):
    work = bench.made_up(1, bench.pair()[0])
    assert bench.gradient_gap(work) < bench.GRADIENT_GAP
    right = bench.plain_logp
    monkeypatch.setattr(bench, "plain_logp", lambda policy, work: 0.99 * right(policy, work))
    assert bench.gradient_gap(work) > bench.GRADIENT_GAP
    with pytest.raises(RuntimeError, match="differ in their gradient"):
        bench.selector_bench(queries=2, plain_queries=1, rounds=1)


def test_training_one_by_one_updates_the_policy_as_the_plain_way_does(monkeypatch):
    """Two queries, two updates: the weights end at the same place."""
    made = []
    real = bench.pair
    monkeypatch.setattr(bench, "pair", lambda: made.append(real()) or made[-1])
    work = bench.made_up(2, real()[0])
    for judge in (bench.one_pass, bench.plain):
        bench.train(judge, work, 1)()
    (ours, _), (theirs, _) = made
    start, _ = real()
    for a, b, s in zip(ours.parameters(), theirs.parameters(), start.parameters(), strict=True):
        # Adam's first steps are about the rate, 5e-6, whatever the gradient's size.
        assert (a - b).abs().mean() < 1e-7
        assert (a - s).abs().max() > 1e-6


def test_the_bench_says_how_fast_and_leaves_the_threads_alone():
    before = torch.get_num_threads()
    found = bench.selector_bench(queries=8, plain_queries=1, rounds=1)
    assert torch.get_num_threads() == before
    assert found["batched_ratio"] > 5 and found["one_by_one_ratio"] > 3
    assert all(0 < found[f"{way}_product_share"] < 1 for way in ("one_by_one", "batched"))
    for name in ("batched", "one_by_one", "plain"):
        assert found[f"{name}_queries_per_second"] > 0


def test_the_plain_bootstrap_and_ours_give_about_the_same_interval(monkeypatch):
    ways = bench.pair_bench(200)
    (low, high), *others = [run() for run, _ in ways.values()]
    assert low < 0 < high
    for interval in others:
        assert interval == pytest.approx((low, high), abs=0.05 * (high - low))
    right = bench.plain_bootstrap
    monkeypatch.setattr(bench, "plain_bootstrap", lambda *given: (right(*given)[0] - 0.1, 0.2))
    with pytest.raises(RuntimeError, match="intervals differ"):
        bench.pair_bench(200)


@pytest.mark.parametrize(("name", "plain"), [("a.csv", "plain_csv"), ("a.jsonl", "plain_jsonl")])
def test_imports_are_timed_only_if_both_ways_read_the_same(name, plain, tmp_path):
    log, read = bench.write_log(tmp_path / name, 30), getattr(bench, plain)
    assert [count for _, count in bench.import_bench(log, read).values()] == [30, 30]
    assert list(read(log)) == ["step", *bench.METRICS]
    with pytest.raises(RuntimeError, match="other numbers for reward"):
        bench.import_bench(log, lambda path: {k: v + 1e-9 for k, v in read(path).items()})


@pytest.mark.slow
def test_the_bench_of_comparing_has_ratios_and_seconds():
    for _ in range(3):  # one round each: a slow spell of the machine may fall on one way alone
        found = bench.compare_bench(rows=200, items=300, rounds=1)
        if found["pair, times the plain way"] > 2:
            break
    assert found["pair, times the plain way"] > 2
    for ours in ("pair", "weights pair", "import csv", "import jsonl"):
        low, high = found[f"{ours}, range"]
        assert 0 < low == high == pytest.approx(found[f"{ours}, times the plain way"], abs=1e-3)
    seconds = found["compare two small logs, seconds"]
    assert seconds > 0 and soon(seconds, 10)
    assert found["compare two small logs, imports torch"] is False


def test_the_verb_is_caught_if_it_imports_torch(monkeypatch, tmp_path):
    # A torch of one line: to compile the real one takes seconds, and its name is what is seen.
    (tmp_path / "torch.py").write_text("large = True\n")
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{os.environ.get('PYTHONPATH', '')}")
    monkeypatch.setattr(bench, "PROBE", "import torch\n" + bench.PROBE)
    with pytest.raises(RuntimeError, match="has imported torch"):
        bench.verb_seconds(tmp_path, 1)
    monkeypatch.setattr(bench, "PROBE", "raise SystemExit('broken')")
    with pytest.raises(RuntimeError, match="failed: broken"):
        bench.verb_seconds(tmp_path, 1)


def test_the_command_prints_a_bench(monkeypatch, capsys):
    quick = {"selector": lambda: bench.selector_bench(queries=2, plain_queries=1, rounds=1)}
    monkeypatch.setattr("benchmarks.__main__.BENCHES", quick)
    main(["selector", "--json"])
    told = json.loads(capsys.readouterr().out)
    assert {"batched_ratio", "one_by_one_ratio", "batched_product_share"} <= set(told)
    assert 0 < told["batched_product_share"] < 1
    main(["selector"])
    assert "gradient_gap" in capsys.readouterr().out
    for words, error in (
        (["speed"], "invalid choice: 'speed'"),
        (["selector", "--device", "cuda"], "'selector' computes on the CPU"),
        (["selector", "--part", "step"], "--part is for the bench 'gpu' alone"),
    ):
        with pytest.raises(SystemExit):
            main(words)
        assert error in capsys.readouterr().err
