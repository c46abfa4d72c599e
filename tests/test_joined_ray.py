"""A Ray cluster that is running already, joined as `auto` and as `ray://HOST:PORT`.

It is started with `ray start --head`, and whoever joins is another process that knows of it only
what a user's environment says. Where Ray is not installed this file is skipped: `make test-all`
runs it where it is.
"""

import json
import signal
import time

import pytest

from kleash.runs.jobs import on_ray
from ray_tools import cluster, free_port, wait_until_gone

if on_ray.ray is None:
    pytest.skip("Ray is not installed: make test-all has it", allow_module_level=True)
__all__ = ["cluster"]
pytestmark = pytest.mark.slow

DRIVER = """
import json, os, signal, sys
from kleash.errors import ConfigError
from kleash.runs.jobs import Job, run_jobs

def hear(told):
    if told.kind == "told":
        print(json.dumps(told.record), flush=True)
        if "pid" in told.record:
            os.kill(told.record["pid"], signal.SIGKILL)

on, jobs = sys.argv[1], [Job(name, *rest) for name, *rest in json.loads(sys.argv[2])]
try:
    outcomes = run_jobs(jobs, workers=2, hear=hear, on=on)
except ConfigError as error:
    sys.exit(f"kleash: {error}")
print(json.dumps({n: [each.state, each.result, each.attempts] for n, each in outcomes.items()}))
"""


def join(cluster, on, *jobs, **changes):
    """A driver with some jobs; `changes` to its environment."""
    return cluster.driver(DRIVER, on, json.dumps(jobs), **changes)


def ends(driver):
    """What it printed last, and all it complained of."""
    out, errors = driver.communicate(timeout=600)
    return (out.splitlines() or [""])[-1], errors


@pytest.mark.parametrize("way", ["RAY_ADDRESS", "address file", "RAY_ADDRESS of a client", "ray"])
def test_jobs_run_on_a_cluster_that_is_there_and_a_killed_worker_is_replaced(
    way, cluster, tmp_path
):
    changes = {
        "RAY_ADDRESS": {"RAY_ADDRESS": f"127.0.0.1:{cluster.port}"},
        "address file": {"RAY_TMPDIR": str(cluster.folder)},
        "RAY_ADDRESS of a client": {"RAY_ADDRESS": cluster.client},
        "ray": {},
    }[way]
    on = cluster.client if way == "ray" else "auto"
    slow = ["slow", "calls:once_slow", {"marker": str(tmp_path / "marker")}]
    quick = [[f"quick-{n}", "calls:double", {"x": n}] for n in range(4)]
    told, errors = ends(join(cluster, on, slow, *quick, **changes))
    # Another cluster on this machine is told of by Ray, and does not matter.
    assert [line for line in errors.splitlines() if "multiple active Ray" not in line] == []
    outcomes = json.loads(told)
    assert [outcomes[f"quick-{n}"] for n in range(4)] == [["done", 2 * n, 1] for n in range(4)]
    assert outcomes["slow"][0] == "done"
    assert outcomes["slow"][2] == 2
    assert outcomes["slow"][1]["pid"] != int((tmp_path / "marker").read_text())


def at(cluster, kind):
    """How to ask for it, and in which environment."""
    if kind == "client":
        return cluster.client, {}
    return "auto", {"RAY_ADDRESS": f"127.0.0.1:{cluster.port}"}


@pytest.mark.parametrize("kind", ["client", "head"])
@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"RAY_AUTH_TOKEN": "f" * 64}, "refuses our token"),
        ({"RAY_AUTH_MODE": "disabled"}, "wants a token: set RAY_AUTH_MODE=token"),
        ({"HOME": "/nowhere"}, "wants a token: set RAY_AUTH_MODE=token"),
        ({"HOME": "/nowhere", "RAY_AUTH_MODE": "token"}, "couldn't find an authentication token"),
        ({"RAY_AUTH_TOKEN_PATH": "/nowhere/token"}, "cannot be opened or is empty: /nowhere/token"),
    ],
    ids=["wrong", "disabled", "none", "none but asked for", "no such file"],
)
def test_a_token_that_is_wrong_or_missing_is_a_line_at_once(kind, changes, line, cluster):
    on, env = at(cluster, kind)
    began = time.monotonic()
    _, errors = ends(join(cluster, on, ["a", "calls:double", {}], **env, **changes))
    assert time.monotonic() - began < 20
    assert errors.startswith("kleash: ") and errors.count("\n") == 1
    assert line in errors


def test_an_address_that_is_silent_wrong_or_none_is_a_line_at_once(cluster):
    silent, head = f"127.0.0.1:{free_port()}", f"127.0.0.1:{cluster.port}"
    answers = {
        f"ray://{silent}": f"no Ray cluster answers at ray://{silent}",
        f"ray://{head}": "is another service (UNIMPLEMENTED): ray:// wants the client's port",
        "ray://somewhere": "'ray://somewhere' is no address of a Ray cluster",
        silent: f"no Ray cluster answers at {silent}",
        cluster.client.removeprefix("ray://"): "wants the port of `ray start --head`",
    }
    began = time.monotonic()
    for address, line in answers.items():
        on = address if address.startswith("ray://") else "auto"
        env = {} if on == address else {"RAY_ADDRESS": address}
        _, errors = ends(join(cluster, on, ["a", "calls:double", {}], **env))
        assert errors.startswith("kleash: ") and errors.count("\n") == 1
        assert line in errors
    assert time.monotonic() - began < 60


@pytest.mark.parametrize("kind", ["client", "head"])
def test_a_driver_that_is_asked_to_end_takes_its_jobs_with_it(kind, cluster):
    on, env = at(cluster, kind)
    with join(cluster, on, *[[n, "calls:wait", {"child": True}] for n in "ab"], **env) as driver:
        pids = {next(iter(json.loads(driver.stdout.readline()).values())) for _ in range(4)}
        driver.send_signal(signal.SIGTERM)
        told, errors = ends(driver)
        assert errors == ""
        assert json.loads(told) == {n: ["stopped", None, 1] for n in "ab"}
        assert not wait_until_gone(pids, 60)


@pytest.mark.parametrize("kind", ["client", "head"])
def test_a_driver_that_is_killed_takes_its_jobs_with_it(kind, cluster):
    on, env = at(cluster, kind)
    env |= {"RAY_CLIENT_RECONNECT_GRACE_PERIOD": "2"}  # 30 s if not set: a client may come back
    with join(cluster, on, *[[n, "calls:wait", {"child": True}] for n in "ab"], **env) as driver:
        pids = {next(iter(json.loads(driver.stdout.readline()).values())) for _ in range(4)}
        driver.kill()
        ends(driver)
        assert not wait_until_gone(pids, 120)
