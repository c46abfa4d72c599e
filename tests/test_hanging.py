"""A test that hangs fails where it hangs, and those after it run, with workers and without."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

HANGING = """
import subprocess, threading, time
import pytest
from hypothesis import given, strategies

pytestmark = pytest.mark.limit(0.5)

@pytest.fixture
def stuck():
    threading.Lock().acquire() and threading.Event().wait()

def test_in_a_fixture(stuck): pass

def test_that_catches_what_it_can():
    while True:
        try:
            subprocess.run(["sleep", "60"])
        except Exception:
            pass

@given(strategies.integers())
def test_that_is_tried_again(n):
    while True:
        time.sleep(0.01)

def test_that_is_quick(): pass

@pytest.mark.limit(60)
def test_that_may_take_longer(): time.sleep(0.6)
"""


@pytest.mark.parametrize(
    "workers", [(), pytest.param(("-n", "2"), marks=pytest.mark.slow)], ids=["one", "several"]
)
def test_what_hangs_fails_with_its_stack_and_the_rest_go_on(workers, tmp_path):
    tests = Path(__file__).parent
    (tmp_path / "test_hanging_here.py").write_text(HANGING)
    command = [sys.executable, "-m", "pytest", "-p", "conftest", *workers]
    command += ["-c", str(tests.parent / "pyproject.toml"), "--rootdir", str(tmp_path)]
    path = os.pathsep.join([str(tests), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [*command, str(tmp_path)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    told = done.stdout
    assert "2 failed, 2 passed, 1 error" in told, told + done.stderr
    assert told.count("LateError: it takes more than 0.5 s") >= 3
    assert 'subprocess.run(["sleep", "60"])' in told and "threading.Event().wait()" in told
