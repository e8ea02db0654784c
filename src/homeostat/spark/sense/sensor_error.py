"""The error of everything that the sensors read from Spark."""

from __future__ import annotations

from homeostat.core.errors import HomeostatError

LATE = "late"
HUNG = "hung"  # an earlier request is still unanswered, so this one was not sent


class SensorError(HomeostatError):
    """Spark did not answer, or gave an unexpected answer. Equal problems have the same `kind`."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", kind: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.kind = kind or what
