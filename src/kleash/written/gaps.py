"""Which numbers of a sentence are gaps: by how much two others are apart, by the words around."""

from __future__ import annotations

import re
from functools import lru_cache

from kleash.written.printed import KEPT
from kleash.written.prose import Said, Sentence

GAP = re.compile(
    r"(?:(?:领先|落后|高出|低于|超过)[^,。;]{1,16}达|(?:领先|落后)[^,。;()]{1,12}|差[^,。;\d]{0,6}|极差|相差|差距|"
    r"降幅|涨幅|升幅|增幅|跌幅|[低高降升减增多少长短快慢涨掉跌加][了出]?|"
    r"回落了?|回升了?|损失了?|反弹了?|缩小了?|扩大了?|拉开了?|共降|共涨|共升|共掉|赢了?|输了?|"
    r"省下?了?|节省了?|少用了?|提升了?|下降了?|提高了?|降低了?|增加了?|减少了?|上升了?|落后|领先|"
    r"(?<![a-z])by|"
    r"(?:gap|spread|difference|gain|drop|rise|range|increase|decrease|"
    r"reduction|improvement|lead|margin)s? (?:of|is|was)|gains?|saves?|saved|loses?|lost|"
    r"gained|costs?|dropped|fell|rose|grew)\s?(?:about|only|just|约|只|仅|一共|共|了)?\s?$"
)
BEHIND = re.compile(
    r"\s?(?:[a-z]+\s)?(?:lower|higher|above|below|more|less|fewer|better|worse|longer|shorter|faster|slower|"
    r"behind|ahead|apart)(?![a-z])"
)
_COMPARES = re.compile(
    r"(?<![a-z])(?:than|vs|versus|against|over|relative\w*|gains?|drops?|loss|lost|lose|difference|differ\w*|"
    r"gap|changes?|increas\w*|decreas\w*|improve\w*|reduc\w*|spread|range|ratio|share|fraction|save\w*|"
    r"grow\w*|grew|rose|fell|widen\w*|narrow\w*|up|down|more|less|times)(?![a-z])|"
    r"比|差|相对|提升|下降|降|升|涨|跌|增|减|高于|低于|多|少|占|倍|变化|→|->"
)
OR = re.compile(  # between a gap and its share
    r"[\s,(:/]*(?:%|[^\s,;。()\d]{1,8})?(?:[^,;。()\d]{0,16}, a relative \w+ of)?[\s,(:/]*"
    r"(?:or|that is|i\.e\.|即|也就是|合|相对|约|about|relative|a|降幅|涨幅)*[\s:+-]*"
)
_APART = re.compile(r"差|(?<![a-z])(?:gap|lead|margin|spread|difference|distance)(?![a-z])")


def is_gap(sentence: Sentence, said: Said) -> bool:
    """Whether a number is said to be how far two others are apart."""
    signed = said.kind in ("points", "times") or said.sign in ("+", "-")
    return signed or _is_among(sentence.plain, said.start, said.end)


@lru_cache(maxsize=KEPT)
def _is_among(plain: str, start: int, end: int) -> bool:
    """Whether a number stands among words of a gap; asked of each many times."""
    before, behind = plain[:start].rstrip("+-± "), plain[end:]
    return bool(GAP.search(before) or BEHIND.match(behind))


_UP = re.compile(
    r"(?:[高升涨增多长]|提升|上升|提高|增加|领先|(?<![a-z])(?:gains?|gained|rose|rises?|grew|grows?|up|"
    r"increase[ds]?)(?: by)?|[涨升增]幅|(?<![a-z])(?:increase|gain|rise|improvement|lead)s? of)"
    r"(?:了|约|只|仅|共|出|为|是|about|only|just)?\s?$"
)
_DOWN = re.compile(
    r"(?:[低降减少短跌掉]|下降|降低|减少|回落|落后|丢掉|损失|(?<![a-z])(?:drops?|dropped|fell|falls?|loses?|lost|"
    r"down|decrease[ds]?)(?: by)?|[降跌]幅|"
    r"(?<![a-z])(?:decrease|drop|fall|loss|reduction|decline|saving)s? of)"
    r"(?:了|约|只|仅|共|为|是|about|only|just)?\s?$"
)
_HIGHER = re.compile(r"\s?%?\s?(?:higher|more|longer|above)(?![a-z])")
_LOWER = re.compile(r"\s?%?\s?(?:lower|less|fewer|shorter|below)(?![a-z])")
_RELATIVE = re.compile(r"相对(?!于?基[准线])|(?<![a-z])relative(?:ly)?(?![a-z])")
_PART = re.compile(r"占[^,。;\d]{0,8}$")


def direction(sentence: Sentence, said: Said) -> int:
    """1 if a number is by how much something is more, -1 if less, 0 if nothing says which."""
    whole, behind = sentence.plain[: said.start], sentence.plain[said.end :]
    before = whole.rstrip("+-± ")
    minus = said.sign == "-" or re.search(r"[^\d%\s]\s?-$", whole)
    up = bool(said.sign == "+" or _UP.search(before) or _HIGHER.match(behind))
    down = bool(minus or _DOWN.search(before) or _LOWER.match(behind))
    if up == down and said.kind == "share" and is_part(sentence, said):
        return -1
    return up - down


def way_of(sentence: Sentence, said: Said) -> int:
    """The direction of a share, or of the gap that it stands right behind: "0.085 more (12 %)"."""
    gap = next((one for one in reversed(sentence.numbers) if one.end <= said.start), None)
    own = direction(sentence, said)
    if own or gap is None or said.kind != "share" or not is_gap(sentence, gap):
        return own
    led = OR.fullmatch(sentence.plain, gap.end, said.start)
    return direction(sentence, gap) if led else 0


def is_part(sentence: Sentence, said: Said) -> bool:
    """Whether a percentage is called a part of a whole."""
    return bool(_PART.search(sentence.plain[: said.start].rstrip("+-± ")))


def is_relative(sentence: Sentence, said: Said) -> bool:
    """Whether a percentage is called a relative one."""
    start = max(sentence.plain.rfind(mark, 0, said.start) for mark in ";。(") + 1
    return said.kind == "share" and bool(_RELATIVE.search(sentence.plain, start, said.start))


def is_end(sentence: Sentence, said: Said) -> bool:
    """Whether a number is where something began or came to: "18.3 → 12.4", "from 18.3 to 12.4"."""
    before, behind = sentence.plain[: said.start], sentence.plain[said.end :]
    if re.search(r"(?:→|->|(?<![a-z])from|从|由)\s?$", before) or re.match(
        r"\s?\S{0,6}\s?(?:→|->)", behind
    ):
        return True
    came = re.search(r"(?:[到至]|(?<![a-z])to)\s?$", before)
    return bool(came and re.search(r"从|由|(?<![a-z])from(?![a-z])", before))


def compares(sentence: Sentence, said: Said) -> bool:
    """Whether a number may be one that was worked out of two others, by the words around it."""
    if is_gap(sentence, said):
        return True
    plain = sentence.plain
    if is_end(sentence, said):
        return bool(_APART.search(plain[: said.start]))  # "the gap narrows from 3.2 to 1.7"
    of = re.search(r"(?:是|为|约)[^,。;]{1,12}的\s?$", plain[: said.start])  # "是基线的 47.5%"
    if said.kind == "share" and (_COMPARES.search(plain) or of):
        return True
    if _goes_on(sentence, said):
        return True
    first = max(plain.rfind(mark, 0, said.start) for mark in ",;:。")
    last = min(
        (at for mark in ",;。" if (at := plain.find(mark, said.end)) >= 0), default=len(plain)
    )
    return bool(_COMPARES.search(plain[first + 1 : last]))


def _goes_on(sentence: Sentence, said: Said) -> bool:
    """Whether only a name stands between a gap and a number: "A gains 10.4 points, B 9.1"."""
    before = [one for one in sentence.numbers if one.end <= said.start][-1:]
    if not before or said.kind or before[0].figure.decimals != said.figure.decimals:
        return False
    named = {at for name in sentence.names for at in range(name.start, name.end)}
    between = [at for at in range(before[0].end, said.start) if at not in named]
    rest = "".join(sentence.plain[at] for at in between).strip(" ,、;and和")
    return len(between) < said.start - before[0].end and not rest and is_gap(sentence, before[0])
