"""Summaries of batches by minute and by hour, and the history of a run in the finest form that is still there."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby

from homeostat.core.records import (
    BATCH,
    FLOW_KINDS,
    HOUR,
    MINUTE,
    FlowContent,
    HourContent,
    MinuteContent,
    Record,
    with_content,
)
from homeostat.store.protocol import Store

MINUTE_S, HOUR_S = 60.0, 3600.0
STEPS_S = {MINUTE: MINUTE_S, HOUR: HOUR_S}
_CONTENTS: Mapping[str, type[FlowContent]] = {MINUTE: MinuteContent, HOUR: HourContent}
# A window of more minutes or hours than this is read from the summaries: a chart has 600 points, and four values for
# each show the same picture. More would read longer. A choice.
_ENOUGH = 2_400


def period_end_s(at_s: float, step_s: float) -> float:
    """The end of the minute or hour to which a moment belongs. A moment at the end belongs to it."""
    return math.ceil(at_s / step_s) * step_s


def summaries(kind: str, flows: Iterable[Record]) -> list[Record]:
    """One record of the kind for each of its periods. The flows are batches or finer summaries, by time."""
    step_s = STEPS_S[kind]
    groups = groupby(with_content(flows, FlowContent), lambda pair: period_end_s(pair[0].at_s, step_s))
    return [_summary(kind, end_s, [content for _, content in group]) for end_s, group in groups]


def history(store: Store, run: str, last_s: float = math.inf, most: int = 0, *, finest: bool = False) -> list[Record]:
    """The flows of the last `last_s` seconds of a run, by time, as records of batches.

    A long window is read from the summaries, and so is the time for which batches are no longer kept. At most `most`
    batches, minutes and hours are read, the newest of each. With `finest`, batches are read as far back as there are.
    """
    oldest, newest = (store.records(run, kinds=FLOW_KINDS, limit=1, newest_first=last) for last in (False, True))
    if not oldest or not newest:
        return []
    since_s = max(oldest[0].at_s, newest[0].at_s - last_s)
    flows: list[Record] = []
    for kind in (HOUR, MINUTE, BATCH):
        start_s = since_s
        if flows and not (finest or _is_short(kind, newest[0].at_s - since_s)):
            start_s = math.nextafter(flows[-1].at_s, math.inf)
        finer = store.records(run, kinds=(kind,), since_s=start_s, limit=most, newest_first=True)[::-1]
        flows = _before(flows, finer) + finer
    return [_as_batch(record) for record in flows]


def _is_short(kind: str, span_s: float) -> bool:
    """Whether a window is so short that it is read in this form, and not in the next coarser one."""
    return span_s <= _ENOUGH * (MINUTE_S if kind == BATCH else HOUR_S)


def _before(coarser: Sequence[Record], finer: Sequence[Record]) -> list[Record]:
    """The summaries of periods that end before the finer records begin, so that nothing counts twice."""
    if not finer:
        return list(coarser)
    return [record for record in coarser if record.at_s < period_end_s(finer[0].at_s, STEPS_S[record.kind])]


def _as_batch(record: Record) -> Record:
    return record if record.kind == BATCH else Record(record.id, BATCH, record.at_s, record.text, body=record.body)


def _summary(kind: str, end_s: float, flows: Sequence[FlowContent]) -> Record:
    spans_s = [flow.span_s if flow.span_s > 0 else 0.0 for flow in flows]

    def largest(value: Callable[[FlowContent], float]) -> float:
        return max((value(flow) for flow in flows if math.isfinite(value(flow))), default=math.nan)

    content = _CONTENTS[kind](
        rows=_sum(flow.rows for flow in flows),
        seconds=largest(lambda flow: flow.seconds),
        trigger_s=largest(lambda flow: flow.trigger_s),
        arrival_per_s=_mean([flow.arrival_per_s for flow in flows], spans_s),
        pending_rows=largest(lambda flow: flow.pending_rows),
        span_s=sum(spans_s),
        batch=max(flow.batch for flow in flows),
        executors=max(flow.executors for flow in flows),
        workers=_whole(_mean([float(flow.workers) for flow in flows], spans_s)),
        watermark_gap_s=largest(lambda flow: flow.watermark_gap_s),
        state_rows=largest(lambda flow: flow.state_rows),
        state_bytes=largest(lambda flow: flow.state_bytes),
        phases_s={name: _largest_of([flow.phases_s for flow in flows], name) for name in _names(flows, _phases)},
        arrivals_per_s={
            name: _mean([flow.arrivals_per_s.get(name, math.nan) for flow in flows], spans_s)
            for name in _names(flows, _arrivals)
        },
        batches=sum(flow.batches for flow in flows),
        pending_at_most=largest(lambda flow: flow.pending_at_most),
    )
    text = f"one {kind}: {content.batches} batches, {content.rows:.0f} rows"
    return Record.of(f"{kind}-{end_s:.0f}", end_s, content, text)


def _phases(flow: FlowContent) -> Mapping[str, float]:
    return flow.phases_s


def _arrivals(flow: FlowContent) -> Mapping[str, float]:
    return flow.arrivals_per_s


def _names(flows: Sequence[FlowContent], part: Callable[[FlowContent], Mapping[str, float]]) -> dict[str, None]:
    return dict.fromkeys(name for flow in flows for name in part(flow))


def _largest_of(parts: Sequence[Mapping[str, float]], name: str) -> float:
    return max((part[name] for part in parts if math.isfinite(part.get(name, math.nan))), default=math.nan)


def _sum(values: Iterable[float]) -> float:
    finite = [value for value in values if math.isfinite(value)]
    return sum(finite) if finite else math.nan


def _mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """Weighted by time; the plain mean where no time is known."""
    pairs = [(value, weight) for value, weight in zip(values, weights, strict=True) if math.isfinite(value)]
    total = sum(weight for _, weight in pairs)
    if total > 0:
        return round(sum(value * weight for value, weight in pairs) / total, 6)
    return sum(value for value, _ in pairs) / len(pairs) if pairs else math.nan


def _whole(value: float) -> int:
    return round(value) if math.isfinite(value) else 0
