"""The verb `serve`: the studies and runs of a folder as pages in a browser."""

from __future__ import annotations

import sys
from contextlib import suppress
from pathlib import Path
from typing import Annotated

import typer

from kleash.errors import ConfigError, DataError

IDLE = 75  # seconds; longer than readers and proxies keep a connection, so that they let go first
GOODBYE = 10  # seconds for what is under way when it is ended


def serve(
    folder: Annotated[Path, typer.Argument(help="Studies and runs, or one study.")] = Path(
        "studies"
    ),
    port: Annotated[int, typer.Option(help="0 takes any that is free.")] = 8321,
    public: Annotated[
        bool, typer.Option("--public", help="Let other machines in, with a token.")
    ] = False,
    host: Annotated[
        list[str] | None, typer.Option(help="With --public: a name that this machine has.")
    ] = None,
    data: Annotated[
        list[str] | None,
        typer.Option(help="A data set of your own, module:Class, that may be loaded."),
    ] = None,
) -> None:
    """Show studies and runs as pages: verdicts, curves, items; live while one runs.

    \b
    kleash serve                   (everything in studies/)
    kleash serve studies/demos-kl  (one study)
    kleash serve --public --host box.lan
    """
    if not folder.is_dir():
        raise DataError(f"no folder {folder}: kleash study makes studies/")
    if host and not public:
        raise ConfigError("--host needs --public: without it only this machine is answered")
    import secrets
    import socket

    import uvicorn

    from kleash.report.serve import Rules, dashboard
    from kleash.report.serve.auth import LOCAL

    rules = Rules((*LOCAL, *(host or ())), secrets.token_urlsafe(24) if public else "")
    with socket.socket() as bound:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            bound.bind(("0.0.0.0" if public else "127.0.0.1", port))
        except (OSError, OverflowError) as error:
            raise DataError(f"port {port} cannot be had: {error}; try --port 0") from None
        shown = (host or [socket.gethostname()])[0] if public else "127.0.0.1"
        query = f"?token={rules.token}" if public else ""
        app = dashboard(folder, rules, data or ())
        bound.listen(128)  # whoever reads the address may come at once
        print(f"http://{shown}:{bound.getsockname()[1]}/{query}", flush=True)
        sys.stderr.write("Ctrl-C ends it\n")
        config = uvicorn.Config(
            app,
            log_level="warning",
            timeout_keep_alive=IDLE,
            timeout_graceful_shutdown=GOODBYE,
        )
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run([bound])
