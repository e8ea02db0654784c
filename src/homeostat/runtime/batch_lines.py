"""One log record for each batch, for viewers in other processes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from homeostat.core.configuration import EXECUTORS
from homeostat.core.digest import Digest
from homeostat.core.loop_state import State
from homeostat.core.record_json import JSON
from homeostat.core.records import BATCH, Record

_SHOWN = ("rows", "seconds", "trigger_s", "arrival_per_s", "pending_rows", "span_s")


class Samples:
    """Turns the digests that the state has gained since the last call into records."""

    def __init__(self) -> None:
        self._last_s = -math.inf

    def new(self, state: State) -> list[Record]:
        fresh: list[Digest] = []
        for digest in reversed(state.history):
            if digest.at_s <= self._last_s:
                break
            fresh.append(digest)
        if fresh:
            self._last_s = fresh[0].at_s
        executors = [int(value) for knob, value in state.observed.values.items() if knob.kind == EXECUTORS]
        return [_record(digest, executors) for digest in reversed(fresh)]


def _record(digest: Digest, executors: Sequence[int]) -> Record:
    body: dict[str, JSON] = {name: _known(getattr(digest, name)) for name in _SHOWN}
    body |= {name: value for name, number in _if_any(digest).items() if (value := _known(number)) is not None}
    phases = {name: _known(seconds) for name, seconds in digest.phases_s.items()}
    if phases:
        body["phases_s"] = dict(phases)
    if len(digest.arrivals_per_s) > 1:
        body["arrivals_per_s"] = {name: _known(rate) for name, rate in digest.arrivals_per_s.items()}
    body |= {"batch": digest.batch, "executors": sum(executors), "workers": digest.workers}
    text = f"batch {digest.batch}: {digest.rows:.0f} rows in {digest.seconds:.1f} s"
    return Record(f"b-{digest.at_s:.3f}-{digest.batch}", BATCH, digest.at_s, text, body=body)


def _if_any(digest: Digest) -> dict[str, float]:
    """Numbers that only queries with a watermark or with state have."""
    numbers = {"watermark_gap_s": digest.watermark_gap_s}
    if digest.states:
        numbers["state_rows"] = sum(state.rows for state in digest.states.values())
        numbers["state_bytes"] = sum(state.memory_bytes for state in digest.states.values())
    return numbers


def _known(value: float) -> float | None:
    return round(value, 6) if math.isfinite(value) else None
