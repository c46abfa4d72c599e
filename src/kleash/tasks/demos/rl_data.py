"""RL data as files: pointers of queries, what was answered to them and what it was worth.

The format of demonstration selectors that train offline (`docs/adopting.md`). Reading is strict
about the form and judges nothing: what is wrong with the content is for `rl_checks`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from kleash.errors import DataError
from kleash.runs.run import write_json

SOURCES = ("source_query", "source_queries", "source_query_id", "copied_from")
TRANSFERRED = ("transfer", "inject", "borrow", "copied")


@dataclass(frozen=True)
class Candidate:
    """One pointer with its fact, as a file has it; None where it says nothing.

    `shown` are demonstrations by their numbers in the whole set, in order; `places` are what the
    file says of them as places of the pool, where it does.
    """

    shown: tuple[int, ...]
    places: tuple[int, ...] | None = None
    method: str = ""
    answer: str | None = None
    correct: bool | None = None
    accuracy: float | None = None
    truth_probability: float | None = None
    relevance: float | None = None
    score: float | None = None
    """Beam score or log-probability under whoever proposed it."""
    mode: str = ""
    failed: bool = False
    sources: tuple[str, ...] = ()
    """Other queries that it says it was taken from."""

    @property
    def rewarded(self) -> bool:
        """Whether the file says what it was worth."""
        return self.correct is not None or self.accuracy is not None

    @property
    def positive(self) -> bool:
        """Whether it earned anything."""
        return bool(self.correct) if self.correct is not None else (self.accuracy or 0) > 0

    @property
    def worth(self) -> float:
        """The accuracy, or the flag where there is only that."""
        return self.accuracy if self.accuracy is not None else float(bool(self.correct))


@dataclass(frozen=True)
class RlGroup:
    """A query, its pool by numbers of demonstrations (empty: not said), and its pointers."""

    query: str
    """The key in the file: the query's number in the whole set, or another name."""
    question_id: str
    question: str
    answers: tuple[str, ...]
    pool: tuple[int, ...]
    candidates: tuple[Candidate, ...]
    image_id: str = ""

    def local(self, candidate: Candidate) -> tuple[int, ...] | None:
        """The places of what was shown in the pool; None if any is outside."""
        place = {number: at for at, number in enumerate(self.pool)}
        found = [place.get(number) for number in candidate.shown]
        return None if None in found else tuple(at for at in found if at is not None)


@dataclass(frozen=True)
class RlData:
    """A file of RL data."""

    groups: tuple[RlGroup, ...]
    meta: Mapping[str, Any] = field(default_factory=dict)
    path: Path = Path()
    repeated_keys: tuple[str, ...] = ()
    """Keys that stand twice in the text, of which JSON keeps the last."""
    content: str = ""
    """The hash of the file."""


def read_rl_data(path: Path) -> RlData:
    """The file, or one line about what is not as it should be."""
    repeated: list[str] = []
    raw, value = read_whole(path, repeated)
    if not isinstance(value, dict):
        raise DataError(f"{path} is no RL data: it holds no object of queries")
    meta = value.pop("_meta", {})
    groups = [_group(key, entry, f"{path}: query {key!r}") for key, entry in value.items()]
    if not groups:
        raise DataError(f"{path} is no RL data: it holds no query")
    return RlData(
        tuple(groups),
        meta if isinstance(meta, dict) else {},
        path,
        tuple(repeated),
        hashlib.sha256(raw).hexdigest(),
    )


def read_whole(path: Path, repeated: list[str] | None = None) -> tuple[bytes, Any]:
    """The bytes and the value of a JSON file; keys that stand twice are added to `repeated`."""

    def pairs(found: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(found)
        if repeated is not None and len(made) < len(found):
            seen: set[str] = set()
            repeated.extend(key for key, _ in found if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        return made

    try:
        raw = path.read_bytes()
        return raw, json.loads(raw, object_pairs_hook=pairs)
    except OSError as error:
        raise DataError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise DataError(f"{path} is not JSON: {error}") from None


def _group(key: str, entry: Any, where: str) -> RlGroup:
    if not isinstance(entry, dict) or not isinstance(entry.get("pointer_candidates"), list):
        raise DataError(f"{where} has no list `pointer_candidates`")
    query = entry.get("query") or {}
    if not isinstance(query, dict):
        raise DataError(f"{where}: `query` is no object")
    found = query.get("question_id", query.get("query_id", key))
    return RlGroup(
        query=key,
        question_id=str(found),
        question=str(query.get("question") or ""),
        answers=tuple(map(_spoken, query.get("gt_answers_raw") or ())),
        pool=_numbers(entry.get("candidate_pool_ids") or [], f"{where}: `candidate_pool_ids`"),
        candidates=tuple(
            _candidate(each, f"{where}, pointer {place}")
            for place, each in enumerate(entry["pointer_candidates"], 1)
        ),
        image_id=str(query.get("image_id") or ""),
    )


def _spoken(answer: Any) -> str:
    return str(answer.get("answer", "")) if isinstance(answer, dict) else str(answer)


def _candidate(value: Any, where: str) -> Candidate:
    if not isinstance(value, dict):
        raise DataError(f"{where} is no object")
    written = _numbers(value.get("pointer"), f"{where}: `pointer`")
    both = "pointer_global" in value
    shown = _numbers(value["pointer_global"], f"{where}: `pointer_global`") if both else written
    answer, flag = value.get("vqa_pred_answer"), value.get("vqa_correct")
    method = str(value.get("gen_method") or "")
    score = _number(value, "logprob_score", where)
    return Candidate(
        shown=shown,
        places=written if both else None,
        method=method,
        answer=None if answer is None else str(answer),
        correct=None if flag is None else bool(_number(value, "vqa_correct", where)),
        accuracy=_number(value, "vqa_acc_score", where),
        truth_probability=_number(value, "vqa_gt_prob", where),
        relevance=_number(value, "vqa_rel_score", where),
        score=_number(value, "beam_score", where) if score is None else score,
        mode=str(value.get("vqa_eval_mode") or ""),
        failed=bool(value.get("eval_failed")) or value.get("vqa_eval_mode") == "error",
        sources=tuple(_sources(value, method)),
    )


def _sources(value: Mapping[str, Any], method: str) -> Iterable[str]:
    """The queries that a pointer says it was taken from; "?" where only its method says so."""
    named = [value[key] for key in SOURCES if value.get(key) not in (None, [], "")]
    for each in named:
        yield from map(str, each if isinstance(each, list) else [each])
    if not named and any(word in method for word in TRANSFERRED):
        yield "?"


def _numbers(value: Any, where: str) -> tuple[int, ...]:
    if not isinstance(value, list) or not all(type(each) is int for each in value):
        raise DataError(f"{where} is no list of whole numbers: {str(value)[:60]}")
    return tuple(value)


def _number(value: Mapping[str, Any], name: str, where: str) -> float | None:
    found = value.get(name)
    if found is None:
        return None
    if not isinstance(found, int | float) or found != found:
        raise DataError(f"{where}: `{name}` is no number: {str(found)[:60]}")
    return float(found)


def read_pools(path: Path) -> dict[str, tuple[int, ...]]:
    """A cache of pools: a query's number and the numbers of its candidates."""
    _, value = read_whole(path)
    if isinstance(value, dict) and isinstance(value.get("candidate_set"), dict):
        value = value["candidate_set"]
    if not isinstance(value, dict) or not value:
        raise DataError(f"{path} is no cache of pools: it holds no object of queries")
    return {key: _numbers(pool, f"{path}: query {key!r}") for key, pool in value.items()}


@dataclass(frozen=True)
class Beam:
    """A pointer of a beam search, first shown first, and the information it gained."""

    shown: tuple[int, ...]
    score: float


def read_beams(path: Path) -> dict[str, list[Beam]]:
    """Beams by query: `id_list` ends with the query itself, `score_list` beside it."""
    _, value = read_whole(path)
    if not isinstance(value, dict) or not value:
        raise DataError(f"{path} holds no beams: no object of queries")
    found: dict[str, list[Beam]] = {}
    for key, entry in value.items():
        where = f"{path}: query {key!r}"
        ids = entry.get("id_list") if isinstance(entry, dict) else None
        scores = entry.get("score_list") if isinstance(entry, dict) else None
        if not isinstance(ids, list) or not isinstance(scores, list) or len(ids) != len(scores):
            raise DataError(f"{where}: `id_list` and `score_list` are not lists of one length")
        rows = [_numbers(row, f"{where}: `id_list`") for row in ids]
        if any(len(row) < 2 or str(row[-1]) != key for row in rows):
            raise DataError(f"{where}: a row of `id_list` does not end with the query itself")
        worth = [_number({"score": each}, "score", where) for each in scores]
        found[key] = [
            Beam(row[:-1], 0.0 if score is None else score)
            for row, score in zip(rows, worth, strict=True)
        ]
    return found


def write_rl_data(path: Path, groups: Sequence[RlGroup], meta: Mapping[str, Any]) -> None:
    """Write groups in the same format: `pointer` counts places, `pointer_global` numbers."""
    write_entries(path, {each.query: entry(each) for each in groups}, meta)


def write_entries(path: Path, entries: Mapping[str, Any], meta: Mapping[str, Any]) -> None:
    """Write queries that are in the format already."""
    write_json(path, {"_meta": dict(meta), **entries})


def entry(group: RlGroup) -> dict[str, Any]:
    """A query with its pointers, as a file has them."""
    return {
        "query": {
            "question_id": group.question_id,
            "image_id": group.image_id,
            "question": group.question,
            "gt_answers_raw": list(group.answers),
        },
        "candidate_pool_ids": list(group.pool),
        "pointer_candidates": [
            {
                "pointer": list(group.local(each) or ()),
                "pointer_global": list(each.shown),
                "gen_method": each.method,
                "beam_score": each.score,
                "logprob_score": None,
                "vqa_pred_answer": each.answer,
                "vqa_correct": None if each.correct is None else int(each.correct),
                "vqa_acc_score": each.accuracy,
                "vqa_gt_prob": each.truth_probability,
                "vqa_rel_score": each.relevance,
                "vqa_eval_mode": each.mode,
            }
            for each in group.candidates
        ],
    }
