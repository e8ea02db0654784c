"""The server process: where it listens, which log it shows, and to whom."""

from __future__ import annotations

import ipaddress
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.core.errors import ConfigError
from homeostat.runtime.announcement import user_state
from homeostat.store.address import LogAddress
from homeostat.web.security import loopback
from homeostat.web.signatures import own_secret
from homeostat.web.token_file import TokenFile, read_entries, require_tokens

if TYPE_CHECKING:
    import uvicorn
    from starlette.types import ASGIApp

    from homeostat.web.alert_messages import Shape

LOOPBACK = "127.0.0.1"
THIS_MACHINE = (LOOPBACK, "::1")
PORT = 8088
NICE = 10


@dataclass(frozen=True, slots=True)
class Serving:
    """`tokens` is a file; without one, only this machine is served. `proxied`: a proxy terminates TLS; the client
    addresses that `trusted_proxies` report are trusted. `webhook_secret` is a file too.
    """

    store: LogAddress
    host: str = LOOPBACK
    port: int = PORT
    tokens: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    proxied: bool = False
    webhook: str = ""
    shape: Shape = "alertmanager"
    trusted_proxies: tuple[str, ...] = THIS_MACHINE
    webhook_secret: Path | None = None

    @property
    def local(self) -> bool:
        return loopback(self.host) and self.tokens is None

    @property
    def scheme(self) -> str:
        return "https" if self.certificate is not None else "http"

    def check(self) -> None:
        if (self.certificate is None) != (self.key is None):
            raise ConfigError(
                "TLS needs a certificate and a key", where="--tls-cert, --tls-key", fix="give both options"
            )
        if self.certificate is not None and self.key is not None:
            _require_pair(self.certificate, self.key)
        _require_networks(self.trusted_proxies)
        if self.proxied and self.tokens is None:
            raise ConfigError(
                "everyone who can reach the proxy could read the log", where="--behind-proxy", fix="add --tokens FILE"
            )
        if loopback(self.host):
            return
        if self.tokens is None:
            raise ConfigError(
                "anyone on the network could read the log", where=f"--host {self.host}", fix="add --tokens FILE"
            )
        if self.certificate is None and not self.proxied:
            fix = "add --tls-cert and --tls-key, or --behind-proxy if a proxy terminates TLS"
            raise ConfigError("tokens would be sent unencrypted", where=f"--host {self.host}", fix=fix)


def serve(serving: Serving, say: Callable[[str], None]) -> None:
    """Serves until interrupted, at a low priority, because the run matters more than its viewers."""
    serving.check()
    try:
        import uvicorn

        from homeostat.web.access import AccessTrail
        from homeostat.web.app import Dashboard
        from homeostat.web.pages import warm
        from homeostat.web.reader import Reader
        from homeostat.web.webhook import Notifier, Webhook
    except ImportError as error:
        raise ConfigError(
            f"{error.name} is not installed", where="serve", fix="pip install 'homeostat[serve]'"
        ) from error
    advice = _token_advice(serving)
    trail = AccessTrail(serving.store, say)
    tokens = TokenFile(serving.tokens or own_file(), trail.tokens_changed)
    warm()
    reader = Reader(serving.store)
    secure = serving.proxied or serving.certificate is not None
    dashboard = Dashboard(reader, tokens, local=serving.local, secure=secure, trail=trail)
    listening = _listen(serving)
    name = f"[{serving.host}]" if ":" in serving.host else serving.host
    address = f"{serving.scheme}://{name}:{listening.getsockname()[1]}/"
    config = _configuration(serving, dashboard.application())
    config.load()  # load everything before the address is printed, so that the first request is answered
    say(f"dashboard at {address}")
    for line in advice:
        say(line)
    with listening:
        if serving.webhook:
            secrets = serving.webhook_secret or own_secret(user_state() / "webhook-secret")
            Notifier(reader, Webhook(serving.webhook, serving.shape, secrets), address, say).start()
        os.nice(NICE)
        uvicorn.Server(config).run(sockets=[listening])


def _configuration(serving: Serving, application: ASGIApp) -> uvicorn.Config:
    import uvicorn

    from homeostat.web.connections import IdleClosingProtocol

    return uvicorn.Config(
        application,
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=serving.proxied,
        forwarded_allow_ips=list(serving.trusted_proxies),
        limit_concurrency=500,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=1,
        ssl_certfile=serving.certificate,
        ssl_keyfile=serving.key,
        http=IdleClosingProtocol,
        ws="none",
    )


def _require_pair(certificate: Path, key: Path) -> None:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:
        where = f"--tls-cert {certificate}, --tls-key {key}"
        raise ConfigError(f"not a certificate and its key: {error.strerror or error}", where=where) from error


def own_file() -> Path:
    """One file for all logs of this user. It is not kept beside a log, because a log may be shared."""
    return user_state() / "tokens"


def _listen(serving: Serving) -> socket.socket:
    family = socket.AF_INET6 if ":" in serving.host else socket.AF_INET
    listening = socket.socket(family, socket.SOCK_STREAM)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((serving.host, serving.port))
        listening.listen(128)
    except OSError as error:
        listening.close()
        where = f"{serving.host}:{serving.port}"
        raise ConfigError(
            f"cannot listen: {error.strerror}", where=where, fix="choose another --port, or 0 for any free one"
        ) from error
    return listening


def _require_networks(proxies: tuple[str, ...]) -> None:
    for proxy in proxies:
        try:
            ipaddress.ip_network(proxy)
        except ValueError:
            raise ConfigError(
                f"{proxy!r} is not an address", where="--trusted-proxy", fix="write 10.0.0.7 or 10.0.0.0/24"
            ) from None


def _token_advice(serving: Serving) -> list[str]:
    path = serving.tokens or own_file()
    entries = require_tokens(path) if serving.tokens is not None else read_entries(path) if path.exists() else []
    advice = []
    if not entries:
        advice.append("to operate, create a token and sign in with it: homeostat token create NAME")
    elif serving.tokens is None:
        advice.append(f"to operate, sign in with a token of {path}")
    if any(entry.plain for entry in entries):
        advice.append(
            f"{path} has tokens in plain text; replace them with hashes: homeostat token hash --tokens {path}"
        )
    return advice
