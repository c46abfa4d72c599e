"""The logits after the last id of every row of a tick: any transformers causal LM.

Rows are padded on the left to the widest, so that one column holds all that is wanted.

Shapes: N rows, Q columns, L places, V words.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from kleash.errors import ConfigError
from kleash.models.engine.seats import Feed, SeatedCache, Seats


class ModuleForward:
    """Through the model's own `forward`, with our cache, explicit positions and a 4-D mask."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.config = self.model.config.get_text_config()
        self.windows = windows(self.config)

    def reread(self) -> None:
        """Nothing: the model's own weights are read every time."""

    def __call__(self, feed: Feed, seats: Seats) -> Tensor:
        """Logits [N, V] of what comes next in every row."""
        device = self.model.device
        ids, positions, places = [], [], []
        for owed, start in zip(feed.owed, feed.starts, strict=True):
            pads, end = feed.widest - len(owed), start + len(owed)
            ids.append([0] * pads + list(owed))
            positions.append([0] * pads + list(range(start, end)))
            # Pads are written behind the row's last id, where the next ids will overwrite them.
            places.append([*range(end, end + pads), *range(start, end)])
        if self.windows and feed.reach > min(self.windows):
            raise ConfigError(
                f"this model's attention has a sliding window of {min(self.windows)} tokens, and a"
                f" conversation is longer ({feed.reach}): the own engine cannot play it"
            )
        places_NQ = torch.tensor(places, device=device)
        unseen_NQL = torch.arange(feed.reach, device=device) > places_NQ[:, :, None]
        dtype = self.model.dtype
        mask = torch.zeros(unseen_NQL.shape, dtype=dtype, device=device)
        mask.masked_fill_(unseen_NQL, torch.finfo(dtype).min)
        rows = torch.tensor(feed.seats, device=device)
        cache = SeatedCache(seats, self.config.num_hidden_layers, rows, places_NQ, feed.reach)
        found = self.model(
            input_ids=torch.tensor(ids, device=device),
            attention_mask=mask[:, None],
            position_ids=torch.tensor(positions, device=device),
            past_key_values=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: Tensor = found.logits[:, -1]
        return logits


def windows(config: Any) -> list[int]:
    """The windows of the layers that do not attend to everything before."""
    kinds = getattr(config, "layer_types", None) or []
    if not any("sliding" in kind or "chunked" in kind for kind in kinds):
        return []
    names = ("sliding_window", "attention_chunk_size")
    return [size for name in names if (size := getattr(config, name, None))]
