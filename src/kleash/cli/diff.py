"""The verb `diff`: which tensors of two checkpoints differ, and by how much."""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from kleash.cli.console import AsJson, Lang, language_of
from kleash.train.single import need_torch

NAMED = 6  # tensors or blocks named in a sentence
ROWS = 14


def diff(
    first: Annotated[Path, typer.Argument(help="A file of tensors, or a folder with weights.")],
    second: Annotated[Path, typer.Argument(help="Another.")],
    as_json: AsJson = False,
    lang: Lang = "",
) -> None:
    """Say which tensors of two checkpoints differ, and by how much.

    \b
    kleash diff a.pt b.safetensors
    kleash diff runs/kl0-s0/checkpoints/epoch-3 runs/kl0.1-s0/checkpoints/epoch-3
    """
    need_torch()
    from kleash.cli.compare import _columns as columns
    from kleash.report.words import Language, cut, say
    from kleash.train.adopt.diff import block, differences

    language: Language = language_of(lang, ())
    shared, size, changes = differences(first, second)
    moved = [each for each in changes if each.kind in ("changed", "retyped")]
    others = dict.fromkeys(block(each.name) for each in changes)
    equal = [each for each in dict.fromkeys(map(block, shared)) if each not in others]
    facts: dict[str, Any] = {"tensors": len(shared), "parameters": size, "count": len(moved)}
    facts["differ"] = sum(each.differ for each in moved)
    facts["share"] = facts["differ"] / max(size, 1)
    code = "weights_differ" if moved else "weights_equal"
    said = [say(code if shared else "nothing_shared_in_weights", facts, language)]
    for kind in ("only_first", "only_second", "reshaped", "retyped"):
        if same := [each for each in changes if each.kind == kind]:
            arm = str(second if kind == "only_second" else first)
            held = {"count": len(same), "parameters": sum(each.parameters for each in same)}
            names = _some([each.name for each in same])
            said.append(say(f"tensors_{kind}", held | {"arm": arm, "names": names}, language))
    if changes and shared:
        blocks = {"count": len(equal), "total": len(equal) + len(others), "names": _some(equal)}
        said.append(say("blocks_equal" if equal else "blocks_differ", blocks, language))
    if as_json:
        answer = {"tensors": len(shared), "parameters": size, "differ": facts["differ"]}
        answer |= {"blocks": {"equal": equal, "differ": list(others)}, "because": said}
        answer["changes"] = [asdict(each) for each in changes]
        print(json.dumps(answer, ensure_ascii=False))
        return
    for each in moved[:ROWS]:
        row = asdict(each) | {"share": each.differ / max(each.parameters, 1)}
        row |= {name: f"{getattr(each, name) or 0:.2e}" for name in ("largest", "relative")}
        said.append(say("tensor_moved", row, language))
    if len(moved) > ROWS:
        said.append(say("more_tensors", {"count": len(moved) - ROWS}, language))
    for text in said:
        print("- " + "\n  ".join(cut(_plain(text), columns() - 2)))


def _some(names: list[str]) -> list[str]:
    return [*names[:NAMED], *(["…"] if len(names) > NAMED else [])]


def _plain(text: str) -> str:
    """Without what could end a line: a name in a file may hold anything."""
    return "".join(each for each in text if each.isprintable())
