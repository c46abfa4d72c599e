"""Weights trained elsewhere as weights of a preset: by a table of names, every shape checked.

The names are those of Lever-Plus (github.com/yunsoft2019/Lever-Plus): `PointerSelectorV2`, which
its v3 trains, with `query_update_gate` from V4-1 on and `decoder_gru` in V4-2; under
`lever_lm.pointer_selector.` in Lightning's checkpoints; with one layer called `cross_attn` in
files that were converted for evaluation. Nothing is guessed: a name that is not in the table, a
tensor that is missing or has another shape is an error.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.errors import CheckpointError
from kleash.tasks.demos.presets import preset

if TYPE_CHECKING:
    from torch import Tensor

TABLE = (
    (r"input_proj\.weight", "projections.input.weight"),
    (r"query_proj\.weight", "projections.query.weight"),
    (r"cand_proj\.weight", "projections.candidate.weight"),
    (r"cross_attn_layers\.(\d+)\.(\w+(?:\.\w+)?)", r"query_encoder.layers.\1.attention.\2"),
    (r"attn_norms\.(\d+)\.(weight|bias)", r"query_encoder.layers.\1.norm.\2"),
    (r"query_update_gate\.(weight|bias)", r"state.gate.\1"),
    (r"decoder_gru\.(\w+)", r"state.cell.\1"),
    (r"step_emb\.weight", "state.steps"),
)
CONVERTED = (
    (r"cross_attn\.(\w+(?:\.\w+)?)", r"cross_attn_layers.0.\1"),
    (r"attn_norm\.(weight|bias)", r"attn_norms.0.\1"),
)
"""What the converter renames: the model that evaluates has no tensor of these names."""
ANCHOR = "query_proj.weight"
UNDER = ("model_state_dict", "state_dict")
NAMED = 4  # tensors named in an error


@dataclass(frozen=True)
class Weights:
    """A checkpoint's weights under our names, and what is to be said of them."""

    tensors: dict[str, Tensor]
    preset: str
    width: int
    shots: int | None
    """Of training, where a tensor tells."""
    renamed: tuple[str, ...] = ()
    """Names that only the converter writes."""
    never_loaded: int = 0
    """Values under them: none reached an evaluation that loads without being strict."""
    parameters: int = 0
    others: Mapping[str, int] | None = None
    """Values of modules that are not the selector's (CLIP's towers), by module."""
    facts: Mapping[str, Any] | None = None
    """What else the file says: epoch, phase, kl_beta, metrics."""


def read_weights(held: Any, file: Path) -> Weights:
    """The selector in what a torch file holds."""
    state, facts = _state(held, file)
    inner, others = _selector_in(state, file)
    names: dict[str, str] = {}
    renamed = []
    for name in inner:
        known, was_converted = _known(name)
        ours = _translated(known)
        if ours is None:
            raise CheckpointError(
                f"{file}: no preset has a tensor {name!r}: only the blocks of v2, v3, v4-1 and v4-2"
                " can be adopted (docs/adopting.md)"
            )
        if ours in names.values():
            raise CheckpointError(f"{file}: {name!r} stands twice, under another name too")
        names[name] = ours
        renamed += [name] * was_converted
    tensors = {ours: inner[name].detach().float().clone() for name, ours in names.items()}
    kind, shots = _preset_of(tensors, file), None
    if "state.steps" in tensors:
        shots = len(tensors["state.steps"])
    width = _fits(tensors, kind, shots, file)
    return Weights(
        tensors,
        kind,
        width,
        shots,
        tuple(renamed),
        sum(inner[name].numel() for name in renamed),
        sum(tensor.numel() for tensor in inner.values()),
        others,
        facts,
    )


def _state(held: Any, file: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The tensors by name, and the plain facts beside them."""
    import torch

    if not isinstance(held, Mapping):
        raise CheckpointError(f"{file} is no checkpoint: it holds no mapping")
    under = next((held[key] for key in UNDER if isinstance(held.get(key), Mapping)), held)
    state = {str(name): each for name, each in under.items() if isinstance(each, torch.Tensor)}
    if not state:
        raise CheckpointError(f"{file} is no checkpoint: it holds no tensor by name")
    plain = {key: _plain(value) for key, value in held.items() if held is not under}
    wanted = ("epoch", "phase", "kl_beta", "metrics", "val_loss")
    return state, {key: plain[key] for key in wanted if plain.get(key) is not None}


def _plain(value: Any) -> Any:
    """Numbers, texts and mappings of them; None for all else."""
    import torch

    if isinstance(value, torch.Tensor) and value.numel() == 1:
        value = value.item()
    if isinstance(value, Mapping):
        found = {str(key): _plain(each) for key, each in value.items()}
        return {key: each for key, each in found.items() if each is not None}
    return value if isinstance(value, bool | int | float | str) and value == value else None


def _selector_in(
    state: Mapping[str, Tensor], file: Path
) -> tuple[dict[str, Tensor], dict[str, int]]:
    """The selector's tensors without their prefix, and how much belongs to other modules."""
    prefixes = {name.removesuffix(ANCHOR) for name in state if name.endswith(ANCHOR)}
    prefixes = {each for each in prefixes if not each or each.endswith(".")}
    if not prefixes:
        raise CheckpointError(f"{file} holds no selector: no tensor is called {ANCHOR}")
    # CLIP's towers have no query_proj; of several the shortest is the selector's own.
    prefix = min(prefixes, key=len)
    inner = {n.removeprefix(prefix): t for n, t in state.items() if n.startswith(prefix)}
    others: dict[str, int] = {}
    if prefix:
        outer = prefix.rstrip(".").rpartition(".")[0]
        for name, tensor in state.items():
            if not name.startswith(prefix):
                module = name.removeprefix(f"{outer}." if outer else "").split(".")[0]
                others[module] = others.get(module, 0) + tensor.numel()
    return inner, others


def _known(name: str) -> tuple[str, bool]:
    """The name before it was converted, and whether it was."""
    for pattern, original in CONVERTED:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, original, name), True
    return name, False


def _translated(name: str) -> str | None:
    for pattern, ours in TABLE:
        if re.fullmatch(pattern, name):
            return re.sub(pattern, ours, name)
    return None


def _preset_of(tensors: Mapping[str, Tensor], file: Path) -> str:
    """The preset that has these blocks."""
    layers = len({name.split(".")[2] for name in tensors if name.startswith("query_encoder.")})
    gate = any(name.startswith("state.gate.") for name in tensors)
    memory = any(name.startswith(("state.cell.", "state.steps")) for name in tensors)
    known = {
        (1, False, False): "v3",
        (3, False, False): "v2",
        (1, True, False): "v4-1",
        (1, False, True): "v4-2",
    }
    found = known.get((layers, gate, memory))
    if found is None:
        blocks = [f"{layers} layers of cross-attention"]
        blocks += ["a gate"] * gate + ["a GRU"] * memory
        raise CheckpointError(
            f"{file}: no preset has {' and '.join(blocks)}: v3 has one layer, v4-1 one and a gate,"
            " v4-2 one and a GRU, v2 three"
        )
    return found


def _fits(tensors: Mapping[str, Tensor], kind: str, shots: int | None, file: Path) -> int:
    """The width of an embedding, if the tensors are exactly those of the preset."""
    from kleash.models.selector import Selector

    first = tensors.get("projections.input.weight")
    width = int(first.shape[1]) if first is not None and first.ndim == 2 else 512
    expected = Selector(preset(kind, shots=shots or 2), width, None).state_dict()
    missing = [name for name in expected if name not in tensors]
    extra = [name for name in tensors if name not in expected]
    odd = [
        f"{name} {tuple(tensors[name].shape)}, not {tuple(wanted.shape)}"
        for name, wanted in expected.items()
        if name in tensors and tensors[name].shape != wanted.shape
    ]
    for what, names in (
        ("is missing", missing),
        ("does not belong there", extra),
        ("has another shape", odd),
    ):
        if names:
            more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
            raise CheckpointError(
                f"{file} does not fit preset {kind}: {what}: {'; '.join(names[:NAMED])}{more}"
            )
    return width


def lost(source: Weights, converted: Weights) -> dict[str, int]:
    """Tensors of a checkpoint that its conversion no longer has, with their values."""
    return {
        name: tensor.numel()
        for name, tensor in source.tensors.items()
        if name not in converted.tensors
    }
