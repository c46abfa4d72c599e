"""Retrieval without learning, as numbers: how near each candidate of a pool is to its query.

The baselines of `evaluate` order by these; a selector can begin as one of them and learn the rest.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from kleash.tasks.demos.embeddings import SIMILARITIES, Rows
from kleash.types import Item

if TYPE_CHECKING:
    from kleash.tasks.demos.propose import Pooled

RETRIEVALS = (*SIMILARITIES, "words")
WORD = re.compile(r"\w+")
K1, B = 1.2, 0.75  # of BM25, as Lucene has them


def nearness(pooled: Pooled) -> Rows:
    """[query, candidate, retrieval]; what the encoder does not give is 0 for all.

    Rounded as `nearest` rounds, so that both order alike.
    """
    asked, shown, pools = pooled.query_rows, pooled.demonstration_rows, pooled.pools
    found = np.zeros((*pools.shape, len(RETRIEVALS)), np.float32)
    for place, kind in enumerate(SIMILARITIES):
        if kind == "both" or kind in asked.kinds:
            ours, theirs = asked.part(kind).astype(np.float64), shown.part(kind)
            for query, pool in enumerate(pools):
                found[query, :, place] = np.rint(theirs[pool] @ ours[query] * 1e6) / 1e6
    found[..., -1] = bm25(pooled)
    return found


def bm25(pooled: Pooled) -> Rows:
    """Okapi BM25 of question and caption, over the highest of the pool (Robertson et al. 1994)."""
    every = [words(item) for item in pooled.demonstrations]
    holders = Counter(word for each in every for word in each)
    usual = sum(each.total() for each in every) / len(every)
    rarity = {w: math.log(1 + (len(every) - n + 0.5) / (n + 0.5)) for w, n in holders.items()}
    long = [K1 * (1 - B + B * each.total() / usual) for each in every]
    found = np.zeros(pooled.pools.shape, np.float32)
    for query, item in enumerate(pooled.queries):
        asked = [word for word in words(item) if word in rarity]
        for place, row in enumerate(pooled.pools[query].tolist()):
            parts = (rarity[w] * n / (n + long[row]) for w in asked if (n := every[row][w]))
            found[query, place] = math.fsum(parts)
    shares: Rows = found / np.maximum(found.max(1, keepdims=True), 1e-9)
    return shares


def words(item: Item) -> Counter[str]:
    """What can be read of an item before it is answered."""
    return Counter(WORD.findall(f"{item.question} {item.caption}".lower()))
