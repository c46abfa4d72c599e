"""Tasks of the intention environment, schema `intent-task/1`; records of UserRL load unchanged.

A record that cannot be used is fatal and named: a task that is silently left out changes what a
mean is a mean of. What a record of UserRL leaves out (ids, values, split) is derived from its
content by hash.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from kleash.config import Config, explain
from kleash.errors import DataError
from kleash.seeds import key
from kleash.tasks.envs.contract import split_of

SCHEMA = "intent-task/1"
SHARES = {"train": 0.6, "validation": 0.2, "test": 0.2}
NO_PREFERENCE = "no preference"  # the value of a detail that names neither a value nor options
# UserRL's base rewards by importance (arXiv 2509.19736).
WORTH = {3: 1.0, 2: 0.7, 1: 0.4}


class Detail(Config):
    """Something that a vague request leaves out: what is to be uncovered."""

    id: str = Field(min_length=1)
    description: str = Field(min_length=1)
    importance: Literal[1, 2, 3]
    inquiry: str = ""
    options: tuple[str, ...] = ()
    value: str = Field(min_length=1)
    terms: tuple[str, ...] = ()

    @field_validator("importance", mode="before")
    @classmethod
    def _number(cls, given: object) -> object:
        """UserRL writes "3"; `true` is 1 to Python and no importance."""
        if isinstance(given, bool):
            raise ValueError("an importance is 1, 2 or 3")
        return int(given) if isinstance(given, str) and given.strip() in {"1", "2", "3"} else given


class IntentTask(Config):
    """A vague request, what it says (`given`) and what it leaves out."""

    id: str = Field(min_length=1)
    split: Literal["train", "validation", "test"]
    category: str
    task: str = Field(min_length=1)
    given: dict[str, str] = Field(default_factory=dict)
    missing_details: tuple[Detail, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _ids_differ(self) -> Self:
        ids = [detail.id for detail in self.missing_details]
        if len(set(ids)) < len(ids):
            raise ValueError(f"the details' ids are not different: {', '.join(ids)}")
        return self

    @property
    def ceiling(self) -> float:
        """The reward of asking for every detail alone."""
        return sum(WORTH[detail.importance] for detail in self.missing_details)

    @property
    def content(self) -> str:
        """The hash of what the task is, whatever it is called and wherever it is put."""
        return f"{key('intent', self.model_dump_json(exclude={'id', 'split'})):032x}"

    def record(self) -> dict[str, Any]:
        """The line of a task file."""
        return {"schema": SCHEMA, **self.model_dump(mode="json")}


def task_from(record: Mapping[str, Any], *, split: str | None = None) -> IntentTask:
    """A task of either schema; raises `ValueError` with what is wrong."""
    values = dict(record)
    schema = values.pop("schema", None)
    if schema not in (None, SCHEMA):
        raise ValueError(f"the schema is {schema!r}, and {SCHEMA!r} is what can be read")
    if schema is None:  # UserRL has further keys, such as its own reasoning about the task
        values = {name: values[name] for name in IntentTask.model_fields if name in values}
        values |= {"id": str(values["id"])} if _is_number(values.get("id")) else {}
    said = (str(values.get("category", "")), str(values.get("task", "")))
    values.setdefault("category", "")
    details = values.get("missing_details")
    if isinstance(details, list):
        values["missing_details"] = _completed(details, said, strict=schema is not None)
    name = f"{key('task', *said, json.dumps(details, sort_keys=True, default=str)):032x}"[:12]
    values.setdefault("id", name)
    if split is not None:
        values["split"] = split
    values.setdefault("split", split_of(("intent", *said), SHARES))
    try:
        return IntentTask.model_validate(values)
    except ValidationError as error:
        raise ValueError(explain(IntentTask, error)) from None


def _completed(details: Sequence[Any], said: Sequence[str], *, strict: bool) -> list[Any]:
    """Details with the ids and values that they leave out, by hash of what they say."""
    completed: list[Any] = []
    seen: Counter[str] = Counter()
    for detail in details:
        if not isinstance(detail, dict):
            completed.append(detail)
            continue
        known = dict(detail)
        if not strict:
            known = {name: detail[name] for name in Detail.model_fields if name in detail}
        described = str(known.get("description", ""))
        seen[described] += 1  # the same words twice are two details
        known.setdefault("id", f"{key('detail', *said, described, seen[described]):032x}"[:8])
        options = known.get("options")
        if options is None:
            known.pop("options", None)
        elif not strict and isinstance(options, list):  # some options of UserRL may be numbers
            options = [str(option) if _is_number(option) else option for option in options]
            known["options"] = options
        if not known.get("value"):
            listed = [o for o in options if isinstance(o, str)] if isinstance(options, list) else []
            place = key("value", *said, described, seen[described]) % max(len(listed), 1)
            known["value"] = listed[place] if listed else NO_PREFERENCE
        completed.append(known)
    return completed


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def load_tasks(path: Path, *, split: str | None = None) -> list[IntentTask]:
    """The tasks of a JSONL file, or of a JSON file that holds a list or a mapping of records."""
    tasks = []
    times: Counter[str] = Counter()
    for where, record in _records(path):
        try:
            if not isinstance(record, dict):
                raise ValueError("it is not a record")
            task = task_from(record, split=split)
            if "id" not in record:  # the same record again, where nobody gave ids, is one more task
                times[task.id] += 1
                again = f"-{times[task.id]}" if times[task.id] > 1 else ""
                task = task.model_copy(update={"id": task.id + again})
            tasks.append(task)
        except ValueError as error:
            named = f" (id {record['id']!r})" if isinstance(record, dict) and "id" in record else ""
            raise DataError(f"{path} {where}{named} is no intention task: {error}") from None
    if not tasks:
        raise DataError(f"{path} holds no task")
    return _told_apart(tasks, path)


def _records(path: Path) -> Iterable[tuple[str, Any]]:
    """Every record with where it stands."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"cannot read {path}: {error}") from None
    if path.suffix == ".json":
        whole = _parsed(text, f"{path}")
        if isinstance(whole, dict):
            for name, record in whole.items():
                named = {"id": name, **record} if isinstance(record, dict) else record
                yield f"record {name!r}", named
        elif isinstance(whole, list):
            for number, record in enumerate(whole, 1):
                yield f"record {number}", record
        else:
            raise DataError(f"{path} holds neither a list nor a mapping of records")
        return
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield f"line {number}", _parsed(line, f"{path} line {number}")


def _parsed(text: str, where: str) -> Any:
    try:
        return json.loads(text)
    except ValueError as error:
        raise DataError(f"{where} is not JSON: {error}") from None


def _told_apart(tasks: list[IntentTask], path: Path) -> list[IntentTask]:
    """No id twice, and nothing that is in one split is in another as well."""
    splits: dict[str, str] = {}
    seen: set[str] = set()
    for task in tasks:
        if splits.setdefault(task.content, task.split) != task.split:
            raise DataError(
                f"{path}: task {task.id!r} of {task.split!r} is in {splits[task.content]!r} too"
            )
        if task.id in seen:
            raise DataError(f"{path}: the id {task.id!r} stands twice")
        seen.add(task.id)
    return tasks
