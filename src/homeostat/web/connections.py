"""Closes idle connections, so that a client that holds hundreds of them open cannot shut out others."""

from __future__ import annotations

from asyncio import Transport
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

IDLE_LIMIT_S = 10.0


class IdleClosingProtocol(H11Protocol):
    """Closes a connection on which no request has been completed for a while, unless one is being answered."""

    _last_cycle: RequestResponseCycle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(IDLE_LIMIT_S, self._look)

    def _look(self) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request
        idle = cycle is None or cycle.response_complete
        if idle and cycle is self._last_cycle:
            self.transport.close()
        elif not self.transport.is_closing():
            self._last_cycle = cycle if idle else self._last_cycle
            self.loop.call_later(IDLE_LIMIT_S, self._look)
