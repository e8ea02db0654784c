"""The kinds of symptom that the detectors report."""

from __future__ import annotations

PRESSURE = "pressure"
PENDING_SKEW = "pending-skew"
RATE_SKEW = "rate-skew"
UNEVEN = "uneven-partitions"
GROWING_BACKLOG = "growing-backlog"
SPEED_SKEW = "speed-skew"
SLO_VIOLATION = "slo-violation"
IDLE = "idle"
ADMISSION_BOUND = "admission-bound"
FORECAST_RISE = "forecast-rise"
UNKNOWN = "unknown"
STUCK_BATCH = "stuck-batch"
EVEN_KEYS = "even-keys"
STATE_GROWS = "state-grows"
STATE_MEMORY = "state-memory"
LONG_REPLAY = "long-replay"
SNAPSHOT_LAG = "snapshot-lag"
SNAPSHOT_REPAIRED = "snapshot-repaired"
FIXED_STATE = "fixed-state"
STATE_SYMPTOMS = frozenset({STATE_GROWS, STATE_MEMORY, LONG_REPLAY, SNAPSHOT_LAG, SNAPSHOT_REPAIRED, FIXED_STATE})
# While one of these stands, the application is not healthy, whatever an action was meant to do.
UNHEALTHY_SYMPTOMS = (PRESSURE, SLO_VIOLATION, GROWING_BACKLOG)
# How long after an action could have taken effect a rise is looked for. Longer finds more rises, but adds workers
# earlier than necessary. A choice.
RISE_SEEN_S = 180.0
