"""A study while it runs, as server-sent events: what changed since the page was made."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import StreamingResponse

from kleash.dashboard.asking import Asking
from kleash.dashboard.pages import MARKS, Pages
from kleash.dashboard.shelf import UNREAD, Nowhere, Plan

EVERY = 1.0  # seconds between two looks
TURNS = 10  # times in between that it is asked whether the server ends
QUIET = 15.0  # seconds without news after which a word says that the line is open


class Live:
    """What one open page has been told."""

    def __init__(self, pages: Pages, ask: Asking, name: str) -> None:
        self.pages, self.ask, self.name = pages, ask, name
        self.path: Path = pages.shelf.study(name)
        self.arm = ask.text("arm")
        self.seen: Plan | None = None
        self.parts: dict[str, str] = {}

    def news(self) -> dict[str, Any]:
        """What has changed since the last look; at the first, since the page was made."""
        plan, before = self.pages.shelf.plan(self.path), self.seen
        if plan.layout != self.ask.text("layout"):
            return {"reload": True}
        told: dict[str, Any] = {}
        if plan is not before and (before is not None or self.ask.text("seen") != plan.stamp):
            known = {} if before is None else self.marks(before)
            told["marks"] = {k: v for k, v in self.marks(plan).items() if known.get(k) != v}
        # Readers of the same page share what was rendered within a second.
        name = ("live", self.path, self.ask.text("page"), self.ask.language, self.ask.explicit)
        now = int(time.monotonic() / EVERY)
        fresh = self.pages.shelf.facts.get(name, now, lambda: self.rendered(plan))
        told["parts"] = {k: v for k, v in fresh.items() if self.parts.get(k) != v}
        self.seen, self.parts = plan, fresh
        return {key: value for key, value in told.items() if value}

    def marks(self, plan: Plan) -> dict[str, list[str]]:
        """The state of every run on a study's page, of every cell on an arm's."""
        ask, found = self.ask, {}
        words = {state: ask.t(state) for state in MARKS}
        if ask.text("page") == "arm":
            for at, (cell, state) in enumerate(plan.cells):
                if cell.arm == self.arm:
                    found[f"c{at}"] = [state, f"{MARKS[state]} {words[state]}", words[state]]
            return found
        for at, places in enumerate(plan.jobs.values()):
            state, done = plan.job_state(places)
            found[f"r{at}"] = [state, f"{MARKS[state]} {done}/{len(places)}", words[state]]
        return found

    def rendered(self, plan: Plan) -> dict[str, str]:
        """The pieces of the page that may change."""
        ask, pages = self.ask, self.pages
        made = {"progress": ask.part("progress.html", **pages.progress(self.path, plan))}
        if ask.text("page") == "arm":
            return made
        told = pages.told(ask, self.name, self.path, plan)
        made["verdict"] = ask.part("verdict.html", **told)
        made["arms"] = ask.part("arms.html", **told)
        file, arms = pages.shelf.file(self.path)
        curves = pages.curves(ask, self.path, [arm.name for arm in arms], file.seeds)
        made["curves"] = ask.part("curves.html", **curves)
        return made


def events(pages: Pages) -> Any:
    """The address that a page listens to."""

    async def told(live: Live, request: Request) -> AsyncIterator[str]:
        silent = 0.0
        over = getattr(request.app.state, "over", lambda: False)
        yield "retry: 2000\n\n"
        while not await request.is_disconnected():
            try:
                news = await run_in_threadpool(live.news)
            except (Nowhere, *UNREAD):
                return
            if news:
                yield f"data: {json.dumps(news, ensure_ascii=False)}\n\n"
                silent = 0.0
            for _ in range(TURNS):
                if over():
                    return  # a server that ends waits for its readers, and not for long
                await asyncio.sleep(EVERY / TURNS)
            silent += EVERY
            if silent >= QUIET:
                yield ": still here\n\n"
                silent = 0.0

    async def view(request: Request) -> StreamingResponse:
        live = Live(pages, Asking(request), request.path_params["study"])
        return StreamingResponse(told(live, request), media_type="text/event-stream")

    return view
