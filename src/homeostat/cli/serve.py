"""`homeostat serve`: the dashboard and the HTTP API of a log, in a separate process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.applications import store_path
from homeostat.cli.log import StoreOption
from homeostat.cli.output import JsonFlag, print_json, say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.web.alerts import Shape


HostOption = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="Address to listen on. Other than loopback it needs --tokens, and TLS or a proxy.",
    ),
]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 picks a free one.")]
TokensOption = Annotated[
    Path | None,
    typer.Option("--tokens", metavar="FILE", help="File with one 'ROLE NAME TOKEN' per line. ROLE is read or operate."),
]
CertificateOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="TLS certificate, for HTTPS.")
]
KeyOption = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="Private key of the TLS certificate.")
]
ProxyOption = Annotated[
    bool, typer.Option("--behind-proxy", help="Trust a reverse proxy in front of this server to do TLS.")
]
WebhookOption = Annotated[
    str, typer.Option("--webhook", metavar="URL", envvar="HOMEOSTAT_WEBHOOK", help="Send alerts to this URL.")
]
ShapeOption = Annotated[
    str, typer.Option("--webhook-shape", metavar="SHAPE", help="Format of the alerts: alertmanager or plain.")
]


def serve(
    store: StoreOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8088,
    tokens: TokensOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    behind_proxy: ProxyOption = False,
    webhook: WebhookOption = "",
    webhook_shape: ShapeOption = "alertmanager",
    json: JsonFlag = False,
) -> None:
    """Serve the dashboard and the HTTP API. They update while the application runs; stop with Ctrl-C."""
    from homeostat.web.server import Serving
    from homeostat.web.server import serve as run_server

    serving = Serving(
        store_path(store), host, port, tokens, tls_cert, tls_key, behind_proxy, webhook, _shape(webhook_shape)
    )

    def announce(line: str) -> None:
        if json:
            print_json({"told": line})
        else:
            say(f"homeostat: {line}")

    run_server(serving, announce)


def _shape(text: str) -> Shape:
    from homeostat.strict.toml_reading import nearest
    from homeostat.web.alerts import SHAPES

    for shape in SHAPES:
        if shape == text:
            return shape
    raise ConfigError(f"unknown alert format {text!r}", where="--webhook-shape", fix=nearest(text, SHAPES))
