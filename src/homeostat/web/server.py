"""The server process: where it listens, which log it shows, and to whom."""

from __future__ import annotations

import getpass
import os
import socket
import ssl
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.core.errors import ConfigError
from homeostat.runtime.announcement import user_state
from homeostat.web.security import Tokens, loopback, own_tokens

if TYPE_CHECKING:
    from homeostat.web.alerts import Shape

LOOPBACK = "127.0.0.1"
PORT = 8088
NICE = 10


@dataclass(frozen=True, slots=True)
class Serving:
    """`tokens` is a file; without one, only this machine is served. `proxied`: a proxy does TLS."""

    store: Path
    host: str = LOOPBACK
    port: int = PORT
    tokens: Path | None = None
    certificate: Path | None = None
    key: Path | None = None
    proxied: bool = False
    webhook: str = ""
    shape: Shape = "alertmanager"

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
        if loopback(self.host):
            return
        if self.tokens is None:
            raise ConfigError(
                "anyone on the network could read the log", where=f"--host {self.host}", fix="add --tokens FILE"
            )
        if self.certificate is None and not self.proxied:
            fix = "add --tls-cert and --tls-key, or --behind-proxy if a proxy does TLS"
            raise ConfigError("tokens would be sent unencrypted", where=f"--host {self.host}", fix=fix)


def serve(serving: Serving, say: Callable[[str], None]) -> None:
    """Serves until interrupted, at a low priority: the run matters more than its viewers."""
    serving.check()
    try:
        import uvicorn

        from homeostat.web.app import Dashboard
        from homeostat.web.connections import IdleClosingProtocol
        from homeostat.web.pages import warm
        from homeostat.web.reader import Reader
        from homeostat.web.webhook import Notifier
    except ImportError as error:
        raise ConfigError(
            f"{error.name} is not installed", where="serve", fix="pip install 'homeostat[serve]'"
        ) from error
    own = own_file()
    tokens = Tokens.load(serving.tokens) if serving.tokens is not None else own_tokens(own, _user())
    warm()
    reader = Reader(serving.store)
    dashboard = Dashboard(reader, tokens, local=serving.local)
    listening = _listen(serving)
    name = f"[{serving.host}]" if ":" in serving.host else serving.host
    address = f"{serving.scheme}://{name}:{listening.getsockname()[1]}/"
    config = uvicorn.Config(
        dashboard.application(),
        log_level="warning",
        access_log=False,
        server_header=False,
        proxy_headers=serving.proxied,
        limit_concurrency=500,
        timeout_keep_alive=10,
        timeout_graceful_shutdown=1,
        ssl_certfile=serving.certificate,
        ssl_keyfile=serving.key,
        http=IdleClosingProtocol,
        ws="none",
    )
    config.load()  # load everything before the address is printed, so that the first request is answered
    say(f"dashboard at {address}")
    if serving.tokens is None:
        say(f"to operate, sign in with the token in {own}")
    with listening:
        if serving.webhook:
            Notifier(reader, serving.webhook, serving.shape, address, say).start()
        os.nice(NICE)
        uvicorn.Server(config).run(sockets=[listening])


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


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "operator"
