"""How many errors planted by hand `kleash check` finds, and how many right figures it marks.

    python tests/score_check.py tests/planted_by_hand/*/
    python tests/score_check.py tests/planted_by_hand/unseen*.tar.xz

A folder has `report.md`, which is right, `planted.md` with errors, `plants.json`, which lists them,
and `logs`. An archive has such folders in sets, a folder each. Found is an error if `check` marks
its line, or a line that it contradicts, where the right report is not marked. With logs, and alone:
then only errors that the report itself contradicts are counted. A folder with `answers.json` is
scored a third time, with what an interpreter once answered: by file, to which question.
"""

from __future__ import annotations

import json
import re
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from click.testing import Result
from typer.testing import CliRunner

from kleash.cli import app
from kleash.errors import KleashError

Mark = dict[str, Any]


def marks(report: Path, logs: Path | None, answers: dict[str, str] | None = None) -> list[Mark]:
    """What is wrong or not supported."""
    asked = ["check", str(report), "--json", *(("--against", str(logs)) if logs else ())]
    told = CliRunner().invoke(app, asked) if answers is None else interpreted(asked, answers)
    assert told.exit_code in (0, 1), told.output
    assert isinstance(told.exception, SystemExit | None), told.exception
    every: list[Mark] = json.loads(told.output)["marks"]
    return [mark for mark in every if mark["state"] in ("wrong", "unsupported")]


def interpreted(asked: list[str], answers: dict[str, str]) -> Result:
    """A check whose questions are answered as they once were; again of what does not hold.

    Whichever lines a question is of, it gets what is on record of these, in order. In the second
    round what has no answer on record is what the interpreter was asked about, in its own words,
    and so it stands by it.
    """
    kept = Path(asked[1]).with_suffix(".answers.jsonl")
    kept.unlink(missing_ok=True)
    while True:
        told = CliRunner().invoke(app, [*asked, "--answers", str(kept)])
        if not isinstance(told.exception, KleashError):
            return told
        lines = [json.loads(line) for line in kept.read_text(encoding="utf-8").splitlines()]
        for line in lines:
            line["answer"] = line["answer"] or answer_to(line["question"], answers)
        text = "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)
        kept.write_text(text, encoding="utf-8")


def answer_to(question: str, answers: dict[str, str]) -> str:
    """What is on record of the lines that a question is of."""
    asked = re.search(r"(\d+) to (\d+)\.$|第 (\d+) 行到第 (\d+) 行。$", question)
    if not asked:
        return again(question, answers["again"])
    first, last = (int(one) for one in asked.groups() if one)
    own = [one for key, answer in answers.items() if key != "again" for one in answer.splitlines()]
    return "\n".join(one for one in own if first <= line_of(one) <= last) or "[]"


def line_of(told: str) -> int:
    """Of which line of the report an answer speaks."""
    claim = json.loads(told) if told.startswith("{") else {}
    at = re.match(r"[A-Za-z]+(\d+)", claim.get("at", ""))
    return int(at[1] if at else claim.get("line") or 0)


def again(question: str, answer: str) -> str:
    """The second answer, and after it what was asked, for claims that it says nothing of."""
    mine = re.findall(r"^  you: (.*)$", question, re.M)
    known = {key_of(json.loads(line)) for line in answer.splitlines() if line.strip()}
    return "\n".join([answer, *(one for one in mine if key_of(json.loads(one)) not in known)])


def key_of(claim: dict[str, Any]) -> tuple[object, ...]:
    """What a claim is about."""
    return claim.get("at"), claim.get("line"), claim.get("words")


def spot(mark: Mark) -> tuple[object, ...]:
    """By what a mark is known."""
    return mark["line"], mark["code"], mark["text"]


def is_figure(mark: Mark) -> bool:
    """Whether a number is marked, and not a word alone."""
    figure = re.search(r"\d", mark["text"]) and mark["code"] != "check.word"
    return mark["state"] == "wrong" or bool(figure)


def score(folder: Path, logs: Path | None, *, answers: bool = False) -> tuple[int, int, int]:
    """Errors that are found, of how many, and right figures that are marked."""
    plants = json.loads((folder / "plants.json").read_text(encoding="utf-8"))
    said = json.loads((folder / "answers.json").read_text(encoding="utf-8")) if answers else {}
    right, planted = (
        marks(folder / name, logs, said.get(name)) for name in ("report.md", "planted.md")
    )
    had = {spot(mark) for mark in right}
    at = {mark["line"] for mark in planted if spot(mark) not in had}
    taken = {line for plant in plants for line in plant["lines"]}
    counted = [plant for plant in plants if logs or not plant["needs_log"]]
    found = [at & {*one["lines"], *(set(one["contradicts"]) - taken)} for one in counted]
    return sum(map(bool, found)), len(counted), sum(map(is_figure, right))


def folders(given: list[str], room: Path) -> Iterator[Path]:
    """The reports that are given, those in archives too."""
    for name in given:
        path = Path(name)
        if path.is_dir():
            yield path
            continue
        with tarfile.open(path) as archive:
            archive.extractall(room / path.name, filter="data")
        yield from sorted(one.parent for one in (room / path.name).glob("*/*/plants.json"))


def main() -> None:
    """A row for each report, and their sum."""
    total = [0] * 9
    each = ("of", "right figures marked")
    tell("report", "found with logs", *each, "alone", *each, "with an interpreter", *each)
    tell(*["---"] * 10)
    with tempfile.TemporaryDirectory() as room:
        for folder in folders(sys.argv[1:], Path(room)):
            logs = folder / "logs"
            asked = (folder / "answers.json").is_file()
            row = [
                *(score(folder, logs) if logs.is_dir() else (0, 0, 0)),
                *score(folder, None),
                *(score(folder, None, answers=True) if asked else (0, 0, 0)),
            ]
            total = [a + b for a, b in zip(total, row, strict=True)]
            tell(f"{folder.parent.name}/{folder.name}", *row)
    tell("all", *total)


def tell(*cells: object) -> None:
    """A row of a table."""
    sys.stdout.write(f"| {' | '.join(map(str, cells))} |\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
