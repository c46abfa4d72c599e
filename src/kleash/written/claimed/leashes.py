"""What is said of a KL coefficient by its place among those of the report.

The largest is not "smaller" than the others, and not the weaker constraint or the more aggressive
setting; a middle one is not "the largest". What was measured may be otherwise: let pass.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from kleash.written.book import Book
from kleash.written.claimed.courses import settings
from kleash.written.claimed.readings import Shelf
from kleash.written.marks import Mark
from kleash.written.prose import Sentence

_B, _E = r"(?<![a-z])", r"(?![a-z])"
_COEFFICIENT = re.compile(
    rf"(?:{_B}kl[_ ]?beta|β|{_B}beta|{_B}kl[_ ]?(?:loss[_ ]?)?coef[a-z]*|{_B}kl[_ ]?系数|{_B}kl)"
    r"\s?[=:]\s?(\d+(?:\.\d+)?(?:e-?\d+)?)(?![\d.])"
)
_HOLD = r"(?:kl\s?)?(?:约束|惩罚|正则化?|限制)"
_TIE = rf"(?:kl )?(?:constraint|penalty|leash|regulari[sz]ation|regulari[sz]er){_E}"
# Larger coefficients hold the policy more.
_WORDS = re.compile(
    rf"(?P<more>\((?:更大|较大|larger|higher){_E}|更强的\s?{_HOLD}|{_HOLD}更强|更保守|"
    rf"{_B}(?:stronger|tighter) {_TIE}|{_B}more conservative{_E})|"
    rf"(?P<less>\((?:更小|较小|smaller|lower){_E}|更弱的\s?{_HOLD}|{_HOLD}更弱|更激进|"
    rf"{_B}(?:weaker|looser) {_TIE}|{_B}more aggressive{_E})|"
    rf"(?P<most>\((?:最大|largest|highest){_E}|最强的\s?{_HOLD}|{_HOLD}最强|最保守|"
    rf"{_B}(?:strongest|tightest) {_TIE}|{_B}most conservative{_E})|"
    rf"(?P<least>\((?:最小|smallest|lowest){_E}|最弱的\s?{_HOLD}|{_HOLD}最弱|最激进|"
    rf"{_B}(?:weakest|loosest) {_TIE}|{_B}most aggressive{_E})|"
    rf"(?P<middle>\((?:中等|中间|居中|middle|medium|intermediate){_E})"
)
_MEASURED = re.compile(
    rf"\d\.\d{{3,}}|\d\.?\d*\s?%|反而|却|意外|不|没|未|除|如果|若|比|说明|表明|可见|"
    rf"{_B}(?:not|no|if|than|yet|but|surprisingly|although|shows?|suggests?){_E}|n't"
)


def false_leashes(book: Book, every: Sequence[Shelf], spoken: Sequence[Sentence]) -> Iterator[Mark]:
    """Words of order or strength beside a coefficient that has not that place."""
    known = _coefficients(every, spoken)
    for sentence in spoken:
        named = {float(one) for one in _COEFFICIENT.findall(sentence.plain)}
        first = _COEFFICIENT.search(sentence.plain)
        if len(named) != 1 or first is None or not named <= known:
            continue
        rest = sentence.plain[: first.start()] + sentence.plain[first.end() :]
        if _MEASURED.search(rest):
            continue
        for word in _WORDS.finditer(sentence.plain, first.end()):
            place = word.lastgroup or ""
            if not _holds(place, named.copy().pop(), known):
                text = sentence.text[word.start() : word.end()].strip("(（ ")
                facts: dict[str, object] = {"values": [f"{one:g}" for one in sorted(known)]}
                line = sentence.line(word.start())
                yield Mark(line, text, "wrong", "check.not-place", facts, f"place {place}")


def _coefficients(every: Sequence[Shelf], spoken: Sequence[Sentence]) -> set[float]:
    """The coefficients of the arms: those of tables, and those that sentences compare."""
    found = {
        value for shelf in every for value, _ in settings(shelf.side, ["coefficient"]).values()
    }
    told = [float(one) for each in spoken for one in _COEFFICIENT.findall(each.plain)]
    return found | {one for one in told if told.count(one) > 1}


def _holds(place: str, own: float, known: set[float]) -> bool:
    """Whether a coefficient may be said to have a place; 0 need not be counted."""
    used = {one for one in known if one} | {own}
    if len(used) < 2:
        return True
    if place in ("more", "less"):
        return own != (min(used) if place == "more" else max(used))
    if place == "middle":
        return len(used) < 3 or min(used) < own < max(used)
    ends = (max(used),) if place == "most" else (min(used), min(known))
    return own in ends
