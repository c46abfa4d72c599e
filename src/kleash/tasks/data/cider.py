"""CIDEr-D: how much a caption says that its references say, rare words counting more.

After Vedantam et al. (arXiv 1411.5726) with the choices of the published scorer: n-grams up to
four, clipped counts, a Gaussian penalty on length. Words are small letters and digits; the scorer's
own tokeniser is a Java program, which is not needed for that.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence
from functools import lru_cache

LONGEST = 4
SIGMA = 6.0  # words of difference in length
WORD = re.compile(r"[a-z0-9']+")

Grams = Counter[tuple[str, ...]]


@lru_cache(maxsize=65_536)
def grams(text: str) -> Grams:
    """The n-grams of a caption, counted."""
    words = WORD.findall(text.lower())
    return Counter(
        tuple(words[at : at + n]) for n in range(1, LONGEST + 1) for at in range(len(words) - n + 1)
    )


class Cider:
    """The scorer of a set of images, given the references of each."""

    def __init__(self, references: Sequence[Sequence[str]]) -> None:
        self.seen: Grams = Counter()
        for texts in references:
            self.seen.update({gram for text in texts for gram in grams(text)})
        self.images = math.log(max(len(references), 2))

    def vector(self, text: str) -> tuple[list[dict[tuple[str, ...], float]], list[float], int]:
        """For each length of n-gram their weights and the norm; and the number of bigrams."""
        weights: list[dict[tuple[str, ...], float]] = [{} for _ in range(LONGEST)]
        for gram, count in grams(text).items():
            rarity = self.images - math.log(max(1, self.seen[gram]))
            weights[len(gram) - 1][gram] = count * rarity
        norms = [math.sqrt(sum(w * w for w in each.values())) for each in weights]
        length = sum(count for gram, count in grams(text).items() if len(gram) == 2)
        return weights, norms, length

    def __call__(self, caption: str, references: Sequence[str]) -> float:
        """CIDEr-D over ten, from 0 to 1."""
        ours, our_norms, our_length = self.vector(caption)
        total = 0.0
        for reference in references:
            theirs, norms, length = self.vector(reference)
            apart = math.exp(-((our_length - length) ** 2) / (2 * SIGMA**2))
            for n in range(LONGEST):
                norm = our_norms[n] * norms[n]
                if norm:
                    shared = ((gram, w) for gram, w in ours[n].items() if gram in theirs[n])
                    met = sum(min(w, theirs[n][gram]) * theirs[n][gram] for gram, w in shared)
                    total += apart * met / norm
        return min(1.0, total / (LONGEST * len(references)))
