"""Whole steps of GRPO with an agent of real size on one device: `benchmarks gpu --part step`.

Real are the engine on the trainer's own weights, `play_groups` with all conversations at once,
`LeashedPolicy.update_on_batch` with a second copy as its reference, the optimizer, and what the
engine gives back and looks at again in between. Users answer after a fixed time. Drawn are weights,
what users say, rewards, and how long turns are: such weights know no id that ends a turn, so that
the last one of a turn is taken for it. Left out is what a run does once or between steps: hashes of
all weights, logging, the probe, validation.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from benchmarks.figures import Figures
from benchmarks.gpu_clock import EngineClock
from benchmarks.shapes import GROUP, TASKS, drawn_model, lengths_of_turns
from benchmarks.slow_users import Lengths, Numbers, SlowGym, alike_in_groups, drawn_turns
from kleash.errors import GuardError
from kleash.models.language import flops
from kleash.models.language.flops import Work
from kleash.models.language.shape import Shape
from kleash.train.recipe import AgentRecipe, recipe_from

if TYPE_CHECKING:
    from torch import Tensor

    from kleash.algo.policy import Judged
    from kleash.models.engine import Said, Talk
    from kleash.models.engine.paged import PagedEngine
    from kleash.train.rollout import Groups
    from kleash.train.rollout.agent import AgentWorld

LATENCY = 0.2
"""Seconds that a user takes to answer."""
DOCUMENTS = (247.0, 297.0)
"""Tokens per second and GPU of documents 003 and 004."""
PLACES = 0.6
"""Of the tokens of all conversations, those that the engine has places for: some end early."""
SHORTER = 8
"""By how much turns are shorter where kernels are compiled and graphs captured."""
COLD, WARM = "warm-up", "step"


class TimedTurns:
    """An engine that is told how long each turn is, and gives up when time is up."""

    name = "own"

    def __init__(self, engine: PagedEngine, lengths: Lengths, figures: Figures) -> None:
        self.engine, self.lengths, self.figures = engine, lengths, figures
        self.talk, self.forget = engine.talk, engine.forget
        self.refresh, self.release = engine.refresh, engine.release

    async def say(self, talk: Talk, heard: Sequence[int]) -> Said:
        """A turn of its length, its last id taken for its end."""
        if self.figures.left() < 0:
            raise TimeoutError("no time is left")
        assert talk.key is not None
        *_, task, rollout = talk.key
        talk.most = self.lengths[int(str(task)) * GROUP + int(str(rollout))][talk.turns][1]
        return replace(await self.engine.say(talk, heard), stopped=True)


class Watch:
    """Looks on as `LeashedPolicy` learns: when its update begins, and what it judges.

    A guard that would stop a run is a figure here.
    """

    def __init__(self, leashed: Any, figures: Figures) -> None:
        self.figures, self.learn = figures, leashed.update_on_batch
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

    def check_judged(self, judged: Judged, old: Tensor, sampled: Tensor | None) -> None:
        """What was sampled beside what is judged."""
        assert judged.exact_kl is not None
        self.kls.append(judged.exact_kl.detach())
        if sampled is not None:
            self.gaps.append((sampled - judged.logp.detach()).float())
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

    def __init__(
        self, name: str, device: str, seconds: float, tokens: int, reference: str = "pinned"
    ) -> None:
        from kleash.models.language.policy import LanguagePolicy
        from kleash.train.player import packing_of

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
        self.watch = self.made_leash(reference)
        self.note("peak GiB before the first step", self.memory())

    def made_world(self, model: Any) -> AgentWorld:
        """The world of the drawn model and the slow users."""
        from kleash.train.rollout.agent import AgentWorld

        speech = Numbers(self.sizes.vocabulary)
        self.ended: list[float] = []
        world = object.__new__(AgentWorld)
        world.recipe, world.device, world.loop = self.recipe, self.device, asyncio.new_event_loop()
        world.progress = lambda count: self.ended.append(time.perf_counter())
        world.gym = SlowGym(self.lengths, speech, self.latency)
        world._loaded = model, speech
        return world

    def made_engine(self, model: Any) -> TimedTurns:
        """With room for as many tokens as there are at a time."""
        from kleash.models.engine.paged import PagedEngine

        whole = sum(-(-sum(map(sum, each)) // 128) * 128 for each in self.lengths)
        places = int(PLACES * whole) if self.large else whole
        engine = PagedEngine(model, (), slots=len(self.lengths), places=places)
        self.note("places of the engine", places)
        return TimedTurns(engine, self.lengths, self)

    def made_leash(self, where: str) -> Watch:
        """Optimiser and reference, as a run has them after its first update."""
        from kleash.algo.policy import frozen
        from kleash.train.optimizer import Optimizer
        from kleash.train.update import LeashedPolicy

        optimizer = Optimizer(self.policy, self.recipe.lr, self.recipe.clip.norm, lambda batch: "")
        optimizer.updates = 1  # so that no weights are hashed
        held: Any = frozen(self.policy)
        if where == "pinned":
            self.note("seconds to pin the reference", self.clocked(held.pinned))
            held = held.streamed(self.policy.device)
        self.tidy()
        reference: Any = SimpleNamespace(policy=held, after_update=lambda *_: False)
        leashed = LeashedPolicy(self.recipe, self.policy, reference, optimizer, total=100)
        leashed.split = lambda batch: self.policy.parts(batch, self.recipe.part_tokens)
        self.recompute(0)
        return Watch(leashed, self)

    def recompute(self, more: int) -> None:
        """As many layers worked out again as memory asks for, and so many more."""
        from kleash.train.player import recomputed

        assert self.policy.packing is not None
        again = recomputed(self.policy, self.policy.packing) + more
        self.policy.packing = replace(self.policy.packing, recompute=again)
        self.note("layers worked out again", again)

    # --- steps

    def warm_up(self) -> None:
        """Conversations with shorter turns, then a few packs: all is compiled and captured."""
        from kleash.models.language.packed import plan
        from kleash.train.rollout.agent import play_groups

        self.engine.lengths = [
            [[heard, -(-said // SHORTER)] for heard, said in turns] for turns in self.lengths
        ]
        with EngineClock(self.engine.engine, self) as clock:
            tasks = self.world.gym.tasks("train")
            seconds = self.clocked(
                lambda: play_groups(self.engine, self.policy, self.world, tasks, (COLD,))
            )
        self.engine.lengths = self.lengths
        clock.tell(f"{COLD}, rollout", seconds)
        self.note(f"{COLD}, rollout, seconds", seconds)
        assert self.policy.packing is not None
        batch = self.policy.gather(drawn_turns(self.lengths, self.sizes.vocabulary))
        fullest: dict[int, list[int]] = {}
        for held, size in plan(batch.lengths, self.policy.packing):
            before = fullest.get(size, [])
            fullest[size] = max(before, held, key=lambda each: sum(batch.lengths[i] for i in each))
        self.note(f"{COLD}, sizes of packs", sorted(fullest))
        seconds = self.clocked(lambda: self.learn_alone(batch, fullest.values()))
        self.note(f"{COLD}, reference and update, seconds", seconds)
        kl = self.torch.cat(self.watch.kls)
        self.note("KL before any update, mean and largest", [kl.mean().item(), kl.max().item()])
        self.engine.refresh(self.policy)

    def learn_alone(self, batch: Any, packs: Iterable[Sequence[int]]) -> None:
        """Learn these packs, each by itself."""
        from kleash.train.rollout import Groups

        for held in packs:
            few, _ = batch.take(held, 0)
            reward = self.torch.arange(len(held), device=self.device).float()
            group = self.torch.zeros(len(held), dtype=self.torch.long, device=self.device)
            self.learn(COLD, Groups(few, few.episode, reward, group, None, broken=0, dropped=0))

    def step(self, name: str, number: int) -> None:
        """Play, learn, and have the engine look at the weights again."""
        from kleash.train.player import make_room
        from kleash.train.rollout.agent import play_groups

        phases, engine, watch = Phases({}, {}), self.engine.engine, self.watch
        ticks = engine.ticks
        self.memory(reset=True)
        self.ended.clear()
        tasks = self.world.gym.tasks("train")
        began = self.now()
        with EngineClock(engine, self) as clock:
            groups = play_groups(self.engine, self.policy, self.world, tasks, ("step", number))
        phases.seconds["rollout"] = self.now() - began
        phases.memory["rollout"] = self.memory()
        clock.tell(f"{name}, rollout", phases.seconds["rollout"])
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


def measure(
    name: str, device: str, seconds: float, tokens: int, reference: str = "pinned"
) -> dict[str, Any]:
    """Once to compile and capture, then a whole step; another one where time allows."""
    bench = StepBench(name, device, seconds, tokens, reference)
    bench.attempt(COLD, bench.warm_up)
    bench.attempt(WARM, lambda: bench.step(WARM, 1))
    needs = 1.3 * bench.found.get(f"{WARM}, seconds", 0.0)
    bench.attempt(f"second {WARM}", lambda: bench.step(f"second {WARM}", 2), needs)
    bench.world.loop.close()
    bench.note("seconds of it all", bench.left(used=True))
    return bench.found
