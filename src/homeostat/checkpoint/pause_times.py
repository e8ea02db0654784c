"""How long repartitioning a state takes: measured each time, and predicted for the next time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from statistics import median

from homeostat.checkpoint.metadata import Checkpoint

# Measurements that are kept: with more, predictions are steadier; with fewer, they adapt sooner to a new machine. A
# choice.
_KEPT_PAUSES = 20
# Measured with `bench state` on a small machine. The measured pauses of a checkpoint correct these values.
_FIXED_S, _S_PER_MILLION_ROWS, _S_PER_GIGABYTE = 5.0, 20.0, 20.0


@dataclass(frozen=True, slots=True)
class Pause:
    """A measured pause: the seconds of each phase, and the size of the state."""

    at_s: float
    rows: int
    bytes: int
    phases_s: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return sum(self.phases_s.values())


def predicted_s(rows: float, size: float, past: Sequence[Pause] = ()) -> float:
    """Predict the seconds for a state of this size, by a rule of thumb corrected by past pauses.

    >>> predicted_s(0, 0, [Pause(0.0, 0, 0, {"repartition": 10.0})])
    10.0
    """
    correction = median([pause.seconds / _rule_of_thumb_s(pause.rows, pause.bytes) for pause in past] or [1.0])
    return correction * _rule_of_thumb_s(rows, size)


def past_pauses(checkpoint: Checkpoint) -> list[Pause]:
    """Return the latest measurements; none if their file cannot be read."""
    with suppress(FileNotFoundError, ValueError, TypeError):
        return [Pause(**each) for each in json.loads(checkpoint.files.read(_path(checkpoint)))]
    return []


def record(checkpoint: Checkpoint, pause: Pause) -> None:
    latest = [*past_pauses(checkpoint), pause][-_KEPT_PAUSES:]
    text = json.dumps([asdict(each) for each in latest], indent=1)
    checkpoint.files.write(_path(checkpoint), text.encode())


def _rule_of_thumb_s(rows: float, size: float) -> float:
    return _FIXED_S + _S_PER_MILLION_ROWS * rows / 1e6 + _S_PER_GIGABYTE * size / 1e9


def _path(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.pauses.json"
