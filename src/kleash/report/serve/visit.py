"""One request: its language, its addresses, its templates. Everything shown is escaped."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote, urlencode
from zlib import crc32

from jinja2 import Environment, PackageLoader
from starlette.requests import Request
from starlette.responses import HTMLResponse

from kleash.report.words import CODES, LANGUAGES, Language, called
from kleash.study.plan import BASELINE

ROWS = 1_000  # of a table
MOST_RUNS = 64  # that are compared
LONGEST = 2_000  # characters of a text from a file that a page shows

ENVIRONMENT = Environment(
    loader=PackageLoader("kleash.report.serve"), autoescape=True, trim_blocks=True
)
ENVIRONMENT.globals["most_runs"] = MOST_RUNS


class Visit:
    """What a page is asked for, and how it answers."""

    def __init__(self, request: Request) -> None:
        self.request = request
        given = request.query_params.get("lang", "")
        self.explicit = given in LANGUAGES
        accepted = request.headers.get("accept-language", "").lower()
        self.language: Language = "zh" if (given or accepted).startswith("zh") else "en"
        self.of_agents = False
        """Whether it is about language agents, which have words of their own."""

    def t(self, code: str, **facts: Any) -> str:
        """A sentence in the reader's language, its facts whole: a command that is cut is none."""
        own = f"dash.{code}.agent"
        code = own if self.of_agents and own in CODES else f"dash.{code}"
        sentence = CODES[code][LANGUAGES.index(self.language)]
        return sentence.format(**{k: cut(v) if type(v) is str else v for k, v in facts.items()})

    def arm(self, name: str) -> str:
        """An arm as a reader calls it."""
        return called(name.removeprefix(BASELINE), self.language)

    def to(self, path: str, /, **query: Any) -> str:
        """An address that keeps the language that was asked for."""
        if self.explicit:
            query["lang"] = self.language
        return f"{path}?{urlencode(query, errors='replace')}" if query else path

    def study(self, name: str, below: str = "", /, **query: Any) -> str:
        """The address of a study or of something in it."""
        return self.to(f"/study/{quote(name)}{below}", **query)

    def text(self, name: str, default: str = "") -> str:
        """A parameter."""
        return self.request.query_params.get(name, default)

    def number(self, name: str, default: int = 0) -> int:
        """A parameter that is a whole number; the default where it is none."""
        text = self.text(name)
        plain = len(text) < 10 and text.removeprefix("-").isdecimal() and text.isascii()
        return int(text) if plain else default

    def page(
        self, template: str, *, status: int = 200, live: bool = False, **facts: Any
    ) -> HTMLResponse:
        """A page; a `live` one looks again, and its tag says whether anything has changed."""
        other = "en" if self.language == "zh" else "zh"
        query = [(k, v) for k, v in self.request.query_params.multi_items() if k != "lang"]
        turned = urlencode([*query, ("lang", other)], errors="replace")
        always: dict[str, Any] = {
            "t": self.t,
            "to": self.to,
            "language": self.language,
            "explicit": self.explicit,
            "turned": f"{self.request.url.path}?{turned}",
            "trail": [],
            "live": live,
        }
        text = ENVIRONMENT.get_template(template).render(always | facts)
        body = text.encode("utf-8", "replace")  # half a character can be in any file
        headers = {"etag": f'"{crc32(body):08x}"'} if live else {}
        return HTMLResponse(body, status, headers)


def cut(text: Any) -> str:
    """Something from a file, as text of a length that a page can hold."""
    whole = str(text)
    return whole if len(whole) <= LONGEST else whole[:LONGEST] + f"… ({len(whole):,})"


def one_line(error: BaseException) -> str:
    """An error as one line."""
    return cut((str(error).splitlines() or [""])[0] or type(error).__name__)
