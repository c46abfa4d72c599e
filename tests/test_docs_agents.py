"""docs/agents.md: its commands run in their order, and its Python does what it says."""

import re
import shlex
from pathlib import Path

from typer.testing import CliRunner

from agent_tools import AGENT
from kleash.algo.credit import CREDITS, SCORES
from kleash.cli import app
from kleash.config import help_lines, merge
from kleash.tasks.envs import options_of
from kleash.train.recipe import AgentRecipe, Credit
from kleash.train.single import NAMED

PAGE = (Path(__file__).parent.parent / "docs/agents.md").read_text(encoding="utf-8")

# As the small agent has them.
SHORTER = (("epoch-15", "epoch-2"), ("epochs=16", "epochs=3"), ("--items 200", "--items 20"))
SMALL = merge(AGENT, {"supervised": {"dialogues": 100}})


def blocks(language):
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.S | re.M)


def ran(command):
    told = CliRunner().invoke(app, shlex.split(command)[1:])
    if told.exception is not None and not isinstance(told.exception, SystemExit):
        raise AssertionError(command) from told.exception
    assert told.exit_code == 0, f"{command}\n{told.output}"
    assert told.output.strip(), command


def test_the_commands_and_the_python_of_the_page_run(tmp_path, monkeypatch, one_thread, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(NAMED, "agent", SMALL)
    for line in "".join(blocks("console")).replace("\\\n", " ").splitlines():
        assert line.startswith("$ kleash ")
        for long, short in SHORTER:
            line = line.replace(long, short)
        ran(line[2:])
    assert (tmp_path / "my-agent/kleash.json").is_file()
    first, second = blocks("python")
    exec(compile(first, "docs/agents.md", "exec"), {})
    assert capsys.readouterr().out.startswith("BOS TASK party ;")
    assert "load_selector" in second


def test_every_way_to_give_credit_has_its_row():
    rows = {name for line in PAGE.splitlines() for name in re.findall(r"^\| `(\w+)`", line)}
    turns = Credit.model_fields["turn"].annotation.__args__
    scores = Credit.model_fields["score"].annotation.__args__
    assert set(scores) == set(SCORES) and set(CREDITS) <= set(turns)
    assert {*turns, *scores} <= rows


def test_every_key_that_is_set_on_the_page_exists():
    text = re.sub(r"^```python.*?^```", "", PAGE, flags=re.S | re.M)
    known = {key for key, *_ in help_lines(AgentRecipe)} | {"like"}
    known |= {f"gym.{key}" for key, *_ in help_lines(options_of("intention"))}
    told = set(re.findall(r"(?<![\w.])((?:\w+\.)*\w+)=", "".join(re.findall(r"`[^`]*`", text))))
    assert len(told) > 10
    assert not told - known
