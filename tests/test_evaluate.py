"""Measuring: a score for every item with what is behind it, of the weights that were trained."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file, save_file

from kleash.algo.policy import fingerprint
from kleash.errors import CheckpointError, ConfigError, GuardError
from kleash.runs.ledger import Ledger
from kleash.runs.run import Run
from kleash.tasks.demos.score import vqa_accuracy
from kleash.train.evaluate import Wanted, evaluate, gaps, resolve_checkpoints, table
from kleash.train.evaluate.selector import BASELINE, baseline_names, greedy, loaded
from kleash.train.rollout.selector import SelectorWorld
from kleash.types import Prompt
from tiny import Reader, tiny_recipe

pytestmark = pytest.mark.usefixtures("one_thread")


@pytest.fixture
def run(tiny_run: Run, tmp_path: Path) -> Run:
    """A copy of a finished run that may be measured and spoilt."""
    shutil.copytree(tiny_run.path, tmp_path / "run")
    return Run.open(tmp_path / "run")


@pytest.fixture
def world(ledger: Ledger) -> SelectorWorld:
    return SelectorWorld(tiny_recipe(), ledger)


def breaking(ledger: Ledger, breaks: Callable[[Prompt], bool]) -> SelectorWorld:
    world = SelectorWorld(tiny_recipe(), ledger)
    assert isinstance(world.answerer, Reader)
    world.answerer.break_on(breaks)
    return world


def wanted(*names: str, shots: tuple[int, ...] = (2,), items: int = 20) -> Wanted:
    return Wanted(names or ("epoch-2",), shots, "test", items)


def written(run: Run) -> bytes:
    return (run.path / "scores.jsonl").read_bytes()


# --- what is measured


def test_a_score_has_its_pointer_prompt_answer_and_weights_beside_it(
    run: Run, world: SelectorWorld
) -> None:
    evaluate(run, world, wanted(shots=(1, 3)))
    lines = list(run.scores())
    assert [line["shots"] for line in lines] == [1] * 20 + [3] * 20
    items = {item.id: item for item in world.data.queries("test")}
    shown = {item.id: item for item in world.data.demonstrations}
    policy, weights = loaded(run, world, "epoch-2", 3)
    assert weights == run.state("epoch-2")["weights_hash"] == fingerprint(policy.state_dict())
    pointers = greedy(policy, world, "test", range(20), 3)
    pooled = world.pooled("test")
    for place, line in enumerate(lines[20:]):
        prompt = Prompt(tuple(shown[name] for name in line["pointer"]), items[line["item"]])
        assert prompt == pooled.prompt(place, pointers[place])
        assert line["prompt"] == world.ask.key(prompt)
        answer = world.ask([prompt])[0]
        assert answer is not None
        assert (line["answer"], line["truth_logp"]) == (answer.text, answer.truth_logp)
        assert line["score"] == vqa_accuracy(answer.text, prompt.query.answers)
        assert line["weights"] == weights
        assert (line["checkpoint"], line["split"]) == ("epoch-2", "test")


def test_nothing_is_measured_twice_and_more_items_keep_the_first(
    run: Run, world: SelectorWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    evaluate(run, world, wanted(items=20))
    first = written(run)
    heard: list[int] = []
    evaluate(run, world, wanted(items=20), heard.append)
    assert (written(run), heard) == (first, [])
    evaluate(run, world, wanted(items=40), heard.append)
    assert written(run).startswith(first)
    assert sum(heard) == 20
    assert len(list(run.scores())) == 40
    shutil.copytree(run.path, run.path.with_name("at-once"))
    at_once = Run.open(run.path.with_name("at-once"))
    (at_once.path / "scores.jsonl").unlink()
    evaluate(at_once, world, wanted(items=40))
    assert written(at_once) == written(run)


def test_a_torn_line_is_measured_again(run: Run, world: SelectorWorld) -> None:
    evaluate(run, world, wanted())
    whole = written(run)
    (run.path / "scores.jsonl").write_bytes(whole[:-30])
    evaluate(run, world, wanted())
    assert written(run) == whole


def test_baselines_are_measured_on_the_same_items(run: Run, world: SelectorWorld) -> None:
    names = [*baseline_names(greedy=True), "epoch-2"]
    evaluate(run, world, wanted(*names))
    cells = {cell["checkpoint"]: cell for cell in table(run, wanted(*names))}
    assert list(cells) == names
    assert all(cell["n"] == 20 and cell["broken"] == 0 for cell in cells.values())
    best, planted = cells[BASELINE + "best-greedy"], cells[BASELINE + "planted"]
    assert planted["mean"] >= cells[BASELINE + "similar-both"]["mean"]
    assert best["mean"] > cells[BASELINE + "zero-shot"]["mean"] == 0
    items = [line["item"] for line in run.scores() if line["checkpoint"] == "epoch-2"]
    for name in names:
        scored = [line for line in run.scores() if line["checkpoint"] == name]
        assert [line["item"] for line in scored] == items
        assert all((line["weights"] == "") == (name != "epoch-2") for line in scored)


def test_gaps_are_paired_by_item(run: Run, world: SelectorWorld) -> None:
    asked = wanted("baseline:zero-shot", "baseline:planted")
    evaluate(run, world, asked)
    [gap] = gaps(run, asked)
    by_name = {name: [] for name in asked.checkpoints}
    for line in run.scores():
        by_name[line["checkpoint"]].append(line["score"])
    theirs, ours = by_name.values()
    assert gap["against"] == "baseline:zero-shot"
    assert gap["estimate"] == pytest.approx((sum(ours) - sum(theirs)) / 20)
    assert gap["low"] <= gap["estimate"] <= gap["high"]
    pairs = zip(ours, theirs, strict=True)
    assert (gap["n"], gap["differ"]) == (20, sum(mine != other for mine, other in pairs))


def test_checkpoints_are_asked_for_by_name(run: Run) -> None:
    assert resolve_checkpoints(run, "last") == ["epoch-2"]
    assert resolve_checkpoints(run, "all") == ["supervised-1", "rce-1", "epoch-1", "epoch-2"]
    assert resolve_checkpoints(run, "epoch-1, rce-1") == ["epoch-1", "rce-1"]
    with pytest.raises(CheckpointError, match="no checkpoint 'epoch-7'; it has: supervised-1"):
        resolve_checkpoints(run, "epoch-7")


def test_a_run_without_a_checkpoint_cannot_be_measured(run: Run) -> None:
    shutil.rmtree(run.path / "checkpoints")
    with pytest.raises(ConfigError, match="train it first"):
        resolve_checkpoints(run, "last")


def test_a_baseline_that_nobody_knows_is_no_other(run: Run, world: SelectorWorld) -> None:
    with pytest.raises(ConfigError, match=r"no baseline 'zero-shto': there is zero-shot, .*greedy"):
        evaluate(run, world, wanted("baseline:zero-shto"))
    assert not [line for line in run.scores() if line["checkpoint"] == "baseline:zero-shto"]


@pytest.mark.parametrize("items", [0, -5, 61])
def test_items_are_as_many_as_there_are_or_fewer(
    run: Run, world: SelectorWorld, items: int
) -> None:
    with pytest.raises(ConfigError, match="ask for 1 to 60"):
        evaluate(run, world, wanted(items=items))
    assert not (run.path / "scores.jsonl").exists()


# --- what is refused


def spoil(run: Run, change: Callable[[dict[str, Any]], dict[str, Any]], *, hashed: bool) -> None:
    """Change the tensors of the last checkpoint; `hashed`: as a converter would, with its hash."""
    folder = run.path / "checkpoints" / "epoch-2"
    tensors = change(load_file(folder / "weights.safetensors"))
    save_file(tensors, folder / "weights.safetensors")
    if hashed:
        state = json.loads((folder / "state.json").read_text())
        (folder / "state.json").write_text(
            json.dumps(state | {"weights_hash": fingerprint(tensors)})
        )


def swapped(tensors: dict[str, Any]) -> dict[str, Any]:
    """Two tensors of one shape change places."""
    by_shape: dict[Any, str] = {}
    for name, tensor in tensors.items():
        if tensor.shape in by_shape:
            other = by_shape[tensor.shape]
            return tensors | {name: tensors[other], other: tensor}
        by_shape[tensor.shape] = name
    raise AssertionError("no two tensors have the same shape")


def dropped(tensors: dict[str, Any]) -> dict[str, Any]:
    return dict(list(tensors.items())[1:])


def renamed(tensors: dict[str, Any]) -> dict[str, Any]:
    return {f"model.{name}": tensor for name, tensor in tensors.items()}


@pytest.mark.parametrize("change", [swapped, dropped, renamed])
def test_tensors_that_are_not_those_that_were_saved_are_refused(
    run: Run, world: SelectorWorld, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    spoil(run, change, hashed=False)
    with pytest.raises(
        CheckpointError, match="does not hold the tensors that were saved"
    ) as caught:
        evaluate(run, world, wanted())
    assert "\n" not in str(caught.value)
    assert not (run.path / "scores.jsonl").exists()


@pytest.mark.parametrize("change", [dropped, renamed])
def test_tensors_that_do_not_fit_are_refused_even_with_a_hash_of_their_own(
    run: Run, world: SelectorWorld, change: Callable[[dict[str, Any]], dict[str, Any]]
) -> None:
    spoil(run, change, hashed=True)
    with pytest.raises(CheckpointError, match=r"do not fit a model of .* missing") as caught:
        evaluate(run, world, wanted())
    assert "\n" not in str(caught.value)
    assert not (run.path / "scores.jsonl").exists()


def test_weights_that_changed_after_they_were_scored_are_refused(
    run: Run, world: SelectorWorld
) -> None:
    evaluate(run, world, wanted())
    before = written(run)
    spoil(run, swapped, hashed=True)
    with pytest.raises(CheckpointError, match="are not those that were trained"):
        evaluate(run, world, wanted(items=40))
    assert written(run) == before
    evaluate(run, world, wanted("epoch-1"))


def test_a_pool_that_was_made_in_another_way_is_refused(run: Run, ledger: Ledger) -> None:
    for keys in (["pool.kind=text"], ["pool.size=9"]):
        with pytest.raises(GuardError, match="in training by 'random-8'"):
            evaluate(run, SelectorWorld(tiny_recipe(*keys), ledger), wanted())
    assert not (run.path / "scores.jsonl").exists()


def test_a_selector_of_another_make_is_refused(run: Run, ledger: Ledger) -> None:
    with pytest.raises(CheckpointError, match="do not fit"):
        evaluate(run, SelectorWorld(tiny_recipe("selector=v2"), ledger), wanted())


# --- what broke


def test_a_broken_answer_has_an_error_and_no_score(run: Run, ledger: Ledger) -> None:
    lost = SelectorWorld(tiny_recipe(), ledger).pooled("test").queries[3].id
    evaluate(run, breaking(ledger, lambda prompt: prompt.query.id == lost), wanted(items=40))
    lines = list(run.scores())
    [bad] = [line for line in lines if "error" in line]
    assert bad["item"] == lost == lines[3]["item"]
    assert "NaN" in bad["error"]
    assert not {"score", "answer", "truth_logp"} & set(bad)
    [cell] = table(run, wanted(items=40))
    assert (cell["n"], cell["broken"]) == (39, 1)
    scores = [line["score"] for line in lines if "score" in line]
    assert cell["mean"] == pytest.approx(sum(scores) / 39)
    assert cell["void"].startswith("1 of 40 broke (2.5%, at most 2%)")


def test_too_many_broken_answers_void_the_cell_and_its_gaps(run: Run, ledger: Ledger) -> None:
    queries = SelectorWorld(tiny_recipe(), ledger).pooled("test").queries
    lost = {item.id for item in queries[:3]}
    world = breaking(
        ledger, lambda prompt: prompt.query.id in lost and len(prompt.demonstrations) > 0
    )
    asked = wanted("baseline:zero-shot", "baseline:first-k", "epoch-2", items=40)
    evaluate(run, world, asked)
    zero, _, last = table(run, asked)
    assert "void" not in zero
    assert last["void"].startswith("3 of 40 broke (7.5%, at most 2%)")
    assert gaps(run, asked) == []


def test_a_cell_in_which_everything_broke_is_void_and_has_no_mean(run: Run, ledger: Ledger) -> None:
    evaluate(run, breaking(ledger, lambda prompt: True), wanted())
    [cell] = table(run, wanted())
    assert (cell["n"], cell["broken"]) == (0, 20)
    assert "mean" not in cell
    assert cell["void"].startswith("20 of 20 broke")
