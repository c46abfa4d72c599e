"""Files of other tools come back as the numbers that went in, and say where each one stands."""

import contextlib
import gzip
import json
import math
import os
import shutil
import signal
import socket
import struct
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

from kleash.compare.read import (
    gather,
    read,
    tensorboard,
    trl,
    wandb,
    wire,
)
from kleash.errors import DataError
from kleash.runs.run import Run
from plain_sources import FILES, GOLDEN, source_of

ROOT = Path(__file__).parent.parent
FIXTURES = Path(__file__).parent / "fixtures/imports"
TOOLS = sorted(path.stem for path in (FIXTURES / "expected").glob("*.json"))


def expected(tool, folder=FIXTURES):
    return json.loads((folder / "expected" / f"{tool}.json").read_text(encoding="utf-8"))


def unpacked(source, passing):
    """Where a fixture can be read: databases are kept compressed."""
    if source.suffix != ".gz":
        return source
    target = passing / source.stem
    target.write_bytes(gzip.decompress(source.read_bytes()))
    return target


def only(source):
    [run] = source.runs
    return run


def named(run, metric, axis=None):
    [found] = [s for s in run.series if s.metric == metric and axis in (None, s.axis)]
    return found


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


# --- files that the tools made themselves


def check(source, wanted):
    """Every number that was logged, exactly, and nothing else under its name."""
    assert [run.name for run in source.runs] == [want["name"] for want in wanted]
    for run, want in zip(source.runs, wanted, strict=True):
        for name in ("arm", "seed", "finished"):
            if name in want:
                assert getattr(run, name) == want[name], name
        for key, value in want.get("config", {}).items():
            assert run.config[key].value == value
        for metric, (steps, values) in want.get("series", {}).items():
            series = named(run, metric)
            narrow = want.get("float32", False)
            exact = np.float32(values).astype(np.float64) if narrow else np.float64(values)
            assert series.steps.tolist() == steps, metric
            np.testing.assert_array_equal(series.values, exact)
            assert series.float32 is narrow
            assert series.lines is not None and len(series.lines) == len(steps)
        for metric, value in want.get("cells", {}).items():
            [cell] = [cell for cell in run.cells if cell.metric == metric]
            assert (cell.number.value, cell.number.state) == (value, "known")
        for metric, (items, values) in want.get("scores", {}).items():
            [scores] = [scores for scores in run.scores if scores.metric == metric]
            assert list(scores.items) == items
            assert scores.values.tolist() == values


def sources():
    for tool in TOOLS:
        for source in expected(tool):
            yield pytest.param(source["path"], source["runs"], id=source["path"])


@pytest.mark.parametrize(("path", "runs"), list(sources()))
@pytest.mark.filterwarnings("ignore")  # where inspect_ai is installed, its imports warn
def test_real_files_give_back_what_was_logged(path, runs, tmp_path):
    if path.endswith(".eval"):
        pytest.importorskip("inspect_ai")
    check(read(unpacked(FIXTURES / path, tmp_path)), runs)


def test_there_are_files_of_eight_tools_and_they_are_small():
    assert len(TOOLS) == 8
    assert sum(path.stat().st_size for path in FIXTURES.rglob("*")) < 1_500_000


def test_no_fixture_tells_where_it_was_made():
    for path in FIXTURES.rglob("*"):
        if path.is_file():
            content = path.read_bytes()
            content = gzip.decompress(content) if path.suffix == ".gz" else content
            for trace in (b"/tmp/", b"/home/", b"/root/", b"/Users/", b"/work/"):
                assert trace not in content, (path, trace)


@pytest.mark.slow
@pytest.mark.parametrize("tool", TOOLS)
def test_files_made_now_give_back_what_was_logged(tool, tmp_path):
    python = Path(sys.prefix) / "tools/bin/python"
    if not python.exists():
        pytest.skip("`make tools-env` installs the tools")
    script = ROOT / "scripts/make_fixtures.py"
    command = [python, script, "--into", tmp_path / "made", tool]
    done = subprocess.run(command, timeout=600, capture_output=True, text=True, cwd=tmp_path)
    assert done.returncode == 0, done.stderr[-2000:]
    for source in expected(tool, tmp_path / "made"):
        if not source["path"].endswith(".eval"):  # read where `inspect_ai` can be imported
            check(read(unpacked(tmp_path / "made" / source["path"], tmp_path)), source["runs"])


# --- files written by hand, as other tools write them: W&B, verl, TRL, selectors, tables, reports


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_files_written_by_hand_come_back_as_they_are(path):
    wanted = json.loads(GOLDEN.read_text(encoding="utf-8"))
    assert source_of(path) == wanted[path.name]


# --- W&B


def test_a_wandb_log_cut_anywhere_gives_a_beginning_of_its_history(tmp_path):
    [log] = (FIXTURES / "wandb").rglob("*.wandb")
    whole = named(only(read(log)), "train/loss").values
    content = log.read_bytes()
    seen = set()
    for size in [*range(7, 6000, 97), len(content) - 1, len(content)]:
        cut = write(tmp_path / "run-x.wandb", content[:size])
        source = read(cut)
        series = [s for s in only(source).series if s.metric == "train/loss"]
        values = series[0].values if series else np.array([])
        np.testing.assert_array_equal(values, whole[: len(values)])
        seen.add(len(values))
    assert seen == set(range(len(whole) + 1))
    assert "unfinished" in " ".join(read(write(cut, content[:-1])).notes)


def test_a_changed_byte_in_a_wandb_log_is_an_error(tmp_path):
    [log] = (FIXTURES / "wandb").rglob("*.wandb")
    content = bytearray(log.read_bytes())
    at = content.index(b"train/loss")
    content[at] ^= 1
    with pytest.raises(DataError, match="does not have its checksum"):
        read(write(tmp_path / "run-x.wandb", bytes(content)))


def test_numbers_of_every_kind_come_out_of_a_wandb_item():
    def item(key, tail):
        return b"\x0a" + bytes([len(key)]) + key.encode() + tail

    assert wandb._item(item("a", b"\x28\x03")) == (["a"], -2)  # sint64, zigzag
    assert wandb._item(item("a", b"\x31" + struct.pack("<d", 0.1))) == (["a"], 0.1)
    assert wandb._item(item("a", b"\x20\x01")) == (["a"], True)
    assert wandb._item(item("a", b"\x3a\x01x")) == (["a"], "x")
    assert wandb._item(item("a", b"\x82\x01\x03NaN"))[1] != 0
    nested = b"\x12\x01a\x12\x01b\x82\x01\x011"
    assert wandb._item(nested) == (["a", "b"], 1)


# --- TensorBoard


def framed(data):
    length = struct.pack("<Q", len(data))
    sums = [struct.pack("<I", wire.masked(wire.crc32c(part))) for part in (length, data)]
    return length + sums[0] + data + sums[1]


def part(number, data):
    size = b""
    count = len(data)
    while count >= 0x80:
        size += bytes([count & 0x7F | 0x80])
        count >>= 7
    return bytes([number << 3 | 2]) + size + bytes([count]) + data


def event(step, value, time=1.7e9):
    return b"\x09" + struct.pack("<d", time) + b"\x10" + bytes([step]) + part(5, part(1, value))


def test_crc32c_is_the_published_one():
    assert wire.crc32c(b"123456789") == 0xE3069283
    rows = np.frombuffer(b"123456789" * 2, dtype=np.uint8).reshape(2, 9)
    assert wire.crc32c_rows(rows).tolist() == [0xE3069283] * 2


def test_doubles_and_one_element_tensors_are_read_and_told_from_floats(tmp_path):
    double = b"\x08\x02\x12\x00" + part(4, struct.pack("<d", 0.1))
    single = b"\x08\x01\x12\x00" + part(5, struct.pack("<f", 0.1))
    vector = b"\x08\x01\x12\x04" + part(2, b"\x08\x02") + part(5, struct.pack("<2f", 0.1, 0.2))
    events = [
        event(1, part(1, b"double") + part(8, double)),
        event(2, part(1, b"single") + part(8, single)),
        event(3, part(1, b"vector") + part(8, vector)),
        event(4, part(1, b"image") + part(4, b"x" * 70_000)),
        event(5, part(1, b"after") + b"\x15" + struct.pack("<f", 2.5)),
    ]
    file = write(tmp_path / "run/events.out.tfevents.1.host", b"".join(map(framed, events)))
    source = read(file)
    run = only(source)
    assert [s.metric for s in run.series] == ["double", "single", "after"]
    assert named(run, "double").values.tolist() == [0.1]
    assert not named(run, "double").float32
    assert named(run, "single").values.tolist() == [float(np.float32(0.1))]
    assert named(run, "single").float32
    assert named(run, "after").place(0).line == 5
    assert "1 records of more than 64 KiB" in source.notes[0]


def test_a_resumed_run_has_one_series_that_knows_its_files(tmp_path):
    for number, steps in ((1, (0, 1)), (2, (1, 2))):
        values = [part(1, b"loss") + b"\x15" + struct.pack("<f", number) for _ in steps]
        events = [event(step, value) for step, value in zip(steps, values, strict=True)]
        name = f"events.out.tfevents.{number}.host"
        write(tmp_path / "run" / name, b"".join(map(framed, events)))
    series = named(only(read(tmp_path / "run")), "loss")
    assert series.steps.tolist() == [0, 1, 1, 2]
    assert series.place(1).file.endswith("tfevents.1.host")
    assert series.place(2).file.endswith("tfevents.2.host")
    assert series.place(3).line == 2


def test_torn_and_changed_event_files(tmp_path):
    [file, *_] = sorted((FIXTURES / "tensorboard").rglob("events*"), key=lambda p: len(p.parts))
    content = file.read_bytes()
    whole = named(only(read(file)), "train/loss").values
    target = tmp_path / "run/events.out.tfevents.1.host"
    source = read(write(target, content[:-5]))
    found = named(only(source), "train/loss").values
    np.testing.assert_array_equal(found, whole[: len(found)])
    assert "unfinished" in source.notes[0]
    changed = bytearray(content)
    changed[content.index(b"train/loss")] ^= 1
    with pytest.raises(DataError, match="checksum"):
        read(write(target, bytes(changed)))


def test_a_folder_of_event_files_holds_a_run_for_each_folder(tmp_path):
    for tool in ("tensorboard", "tensorboardx"):
        shutil.copytree(FIXTURES / tool, tmp_path / tool)
    runs = read(tmp_path).runs
    assert [run.name for run in runs] == ["kl0.15-s3", "kl0.15-s3"]
    assert tensorboard.fits(tmp_path / "tensorboard/kl0.15-s3")


# --- databases


def test_nan_and_infinity_survive_mlflow(tmp_path):
    run = only(read(unpacked(FIXTURES / "mlflow/mlflow.db.gz", tmp_path)))
    odd = named(run, "odd")
    assert odd.values.tolist()[3:5] == [math.inf, -math.inf]
    assert math.isnan(odd.values[1])
    assert odd.times is not None
    assert run.seconds is not None


def test_nothing_is_written_beside_a_database(tmp_path):
    for name in ("mlflow/mlflow.db.gz", "trackio/leash.db.gz"):
        folder = tmp_path / name.split("/", maxsplit=1)[0]
        folder.mkdir()
        path = unpacked(FIXTURES / name, folder)
        before = path.read_bytes()
        folder.chmod(0o500)
        try:
            assert read(path).runs
        finally:
            folder.chmod(0o700)
        assert [file.name for file in folder.iterdir()] == [path.name]
        assert path.read_bytes() == before


def test_a_value_that_differs_from_its_index_is_damage(tmp_path):
    path = unpacked(FIXTURES / "mlflow/mlflow.db.gz", tmp_path)
    content = path.read_bytes()
    stored = struct.pack(">d", 1.695 / 2)
    assert content.count(stored) >= 2  # in the table and in its index
    path.write_bytes(content.replace(stored, struct.pack(">d", 1.5), 1))
    with pytest.raises(DataError, match=r"damaged|cannot be read"):
        read(path)


def test_mlflow_lines_without_an_end_are_dropped_and_others_refused(tmp_path):
    shutil.copytree(FIXTURES / "mlflow/mlruns", tmp_path / "mlruns")
    [kl] = (tmp_path / "mlruns").rglob("kl")
    whole = kl.read_bytes()
    kl.write_bytes(whole[:-4])
    source = read(tmp_path / "mlruns")
    assert len(named(only(source), "kl").values) == 5
    assert "was cut off" in " ".join(source.notes)
    kl.write_bytes(b"hello\n" + whole)
    with pytest.raises(DataError, match="line 1 is not `time value step`"):
        read(tmp_path / "mlruns")


# --- trainers


def test_the_longest_history_of_a_trainer_is_taken(tmp_path):
    shutil.copytree(FIXTURES / "trl/kl0.15-s3", tmp_path / "kl0.15-s3")
    (tmp_path / "kl0.15-s3/trainer_state.json").unlink()
    run = only(read(tmp_path / "kl0.15-s3"))
    assert named(run, "reward").steps.tolist() == [1, 2, 3, 4]
    assert run.config["max_steps"].value == 4
    assert named(run, "eval_reward").steps.tolist() == [2, 4]


def test_a_loss_that_was_rounded_says_so(tmp_path):
    history = [{"step": s, "loss": round(1 / s, 4), "kl": round(1 / s, 4)} for s in (3, 7, 9)]
    state = {"global_step": 9, "max_steps": 20, "log_history": history}
    run = only(read(write(tmp_path / "out/trainer_state.json", json.dumps(state))))
    assert (named(run, "loss").decimals, named(run, "kl").decimals) == (4, None)
    assert run.finished is False


def test_completions_become_scores_of_prompts(monkeypatch):
    table = {
        "step": [3, 3, 3],
        "prompt": ["a", "b", "a"],
        "completion": ["x", "y", "z"],
        "short": [1.0, None, 0.5],
    }
    monkeypatch.setattr(trl, "parquet", lambda path: dict(table))
    scores = only(read(FIXTURES / "trl/kl0.15-s3/completions")).scores
    first = scores[0]
    assert (first.metric, first.step, first.split) == ("short", 3, "train")
    assert first.items[0] == first.items[2] == gather.item_id("a")
    assert first.repeats.tolist() == [0, 0, 1]
    assert math.isnan(first.values[1])


def test_real_completions_are_read():
    scores = only(read(FIXTURES / "trl/kl0.15-s3")).scores
    assert [(s.metric, s.step, s.values.tolist()) for s in scores[:2]] == [
        ("_count_a", 1, [1, 1, 1, 0]), ("_count_a", 2, [0, 1, 1, 2]),
    ]  # fmt: skip


# --- verl


def test_the_consoles_of_a_resumed_run_are_one_run(tmp_path):
    """The second part begins at the last checkpoint: what the first had behind it was lost."""
    folder = tmp_path / "kl0p001"
    folder.mkdir()
    parts = (("part1", range(1, 13), 0.0), ("part2", range(9, 21), 0.5))
    for name, steps, more in parts:
        told = [f"step:{n} - critic/score/mean:{n / 100 + more:.3f}\n" for n in steps]
        (folder / f"console_{name}.log").write_text("".join(told))
    (run,) = read(folder).runs
    assert run.name == "kl0p001"
    points = {
        step: value for one in run.series
        for step, value in zip(one.steps.tolist(), one.values.tolist(), strict=True)
    }  # fmt: skip
    assert points == {n: pytest.approx(n / 100 + (0.5 if n >= 9 else 0.0)) for n in range(1, 21)}


def test_two_resumed_runs_in_one_folder_are_two_runs(tmp_path):
    for arm in ("kl_0.001", "kl_0.005"):
        for part, steps in ((1, range(1, 7)), (2, range(5, 11))):
            told = [f"step:{n} - critic/score/mean:0.{n}\n" for n in steps]
            (tmp_path / f"{arm}_part{part}.log").write_text("".join(told))
    runs = read(tmp_path).runs
    assert [run.name for run in runs] == ["kl_0.001", "kl_0.005"]
    assert [sum(len(one.steps) for one in run.series) for run in runs] == [10, 10]


def test_consoles_of_several_coefficients_are_several_runs(tmp_path):
    for name in ("kl_0.001", "kl_0.005"):
        told = [f"step:{n} - critic/score/mean:0.{n}\n" for n in range(1, 10)]
        (tmp_path / f"{name}.log").write_text("".join(told))
    assert {run.name for run in read(tmp_path).runs} == {"kl_0.001", "kl_0.005"}


def test_console_lines_keep_their_decimals_and_numpy_wrappers(tmp_path):
    log = "x\nstep:3 - a/b:-1.50 - lr:1e-06 - c:np.float64(0.25) - d:True - e:nan\nstep:4 - a/b:2"
    source = read(write(tmp_path / "kl0.1-s2.log", log))
    run = only(source)
    assert (run.arm, run.seed) == ("kl0.1", 2)
    assert named(run, "a/b").values.tolist() == [-1.5]
    assert named(run, "a/b").decimals == 2
    assert named(run, "lr").values.tolist() == [1e-6]
    assert named(run, "c").values.tolist() == [0.25]
    assert {s.metric for s in run.series} == {"a/b", "lr", "c", "e"}
    assert "line 3 was cut off" in source.notes[0]


def test_several_experiments_in_a_folder_are_several_runs(tmp_path):
    for seed in (1, 2):
        row = json.dumps({"step": 1, "data": {"loss": seed}})
        write(tmp_path / f"project/kl-s{seed}.jsonl", row + "\n")
        dump = json.dumps({"input": "q", "output": "a", "score": seed / 2})
        write(tmp_path / f"project/kl-s{seed}/1.jsonl", dump + "\n")
    runs = read(tmp_path).runs
    assert [(run.name, run.arm, run.seed) for run in runs] == [
        ("kl-s1", "kl", 1),
        ("kl-s2", "kl", 2),
    ]
    assert [run.scores[0].values.tolist() for run in runs] == [[0.5], [1.0]]


# --- servers


@pytest.fixture(scope="module")
def mlflow_server(tmp_path_factory):
    """A tracking server of MLflow on this machine."""
    pytest.importorskip("mlflow")
    place = tmp_path_factory.mktemp("server")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        host = f"127.0.0.1:{free.getsockname()[1]}"
    command = [sys.executable, "-m", "mlflow", "server", "--host", "127.0.0.1", "--workers", "1"]
    command += ["--port", host.rpartition(":")[2], "--backend-store-uri", f"sqlite:///{place}/a.db"]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    server = subprocess.Popen(command, cwd=place, start_new_session=True, **quiet)
    try:
        for _ in range(240):
            with contextlib.suppress(OSError), socket.create_connection(host.split(":"), 1):
                break
            time.sleep(0.5)
        yield host
    finally:
        os.killpg(server.pid, signal.SIGKILL)  # it waits for its workers when asked to stop
        server.wait(30)


def test_runs_come_from_a_server_of_mlflow_exactly(mlflow_server):
    import mlflow

    mlflow.set_tracking_uri(f"http://{mlflow_server}")
    mlflow.set_experiment("leash")
    for seed in (1, 2):
        with mlflow.start_run(run_name=f"kl0.15-s{seed}"):
            mlflow.log_params({"kl_coef": 0.15, "lr": 1e-6, "note": "on"})
            for step, value in ((5, 0.1), (10, 1 / 3), (20, seed)):
                mlflow.log_metric("reward", value, step=step)
    source = read(Path(f"mlflow://{mlflow_server}/leash"))
    first, last = sorted(source.runs, key=lambda run: run.name)
    assert (first.arm, first.seed, last.seed, first.finished) == ("kl0.15", 1, 2, True)
    assert named(first, "reward").steps.tolist() == [5, 10, 20]
    assert named(last, "reward").values.tolist() == [0.1, 1 / 3, 2.0]
    assert {key: one.value for key, one in first.config.items()} == {
        "kl_coef": 0.15, "lr": 1e-6, "note": "on"
    }  # fmt: skip
    with pytest.raises(DataError, match="there is no experiment 'other'"):
        read(Path(f"mlflow://{mlflow_server}/other"))


class Project:
    """Stands in for `wandb.Api`: a project with a run whose history is logged unevenly."""

    def runs(self, path, order):
        assert path == "team/leash"
        rows = [{"_step": 0, "loss": 2.0, "_timestamp": 5.0}, {"_step": 3, "val": {"acc": 0.5}}]
        config = {"actor": {"kl_loss_coef": 0.1}, "_wandb": {"x": 1}}
        yield SimpleNamespace(
            id="x1", name="kl0.1-s4", group="", state="crashed", created_at="2026-01-01T00:00:00Z",
            config=config, scan_history=lambda: rows,
        )  # fmt: skip


def test_runs_come_from_a_project_of_wandb(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", SimpleNamespace(Api=Project))
    run = only(read(Path("wandb://team/leash")))
    assert (run.arm, run.seed, run.finished) == ("kl0.1", 4, False)
    assert run.config.keys() == {"actor.kl_loss_coef"}
    assert named(run, "val.acc").steps.tolist() == [3]
    with pytest.raises(DataError, match="write mlflow://host:port/experiment"):
        read(Path("wandb://team"))
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(DataError, match=r"pip install 'kleash\[wandb\]'"):
        read(Path("wandb://team/leash"))


# --- own runs


def own_run(folder, *, finished=True):
    meta = {"identity": "x", "started": "2024-01-01T00:00:00+00:00"}
    run = Run.create(folder, {"seed": 3, "leash": {"coefficient": 0.15}}, {}, meta)
    run.log({"kind": "epoch", "phase": "rce", "epoch": 1, "step": 7, "loss": 4.0})
    for step in (1, 2):
        run.log({"kind": "step", "epoch": 1, "step": step, "loss": 1 / step, "kl": 0.0})
    run.log({"kind": "finding", "step": 2, "code": "x", "value": 3.0})
    run.log({"kind": "epoch", "phase": "grpo", "epoch": 1, "step": 2, "loss": 0.75})
    run.time({"phase": "grpo", "epoch": 1, "seconds": 2.5})
    about = {"checkpoint": "epoch-1", "shots": 2, "split": "test"}
    run.add_scores([about | {"item": "q1", "score": 0.6, "truth_logp": -1.0}])
    run.add_scores([about | {"item": "q2", "error": "timeout"}])
    run.add_scores([about | {"checkpoint": "baseline:random", "item": "q1", "score": 1.0}])
    state = folder / "checkpoints/epoch-1/state.json"
    write(state, '{"step": 2, "metrics_bytes": 9}')
    if finished:
        run.finish()
    return run


def test_a_run_of_our_own(tmp_path):
    own_run(tmp_path / "kl0.15-s3")
    source = read(tmp_path / "kl0.15-s3")
    run = only(source)
    assert (run.name, run.arm, run.seed, run.finished) == ("kl0.15-s3", "kl0.15", 3, True)
    assert (run.seconds, run.config["leash.coefficient"].value) == (2.5, 0.15)
    assert named(run, "loss", "step").values.tolist() == [1.0, 0.5]
    assert named(run, "loss", "step").lines.tolist() == [2, 3]
    assert named(run, "loss", "epoch").values.tolist() == [0.75]
    assert named(run, "rce/loss").axis == "epoch"
    first, logp, baseline = run.scores
    assert (first.checkpoint, first.step, first.shots, first.split) == ("epoch-1", 2.0, 2, "test")
    assert list(first.items) == ["q1", "q2"]
    assert first.values[0] == 0.6 and math.isnan(first.values[1])
    assert logp.metric == "truth_logp"
    assert (baseline.checkpoint, baseline.step) == ("baseline:random", None)
    assert "2 scores are not there" in " ".join(source.notes)


def test_a_folder_of_our_own_runs(tmp_path):
    own_run(tmp_path / "runs/a-s1")
    own_run(tmp_path / "runs/a-s2", finished=False)
    assert [run.finished for run in read(tmp_path / "runs").runs] == [True, False]
    assert [run.name for run in read(tmp_path).runs] == ["a-s1", "a-s2"]


# --- tables


def test_results_with_one_row_for_each_run_are_cells(tmp_path):
    table = "arm,seed,accuracy\nkl0,1,57.0%\nkl0,2,?\n"
    runs = read(write(tmp_path / "results.csv", table)).runs
    assert [(run.arm, run.seed) for run in runs] == [("kl0", 1), ("kl0", 2)]
    assert [run.cells[0].number.value for run in runs] == [0.57, None]
    assert runs[1].cells[0].number.state == "missing"


def test_rows_by_shots_are_cells_of_each_coefficient(tmp_path):
    table = "kl_beta,epoch,n_samples,shot,acc\n0.1,2,200,1,57.0\n0.1,2,200,4,55.5\n0.2,2,200,1,56\n"
    first, second = read(write(tmp_path / "by_shots.csv", table)).runs
    assert (first.name, second.name) == ("by_shots-kl0.1", "by_shots-kl0.2")
    cells = [(c.metric, c.epoch, c.shots, c.items, c.number.value) for c in first.cells]
    assert cells == [("acc", 2, 1, 200, 0.57), ("acc", 2, 4, 200, 0.555)]


def test_an_object_that_holds_rows_with_steps_is_these_rows(tmp_path):
    (tmp_path / "kl006").mkdir()
    text = '{"seed": 42, "epochs": [{"epoch": 1, "kl": 0.09}, {"epoch": 2, "kl": 0.08}]}'
    run = only(read(write(tmp_path / "kl006" / "train_metrics.json", text)))
    assert run.name == "kl006"
    assert named(run, "kl").values.tolist() == [0.09, 0.08]


def test_accuracies_by_shots_have_their_items_and_the_epoch_of_the_file(tmp_path):
    (tmp_path / "kl006").mkdir()
    text = '{"num_samples": 200, "accuracy": {"shot_1": 0.588, "shot_4": 0.564}}'
    run = only(read(write(tmp_path / "kl006" / "eval_epoch2_n200.json", text)))
    told = [(c.epoch, c.shots, c.items, c.number.value) for c in run.cells if c.shots]
    assert run.name == "kl006"
    assert told == [(2.0, 1, 200, 0.588), (2.0, 4, 200, 0.564)]


def test_rows_of_numbers_alone_are_counted(tmp_path):
    for name, text in (("a.csv", "loss,kl\n3,1\n2,1\n"), ("a.jsonl", '{"loss": 3}\n{"loss": 2}\n')):
        source = read(write(tmp_path / name, text))
        series = named(only(source), "loss")
        assert (series.steps.tolist(), series.values.tolist()) == ([0, 1], [3, 2])
        assert "counted from 0" in source.notes[0]


def test_a_single_object_of_numbers_is_one_measurement(tmp_path):
    run = only(read(write(tmp_path / "kl0.1-s2.json", '{"acc": 0.57, "lost": null}')))
    assert (run.arm, run.seed) == ("kl0.1", 2)
    assert [(cell.metric, cell.number.value) for cell in run.cells] == [("acc", 0.57)]


def test_a_first_line_about_the_run_does_not_hide_the_steps(tmp_path):
    lines = '{"config": {"lr": 0.1}}\n{"step": 5, "loss": 2}\n'
    source = read(write(tmp_path / "a.jsonl", lines))
    assert named(only(source), "loss").steps.tolist() == [5]
    assert "1 rows have no step" in " ".join(source.notes)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.csv", "step,loss\n1,2,3\n", "line 2 has 3 columns"),
        ("a.csv", "1,2\n3,4\n", "no header"),
        ("a.csv", "step,loss,loss\n1,2,3\n", "two columns named 'loss'"),
        ("a.csv", "", "is empty"),
        ("a.csv", b"step,loss\n1,\xff\n", "line 2 is not UTF-8"),
        ("a.csv", "step,word\n1,x\n", "no rows with numbers"),
        ("a.jsonl", '{"step": 1, "a": 2}\n{"step": 2, "a": }\n{"step": 3}\n', "line 2 is not JSON"),
        ("a.jsonl", '{"step": 1, "a": 2, "a": 3}\n{"step": 2}\n', "none of the known|stands twice"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '{"a": {"b": ', "is not JSON"),
        ("a.json", '{"step": 1, "a": ' + "9" * 400 + "}", "too large"),
        ("trainer_state.json", "{}", "no log_history"),
        ("run-x.wandb", b":W&B\xe1\xbe\x07", "version 07 is not known"),
        ("x.unknown", "hello", "none of the known formats"),
    ],
)
def test_what_cannot_be_read_is_one_clear_line(name, text, message, tmp_path):
    with pytest.raises(DataError, match=message) as caught:
        read(write(tmp_path / name, text))
    assert "\n" not in str(caught.value)


def test_a_line_that_was_cut_off_is_left_out_and_said(tmp_path):
    text = '{"step": 1, "loss": 2}\n{"step": 2, "loss": 0.'
    source = read(write(tmp_path / "a.jsonl", text))
    assert named(only(source), "loss").values.tolist() == [2]
    assert "line 2 was cut off" in source.notes[0]


def test_one_bad_file_in_a_folder_is_noted_and_the_rest_is_read(tmp_path):
    write(tmp_path / "good.csv", "step,loss\n1,0.5\n")
    write(tmp_path / "torn.csv", "step,loss\n1,0.5,3\n")
    source = read(tmp_path)
    assert [run.name for run in source.runs] == ["good"]
    assert "left out" in source.notes[-1] and "torn.csv" in source.notes[-1]


def test_a_folder_that_two_formats_know_says_what_was_not_read(tmp_path):
    shutil.copytree(FIXTURES / "trl/kl0.15-s3", tmp_path / "out")
    shutil.copytree(FIXTURES / "tensorboard/kl0.15-s3", tmp_path / "out", dirs_exist_ok=True)
    source = read(tmp_path / "out")
    assert source.format == "tensorboard"
    assert "also holds files of trl: not read" in " ".join(source.notes)
    (tmp_path / "out/runs").mkdir()
    for events in (tmp_path / "out").glob("events*"):
        events.rename(tmp_path / "out/runs" / events.name)
    source = read(tmp_path / "out")
    assert source.format == "trl"
    assert "the same run, not read twice" in " ".join(source.notes)


def test_nothing_there_is_said(tmp_path):
    with pytest.raises(DataError, match="no such file"):
        read(tmp_path / "absent")
    with pytest.raises(DataError, match="none of the known formats"):
        read(tmp_path)


# --- parts


@pytest.mark.parametrize(
    ("text", "value", "decimals"),
    [
        ("0.500", 0.5, 3),
        ("-1e-06", -1e-6, 6),
        ("1.25e2", 125.0, 0),
        ("7", 7.0, 0),
        ("0.30000000000000004", 0.1 + 0.2, None),
        ("nan", math.nan, None),
    ],
)
def test_printed_numbers_know_their_decimals(text, value, decimals):
    found = gather.printed(text)
    assert found[1] == decimals
    assert found[0] == value or math.isnan(value)


@pytest.mark.parametrize("text", ["", "x", "1,5", "0x10", "1_000", "--1", "1e99999", "１"])
def test_what_is_no_printed_number_is_none(text):
    assert gather.printed(text) is None


def test_equal_steps_are_kept_once():
    first, second = (gather.shared(np.arange(1000.0)) for _ in range(2))
    assert first is second
    with pytest.raises(ValueError, match="read-only"):
        first[0] = 1


def test_yaml_that_tools_write(tmp_path):
    text = """
# a comment
a: 1
b:
  c: [1, two, {d: 0.5}]
  e: "x: \\"y\\""   # behind it
  f:
  - 1e-06
  - g: true
    h: ~
  - - nested
i: |
  two
  lines
j: a long
  sentence
k: 0123
l: {}
"""
    value, lines = gather.read_yaml(write(tmp_path / "a.yaml", text))
    assert value == {
        "a": 1,
        "b": {
            "c": [1, "two", {"d": 0.5}],
            "e": 'x: "y"',
            "f": [1e-6, {"g": True, "h": None}, ["nested"]],
        },
        "i": "two\nlines\n",
        "j": "a long sentence",
        "k": "0123",
        "l": {},
    }
    assert lines["b.e"] == 6


@pytest.mark.parametrize(
    "text",
    ["a: &x 1\nb: *x", "a: !!int 1", "a: 1\na: 2", "a: [1", "\ta: 1", "? [a]\n: 1",
     "a: 1\n---\nb: 2", "[" * 5000, "- " * 5000],
)  # fmt: skip
def test_yaml_that_is_not_read_is_refused_in_one_line(text, tmp_path):
    with pytest.raises(DataError) as refused:
        gather.read_yaml(write(tmp_path / "a.yaml", text))
    assert "\n" not in str(refused.value)


def test_a_file_that_is_called_like_all_others_has_the_name_of_its_folder(tmp_path):
    for name in ("beta0.1-seed1", "beta0.2-seed1"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "metrics.jsonl").write_text('{"step": 1, "kl": 0.1}\n' * 2)
        (tmp_path / name / "log.csv").write_text("step,loss\n1,0.5\n2,0.4\n")
    found = {(run.name, run.arm, run.seed, run.format) for run in read(tmp_path).runs}
    assert found == {
        (f"{arm}-seed1", arm, 1, form)
        for arm in ("beta0.1", "beta0.2")
        for form in ("csv", "jsonl")
    }
    (tmp_path / "lr3.jsonl").write_text('{"step": 1, "kl": 0.1}\n')
    assert [run.name for run in read(tmp_path / "lr3.jsonl").runs] == ["lr3"]


def test_the_mean_of_an_epoch_is_not_the_value_of_its_last_step(tmp_path):
    """Windows of steps and epochs in one file, each with its sort."""
    rows = [
        {"type": "window", "step": 100 * n, "kl": 0.09 - 0.01 * n, "lr": 5e-6} for n in (1, 2, 3)
    ]
    rows.append({"type": "epoch", "step": 300, "kl": 0.5, "val_loss": 7.9})
    path = tmp_path / "metrics.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = {one.metric: list(one.values) for one in only(read(path)).series}
    assert found["kl"] == pytest.approx([0.08, 0.07, 0.06])
    assert found["epoch kl"] == [0.5]
    assert found["val_loss"] == [7.9]


def test_rows_that_say_different_things_keep_the_order_of_the_file(tmp_path):
    """Columns are taken sort by sort, and a key that some rows lack names no run of others."""
    rows = [
        {"step": 1, "loss": 3.0, "type": "x"},
        {"step": 2, "loss": 2.0},
        {"type": "x", "step": 3, "loss": 1.0},
    ]
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    loss = named(only(read(write(tmp_path / "a.jsonl", lines))), "loss")
    assert (loss.steps.tolist(), loss.lines.tolist()) == ([1, 2, 3], [1, 2, 3])
    told = '[{"acc": 0.5, "note": "first"}, {"name": "second", "acc": 0.6, "note": "x"}]'
    runs = read(write(tmp_path / "b.json", told)).runs
    assert [run.name for run in runs] == ["first", "second"]
