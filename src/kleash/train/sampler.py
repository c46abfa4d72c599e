"""Who sampled beside who learns: how far apart they are, and weights for what lies between them."""

from __future__ import annotations

from torch import Tensor

from kleash import guard
from kleash.errors import DataError
from kleash.grpo import Choices, truncated
from kleash.kl import measure
from kleash.policy import Judged
from kleash.recipe import AgentRecipe
from kleash.rollout import Groups
from kleash.train.update import Leashed


class SampledLeash(Leashed):
    """`Leashed` for groups whose log-probabilities are an engine's own.

    Every step says how far the engine was from the trainer (`kl/sampler`). With a cap a gap is
    weighed and measured; without one it must be rounding, or the run stops.
    """

    ELSE = (
        "; or, where the engine must differ, set sampler.cap=2: each advantage is then weighed by"
        " how much likelier its choice is to the trainer, at most twice"
    )
    recipe: AgentRecipe

    def leash(
        self,
        groups: Groups,
        judged: Judged,
        old: Tensor,
        coefficient: float,
        place: slice | Tensor = slice(None),
    ) -> Choices:
        """And then the weights of the sampler, for the gain alone: a leash in the loss has none."""
        choices = super().leash(groups, judged, old, coefficient, place)
        if not self.recipe.sampler.cap:
            return choices
        return truncated(choices, sampled(groups)[place], self.recipe.sampler.cap)[0]

    def check_judged(self, judged: Judged, old: Tensor, sampled: Tensor | None) -> None:
        """With a cap, what was sampled may differ."""
        super().check_judged(judged, old, None if self.recipe.sampler.cap else sampled)

    def after(self, groups: Groups, judged: Judged, choices: Choices) -> dict[str, float]:
        """Also how far the sampler was from the policy that was to learn, and what was weighed."""
        found = super().after(groups, judged, choices)
        if groups.logp is None:
            return found
        old, cap = choices.logp_old, self.recipe.sampler.cap
        found |= measure(groups.episode, logp=old, logp_sampler=groups.logp)
        if cap:
            found |= truncated(choices, groups.logp, cap)[1]
            guard.same_sampler(found["kl/sampler/k1/choice/mean"])
        return found


def sampled(groups: Groups) -> Tensor:
    """The engine's log-probabilities, which a cap cannot do without."""
    if groups.logp is None:
        raise DataError(
            "sampler.cap weighs choices by the log-probabilities they were sampled with, and the"
            " engine gave none: set sampler.cap=0"
        )
    return groups.logp
