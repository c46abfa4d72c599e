"""The plain part of YAML that tools write: mappings, lists, scalars, quoted and folded text.

No anchors, aliases, tags or complex keys: they are refused with their line, never guessed. A full
parser would be one more dependency of the core, for files that hold only settings.
"""

from __future__ import annotations

import json
import re
from typing import Any

DEPTH = 64
WORDS = {
    "": None, "~": None, "null": None, "Null": None, "NULL": None,
    "true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False,
    ".nan": float("nan"), ".NaN": float("nan"), ".inf": float("inf"), "-.inf": float("-inf"),
}  # fmt: skip
INT = re.compile(r"[-+]?(0|[1-9][0-9_]{0,40})$")
FLOAT = re.compile(r"[-+]?([0-9]+\.[0-9]*|\.[0-9]+|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?$")
KEY = re.compile(
    r"""("(?:[^"\\]|\\.)*"|'(?:[^']|'')*'|[^\s"'#\[\]{},&*!|>%@`][^#]*?)\s*:(?:\s+|$)"""
)
COMMENT = re.compile(r"\s#.*$")


def read_yaml(source: str) -> tuple[Any, dict[str, int]]:
    """The value in a YAML text, and the line of every dotted key."""
    reader = _Reader(source.splitlines())
    value = reader.block(0, "", 0)
    if reader.peek() is not None:
        raise ValueError(f"line {reader.at + 1} is indented unlike what it belongs to")
    return value, reader.places


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        self.at = 0
        self.places: dict[str, int] = {}

    def peek(self) -> tuple[int, str] | None:
        """Indentation and content of the next line that says something."""
        while self.at < len(self.lines):
            line = self.lines[self.at]
            body = line.lstrip(" ")
            if body.strip() and not body.startswith("#") and line.rstrip() not in ("---", "..."):
                if body.startswith("\t"):
                    raise ValueError(f"line {self.at + 1} is indented with a tab")
                return len(line) - len(body), body.rstrip()
            self.at += 1
        return None

    def block(self, least: int, path: str, depth: int) -> Any:
        """The value that begins on the next line, indented by at least so much."""
        if depth > DEPTH:
            raise ValueError(f"nested more than {DEPTH} deep")
        following = self.peek()
        if following is None or following[0] < least:
            return None
        indent, body = following
        if body == "-" or body.startswith("- "):
            return self.sequence(indent, path, depth)
        if KEY.match(body):
            return self.mapping(indent, path, depth)
        self.at += 1
        return self.scalar(body, indent, path, depth)

    def mapping(self, indent: int, path: str, depth: int) -> dict[str, Any]:
        made: dict[str, Any] = {}
        while (following := self.peek()) is not None and following[0] == indent:
            body = following[1]
            match = KEY.match(body)
            if match is None or body.startswith("- "):
                raise ValueError(f"line {self.at + 1} is not `key: value`")
            key = str(plain(match[1]))
            if key in made:
                raise ValueError(f"line {self.at + 1} repeats the key {key!r}")
            here = f"{path}.{key}" if path else key
            self.places[here] = self.at + 1
            self.at += 1
            rest = COMMENT.sub("", " " + body[match.end() :]).strip()
            if rest:
                made[key] = self.scalar(rest, indent + 1, here, depth)
                continue
            below = self.peek()
            # A list may stand under its key without being indented.
            flat = below is not None and below[0] == indent and below[1].startswith("-")
            made[key] = self.block(indent if flat else indent + 1, here, depth + 1)
        return made

    def sequence(self, indent: int, path: str, depth: int) -> list[Any]:
        made: list[Any] = []
        while (following := self.peek()) is not None and following[0] == indent:
            body = following[1]
            if body != "-" and not body.startswith("- "):
                break
            rest = body[1:].strip()
            if not rest:
                self.at += 1
                made.append(self.block(indent + 1, f"{path}.{len(made)}", depth + 1))
                continue
            # What stands behind the dash is a block of its own that begins there.
            self.lines[self.at] = " " * (indent + len(body) - len(body[1:].lstrip())) + rest
            made.append(self.block(indent + 1, f"{path}.{len(made)}", depth + 1))
        return made

    def scalar(self, body: str, least: int, path: str, depth: int) -> Any:
        if body[0] in "|>":
            return self.text(body[0], least)
        if body[0] in "&*!%@`?" and body != "?":
            raise ValueError(f"line {self.at}: {body[:1]!r} begins something that is not read here")
        start = self.at
        while not _closed(body) and (line := self.continued(least)) is not None:
            body += line
        try:
            return _flow(body, depth) if body[0] in "[{" else plain(body)
        except ValueError as error:
            raise ValueError(f"line {start}: {error}") from None

    def continued(self, least: int) -> str | None:
        """One more line of a scalar that goes on, indented by at least so much."""
        before = self.at
        following = self.peek()
        if following is None or following[0] < least:
            return None
        # One end of a line is a space, each empty line an end of a line.
        joint = "\n" * (self.at - before) or " "
        self.at += 1
        return joint + following[1]

    def text(self, style: str, least: int) -> str:
        """The lines of a block scalar; folded ones are joined."""
        kept = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if line.strip() and len(line) - len(line.lstrip(" ")) < least:
                break
            kept.append(line.strip())
            self.at += 1
        return (" " if style == ">" else "\n").join(kept).strip()


def _closed(body: str) -> bool:
    """Whether a scalar ends on its line: quotes and brackets match."""
    if body[0] == '"':
        return len(body) > 1 and re.fullmatch(r'"(?:[^"\\]|\\.)*"', body) is not None
    if body[0] == "'":
        return re.fullmatch(r"'(?:[^']|'')*'", body) is not None
    if body[0] in "[{":
        return body.count("[") <= body.count("]") and body.count("{") <= body.count("}")
    return False


def plain(body: str) -> Any:
    """A scalar: quoted text, a word with a meaning, a number, or the text itself."""
    if body[:1] == '"':
        try:
            return json.loads(body, strict=False)
        except ValueError:
            raise ValueError(f"text in quotes that cannot be read: {body[:40]}") from None
    if body[:1] == "'":
        if not re.fullmatch(r"'(?:[^']|'')*'", body):
            raise ValueError(f"text in quotes without an end: {body[:40]}")
        return body[1:-1].replace("''", "'")
    if body in WORDS:
        return WORDS[body]
    if INT.match(body):
        return int(body.replace("_", ""))
    return float(body) if FLOAT.match(body) else body


def _flow(body: str, depth: int) -> Any:
    """`[1, a]` and `{a: 1}`."""
    if depth > DEPTH:
        raise ValueError(f"nested more than {DEPTH} deep")
    opening, closing = body[0], body[-1]
    if opening + closing not in ("[]", "{}"):
        raise ValueError(f"a bracket without an end: {body[:40]}")
    parts = _split(body[1:-1])
    if opening == "[":
        return [_inner(part, depth) for part in parts]
    made: dict[str, Any] = {}
    for part in parts:
        key, colon, value = part.partition(":")
        if not colon or str(plain(key.strip())) in made:
            raise ValueError(f"not `key: value`: {part[:40]}")
        made[str(plain(key.strip()))] = _inner(value.strip(), depth)
    return made


def _inner(part: str, depth: int) -> Any:
    return _flow(part, depth + 1) if part[:1] in ("[", "{") and part else plain(part)


def _split(body: str) -> list[str]:
    """The parts between commas, those inside quotes and brackets left alone."""
    parts, level, quote, begun = [], 0, "", 0
    for at, sign in enumerate(body):
        if quote:
            quote = "" if sign == quote else quote
        elif sign in "\"'":
            quote = sign
        elif sign in "[{":
            level += 1
        elif sign in "]}":
            level -= 1
        elif sign == "," and level == 0:
            parts.append(body[begun:at].strip())
            begun = at + 1
    last = body[begun:].strip()
    return [*parts, last] if last else parts
