"""`homeostat serve`: the dashboard and the API over a log, in a process of their own."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.log import StoreOption, store_path
from homeostat.cli.output import JsonFlag, print_json, say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.web.alerts import Shape


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
    webhook: Annotated[
        str, typer.Option("--webhook", metavar="URL", envvar="HOMEOSTAT_WEBHOOK", help="Alerts go there.")
    ] = "",
    webhook_shape: Annotated[
        str, typer.Option("--webhook-shape", metavar="SHAPE", help="alertmanager or plain.")
    ] = "alertmanager",
    json: JsonFlag = False,
) -> None:
    """Show a log in the browser and over HTTP, live while it is written. Stops with Ctrl-C."""
    from homeostat.web.server import Serving
    from homeostat.web.server import serve as run_server

    serving = Serving(
        store_path(store), host, port, tokens, tls_cert, tls_key, behind_proxy, webhook, _shape(webhook_shape)
    )

    def told(line: str) -> None:
        if json:
            print_json({"told": line})
        else:
            say(f"homeostat: {line}")

    run_server(serving, told)


def _shape(text: str) -> Shape:
    from homeostat.strict.toml_reading import nearest
    from homeostat.web.alerts import SHAPES

    for shape in SHAPES:
        if shape == text:
            return shape
    raise ConfigError(f"there is no shape {text!r}", where="--webhook-shape", fix=nearest(text, SHAPES))
