"""Asking through the ledger: a prompt that was answered once is never put to a model again."""

from __future__ import annotations

import functools
import hashlib
import math
from collections.abc import Callable, Sequence

from kleash.models.answer import Answerer, Images, looks_at_images
from kleash.runs.ledger import Fact, Ledger, prompt_key
from kleash.tasks.data import image_content
from kleash.types import Answer, Item, Prompt

AT_ONCE = 1024  # prompts bought in one go: what a kill can lose


class Asker:
    """An answerer and a ledger. `progress` hears how many prompts were just answered."""

    def __init__(
        self,
        answerer: Answerer,
        ledger: Ledger,
        images: Images,
        progress: Callable[[int], None] = lambda count: None,
    ) -> None:
        self.answerer = answerer
        self.ledger = ledger
        self.images = images
        self.progress = progress
        self.error = ""  # of one of the answers that broke when it was last called
        self.content = functools.cache(self.content_of)

    def __call__(self, prompts: Sequence[Prompt]) -> list[Answer | None]:
        """An answer for every prompt, in order; None where the model broke."""
        facts = self.facts(prompts)
        self.error = next((fact.error for fact in facts if fact.error), "")
        return [as_answer(fact) for fact in facts]

    def facts(self, prompts: Sequence[Prompt]) -> list[Fact]:
        """What the ledger holds of the prompts after asking for what it lacked."""
        return [fact for _, fact in self.keyed_facts(prompts)]

    def keyed_facts(self, prompts: Sequence[Prompt]) -> list[tuple[str, Fact]]:
        """The facts and the keys under which the ledger has them."""
        found: list[tuple[str, Fact]] = []
        for start in range(0, len(prompts), AT_ONCE):
            some = prompts[start : start + AT_ONCE]
            keys = [self.key(prompt) for prompt in some]
            found += zip(keys, self.facts_at_once(some, keys), strict=True)
            self.progress(len(some))
        return found

    def facts_at_once(self, prompts: Sequence[Prompt], keys: Sequence[str]) -> list[Fact]:
        """What the ledger holds of a few prompts; what it lacked is recorded when all is there."""
        return self.ledger.answers(
            self.answerer.identity,
            keys,
            lambda places: self.buy([prompts[place] for place in places]),
        )

    def buy(self, prompts: Sequence[Prompt]) -> list[Fact]:
        """Answers from the model itself."""
        return [as_fact(answer) for answer in self.answerer.answer(prompts)]

    def key(self, prompt: Prompt) -> str:
        """All that goes into a prompt, as one hash."""
        return prompt_key(*map(self.content, (*prompt.demonstrations, prompt.query)))

    def content_of(self, item: Item) -> str:
        """The hash of all of an item that an answerer is shown."""
        words = f"{item.question}\x1f{item.answer}"
        if item.caption:
            words += f"\x1f{item.caption}"
        if not looks_at_images(self.answerer):
            return hashlib.sha256(words.encode()).hexdigest()
        return hashlib.sha256(image_content(self.images, item.image) + words.encode()).hexdigest()


def as_fact(answer: Answer) -> Fact:
    """An answer to keep; one whose log-probability is not a number broke."""
    if answer.error is not None:
        return Fact(None, error=answer.error)
    if math.isnan(answer.truth_logp):
        return Fact(None, error=f"the log-probability of the truth is NaN beside {answer.text!r}")
    return Fact(answer.text, answer.truth_logp)


def as_answer(fact: Fact) -> Answer | None:
    """The answer in a fact, unless it broke."""
    if fact.text is None or fact.truth_logp is None:
        return None
    return Answer(fact.text, fact.truth_logp)
