"""How long it takes to bring a state to other partitions: as measured here, and foretold for the next time."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from statistics import median

from homeostat.checkpoint.metadata import Checkpoint

_KEPT = 20
# What `bench state` found on a small machine, good until the first pause was measured.
_FIXED_S, _S_PER_MILLION_ROWS, _S_PER_GIGABYTE = 5.0, 20.0, 20.0


@dataclass(frozen=True, slots=True)
class Pause:
    """One that was measured: the seconds of each phase, and how large the state was."""

    at_s: float
    rows: int
    bytes: int
    phases_s: Mapping[str, float]

    @property
    def seconds(self) -> float:
        return sum(self.phases_s.values())


def foretold_s(rows: float, size: float, past: Sequence[Pause] = ()) -> float:
    """What a state of so many rows and bytes will take: a rule of thumb, corrected by what it was wrong by before.

    >>> foretold_s(0, 0, [Pause(0.0, 0, 0, {"repartition": 10.0})])
    10.0
    """
    wrong_by = median([pause.seconds / _rule_of_thumb_s(pause.rows, pause.bytes) for pause in past] or [1.0])
    return wrong_by * _rule_of_thumb_s(rows, size)


def kept(checkpoint: Checkpoint) -> list[Pause]:
    """The latest measurements; a file that cannot be read holds none."""
    with suppress(FileNotFoundError, ValueError, TypeError):
        return [Pause(**each) for each in json.loads(checkpoint.files.read(_path(checkpoint)))]
    return []


def keep(checkpoint: Checkpoint, pause: Pause) -> None:
    latest = [*kept(checkpoint), pause][-_KEPT:]
    text = json.dumps([asdict(each) for each in latest], indent=1)
    checkpoint.files.write(_path(checkpoint), text.encode())


def _rule_of_thumb_s(rows: float, size: float) -> float:
    return _FIXED_S + _S_PER_MILLION_ROWS * rows / 1e6 + _S_PER_GIGABYTE * size / 1e9


def _path(checkpoint: Checkpoint) -> str:
    return f"{checkpoint.location}.pauses.json"
