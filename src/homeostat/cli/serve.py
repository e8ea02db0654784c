"""`homeostat serve`: the dashboard and the HTTP API of a log, in a separate process."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from homeostat.cli.find_application import store_path
from homeostat.cli.log import StoreOption
from homeostat.cli.output import JsonFlag, print_json, say
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.web.alert_messages import Shape


HostOption = Annotated[
    str,
    typer.Option(
        "--host",
        metavar="ADDRESS",
        help="Address to listen on. Any address except loopback requires --tokens, and TLS or a proxy.",
    ),
]
PortOption = Annotated[int, typer.Option("--port", min=0, max=65535, help="Port to listen on; 0 picks a free one.")]
TokensOption = Annotated[
    Path | None,
    typer.Option(
        "--tokens", metavar="FILE", help="Token file of the people who may sign in, made with `homeostat token`."
    ),
]
CertificateOption = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="TLS certificate, for HTTPS.")
]
KeyOption = Annotated[
    Path | None, typer.Option("--tls-key", metavar="FILE", help="Private key of the TLS certificate.")
]
ProxyOption = Annotated[
    bool, typer.Option("--behind-proxy", help="A reverse proxy in front of this server terminates TLS.")
]
TrustedProxyOption = Annotated[
    list[str] | None,
    typer.Option(
        "--trusted-proxy",
        metavar="ADDRESS",
        help="Address or network of the proxy, if it is not on this machine. Repeat for several proxies.",
    ),
]
WebhookOption = Annotated[
    str, typer.Option("--webhook", metavar="URL", envvar="HOMEOSTAT_WEBHOOK", help="Send alerts to this URL.")
]
ShapeOption = Annotated[
    str, typer.Option("--webhook-shape", metavar="SHAPE", help="Format of the alerts: alertmanager or plain.")
]
SecretOption = Annotated[
    Path | None,
    typer.Option(
        "--webhook-secret",
        metavar="FILE",
        help="File with the secrets that sign the alerts, one per line. Default: this user's file.",
    ),
]


def serve(
    store: StoreOption = None,
    host: HostOption = "127.0.0.1",
    port: PortOption = 8088,
    tokens: TokensOption = None,
    tls_cert: CertificateOption = None,
    tls_key: KeyOption = None,
    behind_proxy: ProxyOption = False,
    trusted_proxy: TrustedProxyOption = None,
    webhook: WebhookOption = "",
    webhook_shape: ShapeOption = "alertmanager",
    webhook_secret: SecretOption = None,
    json: JsonFlag = False,
) -> None:
    """Serve the dashboard and the HTTP API. They update while the application runs; stop with Ctrl-C."""
    from homeostat.web.http_server import THIS_MACHINE, Serving
    from homeostat.web.http_server import serve as run_server

    if trusted_proxy and not behind_proxy:
        raise ConfigError("there is no proxy to trust", where="--trusted-proxy", fix="add --behind-proxy")
    serving = Serving(
        store=store_path(store),
        host=host,
        port=port,
        tokens=tokens,
        certificate=tls_cert,
        key=tls_key,
        proxied=behind_proxy,
        webhook=webhook,
        shape=_shape(webhook_shape),
        trusted_proxies=tuple(trusted_proxy or THIS_MACHINE),
        webhook_secret=webhook_secret,
    )

    def announce(line: str) -> None:
        if json:
            print_json({"told": line})
        else:
            say(f"homeostat: {line}")

    run_server(serving, announce)


def _shape(text: str) -> Shape:
    from homeostat.strict.toml_reading import nearest
    from homeostat.web.alert_messages import SHAPES

    for shape in SHAPES:
        if shape == text:
            return shape
    raise ConfigError(f"unknown alert format {text!r}", where="--webhook-shape", fix=nearest(text, SHAPES))
