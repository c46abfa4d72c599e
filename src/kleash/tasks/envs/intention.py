"""The intention environment: a vague request, hidden details, a user who answers questions.

One state machine for two surfaces (text, tokens) and three users (rule, chat, replay). Who asks,
and how an episode becomes a group or an average, is not known here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
from pydantic import Field

from kleash.config import Config
from kleash.errors import ConfigError
from kleash.runs.ledger import Ledger
from kleash.seeds import generator, key
from kleash.tasks.envs import matching
from kleash.tasks.envs.chat import Chat, ChatUser
from kleash.tasks.envs.contract import Step, TurnEnv, ended
from kleash.tasks.envs.endpoint import Endpoint
from kleash.tasks.envs.intents import WORTH, IntentTask, load_tasks
from kleash.tasks.envs.surfaces import Action, Surface, TextSurface, TokenSurface
from kleash.tasks.envs.users import RuleUser, SlotUser, User
from kleash.tasks.envs.world import World, texts, token, world_content, world_tasks

FURTHER = 0.2  # what each further detail covered by the same question costs
GOAL = (
    "The user's request is vague: it leaves out details that matter. Find them out by asking, one"
    " detail at a time and the most important ones first, and finish when nothing is left to ask."
)


def userrl(importances: Sequence[int], cost: float) -> float:
    """UserRL's reward of a turn, from the importances of what the judge lists as newly covered.

    Each entry of the list counts, also one that stands there twice.
    """
    if not importances:
        return 0.0
    return max(0.0, WORTH[max(importances)] - FURTHER * (len(importances) - 1))


def kleash(importances: Sequence[int], cost: float) -> float:
    """The same less a small cost for each turn, so that asking in vain is worse than finishing."""
    return userrl(importances, cost) - cost


REWARDS: dict[str, Callable[[Sequence[int], float], float]] = {"userrl": userrl, "kleash": kleash}


class IntentionOptions(Config):
    """What an intention gym is made of."""

    surface: Literal["text", "tokens"] = "text"
    """How the policy speaks: lines of text, or a few fixed words for tiny models."""
    user: Literal["rule", "chat", "replay"] = "rule"
    """Who answers: word matching, a model behind an endpoint, or what such a model once said."""
    reward: Literal["userrl", "kleash"] = "userrl"
    """UserRL's reward of a turn, or the same with details counted once and each turn costing."""
    cost: float = Field(0.02, ge=0, allow_inf_nan=False)
    """What a turn costs in the reward mode `kleash`."""
    limit: int = Field(16, ge=1)
    """The most turns of an episode (7 taught a tiny model on the token surface)."""
    tasks: str = ""
    """A task file; without one, tasks come from the embedded world."""
    world: World = World()
    """The embedded world."""
    chat: Chat = Chat()
    """The endpoint of the chat user."""


class IntentionEnv(TurnEnv):
    """One conversation about one task."""

    def __init__(
        self,
        task: IntentTask,
        user: User,
        surface: Surface,
        rng: np.random.Generator,
        options: IntentionOptions,
    ) -> None:
        super().__init__(surface, options.limit)
        self._task = task
        self._user = user
        self._rng = rng
        self._options = options
        self._covered: dict[str, None] = {}
        self._questions = 0
        self._wasted = 0
        self._earned = 0.0

    def opening(self) -> str:
        """The request, as the surface says it."""
        if self._options.surface == "text":
            return self._task.task
        given = [word for slot, value in self._task.given.items() for word in (slot, token(value))]
        return " ".join(["TASK", self._task.category, *(["GIVEN", *given] if given else []), ";"])

    async def play(self, action: Action) -> Step:
        """A question, or the end."""
        if action.choice == "finish":
            said = "USER ;" if self._options.surface == "tokens" else "Thank you, goodbye."
            return ended(Step(said, 0.0), "finished")
        self._questions += 1
        heard = await self._user.hear(action.content, self._task, self._covered, self._rng)
        details = {detail.id: detail for detail in self._task.missing_details}
        listed = heard.covered
        if self._options.reward == "kleash":
            listed = tuple(dict.fromkeys(listed))
        reward = self._reward([details[name].importance for name in listed])
        self._wasted += not listed
        self._covered |= dict.fromkeys(listed)
        words = tuple(details[name].description for name in dict.fromkeys(listed))
        step = Step(heard.reply, reward, covered=words)
        return ended(step, "covered") if len(self._covered) == len(details) else step

    def wasted(self) -> float:
        """An unreadable turn earns what a question in vain does."""
        return self._reward([])

    def _reward(self, importances: Sequence[int]) -> float:
        reward = REWARDS[self._options.reward](importances, self._options.cost)
        self._earned += reward
        return reward

    def metrics(self) -> dict[str, float]:
        """Also how much of the ceiling was reached, what was found, and what was asked for it."""
        return super().metrics() | {
            "reward_over_ceiling": self._earned / self._task.ceiling,
            "coverage": len(self._covered) / len(self._task.missing_details),
            "questions": float(self._questions),
            "wasted_questions": float(self._wasted),
        }


class Intention:
    """Intention tasks and their environments. `ledger` holds what a chat user once said."""

    def __init__(
        self, ledger: Ledger | None = None, options: IntentionOptions | None = None
    ) -> None:
        self.options = options or IntentionOptions()
        loaded = load_tasks(Path(self.options.tasks)) if self.options.tasks else None
        self._tasks = loaded or world_tasks(self.options.world)
        self.endpoint: Endpoint | None = None
        self.surface = self._speaking(embedded=loaded is None)
        if self.options.user != "rule":
            if ledger is None:
                raise ConfigError(f"the user {self.options.user!r} needs a ledger: give its path")
            live = self.options.user == "chat"
            self.endpoint = Endpoint(self.options.chat.endpoint, ledger, live=live)

    @property
    def content(self) -> str:
        """The hash of the tasks and of what changes what a policy sees or earns."""
        told = self.options.model_dump_json(exclude={"tasks", "world", "chat", "user"})
        spoken = self.options.chat.identity if self.endpoint else matching.identity()
        return f"{key('intention', world_content(self._tasks), told, spoken):032x}"

    def tasks(self, split: str) -> list[IntentTask]:
        """The tasks of a split; a file need not have all of them."""
        found = [task for task in self._tasks if task.split == split]
        if not found:
            held = ", ".join(sorted({task.split for task in self._tasks}))
            raise ConfigError(
                f"there are no tasks of the split {split!r}: there are those of {held}"
            )
        return found

    def make(self, task: IntentTask, *, seed: int, rollout: int) -> IntentionEnv:
        """A conversation whose draws are named by study seed, task id and rollout."""
        rng = generator("intention", seed, task.id, rollout)
        return IntentionEnv(task, self._user(task), self.surface, rng, self.options)

    async def close(self) -> None:
        """Let go of the endpoint's connections."""
        if self.endpoint is not None:
            await self.endpoint.close()

    def _user(self, task: IntentTask) -> User:
        if self.endpoint is not None:
            return ChatUser(self.endpoint, self.options.chat)
        return SlotUser() if self.options.surface == "tokens" else RuleUser(task)

    def _speaking(self, *, embedded: bool) -> Surface:
        if self.options.surface == "text":
            return TextSurface(GOAL)
        slots = tuple(texts()["slots"])
        known = all(d.id in slots for task in self._tasks for d in task.missing_details)
        if self.options.user != "rule" or not (embedded or known):
            raise ConfigError(
                "surface 'tokens' speaks of the embedded world's slots to its own user:"
                " leave out `tasks` and `user`, or use surface 'text'"
            )
        return TokenSurface(slots)
