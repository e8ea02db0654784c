"""Closes connections that are idle or whose client does not read, so that one client cannot lock out the others."""

from __future__ import annotations

from asyncio import Transport
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

from homeostat.web.security import loopback, within

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

IDLE_LIMIT_S = 10.0
LOOK_S = 2.0
# A client with pending output that reads less than this is disconnected. The largest page has about 2 MB, and a slow
# mobile network carries 30 kB/s: a choice far below that, and far above what it costs an attacker to hold a connection.
SLOW_LIMIT_S = 20.0
LEAST_BYTES_PER_S = 1_000
# Below uvicorn's limit_concurrency (500), at which everyone would get 503.
MOST_CONNECTIONS = 400
# A browser opens six connections to a host; this leaves room for a dozen people behind one address.
MOST_PER_CLIENT = 100


class IdleClosingProtocol(H11Protocol):
    """Closes a connection on which no request has been completed for a while, unless one is being answered. Cuts off a
    client that does not read its answer. When all places are taken, the worst connection makes room for a new one."""

    _last_cycle: RequestResponseCycle | None = None
    _idle_s = 0.0
    _unread_bytes = 0
    _unread_s = 0.0

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._make_room()
        self._look_again()

    def _look_again(self) -> None:
        self.loop.call_later(min(LOOK_S, IDLE_LIMIT_S, SLOW_LIMIT_S), self._look)

    def _look(self) -> None:
        if self not in self.connections:
            return
        passed_s = min(LOOK_S, IDLE_LIMIT_S, SLOW_LIMIT_S)
        self._count_unread(passed_s)
        self._count_idle(passed_s)
        if self._unread_s >= SLOW_LIMIT_S:
            self.transport.abort()  # close() would wait until everything is sent
        elif self._idle_s >= IDLE_LIMIT_S and not self.transport.is_closing():
            self.transport.close()
        self._look_again()

    def _count_unread(self, passed_s: float) -> None:
        unread_bytes = self.transport.get_write_buffer_size()
        progress = self._unread_bytes - unread_bytes >= LEAST_BYTES_PER_S * passed_s
        stuck = unread_bytes > 0 and self._unread_bytes > 0 and not progress
        self._unread_s = self._unread_s + passed_s if stuck else 0.0
        self._unread_bytes = unread_bytes

    def _count_idle(self, passed_s: float) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        idle = self._answers_nothing() and cycle is self._last_cycle
        self._idle_s = self._idle_s + passed_s if idle else 0.0
        self._last_cycle = cycle

    def _answers_nothing(self) -> bool:
        cycle = cast("RequestResponseCycle | None", self.cycle)
        return cycle is None or cycle.response_complete

    def _make_room(self) -> None:
        others = [
            each
            for each in self.connections
            if isinstance(each, IdleClosingProtocol) and each is not self and not each.transport.is_closing()
        ]
        host = self.client[0] if self.client else ""
        if host and not self._shared(host):
            same = [each for each in others if each.client and each.client[0] == host]
            if len(same) >= MOST_PER_CLIENT:
                self._let_go(same)
        if len(others) >= MOST_CONNECTIONS:
            self._let_go(others)

    def _let_go(self, others: Iterable[IdleClosingProtocol]) -> None:
        """The worst of the other connections, or else the new one. Well-behaved clients are never disconnected."""
        worst = max(others, key=IdleClosingProtocol._nuisance)
        (worst if worst._nuisance() > (0, 0.0) else self).transport.abort()

    def _nuisance(self) -> tuple[int, float]:
        """Order: clients that do not read, then clients without a request, then clients that have not read everything
        yet.
        """
        if self._unread_s > 0:
            return 3, self._unread_s
        if self.transport.get_write_buffer_size() > 0:
            return 1, 0.0
        return (2, self._idle_s) if self._answers_nothing() else (0, 0.0)

    def _shared(self, host: str) -> bool:
        """Whether many people come from this address: a proxy that is trusted, or this machine."""
        return loopback(host) or (self.config.proxy_headers and within(host, self.config.forwarded_allow_ips))
