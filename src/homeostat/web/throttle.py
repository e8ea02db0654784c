"""Limits how often tokens can be guessed, for each client and overall."""

from __future__ import annotations

import ipaddress
import math
import time
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

# Choices, not measurements. A person mistypes a token a few times; a program with an old token asks about once a
# second. Tokens have 192 bits, so even the overall rate finds none: the limits keep guessing out of the logs and CPU.
CLIENT_BURST, CLIENT_PER_S = 10, 0.1
OVERALL_BURST, OVERALL_PER_S = 200, 5.0
# Memory: about 200 bytes a client. The client that failed longest ago is forgotten first.
MOST_CLIENTS = 10_000
UNKNOWN = "unknown"


@dataclass(slots=True)
class Allowance:
    """What is left of `burst` failures, which come back at `per_s`."""

    burst: int
    per_s: float
    left: float
    at_s: float

    def refill(self, now_s: float) -> None:
        self.left = min(self.burst, self.left + (now_s - self.at_s) * self.per_s)
        self.at_s = now_s

    @property
    def wait_s(self) -> float:
        return 0.0 if self.left >= 1.0 else (1.0 - self.left) / self.per_s


class SignInThrottle:
    """Counts only failures, so people with a valid token or session are not delayed after they have used it once."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._clients: OrderedDict[str, Allowance] = OrderedDict()
        self._overall = Allowance(OVERALL_BURST, OVERALL_PER_S, OVERALL_BURST, clock())
        self._proven: OrderedDict[str, None] = OrderedDict()

    def wait_s(self, client: str, digest: str) -> float:
        """Seconds until this client may try this token; 0 if now. A token that was valid before need not wait."""
        if digest in self._proven:
            return 0.0
        now_s = self._clock()
        own = self._clients.get(network(client))
        for allowance in (own, self._overall):
            if allowance is not None:
                allowance.refill(now_s)
        return max(self._overall.wait_s, own.wait_s if own is not None else 0.0)

    def failed(self, client: str) -> None:
        now_s, key = self._clock(), network(client)
        own = self._clients.setdefault(key, Allowance(CLIENT_BURST, CLIENT_PER_S, CLIENT_BURST, now_s))
        self._clients.move_to_end(key)
        for allowance in (own, self._overall):
            allowance.refill(now_s)
            allowance.left -= 1.0
        while len(self._clients) > MOST_CLIENTS:
            self._clients.popitem(last=False)

    def succeeded(self, digest: str) -> None:
        self._proven[digest] = None
        self._proven.move_to_end(digest)
        while len(self._proven) > MOST_CLIENTS:
            self._proven.popitem(last=False)

    def revoked(self, digest: str) -> None:
        self._proven.pop(digest, None)


def network(client: str) -> str:
    """An IPv6 client usually has a /64 network to itself.

    >>> network("10.0.0.7"), network("2001:db8::1") == network("2001:db8::2"), network("2001:db8:1::1")
    ('10.0.0.7', True, '2001:db8:1::/64')
    """
    try:
        address = ipaddress.ip_address(client)
    except ValueError:
        return client or UNKNOWN
    if isinstance(address, ipaddress.IPv6Address):
        if address.ipv4_mapped is not None:
            return str(address.ipv4_mapped)
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def whole_seconds(wait_s: float) -> int:
    return max(1, math.ceil(wait_s))
