"""How fast a study measures, beside the plain pattern: one prompt at a time, nothing shared.

Both choose demonstrations with the same policies, ask the same network and score the answers. The
plain way does so for one item after the other: it encodes the pool again, looks at every picture
again and keeps no answer. Answers must be the same before anything is timed.
"""

from __future__ import annotations

import statistics
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from kleash.seeds import torch_generator

if TYPE_CHECKING:
    from kleash.models.selector import Selector
    from kleash.tasks.demos.propose import Pointer
    from kleash.train.rollout.selector import SelectorWorld
    from kleash.types import Prompt

SHOTS = (1, 2, 3, 4)
SLOW, FAST = 1e-4, 3e-2  # how far arms lie from their base: six that hardly move, three that do


def arms_of_a_study(world: SelectorWorld, count: int) -> list[Selector]:
    """A base's descendants: two thirds almost the same, one third moved."""
    import torch

    arms = []
    for arm in range(count):
        policy = world.fresh_policy()
        rng = torch_generator("bench", "arm", arm)
        with torch.no_grad():
            for weight in policy.parameters():
                size = SLOW if 3 * arm < 2 * count else FAST
                weight.add_(size * weight.std() * torch.randn(weight.shape, generator=rng))
        arms.append(policy)
    return arms


def chosen_together(
    world: SelectorWorld, policy: Selector, items: int, shots: int
) -> list[Pointer]:
    """Greedy pointers for many items at once."""
    pointers, _ = policy.choose(world.queries("test").take(range(items)), shots)
    return pointers.lists()


def measured_together(
    world: SelectorWorld, policy: Selector, items: int, shots: int
) -> list[float]:
    """Scores of many items as a study measures them."""
    from kleash.tasks.demos.score import vqa_accuracy

    pooled = world.pooled("test")
    chosen = chosen_together(world, policy, items, shots)
    prompts = [pooled.prompt(place, pointer) for place, pointer in enumerate(chosen)]
    return [
        vqa_accuracy(fact.text or "", prompt.query.answers)
        for fact, prompt in zip(world.ask.facts(prompts), prompts, strict=True)
    ]


def measured_alone(world: SelectorWorld, policy: Selector, place: int, shots: int) -> float:
    """The score of one item, with nothing kept from any other."""
    from kleash.tasks.demos.score import vqa_accuracy

    pointers, _ = policy.choose(world.queries("test").take([place]), shots)
    prompt = world.pooled("test").prompt(place, pointers.lists()[0])
    return vqa_accuracy(plain_answer(world, prompt), prompt.query.answers)


def plain_answer(world: SelectorWorld, prompt: Prompt) -> str:
    """What the network says to one prompt, read from its first picture to its last word."""
    import numpy as np
    import torch

    from kleash.models.answer.embedded import Embedded, known_words
    from kleash.models.answer.network import ANSWER_WORDS, ASKED, END, TOKEN, VOCABULARY

    answerer = world.answerer
    assert isinstance(answerer, Embedded)
    network, items = answerer.network, [*prompt.demonstrations, prompt.query]
    with torch.inference_mode():
        pictures = torch.from_numpy(np.stack([answerer.images(item.image) for item in items]))
        words = network.word(torch.tensor([known_words(item) for item in items]))
        blocks = torch.cat([network.see(pictures), words], dim=1)
        first, memory = network.read(network.place(blocks[None])[:, :-ANSWER_WORDS], None)
        said = first.argmax(-1)
        where = network.slot[ASKED] + network.block[len(items) - 1]
        after = network.go_on(said[:, None], where, memory)
    tokens = [int(said[0]), int(after[0, 0].argmax())]
    kept = tokens[: tokens.index(TOKEN[END])] if TOKEN[END] in tokens else tokens
    return " ".join(VOCABULARY[token] for token in kept)


def study_bench(*, arms: int = 9, items: int = 200, plain: int = 60) -> dict[str, Any]:
    """Answers per second of a study's measuring against the plain pattern, as a ratio."""
    from kleash.runs.ledger import Ledger
    from kleash.train.recipe import SelectorRecipe
    from kleash.train.rollout import one_way
    from kleash.train.rollout.selector import SelectorWorld

    with one_way(), tempfile.TemporaryDirectory() as folder:
        recipe = SelectorRecipe(selector="v3")
        with Ledger(Path(folder) / "ledger.sqlite") as ledger:
            world = SelectorWorld(recipe, ledger)
            policies = arms_of_a_study(world, arms)
            world.queries("test")  # items, pools and embeddings are there in both ways
            times, scores = [], []
            began = time.process_time()
            for policy in policies:
                for shots in SHOTS:
                    scores.append(measured_together(world, policy, items, shots))
                times.append(time.process_time() - began)
            usage = ledger.usage()
        alone = times[0] / (items * len(SHOTS))
        shared = times[-1] / (arms * items * len(SHOTS))
        spent = []
        for number in range(plain):
            arm, shots, place = number % arms, SHOTS[number % len(SHOTS)], 3 * number % items
            began = time.process_time()
            score = measured_alone(world, policies[arm], place, shots)
            spent.append(time.process_time() - began)
            if score != scores[arm * len(SHOTS) + SHOTS.index(shots)][place]:
                raise ValueError(f"the two ways differ on item {place}: they cannot be compared")
    each = statistics.median(spent)
    return {
        "answers per second, nine arms": 1 / shared,
        "answers per second, one arm": 1 / alone,
        "answers per second, plain": 1 / each,
        "nine arms, times the plain way": each / shared,
        "one arm, times the plain way": each / alone,
        "asked": usage.asked,
        "bought": usage.bought,
    }
