"""One request: its language, its addresses, its templates. Everything shown is escaped."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

from jinja2 import Environment, PackageLoader
from markupsafe import Markup
from starlette.requests import Request
from starlette.responses import HTMLResponse

from kleash.catalogue import Language, called, say
from kleash.charts import Chart
from kleash.plan import BASELINE

ROWS = 100  # on a page
LONGEST = 2_000  # characters of a text from a file that a page shows


def drawing(chart: Chart) -> Markup:
    """The one thing that is not escaped: our own drawing, in which every text is already."""
    return Markup(chart.drawing)  # made by kleash.charts


ENVIRONMENT = Environment(
    loader=PackageLoader("kleash.dashboard"), autoescape=True, trim_blocks=True
)
ENVIRONMENT.globals["drawing"] = drawing


class Asking:
    """What a page is asked for, and how it answers."""

    def __init__(self, request: Request) -> None:
        self.request = request
        given = request.query_params.get("lang", "")
        self.explicit = given in ("zh", "en")
        accepted = request.headers.get("accept-language", "").lower()
        self.language: Language = "zh" if (given or accepted).startswith("zh") else "en"
        if given == "en":
            self.language = "en"

    def t(self, code: str, **facts: Any) -> str:
        """A sentence in the reader's language."""
        # A sentence quotes a text in short; an error or a command must be whole.
        whole = {f"\ue000{name}\ue001": cut(v) for name, v in facts.items() if type(v) is str}
        marked = {n: f"\ue000{n}\ue001" if type(v) is str else v for n, v in facts.items()}
        said = say(f"dash.{code}", marked, self.language)
        for mark, text in whole.items():
            said = said.replace(mark, text)
        return said

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

    def facts(self, facts: Mapping[str, Any]) -> dict[str, Any]:
        """What every template reads, and what this one does."""
        other = "en" if self.language == "zh" else "zh"
        query = [(k, v) for k, v in self.request.query_params.multi_items() if k != "lang"]
        turned = urlencode([*query, ("lang", other)], errors="replace")
        return {
            "t": self.t,
            "to": self.to,
            "language": self.language,
            "explicit": self.explicit,
            "turned": f"{self.request.url.path}?{turned}",
            "trail": [],
            **facts,
        }

    def part(self, template: str, **facts: Any) -> str:
        """A piece of a page."""
        text = ENVIRONMENT.get_template(template).render(self.facts(facts))
        return text.encode("utf-8", "replace").decode()  # half a character can be in any file

    def page(
        self, template: str, *, status: int = 200, again: bool = False, **facts: Any
    ) -> HTMLResponse:
        """A page; `again` has the browser look once more in a second."""
        headers = {"refresh": "1"} if again else {}
        return HTMLResponse(self.part(template, **facts), status, headers)


def cut(text: Any) -> str:
    """Something from a file, as text of a length that a page can hold."""
    whole = str(text)
    return whole if len(whole) <= LONGEST else whole[:LONGEST] + f"… ({len(whole):,})"


def items_address(ask: Asking, name: str, ours: str, theirs: str, seed: int, shots: int) -> str:
    """Back to the items on which two arms disagree."""
    query: dict[str, Any] = {"seed": seed, "shots": shots}
    query |= {k: v for k, v in (("ours", ours), ("theirs", theirs)) if v}
    return ask.study(name, "/items", **query)


def turn(ask: Asking, count: int) -> tuple[int, dict[str, Any]]:
    """The first row of the page that is asked for, and the addresses of those beside it."""
    pages = max(1, -(-count // ROWS))
    page = min(max(1, ask.number("page", 1)), pages)
    query = {k: v for k, v in ask.request.query_params.items() if k not in ("page", "lang")}

    def address(at: int) -> str:
        return ask.to(ask.request.url.path, **query, page=at)

    back = address(page - 1) if page > 1 else ""
    forth = address(page + 1) if page < pages else ""
    return (page - 1) * ROWS, {"page": page, "pages": pages, "back": back, "forth": forth}
