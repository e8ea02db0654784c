"""A batch as the loop keeps it, of a query whose backlog and keys are unknown."""

from __future__ import annotations

from homeostat.core.digest import Digest
from homeostat.core.observation import NAN

DIGEST = Digest(
    at_s=100.0,
    span_s=2.0,
    batch=7,
    epoch=0,
    rows=500.0,
    seconds=1.25,
    trigger_s=2.0,
    arrival_per_s=250.0,
    pending_rows=NAN,
    updated_keys=NAN,
    workers=3,
)
