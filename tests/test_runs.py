import builtins
import hashlib
import io
import json
import math
import os
import random
import signal
import struct
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from kleash.algo.policy import fingerprint
from kleash.errors import CheckpointError, DataError, KleashError
from kleash.runs import run as runs
from kleash.runs.run import Run, ScoreKey, append_line, identity, read_lines, write_json

CONFIG = {"epochs": 3, "lr": 0.1, "leash": {"coefficient": 0.15, "form": "k3"}}
STEPS, ITEMS = 4, 5
# Python 3.12 warns of any fork beside threads; the children here touch none.
forks = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def facts(config: dict[str, Any] = CONFIG, **more: Any) -> dict[str, Any]:
    return {"identity": identity(config, "data", None), **more}


def made(folder: Path, config: dict[str, Any] = CONFIG) -> Run:
    return Run.create(folder, config, {"lr": 0.1}, facts(config))


def train(folder: Path, epochs: int = 3) -> None:
    """A small training with everything that a real one does to its run."""
    config = CONFIG | {"epochs": epochs}
    meta = facts(config, started=time.time())
    run = Run.create(folder, config, {}, meta)
    with run.lock():
        if run.finished and run.config["epochs"] >= epochs:
            return
        run.reopen(config, {}, meta)
        done = run.checkpoints()
        run.rewind(done[-1] if done else None)
        weight, moment, first = torch.zeros(8), torch.zeros(8), 0
        rng = torch.Generator().manual_seed(0)
        if done:
            last = run.load(done[-1])
            weight, moment = last.weights["weight"], last.trainer["moment"]
            rng.set_state(last.trainer["rng"])
            first = last.state["epoch"]
        for epoch in range(first + 1, epochs + 1):
            for step in range(STEPS):
                moment = 0.9 * moment + torch.randn(8, generator=rng)
                weight = weight - 0.1 * moment
                run.log({"epoch": epoch, "step": step, "loss": weight.sum().item()})
                run.time({"epoch": epoch, "step": step, "seconds": time.perf_counter()})
            trainer = {"moment": moment, "rng": rng.get_state()}
            run.save(f"epoch-{epoch}", {"weight": weight}, trainer, {"epoch": epoch})
        wanted = [
            ScoreKey(name, shots, "test", f"item-{item}")
            for name in run.checkpoints()
            for shots in (1, 2)
            for item in range(ITEMS)
        ]
        missing = run.missing_scores(wanted)
        for start in range(0, len(missing), 2):
            some = missing[start : start + 2]
            run.add_scores([key._asdict() | {"score": len(key.item) / 3} for key in some])
        run.finish()


def contents(folder: Path) -> dict[str, str]:
    """Every file of a run that no clock has touched, by the hash of its bytes."""
    clocked = {"meta.json", "timings.jsonl"}
    return {
        str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and path.name not in clocked
    }


def child(work: Callable[[], None]) -> int:
    """The id of a new process that does the work and ends: 0 if all went well, else 1."""
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        finally:
            os._exit(code)
    return pid


def ending(pid: int) -> int:
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def killed_at(call: int, work: Callable[[], None]) -> None:
    """Do the work, but die after the given call, counted from 1, of all that open or change files.

    A file just opened for writing is empty, a new folder has nothing in it: the worst moments.
    """
    count = 0

    def deadly(function: Callable[..., Any]) -> Callable[..., Any]:
        def counted(*args: Any, **named: Any) -> Any:
            nonlocal count
            made = function(*args, **named)
            count += 1
            if count == call:
                os.kill(os.getpid(), signal.SIGKILL)
            return made

        return counted

    for name in ("fsync", "rename", "replace", "mkdir", "unlink"):
        setattr(os, name, deadly(getattr(os, name)))
    io.open = builtins.open = deadly(io.open)  # what pathlib and what everybody else calls
    work()


def deaths(work: Callable[[int], None], look: Callable[[int], None], calls: range) -> int:
    """Die at each of the calls until the work gets through; look at what each death has left."""
    for number, call in enumerate(calls):
        end = ending(child(lambda at=call: killed_at(at, lambda: work(at))))
        look(call)
        if end == 0:
            return number
        assert end == -signal.SIGKILL
    return len(calls)


# --- files


def test_json_has_one_spelling(tmp_path: Path) -> None:
    write_json(tmp_path / "a.json", {"b": 0.1, "a": [1, "约束"]})
    write_json(tmp_path / "b.json", {"a": (1, "约束"), "b": 0.1})
    assert (tmp_path / "a.json").read_text() == (
        '{\n  "a": [\n    1,\n    "约束"\n  ],\n  "b": 0.1\n}\n'
    )
    assert (tmp_path / "a.json").read_bytes() == (tmp_path / "b.json").read_bytes()
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.json", "b.json"]


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
def test_what_is_no_number_is_refused_and_the_file_left_alone(
    tmp_path: Path, number: float
) -> None:
    write_json(tmp_path / "a.json", {"kl": 1.0})
    append_line(tmp_path / "a.jsonl", {"kl": 1.0})
    with pytest.raises(DataError, match=r"a\.json: .*not JSON compliant"):
        write_json(tmp_path / "a.json", {"kl": number})
    with pytest.raises(DataError, match=r"a\.jsonl: .*not JSON compliant"):
        append_line(tmp_path / "a.jsonl", {"kl": number})
    assert runs.read_json(tmp_path / "a.json") == {"kl": 1.0}
    assert list(read_lines(tmp_path / "a.jsonl")) == [{"kl": 1.0}]


def test_floats_come_back_as_they_went(tmp_path: Path) -> None:
    rng = random.Random(0)
    numbers = [rng.uniform(-1, 1) * 10.0 ** rng.randint(-300, 300) for _ in range(200)]
    append_line(tmp_path / "a.jsonl", {"numbers": numbers})
    assert next(read_lines(tmp_path / "a.jsonl")) == {"numbers": numbers}


def test_lines_are_read_as_the_standard_library_reads_them(tmp_path: Path) -> None:
    draw = random.Random(0)
    floats = [struct.unpack("<d", draw.randbytes(8))[0] for _ in range(5000)]
    lines = [json.dumps({"value": value}) for value in floats if math.isfinite(value)]
    odd = ("-0", "-0.0", "1e400", "2.4e-324", "1" * 30, '"\\ud800"', '"\\u4e2d中"', "[[1.0, 1]]")
    lines += [f' {{"value": {value}, "value": {value}}} ' for value in odd]
    path = tmp_path / "a.jsonl"
    path.write_bytes("".join(line + "\n" for line in lines).encode())
    wanted = [json.loads(line) for line in lines]
    assert [repr(each) for each in read_lines(path)] == [repr(each) for each in wanted]


def test_lines_before_one_that_cannot_be_read_are_told(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setattr(runs, "TAKEN", 20)  # bytes: two lines at once
    path = tmp_path / "a.jsonl"
    path.write_bytes(b"".join(b'{"step": %d}\n' % n for n in range(7)) + b'[7]\n{"step": 8}\n')
    lines = read_lines(path)
    assert [next(lines)["step"] for _ in range(7)] == list(range(7))
    with pytest.raises(DataError, match=r"line 8 cannot be read: b'\[7\]"):
        next(lines)


@pytest.mark.parametrize("tail", [b'{"step": 3', b'{"step": 3}', b"\xff\x00", b"\xe7\xba"])
def test_a_torn_last_line_is_left_out_or_cut_off(tmp_path: Path, tail: bytes) -> None:
    path = tmp_path / "a.jsonl"
    append_line(path, {"step": 1}, {"step": 2})
    whole = path.read_bytes()
    path.write_bytes(whole + tail)
    assert [record["step"] for record in read_lines(path)] == [1, 2]
    with pytest.raises(DataError, match=r"a\.jsonl line 3 cannot be read"):
        list(read_lines(path, torn_tail=False))
    runs.trim(path)
    assert path.read_bytes() == whole
    runs.trim(path)
    assert path.read_bytes() == whole


def test_a_line_that_is_ended_while_it_is_read_is_left_out(tmp_path: Path) -> None:
    """A writer goes on while a long file is read: the end of its torn line is no line."""
    path, count = tmp_path / "scores.jsonl", 3000
    append_line(path, *({"item": "x" * 500} for _ in range(count)))
    with path.open("ab") as handle:
        handle.write(b'{"item": "to')
    lines = read_lines(path)
    assert len([next(lines) for _ in range(count)]) == count
    with path.open("ab") as handle:
        handle.write(b'rn"}\n{"item": "next"}\n')
    assert list(lines) == []


@pytest.mark.parametrize("length", [0, 1, 65_535, 65_536, 65_537, 200_000])
def test_a_torn_line_of_any_length_is_cut_off(tmp_path: Path, length: int) -> None:
    path = tmp_path / "a.jsonl"
    for whole in (b"", b"{}\n", b'{"a": "' + b"x" * 70_000 + b'"}\n'):
        path.write_bytes(whole + b"x" * length)
        runs.trim(path)
        assert path.read_bytes() == whole


@pytest.mark.parametrize("line", [b"", b"[1]", b"3", b'{"a"', b'{"a": NaN}', b"\xff", b"null"])
def test_an_unreadable_line_is_an_error_that_names_it(tmp_path: Path, line: bytes) -> None:
    path = tmp_path / "a.jsonl"
    path.write_bytes(b'{"a": 1}\n' + line + b'\n{"a": 2}\n')
    with pytest.raises(DataError, match=r"a\.jsonl line 2 cannot be read"):
        list(read_lines(path))


def test_a_missing_or_foreign_file_is_one_clear_line(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"cannot read .*a\.jsonl: No such file"):
        list(read_lines(tmp_path / "a.jsonl"))
    with pytest.raises(DataError, match=r"cannot read .*a\.json: No such file"):
        runs.read_json(tmp_path / "a.json")
    (tmp_path / "a.json").write_text("epochs = 3")
    with pytest.raises(DataError, match=r"a\.json is not JSON"):
        runs.read_json(tmp_path / "a.json")


# --- identity


def test_identity_leaves_out_the_length_and_nothing_else() -> None:
    same = identity(CONFIG, "data", None)
    assert identity(CONFIG | {"epochs": 50}, "data", None) == same
    assert identity(dict(reversed(CONFIG.items())), "data", None) == same
    others = [
        identity(CONFIG | {"lr": 0.2}, "data", None),
        identity(CONFIG | {"leash": {"coefficient": 0.12, "form": "k3"}}, "data", None),
        identity(CONFIG | {"seed": 1}, "data", None),
        identity(CONFIG, "other data", None),
        identity(CONFIG, "data", "base"),
        identity(CONFIG, "data", None, length=()),
    ]
    assert len({same, *others}) == 7
    assert CONFIG["epochs"] == 3


def test_a_length_may_be_nested_and_must_exist() -> None:
    short, long = ({"train": {"steps": steps, "lr": 1.0}} for steps in (10, 20))
    assert identity(short, "d", None, length=["train.steps"]) == identity(
        long, "d", None, length=["train.steps"]
    )
    assert short["train"]["steps"] == 10
    with pytest.raises(KeyError):
        identity(short, "d", None)


def test_identity_is_the_same_on_every_machine() -> None:
    assert identity({"epochs": 3, "lr": 0.1}, "data", "base") == (
        hashlib.sha256(b'{"base": "base", "config": {"lr": 0.1}, "data": "data"}\n').hexdigest()
    )


def test_a_tensor_hash_covers_names_kinds_shapes_and_bytes() -> None:
    tensors = {"b": torch.tensor([[1.0, 2.0]]), "a": torch.tensor(3, dtype=torch.int64)}
    by_hand = hashlib.sha256(
        b"a\0int64\0\0" + (3).to_bytes(8, "little") + b"b\0float32\x001,2\0"
        b"\x00\x00\x80\x3f\x00\x00\x00\x40"
    )
    assert fingerprint(tensors) == by_hand.hexdigest()
    others = [
        {"b": tensors["b"]},
        tensors | {"b": tensors["b"].T},
        tensors | {"b": tensors["b"].half()},
        tensors | {"b": -tensors["b"]},
        {"c": tensors["b"], "a": tensors["a"]},
        tensors | {"c": torch.empty(0)},
        tensors | {"b": tensors["b"].bfloat16()},
    ]
    assert len({by_hand.hexdigest(), *map(fingerprint, others)}) == 8


def test_a_tensor_hash_does_not_see_how_memory_is_laid_out() -> None:
    straight = torch.arange(6.0).reshape(2, 3)
    turned = straight.T.contiguous().T
    assert not turned.is_contiguous()
    assert fingerprint({"a": straight}) == fingerprint({"a": turned})


# --- facts


def test_the_machine_is_described_without_importing_anything_heavy() -> None:
    code = (
        "import sys; from kleash.runs import run, ledger; found = run.machine_facts();"
        "assert not {'torch', 'numpy', 'transformers', 'safetensors'} & set(sys.modules);"
        "import json; print(json.dumps(found))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    found = json.loads(done.stdout)
    assert found["versions"]["torch"] == torch.__version__
    assert found["versions"]["python"].startswith("3.")
    assert found["cpus"] == os.cpu_count()
    assert found["started"].endswith("+00:00")


def test_a_package_that_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "PACKAGES", ("kleash", "no-such-package"))
    versions = runs.machine_facts()["versions"]
    assert versions["no-such-package"] is None
    assert versions["kleash"] is not None


def test_the_revision_tells_a_changed_source_from_a_clean_one(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("a = 1\n")
    assert runs.revision_facts(package) == {"revision": None, "diff": None}

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b"]
        done = subprocess.run(["git", *who, *words], cwd=tmp_path, capture_output=True, check=True)
        return done.stdout.decode().strip()

    git("init", "-q")
    (tmp_path / "other.txt").touch()
    git("add", "other.txt")
    git("commit", "-qm", "somebody else's")
    assert runs.revision_facts(package)["revision"] is None, "not tracked: not its checkout"
    git("add", ".")
    git("commit", "-qm", "first")
    clean = {"revision": git("rev-parse", "HEAD"), "diff": None}
    assert runs.revision_facts(package) == clean
    (tmp_path / "notes.txt").write_text("outside the package")
    assert runs.revision_facts(package) == clean

    seen = set()
    for name, text in (("__init__.py", "a = 2\n"), ("b.py", "b = 1\n"), ("b.py", "b = 2\n")):
        (package / name).write_text(text)
        found = runs.revision_facts(package)
        assert found["revision"] == clean["revision"]
        seen.add(found["diff"])
    assert len(seen) == 3
    assert None not in seen


def test_without_git_there_is_no_revision(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert runs.revision_facts() == {"revision": None, "diff": None}


# --- runs


def test_a_new_run_has_all_that_a_run_must_have(tmp_path: Path) -> None:
    run = made(tmp_path / "runs" / "kl0.15-s3")
    assert run == Run.open(tmp_path / "runs" / "kl0.15-s3")
    assert run.name == "kl0.15-s3"
    assert (run.config, run.given, run.meta) == (CONFIG, {"lr": 0.1}, facts())
    assert not run.finished
    assert list(run.metrics()) == list(run.timings()) == list(run.scores()) == []
    assert run.checkpoints() == []
    assert [path.name for path in (tmp_path / "runs").iterdir()] == ["kl0.15-s3"]


def test_the_same_run_is_found_again_whatever_its_length(tmp_path: Path) -> None:
    made(tmp_path / "a").log({"step": 1})
    again = made(tmp_path / "a", CONFIG | {"epochs": 50})
    assert list(again.metrics()) == [{"step": 1}]
    assert again.config["epochs"] == 3, "only `reopen` changes what a run says of itself"


def test_a_changed_config_gets_a_folder_of_its_own(tmp_path: Path) -> None:
    changed = CONFIG | {"lr": 0.2}
    first, second = made(tmp_path / "a"), made(tmp_path / "a", changed)
    before = contents(first.path)
    assert second.name == "a-" + identity(changed, "data", None)[:8]
    second.log({"step": 1})
    assert made(tmp_path / "a", changed) == second
    assert made(tmp_path / "a") == first
    assert contents(first.path) == before


def test_a_name_that_lies_is_an_error(tmp_path: Path) -> None:
    made(tmp_path / "a")
    for ending_ in "xy":
        meta = {"identity": "01234567" + ending_}
        if ending_ == "x":
            assert Run.create(tmp_path / "a", {}, {}, meta).name == "a-01234567"
        else:
            with pytest.raises(DataError, match="holds another run than its name says"):
                Run.create(tmp_path / "a", {}, {}, meta)


def test_a_foreign_folder_is_neither_used_nor_changed(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "thesis.tex").write_text("precious")
    with pytest.raises(DataError, match=r"a is not a run: it holds no config\.json"):
        made(tmp_path / "a")
    assert [path.name for path in tmp_path.rglob("*")] == ["a", "thesis.tex"]


def test_what_is_not_a_run_says_why(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such run"):
        Run.open(tmp_path / "a")
    run = made(tmp_path / "a")
    (run.path / "meta.json").write_text('{"author": "somebody"}')
    with pytest.raises(DataError, match=r"its meta\.json holds no identity"):
        Run.open(run.path)
    (run.path / "meta.json").unlink()
    with pytest.raises(DataError, match=r"holds no meta\.json"):
        Run.open(run.path)


def test_runs_are_listed_by_name_among_foreign_things(tmp_path: Path) -> None:
    for name in ("b", "a"):
        made(tmp_path / name)
    (tmp_path / "model").mkdir()
    write_json(tmp_path / "model" / "config.json", {"model_type": "qwen3"})
    (tmp_path / ".a.1.tmp").mkdir()
    for name in runs.FACTS:
        write_json(tmp_path / ".a.1.tmp" / name, facts())
    (tmp_path / "notes.txt").write_text("notes")
    assert [run.name for run in runs.list_runs(tmp_path)] == ["a", "b"]
    with pytest.raises(DataError, match="no such folder of runs"):
        list(runs.list_runs(tmp_path / "nowhere"))


def test_a_damaged_run_is_not_passed_over(tmp_path: Path) -> None:
    (made(tmp_path / "a").path / "config.json").write_text("{")
    with pytest.raises(DataError, match=r"config\.json is not JSON"):
        list(runs.list_runs(tmp_path))


def test_reopening_says_what_is_different_now(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "a", CONFIG, {}, facts(revision="one"))
    run.reopen(CONFIG, {}, facts(revision="one"))
    assert run.meta == facts(revision="one"), "nothing new, nothing written"
    run.finish()
    assert run.finished
    longer = CONFIG | {"epochs": 50}
    run.reopen(longer, {"epochs": 50}, facts(longer, revision="two"))
    assert not run.finished
    assert run == Run.open(run.path)
    assert (run.config, run.given) == (longer, {"epochs": 50})
    assert run.meta == facts(revision="one") | {"resumed": [{"revision": "two"}]}
    with pytest.raises(DataError, match="is another run"):
        run.reopen(CONFIG, {}, facts(CONFIG | {"lr": 1.0}))


def test_a_finished_run_may_have_no_torn_line(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    run.log({"step": 1})
    with (run.path / "metrics.jsonl").open("ab") as handle:
        handle.write(b'{"step"')
    assert list(run.metrics()) == [{"step": 1}]
    run.finish()
    with pytest.raises(DataError, match="line 2"):
        list(run.metrics())


# --- the lock


@forks
def test_two_processes_cannot_train_the_same_run(tmp_path: Path) -> None:
    run = made(tmp_path / "a")

    def hold() -> None:
        with run.lock():
            (tmp_path / "held").touch()
            time.sleep(600)

    pid = child(hold)
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    with pytest.raises(KleashError, match=rf"in use by process {pid} on "), run.lock():
        pass
    os.kill(pid, signal.SIGKILL)
    ending(pid)
    with run.lock():
        assert (run.path / "lock").read_text().startswith(f"{os.getpid()} on ")
    assert (run.path / "lock").read_text() == ""


def test_nor_can_one_process_twice_but_one_after_the_other(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    with run.lock(), pytest.raises(KleashError, match=str(os.getpid())), Run.open(run.path).lock():
        pass
    with pytest.raises(ZeroDivisionError), run.lock():
        _ = 1 / 0
    with run.lock():
        pass


def test_taking_the_lock_clears_away_what_a_kill_has_left(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    run.save("epoch-1", {}, {}, {})
    names = ("metrics.jsonl", "timings.jsonl", "scores.jsonl")
    for name in names:
        (run.path / name).write_bytes(b'{"step": 1}\n{"torn')
    (run.path / ".config.json.1.tmp").write_text("{")
    (run.path / "checkpoints" / ".epoch-2.tmp").mkdir()
    (run.path / "checkpoints" / ".epoch-2.tmp" / "weights.safetensors").touch()
    with run.lock():
        assert [(run.path / name).read_bytes() for name in names] == [b'{"step": 1}\n'] * 3
        assert not list(run.path.rglob(".*"))
        assert run.checkpoints() == ["epoch-1"]


# --- checkpoints


def test_a_checkpoint_comes_back_bit_by_bit(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    tied = torch.randn(3, 2, generator=torch.Generator().manual_seed(0))
    weights = {
        "tied": tied,
        "also_tied": tied,
        "turned": tied.T,
        "half": tied.bfloat16(),
        "scalar": torch.tensor(0.1),
        "trained": torch.nn.Parameter(tied + 1),
    }
    trainer = {"rng": torch.Generator().manual_seed(7).get_state(), "empty": torch.empty(0)}
    run.save("epoch-1", weights, trainer, {"epoch": 1, "controller": {"coefficient": 0.1 + 0.2}})
    back = run.load("epoch-1")
    assert set(back.weights) == set(weights)
    for name, tensor in weights.items():
        assert back.weights[name].dtype == tensor.dtype
        assert torch.equal(back.weights[name], tensor)
    assert torch.equal(back.trainer["rng"], trainer["rng"])
    assert back.state == {
        "epoch": 1,
        "controller": {"coefficient": 0.30000000000000004},
        "metrics_bytes": 0,
        "weights_hash": fingerprint(weights),
        "trainer_hash": fingerprint(trainer),
    }
    assert run.load("epoch-1", trainer=False).trainer == {}
    modes = {path.stat().st_mode for path in (run.path / "checkpoints" / "epoch-1").iterdir()}
    assert len(modes) == 1, "who may read the run may read its tensors"


def test_checkpoints_stand_in_the_order_of_training(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    for name in ("start", "epoch-2", "epoch-10", "best"):
        run.save(name, {}, {}, {})
        run.log({"after": name})
    run.save("tie-10", {}, {}, {})
    run.save("tie-9", {}, {}, {})
    (run.path / "checkpoints" / "notes.txt").write_text("no checkpoint")
    assert run.checkpoints() == ["start", "epoch-2", "epoch-10", "best", "tie-9", "tie-10"]


def test_a_checkpoint_is_never_overwritten(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    run.save("epoch-1", {"a": torch.ones(1)}, {}, {})
    with pytest.raises(CheckpointError, match="never overwritten"):
        run.save("epoch-1", {"a": torch.zeros(1)}, {}, {})
    assert run.load("epoch-1").weights["a"].item() == 1
    run.drop("epoch-1")
    assert run.checkpoints() == []
    assert not list((run.path / "checkpoints").iterdir())
    with pytest.raises(CheckpointError, match="has no checkpoint 'epoch-1'; it has: none"):
        run.drop("epoch-1")


def test_a_run_copied_without_its_checkpoints_can_be_read(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    (run.path / "checkpoints").rmdir()
    assert run.checkpoints() == []
    run.save("epoch-1", {}, {}, {})
    assert run.checkpoints() == ["epoch-1"]


def test_other_tensors_than_those_saved_are_refused(tmp_path: Path) -> None:
    from safetensors.torch import save_file

    run = made(tmp_path / "a")
    run.save("epoch-1", {"a": torch.ones(2)}, {"m": torch.ones(1)}, {})
    folder = run.path / "checkpoints" / "epoch-1"
    with pytest.raises(CheckpointError, match="no checkpoint 'epoch-2'; it has: epoch-1"):
        run.load("epoch-2")
    save_file({"a": torch.tensor([1.0, 1.0000001])}, folder / "weights.safetensors")
    with pytest.raises(CheckpointError, match="does not hold the tensors that were saved"):
        run.load("epoch-1")
    save_file({"a": torch.ones(2)}, folder / "weights.safetensors")
    assert run.load("epoch-1").weights["a"].tolist() == [1.0, 1.0]
    whole = (folder / "trainer.safetensors").read_bytes()
    (folder / "trainer.safetensors").write_bytes(whole[:-1])
    with pytest.raises(CheckpointError, match=r"cannot read .*trainer\.safetensors"):
        run.load("epoch-1")
    (folder / "trainer.safetensors").unlink()
    with pytest.raises(CheckpointError, match=r"cannot read .*trainer\.safetensors"):
        run.load("epoch-1")


# --- rewinding


def test_rewinding_gives_back_the_bytes_of_that_moment(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    seen = {None: b""}
    for epoch in (1, 2, 3):
        run.log({"epoch": epoch})
        run.time({"epoch": epoch})
        run.save(f"epoch-{epoch}", {}, {}, {})
        seen[f"epoch-{epoch}"] = (run.path / "metrics.jsonl").read_bytes()
    keys = [ScoreKey(name, 2, "test", "1") for name in run.checkpoints()]
    run.add_scores([key._asdict() for key in keys])
    run.log({"epoch": 4})
    run.finish()

    for name, kept in (("epoch-3", 3), ("epoch-1", 1), (None, 0)):
        run.rewind(name)
        assert (run.path / "metrics.jsonl").read_bytes() == seen[name]
        assert run.checkpoints() == ["epoch-1", "epoch-2", "epoch-3"][:kept]
        assert run.score_cells() == set(keys[:kept])
        assert not run.finished
        assert len(list(run.timings())) == 4, "time that was spent stays spent"


def test_rewinding_to_nowhere_or_without_the_lines_is_refused(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    run.log({"step": 1})
    run.save("epoch-1", {}, {}, {})
    with pytest.raises(CheckpointError, match="no checkpoint 'epoch-2'"):
        run.rewind("epoch-2")
    (run.path / "metrics.jsonl").write_bytes(b"")
    with pytest.raises(DataError, match="shorter than epoch-1 saw it"):
        run.rewind("epoch-1")


# --- scores


def test_only_what_is_missing_is_scored_and_the_bytes_are_the_same(tmp_path: Path) -> None:
    wanted = [ScoreKey("epoch-1", shots, "test", str(item)) for shots in (1, 2) for item in "abc"]
    whole = made(tmp_path / "whole")
    assert whole.missing_scores(wanted) == wanted
    whole.add_scores([key._asdict() | {"score": 0.3} for key in wanted])
    expected = (whole.path / "scores.jsonl").read_bytes()
    run = made(tmp_path / "cut")
    for cut in range(len(expected)):
        (run.path / "scores.jsonl").write_bytes(expected[:cut])
        missing = run.missing_scores(wanted)
        assert missing == wanted[expected[:cut].count(b"\n") :]
        run.add_scores([key._asdict() | {"score": 0.3} for key in missing])
        assert (run.path / "scores.jsonl").read_bytes() == expected
    assert run.missing_scores(wanted) == []
    assert run.score_cells() == set(wanted)


def test_a_thing_scored_twice_is_an_error(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    run.add_scores([ScoreKey("epoch-1", 2, "test", "a")._asdict()] * 2)
    with pytest.raises(DataError, match=r"scores\.jsonl line 2 repeats"):
        run.score_cells()


# --- kills


def test_a_run_made_longer_equals_one_that_was_long(tmp_path: Path) -> None:
    train(tmp_path / "long" / "a", epochs=3)
    for epochs in (1, 2, 3, 2):
        train(tmp_path / "grown" / "a", epochs=epochs)
    grown, long = contents(tmp_path / "grown" / "a"), contents(tmp_path / "long" / "a")
    assert grown.keys() == long.keys()
    # Its scores were asked for epoch by epoch, so here too: the order is that of the asking.
    assert {name for name in long if grown[name] != long[name]} == set()
    assert len(Run.open(tmp_path / "grown" / "a").meta["resumed"]) == 2


def kill_and_compare(folder: Path, kills: int) -> None:
    began = time.monotonic()
    train(folder / "whole" / "a")
    span = time.monotonic() - began
    rng = random.Random(kills)
    for _ in range(kills):
        pid = child(lambda: train(folder / "killed" / "a"))
        time.sleep(rng.uniform(0, span))
        os.kill(pid, signal.SIGKILL)
        assert ending(pid) in (0, -signal.SIGKILL)
    assert ending(child(lambda: train(folder / "killed" / "a"))) == 0
    assert contents(folder / "killed" / "a") == contents(folder / "whole" / "a")


@forks
def test_a_run_killed_at_random_moments_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    kill_and_compare(tmp_path, kills=3)


@forks
@pytest.mark.slow
def test_a_run_killed_twenty_times_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    for attempt in range(5):
        kill_and_compare(tmp_path / str(attempt), kills=20)


@forks
def test_a_json_file_is_the_old_one_or_the_new_one_at_any_kill(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    seen = []

    def look(call: int) -> None:
        seen.append(runs.read_json(path))
        write_json(path, "old")

    write_json(path, "old")
    assert deaths(lambda _: write_json(path, "new"), look, range(1, 100)) >= 4
    assert (seen[0], seen[-1]) == ("old", "new")
    assert set(seen) == {"old", "new"}


@forks
def test_a_run_is_there_whole_or_not_at_all_at_any_kill(tmp_path: Path) -> None:
    seen = []

    def look(call: int) -> None:
        seen.append((tmp_path / str(call)).exists())
        if seen[-1]:
            assert Run.open(tmp_path / str(call)).config == CONFIG

    assert deaths(lambda call: made(tmp_path / str(call)) and None, look, range(1, 100)) >= 10
    assert set(seen) == {False, True}


@forks
def test_a_checkpoint_is_there_whole_or_not_at_all_at_any_kill(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    tensors = {"a": torch.arange(5.0)}
    seen = []

    def look(call: int) -> None:
        seen.append(run.checkpoints() != [])
        if seen[-1]:
            assert torch.equal(run.load("epoch-1").weights["a"], tensors["a"])
            run.drop("epoch-1")

    assert deaths(lambda _: run.save("epoch-1", tensors, tensors, {}), look, range(1, 100)) >= 8
    assert set(seen) == {False, True}


@forks
def test_a_checkpoint_is_gone_or_there_at_any_kill(tmp_path: Path) -> None:
    run = made(tmp_path / "a")
    run.save("epoch-1", {"a": torch.ones(1)}, {}, {})

    def look(call: int) -> None:
        if run.checkpoints():
            run.load("epoch-1")
        else:
            run.save("epoch-1", {"a": torch.ones(1)}, {}, {})

    assert deaths(lambda _: run.drop("epoch-1"), look, range(1, 100)) >= 3


def kill_at_each(folder: Path, calls: range, epochs: int = 3) -> int:
    """Kill a training at each of the calls, and again, and let it end: the bytes are the same."""
    train(folder / "whole" / "a", epochs)
    whole = contents(folder / "whole" / "a")

    def look(call: int) -> None:
        path = folder / str(call) / "a"
        ending(child(lambda: killed_at(call, lambda: train(path, epochs))))
        assert ending(child(lambda: train(path, epochs))) == 0
        assert contents(path) == whole, f"killed at call {call}"

    return deaths(lambda call: train(folder / str(call) / "a", epochs), look, calls)


@forks
def test_a_training_killed_at_some_calls_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    assert kill_at_each(tmp_path, range(1, 400, 13)) >= 8


@forks
@pytest.mark.slow
def test_a_training_killed_at_any_call_ends_as_if_it_had_not_been(tmp_path: Path) -> None:
    assert kill_at_each(tmp_path, range(1, 1000), epochs=4) >= 100


@forks
def test_two_processes_that_make_the_same_run_make_one(tmp_path: Path) -> None:
    for attempt in range(10):
        pids = [child(lambda n=attempt: made(tmp_path / str(n) / "a")) for _ in range(3)]
        assert [ending(pid) for pid in pids] == [0, 0, 0]
        assert [path.name for path in (tmp_path / str(attempt)).iterdir()] == ["a"]


def test_a_fact_learnt_later_is_added_once_and_stays(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", CONFIG, {}, {"identity": "x"})
    run.learn(positive_share=0.25)
    run.learn(positive_share=0.5, queries=8)
    assert Run.open(run.path).meta == {"identity": "x", "positive_share": 0.25, "queries": 8}


def test_only_the_last_checkpoint_keeps_what_training_needs_to_go_on(tmp_path: Path) -> None:
    run = Run.create(tmp_path / "run", CONFIG, {}, {"identity": "x"})
    for epoch in (1, 2, 3):
        run.log({"epoch": epoch})
        weights = {"w": torch.full((2,), float(epoch))}
        run.save(f"epoch-{epoch}", weights, {"moment": torch.zeros(2)}, {})
        run.slim()
    assert set(run.load("epoch-3").trainer) == {"moment"}
    assert run.load("epoch-1", trainer=False).weights["w"].tolist() == [1.0, 1.0]
    with pytest.raises(CheckpointError, match="cannot read"):
        run.load("epoch-1")
