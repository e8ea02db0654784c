"""Detects what is wrong with a source, from what the source itself says. It needs no batch to end."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from homeostat.core.evidence import SourceTrouble
from homeostat.core.findings import Symptom
from homeostat.core.source_causes import (
    RETENTION_NEAR,
    ROWS_EXPIRED,
    SOURCE_GONE,
    SOURCE_LEADERLESS,
    SOURCE_UNREACHABLE,
)
from homeostat.core.source_sample import SourceSample
from homeostat.core.symptoms import SOURCE_TROUBLE
from homeostat.core.view import View
from homeostat.core.wording import span

# Partitions or topics named in a sentence, which must stay readable. A choice.
_NAMED = 3


@dataclass(frozen=True, slots=True)
class SourceTroubleDetector:
    """Reports each kind of trouble once, with all sources that have it."""

    # A source that has not answered for this long counts as unreachable. Shorter mistakes a busy broker for one that is
    # down; longer reports it later. A choice.
    silent_s: float = 5.0
    # An unread row that has used up this share of the time that rows are kept is in danger: half leaves a person as
    # much time to react as has passed. A choice.
    kept_share: float = 0.5
    # A row that will be deleted within this time is also in danger. A choice: enough to change a setting of a topic.
    overtaken_within_s: float = 600.0
    # A sample is stale after this: the query was stopped, or the watch itself hangs. A choice.
    stale_s: float = 60.0
    name: str = SOURCE_TROUBLE
    while_unsettled: ClassVar[bool] = True

    def detect(self, view: View) -> Iterator[Symptom]:
        samples = [sample for sample in view.sources if view.now_s - sample.at_s <= self.stale_s]
        checks: dict[str, Callable[[SourceSample], str]] = {
            SOURCE_UNREACHABLE: self._unreachable,
            SOURCE_GONE: _missing,
            SOURCE_LEADERLESS: _leaderless,
            ROWS_EXPIRED: _expired,
            RETENTION_NEAR: self._near,
        }
        for cause, check in checks.items():
            details = [f"{sample.name}: {detail}" for sample in samples if (detail := check(sample))]
            if details:
                yield Symptom(SOURCE_TROUBLE, "", 1.0, SourceTrouble(cause, "; ".join(details)))

    def _unreachable(self, sample: SourceSample) -> str:
        if sample.silent_s < self.silent_s:
            return ""
        return f"no answer for {sample.silent_s:.0f} s" + (f" ({sample.error})" if sample.error else "")

    def _near(self, sample: SourceSample) -> str:
        if sample.expired_rows:
            return ""
        if sample.overtaken_s <= self.overtaken_within_s:
            return f"unread rows will be deleted in {span(sample.overtaken_s)}"
        lags_s = [p.lag_s for p in sample.partitions if math.isfinite(p.lag_s)]
        lag_s = max(lags_s, default=0.0)
        if lag_s < self.kept_share * sample.keep_s or not math.isfinite(sample.keep_s):
            return ""
        return f"the oldest unread row has waited for {span(lag_s)}, and rows are kept for {span(sample.keep_s)}"


def _missing(sample: SourceSample) -> str:
    return f"{', '.join(sample.missing_topics[:_NAMED])} does not exist" if sample.missing_topics else ""


def _leaderless(sample: SourceSample) -> str:
    names = sample.leaderless
    return f"{len(names)} partitions ({', '.join(names[:_NAMED])})" if names and sample.silent_s == 0 else ""


def _expired(sample: SourceSample) -> str:
    about = "about " if sample.rows_per_offset != 1.0 else ""
    worst = max(sample.partitions, key=lambda partition: partition.expired, default=None)
    if worst is None or not worst.expired:
        return ""
    return f"{about}{sample.expired_rows:,.0f} rows, {worst.expired:,.0f} of them in {worst.name}"
