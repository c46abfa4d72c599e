"""Words that claim more than a number: "significantly", "stable", "proves", and tests of them.

Such a word needs an interval, a test, seeds or a deviation beside it. What is denied, asked or
expected is no claim; and a test that stands beside a word must say the same as the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from kleash.imports.markdown.prose import sentences as split
from kleash.imports.markdown.text import fold, plain
from kleash.written.marks import Mark

NEAR = 12  # letters behind a word that may say of what it is
LEVEL = 0.05  # of a test, where nothing else is said
SEVERAL = 2  # tests that show how a report tells them
_WORDS: dict[str, str] = {
    "significant": r"显著|统计上|significan\w*|conclusive\w*|definitive\w*",
    "clear": (
        r"明显|清楚地?表明|毫无疑问|无疑|必然|本质(?:差|区|上)|根本(?:原因|上)|unambiguous\w*|clear(?:ly)?|obvious(?:ly)?|evident(?:ly)?|undoubtedly"
    ),
    "large": (
        r"大幅|极大|远超|远远|远[优好高低]于|碾压|大大|marked(?:ly)?|strong(?:ly)?|drastic\w*|decisive\w*|"
        r"overwhelming\w*|superior|substantial(?:ly)?|dramatic(?:ally)?|considerabl[ey]|vastly|"
        r"massive(?:ly)?|remarkabl[ey]|huge(?:ly)?|far (?:better|superior|ahead)|much better"
    ),
    "proof": (
        r"(?:充分)?证明了?|证实|保证|可靠地|prove[sdn]?|demonstrates?|confirms?|guarantees?|reliably"
    ),
    "always": (
        r"始终|总是|任何情况|一致地|在所有|always|consistently|in all cases|never|universally"
    ),
    "general": r"鲁棒|泛化|普遍适用|robust\w*|generali[sz]\w*",
    "optimal": r"最优(?!化)|理想|optimal(?:ly)?|state[- ]of[- ]the[- ]art|sota",
    "stable": r"(?<!不)稳定|平滑|温和|stable|stability|smooth(?:er|ly)?|steadi\w*",
    "unstable": r"不稳定|震荡|崩溃|unstable|volatile|collaps\w*",
    "faster": r"更快|提前|加速(?!\s?\d|比)|faster|sooner|quicker|accelerat\w*|speeds? up",
    "converged": r"收敛|converge\w*",
    "overfitting": r"过拟合|over-?fit\w*",
    "conservative": r"保守|激进|conservative\w*|aggressive\w*",
    "similar": (
        r"几乎相同|非常相似|差不多|相似(?!度)|几乎一致|不相上下|差异不大|相当(?=$|[，,。])|"
        r"similar|comparable|on par|indistinguishable|equivalent|(?:about|almost|nearly) the same"
    ),
    "cause": r"导致|归因|得益于|because of|thanks to|due to|caused? by|owing to",
}
_PATTERNS = {name: re.compile(rf"(?<![A-Za-z])(?:{words})", re.I) for name, words in _WORDS.items()}
_STATISTIC = re.compile(
    r"置信|区间|标准差|标准误|bootstrap|interval|standard (?:error|deviation)|"
    r"(?<![a-z])(?:CI|SE|SD)(?![a-z])|std\.? ?err|\d%?\s?(?:±|\+/-)",
    re.I,
)
_P = re.compile(r"(?<![a-z])p(?:[ -]?value)?\s?[<=≈>]\s?0?\.\d+|(?:\d+\s?σ)|t-?检验|t-test", re.I)
_BINOMIAL = re.compile(r"二项|伯努利|binomial|bernoulli", re.I)  # its p is a share
_SUPPOSED = re.compile(
    r"如果|若要|假如|应该|能否|是否|可能|预期|预计|也许|(?<![a-z])(?:if|should|would|could|may|might|"
    r"whether|expect\w*|likely|perhaps)(?![a-z])",
    re.I,
)
_ASKED = re.compile(r"是否|能否|(?<![a-z])whether(?![a-z])", re.I)  # of one clause, not of all
_TEST = re.compile(
    r"welch|wilcoxon|mann-whitney|bootstrap|anova|fisher|mcnemar|permutation|置换检验|秩和|"
    r"配对检验|卡方|t-?\s?检验|(?<![a-z])t-?\s?tests?(?![a-z])|(?<![a-z])z-?\s?test",
    re.I,
)
# Arms that go by what they lack: "without KL" denies nothing.
_LACKING = re.compile(
    r"(?:不[加带用含做]|没有|无|未加)\s?(?:kl|约束|惩罚|正则|参考)|"
    r"(?<![a-z])(?:no|without(?: the| a| any)?|non)[- ]?"
    r"(?:kl|penalty|leash|constraint|regulari[sz]\w*)",
    re.I,
)
_DENIED = re.compile(
    r"不|未|没|并非|难以|无法|谈不上|(?<![a-z])(?:not|no|none|never|neither|nor|cannot|hardly|without|"
    r"unable|fails? to|too (?:few|early))(?![a-z])|n't",
    re.I,
)
_NOUN = re.compile(r"性(?:检验|水平|测试)?|ce(?: test\w*| level)?(?![a-z])", re.I)
_REFUSED = re.compile(  # "cannot be called a significant difference" says nothing of it
    r"(?:不[能可宜足应该当]|无法|未必|尚?难以?)[^,;。]{0,6}?(?:说|称|算|视|当|认|断|判|得出|构成)|[谈称算]不上|"
    r"(?<![a-z])(?:cannot|can not|can't|should not|must not|not enough to)[^,;.]{0,12}?"
    r"(?:call|sa(?:y|id)|claim|read|treat|tak|conclu|regard|count|speak|show)",
    re.I,
)
_GAP = re.compile(r"^.{2,4}(?:差[异别距]|区别)|^\w+\s(?:differences?|gaps?)(?![a-z])", re.I)
_SIGNIFICANT = re.compile(r"显著|(?<![a-z])significant(?:ly)?", re.I)
_VALUE = re.compile(r"(?<![a-z])p(?:[ -]?values?)?\s?([<=≈>])\s?(0?\.\d+)", re.I)
_T = re.compile(r"(?<![a-z])t\s?=\s?-?\d", re.I)
_STATISTICS = re.compile(  # what a test gives, by another name
    r"(?:统计量|检验值|(?<![a-z])(?:statistic|chi-?squared?)(?![a-z])|χ\s?[²2^]|"
    r"(?<![a-z])[zfuw](?=\s?=))[^,;。\d]{0,24}\d",
    re.I,
)
_RESULT = re.compile(rf"{_VALUE.pattern}|{_T.pattern}|{_STATISTICS.pattern}", re.I)
_SMALL = re.compile(
    r"(?:小于|不到|低于|没超过|未超过|不超过|落在|在)[^,。;]{0,8}(?:标准差|标准误|误差|噪声|波动)|"
    r"(?<![a-z])(?:within|smaller than|less than|below|inside)[^,;.]{0,24}"
    r"(?:deviations?|std|sd|error|noise|spread)",
    re.I,
)


# A deviation with its number, or two.
_NUMBER = re.compile(r"(?<![\d.])\d+(?:\.\d+)?(?![\d.]*\d)")
_DEVIATION = re.compile(
    r"(?:标准[差误]|(?<![a-z])(?:standard (?:errors?|deviations?)|std|sd|se)(?![a-z]))"
    rf"[^\d,;。]{{0,12}}({_NUMBER.pattern})(?:\s?(?:与|和|、|and)\s?({_NUMBER.pattern}))?",
    re.I,
)


def tested_lines(lines: Sequence[tuple[int, str]]) -> set[int]:
    """Lines whose report says which test it made: what comes of it then has a source.

    A test that stands with what came of it is that of its section; one that does not is of all. A
    section with several p-values, or with one that a tested section has, goes back to a test too.
    Where tests are told by their t, a p-value without one is of none.
    """
    sections: list[list[tuple[int, str]]] = [[]]
    for line, text in lines:
        sections += [[]] if text.startswith("#") else []
        sections[-1].append((line, fold(plain(text))))
    named = [any(_TEST.search(text) for _, text in own) for own in sections]
    values = [[one.group() for _, text in own for one in _VALUE.finditer(text)] for own in sections]
    results = [any(_RESULT.search(text) for _, text in own) for own in sections]
    if any(test and not result for test, result in zip(named, results, strict=True)):
        named = [True] * len(sections)
    shown = {one for own, test in zip(values, named, strict=True) if test for one in own}
    known = [len(set(own)) > 1 or bool(shown & set(own)) for own in values]
    tested = [test or (told and any(named)) for test, told in zip(named, known, strict=True)]
    fine = {line for own, test in zip(sections, tested, strict=True) if test for line, _ in own}
    return fine - _without_t([one for own in sections for one in own])


def _without_t(lines: Sequence[tuple[int, str]]) -> set[int]:
    """Lines with a p-value alone, where all tests but theirs are told by t and without p."""
    told = {line for line, text in lines if _T.search(text)}
    values = {line for line, text in lines if _VALUE.search(text)}
    return values if len(told) >= SEVERAL and not told & values else set()


def unsupported(line: int, text: str, *, tested: bool) -> Iterator[Mark]:
    """Words that need a statistic, where there is none, and statistics that nothing shows."""
    for part in split(text):
        yield from _against_test(line, part)
        yield from _within_deviation(line, part)
        yield from _words_of(line, part, tested=tested)


def _words_of(line: int, text: str, *, tested: bool) -> Iterator[Mark]:
    for match in _P.finditer(text) if not tested and not _BINOMIAL.search(text) else ():
        yield Mark(line, match.group(), "unsupported", "check.test", {"text": text}, "test")
    small = _SMALL.search(text)
    if _STATISTIC.search(text) and not small:
        return
    measured = bool(re.search(r"\d\.\d", text))
    if _SUPPOSED.search(_ASKED.sub("", text)) and not measured:
        return
    for name, pattern in _PATTERNS.items():
        for match in pattern.finditer(text):
            if _SUPPOSED.search(_clause(text, match.start())) or is_denied(text, match):
                continue
            if small and name != "significant":
                continue
            facts = {"word": match.group(), "text": text}
            yield Mark(line, match.group(), "unsupported", "check.word", facts, f"word {name}")


def is_denied(text: str, match: re.Match[str]) -> bool:
    """Whether a word is no claim: "not significant"; "no significant difference" is one."""
    if _NOUN.match(text, match.end()):
        return True
    if _GAP.search(text[match.start() : match.end() + NEAR]):
        return bool(_REFUSED.search(_before(text, match)))
    return _is_negated(text, match)


def _is_negated(text: str, match: re.Match[str]) -> bool:
    return bool(_DENIED.search(_LACKING.sub("", _before(text, match))))


def _before(text: str, match: re.Match[str]) -> str:
    """What stands before a word in its clause."""
    clause = _clause(text, match.start())
    return clause[: max(0, clause.find(match.group()))]


def _against_test(line: int, text: str) -> Iterator[Mark]:
    """ "p = 0.57, a significant gap": the word behind a test that says otherwise."""
    tests = list(_VALUE.finditer(text))
    for nth, test in enumerate(tests):
        last = tests[nth + 1].start() if nth + 1 < len(tests) else len(text)
        word = _SIGNIFICANT.search(text, test.end(), last)
        first = tests[nth - 1].end() if nth else 0
        before = list(_SIGNIFICANT.finditer(text, first, test.start()))
        word = word or (before[-1] if before and len(tests) == 1 else None)
        if word is None or _NOUN.match(text, word.end()):
            continue
        level = re.search(r"(\d+(?:\.\d+)?)\s?%", text[word.end() : word.end() + 24])
        limit = float(level[1]) / 100 if level else LEVEL
        value, above = float(test[2]), test[1] == ">"
        passed = value < limit and not above
        if (test[1] == "<" and value > limit) or (above and value < limit):
            continue
        if passed == _is_negated(text, word):
            facts = {"word": word.group(), "test": test.group()}
            yield Mark(line, word.group(), "wrong", "check.against-test", facts, "test")


def _within_deviation(line: int, text: str) -> Iterator[Mark]:
    """ "The standard error is 2.2; the gap of 2.0 points is significant"."""
    told = list(_DEVIATION.finditer(text))
    deviations = [one for match in told for one in match.groups() if one]
    decimals = {len(one.partition(".")[2]) for one in deviations}
    gaps = [
        float(match[0]) for match in _NUMBER.finditer(text)
        if len(match[0].partition(".")[2]) in decimals  # printed alike, as gaps are
        and not any(one.start() <= match.start() < one.end() for one in told)
    ]  # fmt: skip
    if not gaps or max(gaps) >= max(map(float, deviations)):
        return
    for word in _SIGNIFICANT.finditer(text):
        supposed = _SUPPOSED.search(_clause(text, word.start())) or _NOUN.match(text, word.end())
        if not supposed and not _is_negated(text, word):
            facts = {"word": word.group(), "text": text}
            yield Mark(line, word.group(), "unsupported", "check.word", facts, "word significant")


def _clause(text: str, at: int) -> str:
    """The part of a sentence between two commas in which a word stands."""
    edges = [0, *(match.end() for match in re.finditer(r"[,;:。]\s?|\.\s", text)), len(text)]
    return next(text[a:b] for a, b in pairwise(edges) if a <= at < b or b == len(text))
