"""What else differs between two arms, so that their gap is not that of the factor alone.

Configs are compared under known names and by content. Keys that are the treatment are the factor;
keys that must match are confounds if they do not, whatever other arms there are: what a model of
several arms could part is for `--effect`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from kleash.compare.arms import Arm, equal
from kleash.compare.read import names
from kleash.compare.records import Confound

# Only their length differs: no confound where curves are compared at the same steps.
LENGTHS = ("steps", "epochs")
# These follow from the coefficient: with it they are one factor.
FOLLOWING = ("leash.used", "leash.in_reward", "leash.reward_coefficient")
COSMETIC = ("dir", "path", "id", "name", "time", "file", "url", "host", "user", "_wandb",
            "event", "reason", "status", "note", "notes", "comment")  # fmt: skip


def alike(ours: Any, theirs: Any) -> bool:
    """Whether two values are the same, files by what is in them where they are at hand."""
    if equal(ours, theirs):
        return True
    if isinstance(ours, str) and isinstance(theirs, str):
        files = [Path(ours), Path(theirs)]
        try:
            if all(file.is_file() for file in files):
                digests = {hashlib.sha256(file.read_bytes()).digest() for file in files}
                return len(digests) == 1
        except OSError:
            return False
    return False


def factor(ours: Arm, theirs: Arm) -> tuple[str, ...]:
    """What the two arms are compared for: treatment keys that differ, else the one that does."""
    treated = tuple(
        key
        for key in _keys((ours, theirs), ("treatment",))
        if key not in FOLLOWING and _differs(ours, theirs, key)
    )
    if treated or ours.coefficient != theirs.coefficient:
        return treated or ("leash.coefficient",)
    others = [
        key
        for key in _keys((ours, theirs), ("must match",))
        if key not in LENGTHS and _differs(ours, theirs, key)
    ]
    return (others[0],) if len(others) == 1 else ()


def confounds(ours: Arm, theirs: Arm) -> list[Confound]:
    """Every setting besides the factor that differs, and every one that sources disagree on.

    Of keys that no table knows only what both tell, and no labels.
    """
    found, arms = [], (ours.name, theirs.name)
    aside = factor(ours, theirs)
    for key in _keys((ours, theirs), ("must match",)):
        pair = _differs(ours, theirs, key)
        if key not in aside and pair:
            found.append(Confound("changed", key, arms, pair[:2], pair[2]))
        for arm in (ours, theirs):
            found += contradictions(arm, key)
    for key in _keys((ours,), ("",)):
        if key in theirs.settings and not is_cosmetic(key):
            pair = _differs(ours, theirs, key)
            if pair and not (_names(ours, pair[0]) and _names(theirs, pair[1])):
                found.append(Confound("unknown", key, arms, pair[:2], pair[2]))
    return found


def contradictions(arm: Arm, key: str) -> list[Confound]:
    """One arm, one setting, two values: within a source, or between sources that must be read."""
    said = [
        (source, value) for source, values in arm.settings.get(key, {}).items() for value in values
    ]
    if len(said) < 2 or all(_may_agree(said[0][1], value) for _, value in said[1:]):
        return []
    values = tuple(value for _, value in said)
    sources = tuple(source for source, _ in said)
    return [Confound("contradicted", key, (arm.name,), values, sources)]


def _may_agree(ours: Any, theirs: Any) -> bool:
    """Whether two wordings may mean one thing: "RCE epoch 5" and "kl012/rce_epoch5.pt" may."""
    if alike(ours, theirs):
        return True
    if not (isinstance(ours, str) and isinstance(theirs, str)):
        return False
    one, other = (names.spelling(text.split("(")[0]) for text in (ours, theirs))
    return one in other or other in one


def _keys(arms: Sequence[Arm], kinds: Sequence[str]) -> list[str]:
    found = (key for arm in arms for key, kind in arm.kinds.items() if kind in kinds)
    return list(dict.fromkeys(found))


def _differs(ours: Arm, theirs: Arm, key: str) -> tuple[Any, Any, tuple[str, ...]] | None:
    """Both values and where they stand. A source that tells of both is believed first."""
    left, right = (arm.settings.get(key, {}) for arm in (ours, theirs))
    common = [source for source in left if source in right]
    pairs: list[tuple[Any, Any, tuple[str, ...]]]
    pairs = [(left[s][0], right[s][0], (s,)) for s in common]
    if not common:
        pairs = [(a[0], b[0], (s, t)) for s, a in left.items() for t, b in right.items()]
        if any(_may_agree(a, b) for a, b, _ in pairs):
            return None
    return next(((a, b, where) for a, b, where in pairs if not alike(a, b)), None)


def is_cosmetic(key: str) -> bool:
    """Whether a key is called like a label."""
    return key.lower().rsplit(".", 1)[-1].endswith(COSMETIC)


def _names(arm: Arm, value: Any) -> bool:
    """Whether a value says which arm it is: `kl010_e1`, `kl010/grpo_epoch1.pt`."""
    spelt = names.spelling(value) if isinstance(value, str) else ""
    return any(names.spelling(name) in spelt for name in arm.names)


def changed(found: Sequence[Confound], *, lengths: bool) -> tuple[str, ...]:
    """The keys that stand in the way of naming a cause; lengths only where they matter."""
    kept = [c.key for c in found if c.kind != "contradicted" and (lengths or c.key not in LENGTHS)]
    return tuple(dict.fromkeys(kept))
