"""The checks of every request: sessions, names of this machine, origins, and the headers of every answer."""

from __future__ import annotations

import ipaddress
import secrets
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence

SESSION_S = 12 * 3600.0
MOST_SESSIONS = 1_000
LARGEST_BODY = 16 * 1024
HEADERS = {
    "content-security-policy": (
        "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
        "form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}


class Sessions:
    """Browsers that signed in, each with the hash of its token: a session ends when its token is revoked."""

    def __init__(self) -> None:
        self._digests: OrderedDict[str, tuple[str, float]] = OrderedDict()

    def begin(self, digest: str) -> str:
        key = secrets.token_urlsafe(24)
        self._digests[key] = (digest, time.monotonic() + SESSION_S)
        while len(self._digests) > MOST_SESSIONS:
            self._digests.popitem(last=False)
        return key

    def digest(self, key: str) -> str | None:
        digest, until_s = self._digests.get(key, (None, 0.0))
        return digest if time.monotonic() < until_s else None

    def end(self, key: str) -> None:
        self._digests.pop(key, None)


def cookie(host: str) -> str:
    """Cookies ignore ports: without the port in the name, two dashboards on a machine would sign each other out."""
    port = host.rpartition(":")[2]
    return f"homeostat-{port}" if port.isdigit() else "homeostat"


def loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


def within(host: str, networks: str | Sequence[str]) -> bool:
    """
    >>> within("10.0.0.7", "10.0.0.0/24,::1"), within("10.0.1.7", ["10.0.0.0/24"]), within("nonsense", "10.0.0.1")
    (True, False, False)
    """
    names = networks.split(",") if isinstance(networks, str) else networks
    try:
        return any(ipaddress.ip_address(host) in ipaddress.ip_network(name.strip()) for name in names)
    except ValueError:
        return False


def own_host(header: str) -> bool:
    """Whether a Host header names this machine. Another name may come from a foreign page that rebinds its DNS name."""
    host, colon, port = header.rpartition(":")
    return loopback(host if colon and port.isdigit() else header)


def same_origin(headers: Mapping[str, str], scheme: str) -> bool:
    """Whether a change was requested by a page of this dashboard, or by a program that sends its own token."""
    origin = headers.get("origin")
    if origin is not None:
        return origin.partition("://")[2] == headers.get("host") and origin.partition("://")[0] in (scheme, "https")
    site = headers.get("sec-fetch-site")
    return site == "same-origin" if site is not None else "authorization" in headers
