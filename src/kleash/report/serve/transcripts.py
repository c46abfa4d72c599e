"""What an agent said, turn by turn, for a page: from its scores and the transcripts that were kept.

Files may come from anywhere: whatever is not of the form it should be is left out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from kleash.report.serve.visit import Visit, cut

MOST_TURNS = 64
MOST_TOKENS = 2_000  # of a turn
LEVELS = (0.01, 0.1, 0.5, 2.0)  # nats: from each on a token is marked more strongly
STOPS = ("covered", "finished", "limit", "length", "malformed", "broken")


def episode(line: Mapping[str, Any], kept: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """An episode by its line among the scores; tokens and what was covered by its transcript.

    A transcript counts only where it says what was scored: that may be a sampled pass.
    """
    said, heard = texts(line.get("pointer")), texts(line.get("heard"))
    rewards = line.get("rewards")
    rewards = rewards if isinstance(rewards, list) else []
    told = next((turns for each in kept if (turns := turns_of(each, said))), [])
    turns = []
    for at, text in enumerate(said[:MOST_TURNS]):
        more = told[at] if told else {}
        marked = tokens(more.get("tokens"))
        turns.append(
            {
                "said": cut(text),
                "tokens": marked,
                "kl": total(each["kl"] for each in marked) if marked else "",
                "reward": number(rewards[at], "+.3g") if at < len(rewards) else "",
                "covered": cut(", ".join(texts(more.get("covered")))),
                "reply": cut(heard[at + 1]) if at + 1 < len(heard) else "",
            }
        )
    facts = line.get("facts")
    coverage = facts.get("coverage") if isinstance(facts, dict) else None
    return {
        "request": cut(heard[0]) if heard else "",
        "turns": turns,
        "kl": total(each["kl"] for turn in turns for each in turn["tokens"]) if told else "",
        "coverage": number(coverage, ".0%"),
    }


def transcripts(run: Path, checkpoint: Any) -> Path:
    """Where the transcripts of a checkpoint lie, whatever a file says it is called."""
    return run / "transcripts" / f"{Path(str(checkpoint)).name}.jsonl"


def turns_of(kept: Mapping[str, Any], said: Sequence[str]) -> list[dict[str, Any]]:
    """The turns of a transcript, if it says just this."""
    turns = kept.get("turns")
    if not isinstance(turns, list) or not all(isinstance(turn, dict) for turn in turns):
        return []
    return turns if [turn.get("said") for turn in turns] == list(said) else []


def tokens(found: Any) -> list[dict[str, Any]]:
    """Each token with its KL and how strongly it is marked."""
    made = []
    for each in found[:MOST_TOKENS] if isinstance(found, list) else ():
        if not isinstance(each, list) or len(each) != 3:
            continue
        text, logp, kl = each
        if type(text) is not str or not (is_number(logp) and is_number(kl)):
            continue
        level = sum(kl >= least for least in LEVELS)
        made.append({"text": cut(text) or "∎", "logp": f"{logp:.3f}", "kl": kl, "level": level})
    return made


def legend() -> list[dict[str, Any]]:
    """What each way of marking a token means."""
    ranges = [f"< {LEVELS[0]:g}", *(f"{a:g} – {b:g}" for a, b in pairwise(LEVELS))]
    return [{"level": n, "text": t} for n, t in enumerate([*ranges, f"≥ {LEVELS[-1]:g}"])]


def stop_text(visit: Visit, line: Mapping[str, Any]) -> str:
    """Why an episode ended, or the error that broke it."""
    reason = line.get("answer")
    if reason in STOPS:
        return visit.t(f"stop.{reason}")
    return cut(reason or line.get("error") or "—")


def texts(found: Any) -> list[str]:
    """A list of texts; nothing where it is none."""
    return [str(each) for each in found] if isinstance(found, list) else []


def is_number(value: Any) -> bool:
    """Whether it is one, and finite."""
    return type(value) in (int, float) and math.isfinite(value)


def number(value: Any, form: str) -> str:
    """A number as text; nothing where it is none."""
    return format(value, form) if is_number(value) else ""


def total(values: Any) -> str:
    """A sum of nats."""
    return f"{math.fsum(values):.3f}"
