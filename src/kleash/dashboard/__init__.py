"""`kleash serve`: studies and runs of a folder as pages, made on the server, live while one runs.

`door` says who may come in, `shelf` reads the folder, `worker` does what takes long, `pages` and
`items` make pages, `live` tells what changes. It reads only; agents' transcripts are not shown yet.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kleash.charts import STYLE
from kleash.dashboard.asking import ENVIRONMENT, Asking
from kleash.dashboard.door import Door, Rules
from kleash.dashboard.items import Items
from kleash.dashboard.live import events
from kleash.dashboard.pages import Pages, one_line
from kleash.dashboard.shelf import Nowhere, Shelf
from kleash.dashboard.worker import Worker
from kleash.errors import KleashError
from kleash.report.page import CSS

__all__ = ["Rules", "dashboard"]


def dashboard(folder: Path, rules: Rules | None = None, trusted: Sequence[str] = ()) -> Starlette:
    """The pages of a folder; `trusted` are data sets and answerers of your own that may be run."""
    shelf, worker = Shelf(folder), Worker()
    pages, items = Pages(shelf, worker), Items(shelf, worker, trusted)
    static = resources.files("kleash.dashboard").joinpath("static")
    style = STYLE + CSS + static.joinpath("page.css").read_text(encoding="utf-8")
    script = static.joinpath("live.js").read_text(encoding="utf-8")

    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)  # compiled now: the first reader does not wait for it

    def fixed(text: str, kind: str) -> Any:
        return lambda request: Response(text, media_type=kind)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        worker.close()

    views = {
        "/arm": pages.arm,
        "/cell": items.cell,
        "/items": items.items,
        "/item": items.item,
        "/image": items.image,
        "/events": events(pages),
        "": pages.study,  # the last: a study's path may have several parts
    }
    return Starlette(
        routes=[
            Route("/", pages.index),
            Route("/compare", pages.compare),
            Route("/run", pages.run),
            Route("/page.css", fixed(style, "text/css")),
            Route("/live.js", fixed(script, "text/javascript")),
            *(Route("/study/{study:path}" + below, view) for below, view in views.items()),
        ],
        middleware=[Middleware(Door, rules=rules or Rules())],
        exception_handlers={
            Nowhere: nowhere,
            HTTPException: nowhere,
            KleashError: unreadable,
            OSError: unreadable,
        },
        lifespan=life,
    )


def nowhere(request: Request, error: Exception) -> Response:
    """An address of nothing."""
    ask = Asking(request)
    return ask.page("error.html", status=404, why=ask.t("no_page"))


def unreadable(request: Request, error: Exception) -> Response:
    """A folder that is not what it should be: one clear error."""
    ask = Asking(request)
    return ask.page("error.html", status=422, why=ask.t("unread", why=one_line(error)))
