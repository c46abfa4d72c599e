"""What a study asks for: its file, its arms as recipes, its cells and their states.

Nothing runs here. `file` reads the TOML, `arms` makes recipes of it, `cells` lists every
measurement and reads from the run folders which of them are there.
"""

from __future__ import annotations

from kleash.config import dotted
from kleash.study.plan.arms import (
    FOUND,
    Arm,
    against,
    arm_given,
    arm_recipe,
    arms_of,
    base_given,
    base_recipe,
    check_expected,
    most_ranks,
    own_selector,
    ranks_of,
)
from kleash.study.plan.cells import (
    BASELINE,
    CHOSEN,
    Cell,
    Column,
    Columns,
    Place,
    State,
    base_checkpoint,
    base_folder,
    base_name,
    baseline_names,
    cells_of,
    checkpoint_names,
    chosen_of,
    column_key,
    columns,
    mixed,
    run_cells,
    run_place,
    start_of,
    state_of,
)
from kleash.study.plan.file import DEFAULT, StudyFile, bundled, nested, read_study

__all__ = [
    "BASELINE",
    "CHOSEN",
    "DEFAULT",
    "FOUND",
    "Arm",
    "Cell",
    "Column",
    "Columns",
    "Place",
    "State",
    "StudyFile",
    "against",
    "arm_given",
    "arm_recipe",
    "arms_of",
    "base_checkpoint",
    "base_folder",
    "base_given",
    "base_name",
    "base_recipe",
    "baseline_names",
    "bundled",
    "cells_of",
    "check_expected",
    "checkpoint_names",
    "chosen_of",
    "column_key",
    "columns",
    "dotted",
    "mixed",
    "most_ranks",
    "nested",
    "own_selector",
    "ranks_of",
    "read_study",
    "run_cells",
    "run_place",
    "start_of",
    "state_of",
]
