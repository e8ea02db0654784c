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
DISK_SPACE = "disk-space"
LOST_TIME = "lost-time"
FAILED_ATTEMPTS = "failed-attempts"
LOST_WORKERS = "lost-workers"
STILL_WATERMARK = "still-watermark"
SAVEPOINTS = "savepoints"
SOURCE_TROUBLE = "source-trouble"
STATE_SYMPTOMS = frozenset({STATE_GROWS, STATE_MEMORY, LONG_REPLAY, SNAPSHOT_LAG, SNAPSHOT_REPAIRED, FIXED_STATE})
# While there is one of these, the application is not healthy, whatever an action was meant to do.
UNHEALTHY_SYMPTOMS = (PRESSURE, SLO_VIOLATION, GROWING_BACKLOG)
# How long after an action could have taken effect a rise is looked for. Longer finds more rises, but adds workers
# earlier than necessary. A choice.
RISE_SEEN_S = 180.0


def with_subject(kind: str, subject: str) -> str:
    """The name of a standing symptom of which there can be several at one component: `lost-time:sink-bound`."""
    return f"{kind}:{subject}"


def kind_and_subject(name: str) -> tuple[str, str]:
    """The opposite of `with_subject`. The subject is empty if the name has none."""
    kind, _, subject = name.partition(":")
    return kind, subject
