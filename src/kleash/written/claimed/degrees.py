"""Words for the most and the least, and which way each points by quantity."""

from __future__ import annotations

import re

_B, _E = r"(?<![a-z])", r"(?![a-z])"
_QUALITIES = "sensitive|stable|unstable|distant|similar|common|efficient|conservative|frequent"
_SENSES: dict[str, str] = {
    "high": rf"最[高大多长宽重](?![点值])|"
    rf"{_B}(?:highest|largest|greatest|longest|biggest|widest|"
    rf"most(?! (?:expensive|costly|of|{_QUALITIES}))){_E}",
    "low": rf"最[低小少短窄轻](?![点值])|"
    rf"{_B}(?:lowest|smallest|shortest|least(?! (?:{_QUALITIES}))|fewest|narrowest){_E}",
    "good": rf"最[好优强]|排?第一(?![大步次个轮行名])|{_B}strongest{_E}|"
    rf"(?<=performs )best{_E}|(?<=performed )best{_E}|(?<=does )best{_E}|"
    rf"{_B}best(?= (?:arm|run|setting|coefficient|method|model|one)? ?(?:is|was) )",
    "bad": rf"最[差坏弱]|{_B}weakest{_E}|"
    rf"{_B}worst(?= (?:arm|run|setting|coefficient|method|model|one)? ?(?:is|was) )",
    "fast": rf"最快|{_B}(?:fastest|quickest){_E}",
    "slow": rf"最慢|{_B}slowest{_E}",
    "cheap": rf"最(?:便宜|省(?![心事力]))|{_B}cheapest{_E}",
    "dear": rf"最(?:贵|费)|{_B}(?:most expensive|costliest|dearest){_E}",
    "tight": rf"最[紧近]|{_B}(?:tightest|closest){_E}",
    "loose": rf"最[松远]|{_B}(?:loosest|furthest|farthest){_E}",
    "steady": rf"最[稳平](?:定|滑)?|最不敏感|"
    rf"{_B}(?:steadiest|smoothest|least sensitive|most stable){_E}",
    "shaky": rf"最不[稳平](?:定|滑)?|最敏感|"
    rf"{_B}(?:shakiest|most sensitive|least stable|most unstable){_E}",
}
DEGREES = re.compile("|".join(f"(?P<{name}>{words})" for name, words in _SENSES.items()))
# Which way a word points, by quantity; any other quantity is not what it speaks of.
WAYS: dict[str, dict[str, int]] = {
    "fast": {"time": -1, "step time": -1, "gpu": -1, "throughput": 1},
    "cheap": {"cost": -1, "gpu": -1, "time": -1, "step time": -1},
    "tight": {"kl": -1},
    "steady": {"spread": -1, "range": -1},
    "good": {
        "accuracy": 1, "success": 1, "win": 1, "reward": 1, "retention": 1, "loss": -1, "rank": -1,
    },
}  # fmt: skip
OPPOSITE = {"slow": "fast", "dear": "cheap", "loose": "tight", "bad": "good", "shaky": "steady"}
