"""`kleash serve`: studies and runs of a folder as pages, made on the server, live while one runs.

`auth` says who may come in, `store` reads the folder, `answers` makes in a thread what takes long,
`pages` and `items` make pages. It reads only.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from importlib import resources
from pathlib import Path
from threading import Lock
from typing import Any

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from kleash.errors import KleashError
from kleash.report.charts import STYLE
from kleash.report.page import CSS
from kleash.report.serve.answers import Background
from kleash.report.serve.auth import Auth, Rules
from kleash.report.serve.items import Items
from kleash.report.serve.pages import Pages
from kleash.report.serve.store import Nowhere, Store
from kleash.report.serve.visit import ENVIRONMENT, Visit, one_line

__all__ = ["Rules", "dashboard"]

View = Callable[[Request], Response]


def dashboard(folder: Path, rules: Rules | None = None, trusted: Sequence[str] = ()) -> Starlette:
    """The pages of a folder; `trusted` are data sets of your own that may be loaded."""
    store, background = Store(folder), Background()
    pages, items = Pages(store, background), Items(store, trusted)
    static = resources.files("kleash.report.serve").joinpath("static")
    style = STYLE + CSS + static.joinpath("page.css").read_text(encoding="utf-8")
    script = static.joinpath("live.js").read_text(encoding="utf-8")
    for name in ENVIRONMENT.list_templates():
        ENVIRONMENT.get_template(name)  # compiled now: the first reader does not wait for it

    def fixed(text: str, kind: str) -> View:
        return lambda request: Response(text, media_type=kind)

    @asynccontextmanager
    async def life(app: Starlette) -> AsyncIterator[None]:
        yield
        background.close()

    routes: dict[str, View] = {
        "/page.css": fixed(style, "text/css"),
        "/live.js": fixed(script, "text/javascript"),
        "/": looked_again(pages.index),
        "/run": looked_again(pages.run),
        "/compare": looked_again(pages.compare),
        "/study/{study:path}/items": items.items,
        "/study/{study:path}/item": items.item,
        "/study/{study:path}/image": items.image,
        "/study/{study:path}": looked_again(pages.study),  # the last: a path may have several parts
    }
    return Starlette(
        routes=[Route(path, view) for path, view in routes.items()],
        middleware=[Middleware(Auth, rules=rules or Rules())],
        exception_handlers={
            Nowhere: nowhere,
            HTTPException: nowhere,
            KleashError: unreadable,
            OSError: unreadable,
        },
        lifespan=life,
    )


def looked_again(view: View) -> View:
    """A view that answers a page that looks again in short where nothing has changed.

    Those who look within a second share what is made.
    """
    lock, made = Lock(), dict[Any, Response]()

    def answer(request: Request) -> Response:
        tag = request.headers.get("if-none-match")
        if tag is None:
            return view(request)
        with lock:
            now = int(time.monotonic())
            key = now, str(request.url), Visit(request).language
            for old in [each for each in made if each[0] != now]:
                del made[old]
            found = made[key] = made.get(key) or view(request)
        same = found.headers.get("etag") == tag
        return Response(status_code=304, headers={"etag": tag}) if same else found

    return answer


def nowhere(request: Request, error: Exception) -> Response:
    """An address of nothing."""
    visit = Visit(request)
    return visit.page("error.html", status=404, why=visit.t("no_page"))


def unreadable(request: Request, error: Exception) -> Response:
    """A folder that is not what it should be: one clear error."""
    visit = Visit(request)
    return visit.page("error.html", status=422, why=visit.t("unread", why=one_line(error)))
