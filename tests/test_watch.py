"""`kleash watch`: a documented collapse is told early, healthy logs are left in peace."""

import json
import math
import shutil
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from kleash.algo.collapse import Curve, first_signs
from kleash.cli import app
from kleash.compare.read import read
from kleash.compare.watch import Watch
from kleash.compare.watch.follow import Whole
from kleash.compare.watch.tell import BOTS
from kleash.errors import ConfigError, DataError

Rows = list[dict[str, float]]
FIXTURES = Path(__file__).parent / "fixtures/imports"


def collapsing(seed: int = 0, *, fall: float = 0.02, noise: float = 0.04) -> Rows:
    """The documented run: reward 1.8–2.0 to step 130, 0 from 150; length falling from 108."""
    rng = np.random.default_rng(seed)
    rows = []
    for step in range(1, 171):
        left = 1 - min(max((step - 130) / 20, 0.0), 1.0)
        length = 300 * max(0.05, 1 - fall * max(0, step - 107))
        rows.append(
            {
                "critic/rewards/mean": rng.uniform(1.8, 2.0) * left,
                "response_length/mean": length * math.exp(noise * rng.standard_normal()),
            }
        )
    return rows


def wandering(rng: np.random.Generator, count: int, size: float, bond: float) -> np.ndarray:
    """Noise of which each value keeps a part of the last."""
    found = size * rng.standard_normal(count)
    for at in range(1, count):
        found[at] = bond * found[at - 1] + math.sqrt(1 - bond**2) * found[at]
    return found


def healthy(seed: int) -> dict[str, Curve]:
    """A run as they are: reward rises and wavers, lengths drift, entropy decays, KL rises."""
    rng = np.random.default_rng(seed)
    count = int(rng.integers(100, 400))
    steps = np.arange(1.0, count + 1)
    bond = rng.uniform(0, 0.5)
    top, slow = rng.uniform(0.5, 2.2), rng.uniform(20, 200)
    first = top * rng.uniform(0.2, 0.9)
    rise = 1 - np.exp(-steps / slow)
    reward = first + (top - first) * rise
    drift = [
        0 * steps,
        math.log(rng.uniform(1.2, 3)) * steps / count,
        -math.log(rng.uniform(1.1, 1.8)) * rise,
        -math.log(rng.uniform(1.1, 2)) * steps / count,
    ][seed % 4]
    drift = drift + np.cumsum(rng.standard_normal(count)) * rng.uniform(0, 0.008)
    entropy = rng.uniform(0.1, 0.8) + np.exp(-steps / rng.uniform(40, 300))
    kl = rng.uniform(1e-4, 3e-3) * steps ** rng.uniform(0.5, 1.0)
    spikes = np.where(rng.random(count) < 0.01, rng.uniform(3, 10, count), 1.0)
    done = np.clip(0.1 + 0.7 * rise * rng.uniform(0.2, 1), 0, 0.9)
    at = np.arange(4, count, int(rng.integers(5, 11)))
    noise = rng.uniform(0.02, 0.08)
    checked = reward[at] + top * noise * rng.standard_normal(len(at))

    def wavering(low: float, high: float) -> np.ndarray:
        return np.exp(wandering(rng, count, rng.uniform(low, high), bond))

    values = {
        "reward": reward + top * wandering(rng, count, rng.uniform(0.02, 0.12), bond),
        "response_length": rng.uniform(80, 1200) * np.exp(drift) * wavering(0.02, 0.07),
        "entropy": entropy * wavering(0.02, 0.1),
        "kl": kl * wavering(0.05, 0.25) * spikes,
        "dead_or_done": rng.binomial(32, done) / 32,
        "valid_actions": 1 - rng.binomial(256, rng.uniform(0.01, 0.1), count) / 256,
    }
    found = {name: Curve(steps, curve) for name, curve in values.items()}
    return found | {"eval_reward": Curve(steps[at], checked)}


def write(path: Path, rows: Rows, *, first: int = 1) -> None:
    """verl's JSON lines."""
    lines = [json.dumps({"step": n, "data": row}) for n, row in enumerate(rows, first)]
    path.write_text("".join(line + "\n" for line in lines))


def watched(*words: str) -> list[dict[str, Any]]:
    """What the verb prints: warnings, then what it saw."""
    done = CliRunner().invoke(app, ["watch", *words, "--once", "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.stdout.splitlines()]


# --- the rules


@pytest.mark.parametrize("seed", range(20))
def test_the_documented_collapse_is_told_by_step_120_and_not_before_it_begins(seed: int) -> None:
    rows = collapsing(seed, noise=0.03)
    steps = np.arange(1.0, len(rows) + 1)
    reward, length = (np.array([row[name] for row in rows]) for name in rows[0])
    course = {"reward": Curve(steps, reward), "response_length": Curve(steps, length)}
    first, *more = sorted(first_signs(course), key=lambda sign: sign.step)
    assert first.code == "response-shorter"
    assert 108 < first.step <= 120
    assert [sign.code for sign in more] == ["reward-drawdown"]


def alarms(seeds: range) -> list[tuple[int, str, float]]:
    return [(seed, sign.code, sign.step) for seed in seeds for sign in first_signs(healthy(seed))]


def test_healthy_runs_are_left_in_peace() -> None:
    found = alarms(range(60))
    assert len({seed for seed, _, _ in found}) <= 1, found


@pytest.mark.slow
def test_of_a_hundred_healthy_runs_at_most_one_raises_an_alarm() -> None:
    found = alarms(range(1000, 2000))
    assert len({seed for seed, _, _ in found}) <= 10, found


def test_shorter_responses_are_no_sign_while_the_reward_rises() -> None:
    steps = np.arange(1.0, 121)
    rng = np.random.default_rng(1)
    length = (
        400 * np.exp(-0.02 * np.clip(steps - 60, 0, 30)) * np.exp(0.02 * rng.standard_normal(120))
    )
    flat = 1 + 0.03 * rng.standard_normal(120)
    rising = flat + np.clip(steps - 55, 0, 40) / 80
    for reward, codes in ((flat, ["response-shorter"]), (rising, [])):
        course = {"reward": Curve(steps, reward), "response_length": Curve(steps, length)}
        assert [sign.code for sign in first_signs(course)] == codes


@pytest.mark.parametrize(
    ("metric", "bend", "code"),
    [
        ("kl", lambda at: 0.02 * 8 ** min(max(at - 80, 0) / 8, 1), "kl-excursion"),
        ("entropy", lambda at: 0.6 * 4 ** -min(max(at - 80, 0) / 8, 1), "entropy-falls"),
        ("entropy", lambda at: 0.6 * 4 ** min(max(at - 80, 0) / 8, 1), "entropy-rises"),
        ("response_length", lambda at: 90 * 4 ** min(max(at - 80, 0) / 8, 1), "response-longer"),
        ("reward", lambda at: 1.5 if at < 80 else 0.4, "reward-drawdown"),
        ("eval_reward", lambda at: 1.5 if at < 80 else 0.4, "validation-drawdown"),
        ("valid_actions", lambda at: 0.95 if at < 80 else 0.6, "valid-actions"),
        ("dead_groups", lambda at: 0.2 if at < 80 else 0.8, "dead-groups"),
    ],
)
def test_each_sign_is_seen_soon_after_its_bend(metric: str, bend: Any, code: str) -> None:
    rng = np.random.default_rng(0)
    noise = np.exp(0.05 * rng.standard_normal(120))
    values = np.array([bend(at) for at in range(120)]) * noise
    [sign] = first_signs({metric: Curve(np.arange(120.0), values)})
    assert sign.code == code
    assert 80 <= sign.step <= 92


def sinking(seed: int, steps: int, noise: float) -> np.ndarray:
    """A reward that rises for 60 steps, then sinks to an eighth of itself in so many more."""
    rng = np.random.default_rng(seed)
    at = np.arange(60 + max(steps, 60))
    level = 0.33 + 0.32 * (1 - np.exp(-at / 25))
    left = np.clip(1 - (at - 60) / steps, 0.125, 1)
    return level * left + wandering(rng, len(at), noise, 0.3)


def test_a_reward_that_had_risen_and_sinks_is_told_before_half_of_it_is_gone() -> None:
    for steps in (30, 60, 90):
        found = [
            [sign.step for sign in first_signs({"reward": Curve(np.arange(1.0, 1 + len(v)), v)})]
            for v in (sinking(seed, steps, 0.03) for seed in range(20))
        ]
        assert all(len(signs) == 1 for signs in found)
        assert all(60 < signs[0] <= 60 + 0.5 * steps + 8 for signs in found), (steps, found)


# Measured every tenth step, in runs that were left alone too long.
FEW_VALIDATIONS = (
    ((0.44, 0.51, 0.57, 0.63, 0.63, 0.64, 0.59, 0.46, 0.33, 0.22, 0.16, 0.13), 10),
    ((0.54, 0.60, 0.65, 0.66, 0.67, 0.20, 0.15, 0.13, 0.13, 0.13), 8),
    ((0.54, 0.62, 0.67, 0.52, 0.57, 0.75, 0.77, 0.78, 0.79, 0.79), None),  # it came back
)


@pytest.mark.parametrize(("values", "place"), FEW_VALIDATIONS)
def test_a_dozen_validations_are_enough(values: tuple[float, ...], place: int | None) -> None:
    curve = Curve(np.arange(1.0, 1 + len(values)), np.array(values))
    found = [sign.step for sign in first_signs({"eval_reward": curve})]
    assert found == ([] if place is None else [place])


def test_few_validations_that_are_only_noisy_are_left_in_peace() -> None:
    rng = np.random.default_rng(1)
    told = 0
    for _ in range(600):
        values = np.maximum(0, 1 + 0.3 * rng.standard_normal(int(rng.integers(6, 30))))
        told += any(first_signs({"eval_reward": Curve(np.arange(1.0, 1 + len(values)), values)}))
    assert told <= 6


def test_dead_groups_that_are_done_are_no_sign_and_nan_is() -> None:
    steps = np.arange(1.0, 101)
    done = {"dead_or_done": Curve(steps, np.linspace(0.1, 0.9, 100))}
    risen = {"reward": Curve(steps, np.linspace(0.2, 1.0, 100))}
    fell = {"reward": Curve(steps, np.concatenate([np.full(60, 1.0), np.full(40, 0.4)]))}
    assert not list(first_signs(done | risen))
    assert "dead-groups-no-gain" in {sign.code for sign in first_signs(done | fell)}
    values = np.ones(100)
    values[49] = math.nan
    [sign] = first_signs({"loss": Curve(steps, values)})
    assert (sign.code, sign.step) == ("not-finite", 50)


# --- following


def test_a_log_is_followed_as_it_grows_and_each_warning_is_told_once(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    write(log, collapsing()[:100])
    watch = Watch([log])
    assert watch.look() == []
    whole = tmp_path / "whole"
    write(whole, collapsing())
    told = []
    for line in whole.read_bytes().splitlines(keepends=True)[100:]:
        step = json.loads(line)["step"]
        with log.open("ab") as handle:  # torn: the rest of the line comes after the next look
            handle.write(line[:40])
            handle.flush()
            assert not [each for each in watch.look() if each.step == step]
            handle.write(line[40:])
        told += [(each.code, each.step, step) for each in watch.look()]
    assert [code for code, _, _ in told] == ["response-shorter", "reward-drawdown"]
    assert all(at == now for _, at, now in told), "it was told at the step that showed it"
    assert told[0][1] <= 120
    [run] = watch.runs
    assert (run.step, run.unread, run.format) == (170, 0, "verl")


def test_a_line_that_cannot_be_read_is_passed_over_and_a_rewound_run_begun_again(
    tmp_path: Path,
) -> None:
    log = tmp_path / "run.jsonl"
    write(log, collapsing()[:30])
    watch = Watch([log])
    watch.look()
    with log.open("a") as handle:
        handle.write('{"step": 31, "da\n{"step": 32, "data": {"critic/rewards/mean": 1.9}}\n')
    watch.look()
    [run] = watch.runs
    assert (run.unread, run.step) == (1, 32)
    write(log, collapsing()[:10])
    watch.look()
    [run] = watch.runs
    assert (run.step, len(run.points["critic/rewards/mean"].steps)) == (10, 10)


def test_steps_that_come_again_replace_what_followed(tmp_path: Path) -> None:
    log = tmp_path / "run.jsonl"
    write(log, collapsing()[:30])
    with log.open("a") as handle:
        handle.write('{"step": 21, "data": {"critic/rewards/mean": 7.0}}\n')
    watch = Watch([log])
    watch.look()
    points = watch.runs[0].points["critic/rewards/mean"]
    assert points.steps == list(range(1, 22))
    assert points.values[-1] == 7.0


def test_a_log_of_wandb_is_followed_as_it_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("kleash.compare.watch.follow.OFTEN", 0)
    [log] = (FIXTURES / "wandb").rglob("*.wandb")
    whole, grown = log.read_bytes(), tmp_path / log.name
    [run] = read(log).runs
    followed, counts = Whole(grown), []
    for size in range(7, len(whole) + 997, 997):
        grown.write_bytes(whole[:size])
        followed.poll()
        counts.append(sum(told.count for told in followed.runs))
    assert counts == sorted(counts) and len({*counts}) >= 5
    [told] = followed.runs
    assert told.name == run.name
    for series in run.series:
        points = told.points[series.metric]
        assert points.steps == series.steps.tolist()
        np.testing.assert_array_equal(points.values, series.values)


def test_the_console_of_verl_our_runs_and_tables_are_followed_too(tmp_path: Path) -> None:
    rows = collapsing()
    printed = "".join(
        f"(TaskRunner pid=7) step:{n} - "
        + " - ".join(f"{name}:{value:.4f}" for name, value in row.items())
        + "\n"
        for n, row in enumerate(rows, 1)
    )
    (tmp_path / "verl").mkdir()
    (tmp_path / "verl/verl.log").write_text(printed)
    header = "step,reward,response_length\n"
    body = "".join(
        f"{n},{row['critic/rewards/mean']},{row['response_length/mean']}\n"
        for n, row in enumerate(rows, 1)
    )
    (tmp_path / "tables").mkdir()
    (tmp_path / "tables/table.csv").write_text(header + body)
    own = tmp_path / "runs/kl0-s0"
    own.mkdir(parents=True)
    for name in ("config.json", "given.json"):
        (own / name).write_text("{}")
    (own / "meta.json").write_text('{"identity": "0"}')
    lines: list[dict[str, Any]] = [
        {"kind": "step", "phase": "grpo", "epoch": 1, "step": n}
        | {"episode/reward": row["critic/rewards/mean"]}
        | {"response_length": row["response_length/mean"]}
        for n, row in enumerate(rows, 1)
    ]
    lines.append({"kind": "finding", "code": "no-signal", "message": "0 of 8 groups", "step": 9})
    (own / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    watch = Watch([tmp_path])
    told: dict[str, list[str]] = {}
    for each in watch.look():
        told.setdefault(Path(each.source).name, []).append(each.code)
    both = ["response-shorter", "reward-drawdown"]
    assert told == {"metrics.jsonl": [*both, "run:no-signal"], "table.csv": both, "verl.log": both}


def test_real_logs_of_other_tools_raise_no_alarm(tmp_path: Path) -> None:
    for tool in ("trl", "tensorboard"):
        shutil.copytree(FIXTURES / tool, tmp_path / tool)
    codes = {each.code.split(":")[0] for each in Watch([tmp_path]).look()}
    assert codes <= {"not-finite"}  # the fixtures of trackers hold NaN on purpose


def test_the_job_is_only_read(tmp_path: Path) -> None:
    write(tmp_path / "run.jsonl", collapsing())
    shutil.copytree(FIXTURES / "wandb", tmp_path / "wandb")

    def state() -> list[tuple[str, bytes, int]]:
        files = sorted(path for path in tmp_path.rglob("*") if path.is_file())
        return [(str(file), file.read_bytes(), file.stat().st_mtime_ns) for file in files]

    before, folders = state(), sorted(tmp_path.rglob("*"))
    Watch([tmp_path]).look()
    assert state() == before
    assert sorted(tmp_path.rglob("*")) == folders


def test_a_source_must_be_there_but_may_be_empty(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no such file"):
        Watch([tmp_path / "nowhere"])
    watch = Watch([tmp_path])
    assert watch.look() == []
    write(tmp_path / "run.jsonl", collapsing()[:5])
    for _ in range(6):
        watch.look()
    assert [run.step for run in watch.runs] == [5]


# --- the verb


def test_the_verb_tells_step_numbers_and_a_sentence_in_both_languages(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", collapsing())
    *warnings, seen = watched(str(tmp_path / "train.jsonl"), "--lang", "zh")
    assert [each["code"] for each in warnings] == ["response-shorter", "reward-drawdown"]
    assert 108 < warnings[0]["step"] <= 120
    assert "响应长度在数步之内" in warnings[0]["text"]
    assert seen["runs"][0]["step"] == 170
    done = CliRunner().invoke(
        app, ["watch", str(tmp_path / "train.jsonl"), "--once", "--lang", "en"]
    )
    assert "responses have shrunk to" in done.stdout
    assert "2 warnings" in done.stdout


def once(*words: str) -> str:
    done = CliRunner().invoke(app, ["watch", *words, "--once", "--lang", "en"])
    assert done.exit_code == 0, done.output
    return done.stdout


def test_what_could_not_be_read_is_said_and_that_there_is_nothing_yet(tmp_path: Path) -> None:
    write(tmp_path / "train.jsonl", collapsing()[:40])
    with (tmp_path / "train.jsonl").open("a") as handle:
        handle.write("{half a line\n")
    assert "train: lines that could not be read: 1" in once(str(tmp_path / "train.jsonl"))
    (tmp_path / "empty").mkdir()
    told = once(str(tmp_path / "empty"))
    assert "nothing to follow yet" in told and "runs: 0" in told
    for seconds in ("0", "-1", "nan"):
        wrong = CliRunner().invoke(app, ["watch", str(tmp_path), "--every", seconds])
        assert isinstance(wrong.exception, ConfigError) and "--every" in str(wrong.exception)


def test_consoles_are_named_by_their_folders_as_compare_names_them(tmp_path: Path) -> None:
    for name in ("expA", "expB"):
        (tmp_path / name).mkdir()
        lines = [f"step:{n} - critic/rewards/mean:{n / 9:.3f}" for n in range(1, 9)]
        (tmp_path / name / "train.log").write_text("\n".join(lines) + "\n")
    watch = Watch([tmp_path])
    watch.look()
    named = {run.name for source in [read(tmp_path)] for run in source.runs}
    assert {run.name for run in watch.runs} == {"expA", "expB"} == named


def test_tables_of_results_are_counted_and_epochs_are_shown(tmp_path: Path) -> None:
    (tmp_path / "kl0.1.csv").write_text("epoch,kl,loss\n1,0.01,0.5\n2,0.02,0.4\n3,0.03,0.3\n")
    (tmp_path / "results.csv").write_text("run,accuracy\nkl0.1,0.5\nkl0.2,0.6\n")
    said = once(str(tmp_path))
    assert "epoch 3" in said
    assert "kl0.2" not in said
    assert "entropy" not in said  # what no run logs has no column
    assert "logs without a curve, not shown: 2" in said
    assert "runs: 1," in said


def test_runs_called_by_a_seed_alone_have_their_folders_name(tmp_path: Path) -> None:
    for arm, level in (("kl0", 0.1), ("kl0.1", 0.9)):
        folder = tmp_path / arm
        folder.mkdir()
        rows = [{"critic/rewards/mean": 0.9}] * 60 + [{"critic/rewards/mean": level}] * 20
        write(folder / "seed1.jsonl", rows)
    *warned, seen = watched(str(tmp_path))
    assert {each["run"] for each in warned} == {"kl0/seed1"}
    assert [each["run"] for each in seen["runs"]] == ["kl0/seed1", "kl0.1/seed1"]
    for arm in ("kl0", "kl0.1"):  # a format that is read anew when it has changed
        (tmp_path / arm / "seed1.jsonl").unlink()
        text = "step,reward\n" + "".join(f"{at},0.5\n" for at in range(1, 30))
        (tmp_path / arm / "seed1.csv").write_text(text)
    *_, seen = watched(str(tmp_path))
    assert [each["run"] for each in seen["runs"]] == ["kl0/seed1", "kl0.1/seed1"]


def test_runs_with_long_names_are_told_by_what_differs(tmp_path: Path) -> None:
    long = "TravelGym_Qwen3-4B_n8_"
    for name in ("kl0.001", "kl0.005"):
        write(tmp_path / f"{long}{name}.jsonl", [{"critic/rewards/mean": 0.9}] * 9)
    said = once(str(tmp_path))
    rows = [line.split("│")[1].strip() for line in said.splitlines() if "│" in line]
    assert rows == ["kl0.001", "kl0.005"]
    assert f"called by what differs in their names: {long}…" in said
    *_, seen = watched(str(tmp_path))  # programs get them whole
    assert [each["run"] for each in seen["runs"]] == [f"{long}kl0.001", f"{long}kl0.005"]


def test_what_a_guard_says_of_an_arm_stands_at_its_runs(tmp_path: Path) -> None:
    for seed in (0, 1):
        rows = [{"critic/kl": 0.5, "actor/pg_loss": 0.1} for _ in range(30)]
        write(tmp_path / f"kl0.1-s{seed}.jsonl", rows)
        write(tmp_path / f"kl0.2-s{seed}.jsonl", [{"critic/kl": 0.001 * n} for n in range(30)])
    watch = Watch([tmp_path])
    assert {each.run for each in watch.look()} == {"kl0.1"}
    about = {run.name for run in watch.runs for each in watch.warned if each.is_about(run)}
    assert about == {"kl0.1-s0", "kl0.1-s1"}
    lines = once(str(tmp_path)).splitlines()
    assert [("1 warning" in line) for line in lines if "kl0.1-s" in line and "│" in line] == [
        True
    ] * 2


def test_the_example_of_the_help_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.jsonl", collapsing()[:60])
    told = CliRunner().invoke(app, ["watch", "--help"]).output
    assert "kleash watch train.jsonl --once --json" in told
    [seen] = watched("train.jsonl")
    assert seen["warnings"] == 0


@pytest.fixture
def hook() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """An address on this machine, and what was sent to it."""
    heard: list[dict[str, Any]] = []

    class Hook(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            heard.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    server = HTTPServer(("127.0.0.1", 0), Hook)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}/hook", heard
    server.shutdown()
    thread.join()
    server.server_close()


def test_warnings_go_to_a_webhook_and_to_a_command(
    tmp_path: Path, hook: tuple[str, list[dict[str, Any]]]
) -> None:
    address, heard = hook
    write(tmp_path / "train.jsonl", collapsing())
    command = f'echo "$KLEASH_CODE $KLEASH_STEP" >> {tmp_path / "said"}'
    words = [str(tmp_path / "train.jsonl"), "--webhook", address, "--run", command]
    *warnings, _ = watched(*words)
    assert heard == warnings
    said = (tmp_path / "said").read_text().splitlines()
    assert said == [f"{each['code']} {each['step']}" for each in warnings]


def test_a_webhook_that_cannot_be_reached_is_one_line_and_the_watch_goes_on(
    tmp_path: Path,
) -> None:
    write(tmp_path / "train.jsonl", collapsing())
    words = [str(tmp_path / "train.jsonl"), "--once", "--json", "--run", "exit 3"]
    done = CliRunner().invoke(app, ["watch", *words, "--webhook", "http://127.0.0.1:9/none"])
    assert done.exit_code == 0
    assert done.stderr.count("the webhook cannot be reached") == 1
    assert done.stderr.count("the command ended with 3") == 1


def test_bots_get_the_form_they_take() -> None:
    assert BOTS["open.feishu.cn"]("a") == {"msg_type": "text", "content": {"text": "a"}}
    assert BOTS["oapi.dingtalk.com"]("a") == {"msgtype": "text", "text": {"content": "a"}}


def test_a_live_view_is_drawn_until_it_is_ended(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(tmp_path / "train.jsonl", collapsing())
    looks = []

    def asleep(seconds: float) -> None:
        looks.append(seconds)
        if len(looks) == 3:
            raise KeyboardInterrupt

    monkeypatch.setattr("time.sleep", asleep)
    done = CliRunner().invoke(app, ["watch", str(tmp_path), "--every", "7", "--lang", "en"])
    assert done.exit_code == 0, done.output
    assert looks == [7.0] * 3
    assert done.stdout.count("responses have shrunk") >= 1
    assert "2 warnings" in done.stdout
