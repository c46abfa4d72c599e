"""The notebooks in examples/ and the Python of docs/python.md run, in a running event loop."""

import ast
import asyncio
import json
import re
import shutil
from pathlib import Path

import pytest
import tomli_w

from kleash.train.single import NAMED
from made_study import made_study
from plain_sources import HANDMADE
from study_tools import SMALL, inline
from test_imports import FIXTURES
from tiny import given

__all__ = ["inline"]
PAGE = Path(__file__).parent.parent / "docs/python.md"
EXAMPLES = sorted((Path(__file__).parent.parent / "examples").glob("*.ipynb"))


def outputs_of(notebook):
    """What each cell of code shows: its last expression, as a notebook would."""
    shown, names = [], {"__name__": "__main__"}
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        if cell["cell_type"] == "code":
            *rest, last = ast.parse("".join(cell["source"])).body
            if isinstance(last, ast.Expr):
                last = ast.Assign([ast.Name("_", ast.Store())], last.value)
            whole = ast.fix_missing_locations(ast.Module([*rest, last], []))
            exec(compile(whole, notebook.name, "exec"), names)
            shown.append(names.pop("_", None))
    return shown


@pytest.mark.parametrize("notebook", EXAMPLES, ids=lambda path: path.stem)
def test_a_notebook_runs(notebook, tmp_path, monkeypatch, capsys, one_thread):
    monkeypatch.chdir(tmp_path)

    async def kernel():
        return outputs_of(notebook)

    shown = asyncio.run(kernel())
    for each in shown:
        if hasattr(each, "height"):
            assert each.height, f"{notebook.name} shows an empty frame: {each.columns}"
    printed = capsys.readouterr().out
    assert "No setting can be recommended from these runs." in printed


def test_notebooks_are_kept_without_what_they_showed():
    assert {path.stem for path in EXAMPLES} == {"compare", "train"}
    for notebook in EXAMPLES:
        cells = json.loads(notebook.read_text(encoding="utf-8"))["cells"]
        assert not [cell for cell in cells if cell.get("outputs") or cell.get("execution_count")]


def test_the_python_of_the_page_runs(tmp_path, monkeypatch, one_thread, inline):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setitem(NAMED, "default", given())
    one_arm = {"arms": {"tight": {"leash": {"coefficient": 1.0}}}}
    Path("mine.toml").write_text(tomli_w.dumps(SMALL | {"name": "mine"} | one_arm))
    made_study(Path("studies/demos-kl"))
    shutil.copytree(HANDMADE / "verl/exp-s1", "logs/verl")
    shutil.copytree(FIXTURES / "trl/kl0.15-s3", "logs/trl")
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.S | re.M)
    names = {}

    async def kernel():
        exec(compile("".join(blocks), PAGE.name, "exec"), names)

    asyncio.run(kernel())
    assert names["run"].config["leash"]["coefficient"] == 0.12
    assert names["run"].name == "default-s3" and names["run"].finished
    assert names["study"].file.seeds == (0, 1, 2) and Path("page.html").is_file()
    assert {*names["found"].frame("arms")["name"]} == {"no KL", "KL"}
