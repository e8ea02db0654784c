"""Connections that nobody uses: whoever holds hundreds of them open must not shut out the others."""

from __future__ import annotations

from asyncio import Transport
from typing import TYPE_CHECKING, cast

from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle

ASKED_WITHIN_S = 10.0


class Patient(H11Protocol):
    """Closes a connection on which no request has been completed for a while, unless one is being answered."""

    _answered: RequestResponseCycle | None = None

    def connection_made(self, transport: Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self.loop.call_later(ASKED_WITHIN_S, self._look)

    def _look(self) -> None:
        cycle = cast("RequestResponseCycle | None", self.cycle)  # None before the first request, whatever its type says
        idle = cycle is None or cycle.response_complete
        if idle and cycle is self._answered:
            self.transport.close()
        elif not self.transport.is_closing():
            self._answered = cycle if idle else self._answered
            self.loop.call_later(ASKED_WITHIN_S, self._look)
