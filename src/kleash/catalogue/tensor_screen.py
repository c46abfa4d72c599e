"""Two checkpoints as one screen, or as JSON: what differs first, then each tensor's change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from kleash.catalogue import Language, cut, pad, say, width
from kleash.compare.checkpoints import Change, Checkpoints

NAMED = 6  # tensors or blocks named in a sentence
ROWS = 14


def sentences(found: Checkpoints, language: Language) -> list[str]:
    """What is the same and what not, most important first."""
    said = [_weights(found, language)]
    for kind, arm in zip(("only first", "only second"), found.names, strict=True):
        only = found.of(kind)
        count = {"arm": arm, "parameters": sum(each.parameters for each in only)}
        said += _listed("tensors_only", only, language, count)
    for kind in ("reshaped", "retyped"):
        said += _listed(f"tensors_{kind}", found.of(kind), language, {})
    if found.changes and found.shared:
        blocks = found.equal_blocks
        facts = {"count": len(blocks), "total": len(blocks) + len(found.other_blocks)}
        code = "blocks_equal" if blocks else "blocks_differ"
        said.append(say(code, facts | {"names": _named(blocks)}, language))
    return said + _choices(found, language)


def _weights(found: Checkpoints, language: Language) -> str:
    facts: dict[str, Any] = {"tensors": found.shared, "parameters": found.parameters}
    count = len(found.of("changed", "retyped"))
    if not found.shared:
        return say("nothing_shared_in_weights", facts, language)
    if not count:
        return say("shared_equal" if found.changes else "weights_equal", facts, language)
    share = found.differ / max(found.parameters, 1)
    facts |= {"count": count, "differ": found.differ, "share": share}
    return say("weights_differ", facts, language)


def _choices(found: Checkpoints, language: Language) -> list[str]:
    seen = found.choices
    if seen is None:
        return [say(each.code, each.facts, language) for each in found.because]
    if not seen.differ:
        return [say("choices_equal", {"n": seen.n, "share": seen.bound}, language)]
    shares = [f"{share:.1%}" for share in seen.equal]
    facts = {"n": seen.n, "count": seen.differ, "share": seen.differ / seen.n, "shares": shares}
    return [say("choices_differ", facts, language)]


def _listed(
    code: str, changes: Sequence[Change], language: Language, facts: dict[str, Any]
) -> list[str]:
    if not changes:
        return []
    names = _named([each.name for each in changes])
    return [say(code, facts | {"count": len(changes), "names": names}, language)]


def _named(names: Sequence[str]) -> list[str]:
    return [*names[:NAMED], *(["…"] if len(names) > NAMED else [])]


def terminal(found: Checkpoints, language: Language, columns: int = 100) -> str:
    """One screen of plain text in so many columns."""
    ours, theirs = found.names
    lines = [say("checkpoints_title", {"ours": ours, "theirs": theirs}, language), ""]
    for text in sentences(found, language):
        first, *rest = cut(text, columns - 2)
        lines += [f"- {first}", *(f"  {each}" for each in rest)]
    changes = found.of("changed", "retyped")
    if changes:
        lines += ["", *_table(changes[:ROWS], language)]
    if len(changes) > ROWS:
        lines.append(say("more_tensors", {"count": len(changes) - ROWS}, language))
    return "\n".join("".join(c for c in line if c.isprintable()) for line in lines)


def _table(changes: Sequence[Change], language: Language) -> list[str]:
    heads = ("column_tensor", "column_differ", "column_largest", "column_relative")
    rows = [[say(code, {}, language) for code in heads]]
    for each in changes:
        share = (each.differ or 0) / max(each.parameters, 1)
        relative = "—" if each.relative is None else f"{each.relative:.2e}"
        rows.append([each.name, f"{share:.1%}", f"{each.largest:.2e}", relative])
    wide = [max(width(row[at]) for row in rows) for at in range(len(heads))]
    return [
        "  ".join(pad(cell, wide[at], right=at > 0) for at, cell in enumerate(row)) for row in rows
    ]


def plain(found: Checkpoints, language: Language) -> dict[str, Any]:
    """The answer as JSON: fractions and counts, and the sentences in the language."""
    return {
        "checkpoints": list(found.names),
        "tensors": {
            "shared": found.shared,
            "differ": len(found.of("changed", "retyped")),
            "reshaped": len(found.of("reshaped")),
            "only_first": len(found.of("only first")),
            "only_second": len(found.of("only second")),
        },
        "parameters": {
            "shared": found.parameters,
            "differ": found.differ,
            "share": found.differ / found.parameters if found.parameters else None,
        },
        "blocks": {"equal": list(found.equal_blocks), "differ": list(found.other_blocks)},
        "changes": [asdict(each) for each in found.changes],
        "choices": asdict(found.choices) if found.choices else None,
        "because": sentences(found, language),
    }
