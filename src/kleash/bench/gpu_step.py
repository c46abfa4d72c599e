"""Whole steps of GRPO with an agent of real size on one device: `bench gpu --part step`.

Real are the engine on the trainer's own weights, `play_groups` with all conversations at once,
`PackedLeash.learn` with a second copy as its reference, the optimiser, and what the engine gives
back and looks at again in between. Users answer after a fixed time. Drawn are weights, what users
say, rewards, and how long turns are: such weights know no id that ends a turn, so that the last one
of a turn is taken for it. Left out is what a run does once or between steps: hashes of all weights,
logging, the probe, validation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from kleash.bench.figures import Figures
from kleash.bench.shapes import GROUP, TASKS, drawn_model, lengths_of_turns
from kleash.envs.contract import Step
from kleash.errors import GuardError
from kleash.language import flops
from kleash.language.flops import Work
from kleash.language.shape import Shape
from kleash.recipe import AgentRecipe, recipe_from
from kleash.seeds import generator

if TYPE_CHECKING:
    from torch import Tensor

    from kleash.engine import Said, Talk
    from kleash.engine.paged import PagedEngine
    from kleash.policy import Judged
    from kleash.rollout import Groups
    from kleash.rollout.agent import AgentWorld

LATENCY = 0.2
"""Seconds that a user takes to answer."""
DOCUMENTS = (247.0, 297.0)
"""Tokens per second and GPU of documents 003 and 004."""
COLD, WARM = "first step", "step"

Lengths = list[list[list[int]]]
"""For each episode its turns, as (heard, said)."""


def alike_in_groups(turns: Lengths) -> Lengths:
    """The same lengths with openings that are alike in a group: what is over is heard later."""
    made = []
    for number, episode in enumerate(turns):
        first = number // GROUP * GROUP
        opening = min(each[0][0] for each in turns[first : first + GROUP])
        over = episode[0][0] - opening
        (_, said), (heard, then), *rest = episode
        made.append([[opening, said], [heard + over, then], *rest])
    return made


class Numbers:
    """A speech in which a text is its ids, written out."""

    identity, pad = "numbers", 0
    stops: frozenset[int] = frozenset()

    def __init__(self, size: int) -> None:
        self.size = size

    def opening(self, instructions: str, tools: Any, observation: str) -> list[int]:
        """The observation's ids."""
        return self.ids(observation)

    def reply(self, observation: str) -> list[int]:
        """The observation's ids."""
        return self.ids(observation)

    def text(self, ids: Sequence[int]) -> str:
        """The ids, written out."""
        return " ".join(map(str, ids))

    def ids(self, text: str) -> list[int]:
        """The ids that are written."""
        return [int(word) for word in text.split()]


class SlowUser:
    """Says texts of given lengths, each after a while; the last turn earns a drawn reward."""

    def __init__(self, texts: Sequence[str], reward: float, latency: float) -> None:
        self.texts, self.reward, self.latency, self.turns = texts, reward, latency, 0

    def start(self) -> str:
        """The opening."""
        return self.texts[0]

    async def step(self, text: str) -> Step:
        """The next text."""
        await asyncio.sleep(self.latency)
        self.turns += 1
        if self.turns == len(self.texts):
            return Step("", self.reward, True, "finished")
        return Step(self.texts[self.turns], 0.0)

    def cut(self) -> None:
        """Never happens: every turn is taken for ended."""
        raise RuntimeError("a turn was cut")

    def metrics(self) -> dict[str, float]:
        """How many turns there were."""
        return {"turns": float(self.turns)}


class SlowGym:
    """Tasks whose conversations have given lengths."""

    content = "drawn"
    surface = SimpleNamespace(instructions="", tools=[])

    def __init__(self, lengths: Lengths, speech: Numbers, latency: float) -> None:
        self.lengths, self.speech, self.latency = lengths, speech, latency

    def tasks(self, split: str) -> list[Any]:
        """As many as a step has."""
        return [SimpleNamespace(id=str(number)) for number in range(TASKS)]

    def make(self, task: Any, *, seed: int, rollout: int) -> SlowUser:
        """A user of its own; what he says first is the same for a group."""
        texts = []
        for turn, (heard, _) in enumerate(self.lengths[int(task.id) * GROUP + rollout]):
            rng = generator("bench", "step", task.id, rollout if turn else -1, turn)
            texts.append(self.speech.text(rng.integers(0, self.speech.size, heard).tolist()))
        reward = float(generator("bench", "reward", task.id, rollout).random())
        return SlowUser(texts, reward, self.latency)


class TimedTurns:
    """An engine that is told how long each turn is, and gives up when time is up."""

    name = "own"

    def __init__(self, engine: PagedEngine, lengths: Lengths, figures: Figures) -> None:
        self.engine, self.lengths, self.figures = engine, lengths, figures
        self.talk, self.forget, self.refresh = engine.talk, engine.forget, engine.refresh

    async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
        """A turn of its length, its last id taken for its end."""
        if self.figures.left() < 0:
            raise TimeoutError("no time is left")
        assert talk.key is not None
        *_, task, rollout = talk.key
        talk.most = self.lengths[int(str(task)) * GROUP + int(str(rollout))][talk.turns][1]
        return replace(await self.engine.say(talk, heard), stopped=True)


class Watch:
    """Looks on as `PackedLeash` learns: when its update begins, and what it judges.

    A guard that would stop a run is a figure here.
    """

    def __init__(self, leashed: Any, figures: Figures) -> None:
        self.figures, self.learn = figures, leashed.learn
        self.update, self.check = leashed.one_update, leashed.check_judged
        leashed.one_update, leashed.check_judged = self.one_update, self.check_judged
        self.begin()

    def begin(self) -> None:
        """Before the reference's pass, which goes before the first loss."""
        self.gaps: list[Tensor] = []
        self.kls: list[Tensor] = []
        self.stopped: list[str] = []
        self.figures.memory(reset=True)
        self.began = self.figures.now()

    def one_update(self, *given: Any) -> Any:
        """The reference has said all it has to."""
        self.tied, self.tied_memory = self.figures.now(), self.figures.memory()
        self.figures.memory(reset=True)
        return self.update(*given)

    def check_judged(self, judged: Judged, old: Tensor, sampled: Tensor) -> None:
        """What was sampled beside what is judged."""
        assert judged.exact_kl is not None
        self.gaps.append((sampled - judged.logp.detach()).float())
        self.kls.append(judged.exact_kl.detach())
        try:
            self.check(judged, old, sampled)
        except GuardError as error:
            self.stopped.append(str(error))


@dataclass
class Phases:
    """Seconds and peak GiB of the phases of a step."""

    seconds: dict[str, float]
    memory: dict[str, float]


class StepBench(Figures):
    """Steps of one model."""

    def __init__(self, name: str, device: str, seconds: float, tokens: int) -> None:
        from kleash.language.policy import LanguagePolicy
        from kleash.train.packs import packing_of

        super().__init__(device, seconds, f"Qwen3-{name} shape")
        self.latency = LATENCY if self.large else 0.002
        self.lengths = alike_in_groups(lengths_of_turns(tokens))
        model = drawn_model(name, device)
        self.sizes = Shape.of(model.config)
        self.note("seconds to make the model", self.left(used=True))
        self.recipe = recipe_of(large=self.large)
        self.policy = LanguagePolicy(model)
        self.policy.packing = packing_of(self.recipe.scale, self.policy)
        self.world = self.made_world(model)
        self.engine = self.made_engine(model)
        self.watch = self.made_leash()
        self.note("peak GiB before the first step", self.memory())

    def made_world(self, model: Any) -> AgentWorld:
        """The world of the drawn model and the slow users."""
        from kleash.rollout.agent import AgentWorld

        speech = Numbers(self.sizes.vocabulary)
        self.ended: list[float] = []
        world = object.__new__(AgentWorld)
        world.recipe, world.device, world.loop = self.recipe, self.device, asyncio.new_event_loop()
        world.progress = lambda count: self.ended.append(time.perf_counter())
        world.gym = SlowGym(self.lengths, speech, self.latency)
        world._loaded = model, speech
        return world

    def made_engine(self, model: Any) -> TimedTurns:
        """With room for all conversations at their longest, whole pages each."""
        from kleash.engine.paged import PagedEngine

        whole = sum(-(-sum(map(sum, each)) // 128) * 128 for each in self.lengths)
        engine = PagedEngine(model, (), seats=len(self.lengths), places=whole)
        return TimedTurns(engine, self.lengths, self)

    def made_leash(self) -> Watch:
        """Optimiser and reference, as a run has them after its first update."""
        from kleash.policy import frozen
        from kleash.train.packs import PackedLeash
        from kleash.train.update import Descent

        descent = Descent(self.policy, self.recipe.lr, self.recipe.clip.norm, lambda batch: "")
        descent.step = 1  # so that no weights are hashed
        reference: Any = SimpleNamespace(policy=frozen(self.policy), after_update=lambda *_: False)
        leashed = PackedLeash(self.recipe, self.policy, reference, descent, total=100)
        leashed.split = lambda batch: self.policy.parts(batch, self.recipe.part_tokens)
        self.recompute(0)
        return Watch(leashed, self)

    def recompute(self, more: int) -> None:
        """As many layers worked out again as memory asks for, and so many more."""
        from kleash.train.packs import recomputed

        assert self.policy.packing is not None
        again = recomputed(self.policy, self.policy.packing) + more
        self.policy.packing = replace(self.policy.packing, recompute=again)
        self.note("layers worked out again", again)

    # --- a step

    def step(self, name: str, number: int) -> None:
        """Play, learn, and have the engine look at the weights again."""
        from kleash.rollout.agent import play_groups
        from kleash.train.packs import make_room

        phases, engine, watch = Phases({}, {}), self.engine.engine, self.watch
        ticks = engine.ticks
        self.memory(reset=True)
        self.ended.clear()
        began = time.perf_counter()
        groups = play_groups(
            self.engine, self.policy, self.world, self.world.gym.tasks("train"), ("step", number)
        )
        self.wait()
        phases.seconds["rollout"] = time.perf_counter() - began
        phases.memory["rollout"] = self.memory()
        self.played(name, groups, phases, began, engine.ticks - ticks)
        phases.seconds["making room"] = self.clocked(lambda: make_room(engine, self.policy))
        self.note(f"{name}, pages kept beside the update", engine._made is not None)
        self.learn(name, groups)
        phases.seconds["reference"] = watch.tied - watch.began
        phases.seconds["update"] = self.now() - watch.tied
        phases.memory |= {"reference": watch.tied_memory, "update": self.memory()}
        phases.seconds["refresh"] = self.clocked(lambda: engine.refresh(self.policy))
        self.learnt(name, groups, phases)

    def learn(self, name: str, groups: Groups) -> None:
        """The update; where it does not fit, with more layers worked out again."""
        more = 0
        while True:
            self.watch.begin()
            try:
                self.record, _ = self.watch.learn(groups)
            except self.torch.OutOfMemoryError as error:
                self.note(f"{name}, does not fit", str(error)[:200])
                more += 9
                if more > self.sizes.layers:
                    raise
            else:
                return
            self.tidy()
            self.recompute(more)

    # --- figures

    def played(self, name: str, groups: Groups, phases: Phases, began: float, ticks: int) -> None:
        """How the engine did."""
        said, seconds = len(groups.episode), phases.seconds["rollout"]
        ends = sorted(end - began for end in self.ended)
        self.note(f"{name}, episodes", len(groups.batch.lengths))
        self.note(f"{name}, tokens", int(groups.measured["tokens"]))
        self.note(f"{name}, tokens said", said)
        self.note(f"{name}, turns in the mean", groups.measured["episode/turns"])
        self.note(f"{name}, rollout, tokens said per second", said / seconds)
        self.note(f"{name}, rollout, steps of the engine", ticks)
        self.note(f"{name}, rollout, conversations that speak in the mean step", said / ticks)
        self.note(f"{name}, rollout, ms per step of the engine", 1e3 * seconds / ticks)
        self.note(
            f"{name}, rollout, seconds until half of the episodes had ended", ends[len(ends) // 2]
        )
        self.note(f"{name}, rollout, seconds", seconds)

    def learnt(self, name: str, groups: Groups, phases: Phases) -> None:
        """Seconds, shares, rates and gaps."""
        tokens, said = int(groups.measured["tokens"]), len(groups.episode)
        total = sum(phases.seconds.values())
        lengths = groups.batch.lengths
        for phase, seconds in phases.seconds.items():
            self.note(f"{name}, {phase}, seconds", seconds)
            self.note(f"{name}, {phase}, share", seconds / total)
        for phase, memory in phases.memory.items():
            self.note(f"{name}, {phase}, peak GiB", memory)
        update = flops.update(self.sizes, lengths, said)
        reference = flops.headless(self.sizes, lengths)
        self.rates(f"{name}, update", phases.seconds["update"], update, tokens)
        self.rates(f"{name}, reference", phases.seconds["reference"], reference, tokens)
        self.rates(name, total, update + reference + self.playing(lengths, said), tokens)
        self.note(f"{name}, tokens said per second", said / total)
        for documents in DOCUMENTS if self.large else ():
            self.note(f"{name}, times the documents' {documents:g}", tokens / total / documents)
        gap, kl = (self.torch.cat(each) for each in (self.watch.gaps, self.watch.kls))
        self.note(f"{name}, kl/sampler: mean of sampled - judged (nats)", gap.mean().item())
        self.note(f"{name}, kl/sampler: mean size", gap.abs().mean().item())
        self.note(f"{name}, kl/sampler: largest", gap.abs().max().item())
        self.note(
            f"{name}, KL to the reference, mean and largest", [kl.mean().item(), kl.max().item()]
        )
        self.note(f"{name}, guards that would have stopped a run", self.watch.stopped[:2])
        self.note(f"{name}, gradient norm", self.record["grad_norm"])

    def playing(self, lengths: Sequence[int], said: int) -> Work:
        """The arithmetic of playing: what a group hears first is read once."""
        openings = [each[0][0] for each in self.lengths[::GROUP]]
        return flops.forward(self.sizes, lengths, said) + flops.headless(self.sizes, openings) * (
            1 - GROUP
        )


def recipe_of(*, large: bool) -> AgentRecipe:
    """A recipe as for an 8B agent; on a CPU packs are small and nothing is compiled."""
    scale = {"precision": "bfloat16"} if large else {"packed": "on", "pack_tokens": 128}
    given = {"env": "intention", "model": "drawn", "group": GROUP, "batch": TASKS}
    made = recipe_from({**given, "scale": scale})
    assert isinstance(made, AgentRecipe)
    return made


def measure(name: str, device: str, seconds: float, tokens: int) -> dict[str, Any]:
    """Two steps: the first compiles and captures, the second is what a step takes."""
    bench = StepBench(name, device, seconds, tokens)
    bench.attempt(COLD, lambda: bench.step(COLD, 0))
    needs = 2.0 * bench.found.get(f"{COLD}, update, seconds", 0.0) if bench.large else 0.0
    bench.attempt(WARM, lambda: bench.step(WARM, 1), needs)
    bench.world.loop.close()
    bench.note("seconds of it all", bench.left(used=True))
    return bench.found
