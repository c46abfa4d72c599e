"""What travels between GPUs when a model is trained on many: computed, as `docs/scale.md` tells it.

A sum of bytes over the slowest link that all of them must pass. Latency, other people's traffic and
the losses of real collectives are not in it: times are lower bounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from kleash.models.language.flops import BANDWIDTHS, PEAKS, forward, said_at_most, update
from kleash.models.language.memory import Training, plan
from kleash.models.language.shape import Shape

CONVERSATIONS = 64
"""At a time on a GPU that plays."""


@dataclass(frozen=True)
class Cluster:
    """Machines of eight GPUs, by the maker's figures for DGX H200."""

    gpus: int
    node: int = 8
    inside: float = 450e9
    """Bytes a second into one GPU from others of its machine (NVLink, one direction)."""
    network: float = 8 * 50e9
    """Bytes a second into one machine: a 400 Gb/s adapter for each GPU."""
    host: float = 64e9
    """Bytes a second between a GPU and its machine's memory (PCIe 5.0 x16, one direction)."""
    peak: float = PEAKS["H200"]
    memory: float = BANDWIDTHS["H200"]

    @property
    def nodes(self) -> int:
        """Machines, the last one perhaps not full."""
        return -(-self.gpus // self.node)

    def gather(self, size: float) -> float:
        """Seconds until every GPU has all `size` bytes that are spread over all of them."""
        near = size * (min(self.node, self.gpus) - 1) / min(self.node, self.gpus)
        far = size * (self.nodes - 1) / self.nodes
        return max(near / self.inside, far / self.network)


@dataclass(frozen=True)
class Step:
    """Seconds of one GRPO step, all of them computed, and bytes on a GPU."""

    played: float
    reference: float
    updated: float
    gathered: float
    """Weights brought together for forward and back of every pack; hidden behind computing."""
    reduced: float
    """Gradients summed over all GPUs, in float32, with every pack; hidden too."""
    synced: float
    """New weights to whoever plays."""
    memory: float

    @property
    def seconds(self) -> float:
        """Of the step: traffic of packs counts only where it takes longer than computing."""
        computed = self.reference + self.updated
        return self.played + max(computed, self.gathered + self.reduced) + self.synced


def step(
    shape: Shape,
    cluster: Cluster,
    lengths: Sequence[int],
    *,
    said: int,
    pack: int = 8192,
    mfu: float = 0.5,
    reads: float = 0.5,
) -> Step:
    """A step in which every GPU has conversations of these lengths; `said` tokens are the policy's.

    `mfu` and `reads` are the shares of peak and of memory bandwidth that are assumed to be reached.
    Weights, gradients, moments and a second copy as reference are shared out over all GPUs (FSDP2);
    beside them each has the whole policy, to play with.
    """
    tokens, weights = sum(lengths), 2.0 * shape.parameters
    packs = -(-tokens // pack)
    context = tokens // len(lengths)
    most = said_at_most(shape, CONVERSATIONS, context, cluster.memory)
    how = Training(tokens=pack, choices=pack // 2, reference="copy", recompute=shape.layers)
    whole = plan(shape, how).device
    parts = ("weights", "gradients", "moments", "reference")
    layer = 2.0 * (shape.body / shape.layers + 2 * shape.table)
    held = sum(whole[part] for part in parts) / cluster.gpus + 2 * layer + weights
    return Step(
        played=said / (reads * most),
        reference=forward(shape, lengths, said).causal / (mfu * cluster.peak),
        updated=update(shape, lengths, said).causal / (mfu * cluster.peak),
        gathered=3 * packs * cluster.gather(weights),  # policy forward and back, reference forward
        reduced=packs * cluster.gather(2 * weights),
        synced=cluster.gather(weights),
        memory=held + whole["activations"] + whole["head"],
    )
