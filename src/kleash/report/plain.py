"""A comparison as plain values: for `kleash compare --json` and the frames of a notebook."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from kleash.compare.comparison import Comparison, Judged, Step
from kleash.report.words import Language, key_name, say
from kleash.report.words.verdicts import cost, decision, reasons, sentence


def plain(found: Comparison, language: Language) -> dict[str, Any]:
    """The answer as JSON: the keys are fixed, the sentences are in the language."""

    def said(each: Judged) -> str:
        if each.question == "recommend":
            return decision(found, language)
        return sentence(each, language, factor=found.factor)

    return {
        "arms": found.arms,
        "verdicts": [
            {
                "question": each.question,
                "metric": each.metric,
                "arms": list(each.arms),
                "verdict": each.verdict,
                "level": each.level,
                "estimate": each.estimate,
                "low": each.low,
                "high": each.high,
                "narrow": each.narrow,
                "n": each.n,
                "p": each.p,
                "adjusted_p": each.adjusted_p,
                "because": [said(each), *reasons(each, language)],
            }
            for each in found.verdicts
        ],
        "findings": [
            {
                "code": each.code,
                "severity": each.severity,
                "where": [asdict(where) for where in each.where],
                "message": say(each.code, each.facts, language),
            }
            for each in found.findings
        ],
        "matrix": asdict(found.matrix),
        "confounds": [
            {
                "kind": each.kind,
                "key": each.key,
                "name": key_name(each.key, language),
                "arms": list(each.arms),
                "values": list(map(_value, each.values)),
                "sources": list(each.sources),
            }
            for each in found.confounds
        ],
        "next": [_step(step, language) for step in found.next],
    }


def _step(step: Step, language: Language) -> dict[str, str]:
    return {
        "what": say(step.code, step.facts, language),
        "cost": cost(step, language),
        "why": say(f"{step.code}.why", {}, language),
    }


def _value(value: Any) -> Any:
    """A setting as JSON has it, or as text where JSON has no such thing."""
    return value if isinstance(value, bool | int | float | str) or value is None else str(value)
