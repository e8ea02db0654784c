"""`homeostat serve`: the dashboard and the API over a log, in a process of their own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from homeostat.cli.log import StoreOption, store_path
from homeostat.cli.output import JsonFlag, print_json, say


def serve(
    store: StoreOption = None,
    host: Annotated[
        str, typer.Option("--host", metavar="ADDRESS", help="Any but loopback needs --tokens, and TLS or a proxy.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="0 takes any that is free.")] = 8088,
    tokens: Annotated[
        Path | None, typer.Option("--tokens", metavar="FILE", help="Lines of ROLE NAME TOKEN; ROLE is read or operate.")
    ] = None,
    tls_cert: Annotated[Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate for https.")] = None,
    tls_key: Annotated[Path | None, typer.Option("--tls-key", metavar="FILE", help="Its key.")] = None,
    behind_proxy: Annotated[bool, typer.Option("--behind-proxy", help="A proxy before this server does TLS.")] = False,
    json: JsonFlag = False,
) -> None:
    """Show a log in the browser and over HTTP, live while it is written. Stops with Ctrl-C."""
    from homeostat.web.server import Serving
    from homeostat.web.server import serve as run_server

    serving = Serving(store_path(store), host, port, tokens, tls_cert, tls_key, behind_proxy)

    def told(line: str) -> None:
        if json:
            print_json({"told": line})
        else:
            say(f"homeostat: {line}")

    run_server(serving, told)
