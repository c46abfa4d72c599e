"""A search for settings with Optuna: chosen on tuning seeds, on validation alone, then confirmed.

The trials are a study of their own in `search/`, which sees no test item; Optuna's storage lies
beside them (`optuna.sqlite`). The best setting becomes the arm `found` of the study, whose fresh
seeds say what it is worth: the best of many noisy scores is better than itself.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from kleash.errors import ConfigError, KleashError
from kleash.runs.run import read_json, write_json
from kleash.seeds import generator
from kleash.stats.best import FEWEST_EVALUATIONS
from kleash.study.calibrate import tuning_asked, tuning_file
from kleash.study.plan import Arm, StudyFile, arm_recipe, arms_of, nested
from kleash.study.plan.folder import Overview, Seen, held, placed, write_asked
from kleash.study.running import Asked, Ran, run_study

Hear = Callable[[Any, Overview], None]
BASELINE = "baseline"
WARM_UP = 5  # finished trials before one is compared with their median


def run_search(
    asked: Asked,
    hear: Hear = lambda told, found: None,
    stop: Callable[[], bool] = lambda: False,
) -> Ran | None:
    """Search, and keep what was found in `search.json`; None if that was done before.

    Killed and started again it goes on with the trials that were asked for.
    """
    search = Search(asked, hear, stop)
    path = asked.folder / "search.json"
    if path.is_file() and read_json(path)["asked"] == search.request:
        return None
    optuna = need_optuna()
    search.check()
    asked.folder.mkdir(parents=True, exist_ok=True)
    with held(asked.folder):
        if not (asked.folder / "study.toml").is_file():  # so that it can be gone on with
            write_asked(asked.folder, asked.file, arms_of(asked.file), seen=False)
        study = search.opened(optuna)
        while batch := search.next_batch(study, optuna):
            search.run_batch(study, batch, optuna)
            if not search.ended_well:
                break
        else:
            search.run()
            if search.ended_well:
                write_json(path, search.found(study, optuna))
    return search.ran


def need_optuna() -> Any:
    """Optuna, or one line that says how to get it."""
    try:
        import optuna
    except ImportError:
        raise KleashError("a search needs Optuna: pip install 'kleash[search]'") from None
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    return optuna


@dataclass
class Search:
    """A search under way: its trials as arms of a tuning study, and how that study stands."""

    asked: Asked
    hear: Hear
    stop: Callable[[], bool]
    arms: dict[str, dict[str, Any]] = field(default_factory=dict)
    ran: Ran | None = None

    @property
    def file(self) -> StudyFile:
        """The study that asks."""
        return self.asked.file

    @cached_property
    def baseline(self) -> Arm:
        """The arm that what is found will be compared with; it is tuned on the same seeds."""
        arms = {arm.name: arm for arm in arms_of(self.file, placed(self.asked.folder))}
        name = self.file.compare.baselines[0] if self.file.compare.baselines else next(iter(arms))
        return arms[name]

    @cached_property
    def epochs(self) -> int:
        """Epochs of a whole trial."""
        return arm_recipe(self.file, self.baseline, 0, "BASE").epochs

    @cached_property
    def pruning(self) -> str:
        """How a trial can end early: by the stopping rule where it may judge at all."""
        if self.epochs >= FEWEST_EVALUATIONS:
            return "early stopping"
        recipe = arm_recipe(self.file, self.baseline, 0, "BASE")
        # A schedule over all epochs is another one in a shorter run: such runs cannot grow.
        return "median" if recipe.length_keys() and self.epochs > 1 else "none"

    @property
    def request(self) -> dict[str, Any]:
        """All that the search depends on."""
        plain = self.file.model_dump(mode="json", include={"search", "base", "grpo"})
        items = self.file.measure.validation
        return plain | {"baseline": dict(self.baseline.keys), "validation": items}

    def check(self) -> None:
        """Refuse settings that no run would take, before anything runs."""
        search = self.file.search
        for form in search.forms or (None,):
            for controller in search.controllers or (None,):
                given: dict[str, Any] = {"leash.coefficient": search.coefficient[0]}
                given |= {} if form is None else {"leash.form": form}
                given |= {} if controller is None else {"leash.controller": controller}
                arm_recipe(self.file, Arm("trial", self.keys(given)), 0, "BASE")
        for name in ("coefficient", "lr", "entropy_bonus"):
            low, high = getattr(search, name) or (1.0, 2.0)
            if not (0 <= low < high) or (low == 0 and name != "entropy_bonus"):
                raise ConfigError(f"search.{name} {[low, high]} is no range to search")

    def space(self, optuna: Any) -> dict[str, Any]:
        """What is searched, by dotted key."""
        search, made = self.file.search, optuna.distributions
        space = {"leash.coefficient": made.FloatDistribution(*search.coefficient, log=True)}
        if search.forms:
            space["leash.form"] = made.CategoricalDistribution(search.forms)
        if search.controllers:
            space["leash.controller"] = made.CategoricalDistribution(search.controllers)
        if search.entropy_bonus:
            space["entropy_bonus"] = made.FloatDistribution(*search.entropy_bonus)
        if search.lr:
            space["lr"] = made.FloatDistribution(*search.lr, log=True)
        return space

    def keys(self, given: Mapping[str, Any]) -> dict[str, Any]:
        """A trial's parameters as the keys of an arm; a course over time gets the run's length."""
        keys = dict(self.baseline.keys) | dict(given)
        if keys.get("leash.controller") in ("linear", "cosine") and not keys.get("leash.steps"):
            recipe = arm_recipe(self.file, self.baseline, 0, "BASE")
            keys["leash.steps"] = recipe.length()
        return keys

    # --- Optuna's part

    def opened(self, optuna: Any) -> Any:
        """The storage of this search, new or gone on with; another request is another study."""
        folder = self.asked.folder / "search"
        folder.mkdir(exist_ok=True)
        pruner = optuna.pruners.MedianPruner(n_startup_trials=WARM_UP)
        name = f"{self.file.name}-{generator('search', repr(self.request)).integers(16**8):08x}"
        study = optuna.create_study(
            storage=f"sqlite:///{folder / 'optuna.sqlite'}",
            study_name=name,
            direction="maximize",
            pruner=pruner,
            load_if_exists=True,
        )
        for trial in self.live(study, optuna):
            if trial.state.is_finished():
                self.arms[name_of(trial)] = self.arm(trial, trial.user_attrs["epochs"])
        return study

    def live(self, study: Any, optuna: Any) -> list[Any]:
        """Every trial but those that were lost while they were asked for."""
        failed = optuna.trial.TrialState.FAIL
        return [trial for trial in study.get_trials(deepcopy=False) if trial.state != failed]

    def next_batch(self, study: Any, optuna: Any) -> list[Any]:
        """Trials that are not finished, filled up to as many as run together.

        A trial's draws are named by its place, and a batch is asked for when the one before is
        told: however often the search was killed, the same settings come.
        """
        search, space = self.file.search, self.space(optuna)
        for trial in self.live(study, optuna):
            if not trial.state.is_finished() and trial.params.keys() != space.keys():
                study.tell(trial.number, state=optuna.trial.TrialState.FAIL)
        trials = self.live(study, optuna)
        done = sum(trial.state.is_finished() for trial in trials)
        end = min(search.trials, (done // search.together + 1) * search.together)
        for place in range(len(trials), end):
            seed = int(generator("search", self.file.name, place).integers(2**31))
            study.sampler = optuna.samplers.TPESampler(seed=seed, constant_liar=True)
            study.ask(space)
        running = [t for t in self.live(study, optuna) if not t.state.is_finished()]
        return [optuna.trial.Trial(study, trial._trial_id) for trial in running]

    def run_batch(self, study: Any, batch: list[Any], optuna: Any) -> None:
        """Train the trials of a batch, ending early those that the pruner gives up."""
        left, states = batch, optuna.trial.TrialState
        for epochs in rungs(self.epochs) if self.pruning == "median" else [self.epochs]:
            self.arms |= {name_of(trial): self.arm(trial, epochs) for trial in left}
            self.run()
            if not self.ended_well:
                return
            for trial in left:
                self.report(study, trial, epochs)
            if epochs < self.epochs:
                dropped = [trial for trial in left if trial.should_prune()]
                for trial in dropped:
                    trial.set_user_attr("epochs", epochs)
                    study.tell(trial, state=states.PRUNED)
                left = [trial for trial in left if trial not in dropped]
        for trial in left:
            trial.set_user_attr("epochs", self.epochs)
            study.tell(trial, self.score(name_of(trial)))

    def arm(self, trial: Any, epochs: int) -> dict[str, Any]:
        """A trial as an arm of the tuning study."""
        rule = {"early_stop": "on"} if self.pruning == "early stopping" else {}
        return nested(self.keys(trial.params) | rule | {"epochs": epochs})

    def report(self, study: Any, trial: Any, epochs: int) -> None:
        """Tell the pruner each epoch's validation, once."""
        told = study.trials[trial.number].intermediate_values
        for epoch, value in self.curve(name_of(trial)).items():
            if epoch <= epochs and epoch not in told:
                trial.report(value, epoch)

    # --- runs and what they scored

    def run(self) -> None:
        """Run what is missing of the trials so far."""
        seeds = self.file.search.seeds
        arms = {BASELINE: nested(self.baseline.keys)} | self.arms
        about = f"Trials of the search of {self.file.name}: tuning seeds, validation only."
        file = tuning_file(self.file, "search", about, seeds=seeds, grpo=self.file.grpo, arms=arms)
        asked = tuning_asked(self.asked, file, "search")
        told_to = self.asked.folder / "stop"
        self.ran = run_study(asked, self.hear, lambda: self.stop() or told_to.exists())

    @property
    def ended_well(self) -> bool:
        """Whether all that was asked for is there."""
        return self.ran is not None and not (self.ran.stopped or self.ran.failures)

    def seen(self, name: str) -> list[Seen]:
        """The runs of a trial, by tuning seed."""
        assert self.ran is not None
        return [self.ran.overview.seen[name, seed] for seed in self.file.search.seeds]

    def score(self, name: str) -> float:
        """The mean over tuning seeds of the chosen checkpoint on validation."""
        return float(np.mean(self.scores(name)))

    def scores(self, name: str) -> list[float]:
        """By tuning seed, the validation score of the chosen checkpoint."""
        shots = arm_recipe(self.file, self.baseline, 0, "BASE").validated_at()
        items = self.file.measure.validation
        columns = [seen.scored[seen.chosen, "validation", shots] for seen in self.seen(name)]
        return [mean for column in columns if (mean := column.mean(items)) is not None]

    def curve(self, name: str) -> dict[int, float]:
        """By epoch, the mean validation score over tuning seeds, as training saw it."""
        by_epoch: dict[int, list[float]] = {}
        for seen in self.seen(name):
            assert seen.run is not None
            for line in seen.run.metrics():
                if line["kind"] == "epoch" and line["phase"] == "grpo":
                    by_epoch.setdefault(line["epoch"], []).append(line[self.file.logged])
        whole = len(self.file.search.seeds)
        return {e: float(np.mean(v)) for e, v in sorted(by_epoch.items()) if len(v) == whole}

    def found(self, study: Any, optuna: Any) -> dict[str, Any]:
        """What `search.json` keeps: the best setting with its tuning score, and every trial."""
        whole = optuna.trial.TrialState.COMPLETE
        trials = self.live(study, optuna)
        ended = [trial for trial in trials if trial.state == whole]
        best = max(ended, key=lambda trial: (trial.value, -trial.number))
        base = self.score(BASELINE)
        won = best.value > base
        return {
            "asked": self.request,
            "keys": self.keys(best.params) if won else {},
            "best": name_of(best),
            "baseline": self.baseline.name,
            "tuned": {"found": self.scores(name_of(best)), "baseline": self.scores(BASELINE)},
            "pruning": self.pruning,
            "pruned": len(trials) - len(ended),
            "trials": [
                {
                    "trial": name_of(trial),
                    "keys": trial.params,
                    "state": "whole" if trial.state == whole else "pruned",
                    "epochs": trial.user_attrs["epochs"],
                    "score": trial.value if trial.state == whole else None,
                    "curve": self.curve(name_of(trial)),
                }
                for trial in trials
            ],
        }


def name_of(trial: Any) -> str:
    """What a trial's arm is called."""
    return f"trial-{trial.number:03d}"


def rungs(epochs: int) -> Sequence[int]:
    """After how many epochs trials are judged: 1, 2, 4 and so on, and at the end."""
    return [2**n for n in range(epochs.bit_length()) if 2**n < epochs] + [epochs]
