"""What a run reports reaches other tools: every number, under our names, at steps that count on."""

from pathlib import Path

import pytest

from kleash.ledger import Ledger
from kleash.rollout import World
from kleash.runs import Run
from kleash.train import train
from kleash.types import Heard, Listener
from tiny import given, tiny_recipe

pytestmark = pytest.mark.usefixtures("one_thread")


class StoppedError(Exception):
    """Ends a run from within, as a user's Ctrl-C would."""


def train_heard(folder: Path, ledger: Ledger, listen: Listener, *keys: str) -> Run:
    recipe = tiny_recipe(*keys)
    return train(folder, recipe, given(*keys), World(recipe, ledger), listen=listen)


def test_steps_count_over_the_phases_whether_a_run_was_stopped_or_not(
    tmp_path: Path, ledger: Ledger
) -> None:
    whole: list[Heard] = []
    train_heard(tmp_path / "whole", ledger, whole.append)
    places = [(heard.record["kind"], heard.step) for heard in whole if heard.phase != "finding"]
    epoch_of_grpo = [("step", 7), ("step", 8), ("step", 9), ("epoch", 9)]
    assert places[:6] == [("epoch", 3), ("epoch", 6), *epoch_of_grpo]
    assert places[6:] == [(kind, step + 3) for kind, step in epoch_of_grpo]

    parts: list[Heard] = []

    def stop(heard: Heard) -> None:
        parts.append(heard)
        if heard.step == 11:  # in the second epoch of GRPO
            raise StoppedError

    with pytest.raises(StoppedError):
        train_heard(tmp_path / "parts", ledger, stop)
    again: list[Heard] = []
    train_heard(tmp_path / "parts", ledger, again.append)
    lasting = [heard for heard in parts if heard.step <= 9] + again
    assert [(heard.phase, heard.step) for heard in lasting] == [(h.phase, h.step) for h in whole]
