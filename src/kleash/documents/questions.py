"""What an interpreter is asked: which formula each claim of some lines states; and once more, of
those that do not hold, whether it read them right.

It never says whether a claim is true. Each question holds the whole report first, so that a server
that keeps prefixes reads it once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kleash.documents.judge import Judged
from kleash.documents.numbered import Addresses

LINES = 150  # of a report that one question asks about

BRIEF = """\
You help to check a report about experiments. You do not judge whether its claims are true. For each
claim you say which formula over the report's numbers it states; the formula is then worked out by a
program, and held against what is written.

ADDRESSES. Every line begins with its number. In tables the cells are named A, B, C, …: C37 is the
number in cell C of line 37, C37.2 the second number in it. Elsewhere a number is followed by its
address: 2.123⟨n52.1⟩. Ranges: C37:C45 (down), B37:F37 (along), n52.1:n52.4 (of a line), n52.1:n58.1
(the same place in each line). Numbers count as printed: 3.6% is 3.6, 1,024 is 1024.

ANSWER with one JSON object a line and nothing else:
{"at": "n52.3", "formula": "C40 - B40"}
  a number, and the formula that gives it. Of what is only quoted the formula is the address of its
  source: {"at": "n52.1", "formula": "C40"}.
{"at": "D37:D45", "formula": "C37:C45 - B37:B45"}
  the same for a column or row of a table that was worked out from others.
{"line": 60, "words": "rises at every step", "formula": "rises(C37:C45)"}
  words, exactly as written, and a formula that is true if they are true.
{"line": 61, "words": "significantly", "formula": "", "why": "one run each, no test"}
  words that nothing in the report can bear out.

FORMULAS. + - * /, comparisons (== != < <= > >=), and, or, not; element by element on ranges;
numbers such as 100; sum mean median std max min spread (max - min) count all any same rises falls
abs round sqrt log exp; changes(x), changes_percent(x) from each to the next;
at_max(values, labels) and at_min(values, labels): the label of the highest, lowest value. A
relative change in percent is 100 * (new - old) / old.

RULES
1. The formula follows from what the sentence speaks of, never from what would make it come out:
   "A is 0.079 below B" is the gap of A and B in that quantity, whatever that gap is. If a sentence
   calls step 40 the best, say where the best is:
   {"at": "n52.2", "formula": "at_max(C37:C45, A37:A45)"}.
2. Take every number that the report has elsewhere or that follows from others: gaps, percentages,
   totals, means, counts, ratios, best or first steps, ranges, settings told in two places, the
   number that names an arm ("0.155 has the lowest loss": at_min over the column, labels its arms).
   In tables: columns and rows that are worked out (differences, means, totals, shares, ranks,
   bests), and whatever a list or another table tells again; for these the source is the table that
   has the values in full.
3. Take every claim in words that numbers can decide: higher, lower, faster, most, least, only,
   all, both, each, never, always, same, unchanged, monotone, first, more stable, close, half,
   twice; also remarks in cells and which arm a winner is. Where labels are words, compare: "no KL
   is better" is "B46 > C46".
4. Words such as significant, proves, optimal, guarantees, because: give a formula if a test, an
   interval or the numbers can bear them out, else "" and why.
5. A number is never its own source. Two sentences that tell the same thing may be each other's,
   where no table or list has it.
6. Leave out what only names a place (steps along the way, headings, dates, files, versions), plans,
   and what has no source at all.
"""

AGAIN = """\
Some claims that you put into formulas do not hold. For each say whether you read it right. If the
formula is not what the sentence speaks of, answer with the right one in the same form, or with an
empty formula and why if no formula can say it. If you read it right, and the report is wrong,
answer with the same line again. One JSON object a line, nothing else.
"""


def questions(addresses: Addresses, lines: int = LINES) -> Iterator[str]:
    """A question for so many lines each."""
    report = _report(addresses)
    for first in range(1, addresses.count + 1, lines):
        last = min(addresses.count, first + lines - 1)
        yield f"{BRIEF}\nREPORT\n{report}\n\nAnswer for lines {first} to {last}."


def once_more(addresses: Addresses, failed: Sequence[Judged]) -> str:
    """The question about claims that do not hold."""
    told = "\n".join(
        f"{addresses.shown(one.line)}\n  you: {one.told}\n  {one.outcome}" for one in failed
    )
    return f"{BRIEF}\nREPORT\n{_report(addresses)}\n\n{AGAIN}\n{told}"


def _report(addresses: Addresses) -> str:
    lines = (nth for nth in range(1, addresses.count + 1) if nth not in addresses.rules)
    return "\n".join(addresses.shown(nth) for nth in lines)
