"""Tell a person: what is wrong, where, what was measured, and what to do about it. All the texts are in one table."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from homeostat.core.findings import (
    ADMISSION_LIMITED,
    ALERT,
    DAMAGED_SNAPSHOTS,
    DATA_SKEW,
    EXTERNAL,
    HASH_IMBALANCE,
    INCONCLUSIVE,
    LATE_SNAPSHOTS,
    MEMORY_PRESSURE,
    NEEDLESS_SPREAD,
    OVER_PROVISIONED,
    SLO_UNMET,
    SLOW_INSTANCE,
    SLOW_RECOVERY,
    SOURCE_LIMITED,
    SOURCE_SKEW,
    UNBOUNDED_STATE,
    UNDER_PROVISIONED,
    UNSCALABLE_STATE,
    Diagnosis,
    Proposal,
)
from homeostat.core.view import View

_SHOWN = 4
_WAITED_FOR = (INCONCLUSIVE, SLO_UNMET)


class Text(NamedTuple):
    title: str
    advice: str


TEXTS = {
    UNDER_PROVISIONED: Text(
        "Too few instances for the load",
        "raise the parallelism, or the bound that keeps it where it is",
    ),
    OVER_PROVISIONED: Text(
        "More instances than the load needs",
        "lower the parallelism to save resources",
    ),
    SLOW_INSTANCE: Text(
        "Slow instance",
        "restart it elsewhere and look at its host: other load, throttling, failing hardware",
    ),
    DATA_SKEW: Text(
        "A few keys get most of the rows",
        "spread the hot keys (write the operator with hs.keyed, or salt and merge), or choose a key with more values",
    ),
    SOURCE_SKEW: Text(
        "A few partitions of the source get most of the rows",
        "repartition behind the source (ctx.rebalanced(rows, …)), or write to the source more evenly",
    ),
    NEEDLESS_SPREAD: Text(
        "Rows are spread though no key is hot",
        "set the spread to 1: the step that adds them up costs more than it saves",
    ),
    HASH_IMBALANCE: Text(
        "Many keys fall on a few partitions",
        "set another number of state partitions: `homeostat state rescale --preview` shows how the keys would fall",
    ),
    SLO_UNMET: Text(
        "The objective is not met",
        "raise the bound that keeps it from being held (parallelism, rows per trigger, cost), or lower the objective",
    ),
    SOURCE_LIMITED: Text(
        "Fewer rows arrive than the objective asks for",
        "look at what feeds the sources, or lower the objective: nothing here can raise it",
    ),
    EXTERNAL: Text(
        "Something outside holds the application back",
        "look at the sink or service it writes to: more instances would not help",
    ),
    ADMISSION_LIMITED: Text(
        "The bound on rows per trigger holds the rate down",
        "raise rows_per_trigger: the batches themselves have time to spare",
    ),
    INCONCLUSIVE: Text(
        "The cause cannot be told from the measurements",
        "check the metrics named here, then the component's own logs",
    ),
    UNBOUNDED_STATE: Text(
        "The state grows steadily, with no sign of levelling",
        "give it a watermark, a time to live or a smaller key; if rows are meant to stay longer than it has run, wait",
    ),
    MEMORY_PRESSURE: Text(
        "The state needs most of the memory it may have",
        "give the executors more memory or add some, keep less state, or bound the memory that RocksDB takes",
    ),
    SLOW_RECOVERY: Text(
        "A restart would replay changelogs for long",
        "let snapshots be made more often (spark.sql.streaming.stateStore.minDeltasForSnapshot)",
    ),
    LATE_SNAPSHOTS: Text(
        "Snapshots of the state are not uploaded",
        "look for failed uploads in the executors' logs and at the checkpoint's storage; more maintenance threads "
        "(spark.sql.streaming.stateStore.numStateStoreMaintenanceThreads) help where there are many partitions",
    ),
    DAMAGED_SNAPSHOTS: Text(
        "A damaged snapshot of the state was passed over",
        "look at the checkpoint's storage and take a savepoint: the state was rebuilt from an older snapshot",
    ),
    UNSCALABLE_STATE: Text(
        "The number of state partitions cannot be changed",
        "start anew with the RocksDB provider (spark.sql.streaming.stateStore.providerClass), whose state can be",
    ),
}
_OTHER = Text("A problem was diagnosed", "see `homeostat explain` for what it was read from")


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert for each diagnosis of these causes (all, if none are named).

    An inconclusive one and an objective that is not met are told only after they have stood for `patience_s`: a metric
    that is late once is no news, nor is what the loop has just begun to mend.
    """

    causes: frozenset[str] = frozenset()
    patience_s: float = 300.0
    name: str = "alert"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in diagnoses:
            if (not self.causes or diagnosis.cause in self.causes) and self._stood(view, diagnosis):
                yield alert_about(diagnosis)

    def _stood(self, view: View, diagnosis: Diagnosis) -> bool:
        since_s = view.standing_since_s.get((diagnosis.cause, diagnosis.component), view.now_s)
        return diagnosis.cause not in _WAITED_FOR or view.now_s - since_s >= self.patience_s


def alert_about(diagnosis: Diagnosis, why: str = "") -> Proposal:
    """The alert for a diagnosis; `why` says what keeps the loop from helping itself."""
    return Proposal(ALERT, (diagnosis,), component=diagnosis.component, message=message(diagnosis, why))


def message(diagnosis: Diagnosis, why: str = "") -> str:
    """Title, location, what was measured, what to do: in one line."""
    text = TEXTS.get(diagnosis.cause, _OTHER)
    where = diagnosis.component or "the application"
    reasons_first = sorted(diagnosis.evidence.items(), key=lambda item: not isinstance(item[1], str))
    shown = reasons_first[:_SHOWN]
    measured = ", ".join(f"{name} {_short(value)}" for name, value in shown)
    workers = f" on {', '.join(diagnosis.workers[:3])}" if diagnosis.workers else ""
    details = "; ".join(part for part in (measured, why) if part)
    return f"{text.title} at {where}{workers}" + (f" ({details})" if details else "") + f". What to do: {text.advice}."


def _short(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return f"{value:.3g}" if abs(value) < 1000 or not math.isfinite(value) else f"{value:.0f}"
