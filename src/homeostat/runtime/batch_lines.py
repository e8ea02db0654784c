"""One log record for each batch, for viewers in other processes."""

from __future__ import annotations

import math
from collections.abc import Sequence

from homeostat.core.configuration import EXECUTORS
from homeostat.core.digest import Digest
from homeostat.core.loop_state import State
from homeostat.core.records import BatchContent, Record


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
    sources = digest.arrivals_per_s if len(digest.arrivals_per_s) > 1 else {}
    states = digest.states.values()
    content = BatchContent(
        rows=_round(digest.rows),
        seconds=_round(digest.seconds),
        trigger_s=_round(digest.trigger_s),
        arrival_per_s=_round(digest.arrival_per_s),
        pending_rows=_round(digest.pending_rows),
        pending_at_most=_round(digest.pending_at_most),
        span_s=_round(digest.span_s),
        batch=digest.batch,
        executors=sum(executors),
        workers=digest.workers,
        watermark_gap_s=_round(digest.watermark_gap_s),
        state_rows=_round(sum(state.rows for state in states)) if states else math.nan,
        state_bytes=_round(sum(state.memory_bytes for state in states)) if states else math.nan,
        phases_s={name: _round(seconds) for name, seconds in digest.phases_s.items()},
        arrivals_per_s={name: _round(rate) for name, rate in sources.items()},
        tasks_left_out=digest.tasks_left_out,
    )
    text = f"batch {digest.batch}: {digest.rows:.0f} rows in {digest.seconds:.1f} s"
    return Record.of(f"b-{digest.at_s:.3f}-{digest.batch}", digest.at_s, content, text)


def _round(value: float) -> float:
    """Six decimals keep the log small. An infinite value is not a measurement."""
    return round(value, 6) if math.isfinite(value) else math.nan
