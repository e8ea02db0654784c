"""The figures that a symptom or a diagnosis is based on, as typed values with a sentence of their own.

Decisions read fields. The sentences for people are made from the same fields, so rewording changes no decision.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar, TypeVar

from homeostat.core.causes import cause_of
from homeostat.core.wording import listing, number, span, whole, whole_span

Figure = float | str
_Evidence = TypeVar("_Evidence", bound="Evidence")
# An alert or a log line must be short: `explain` shows the other figures. A choice.
FIGURES_IN_A_SENTENCE = 4
# A gain below this is shown as nothing: it is shorter than the resolution of the times in the log.
_WORTH_SAYING_S = 0.05


@dataclass(frozen=True, slots=True)
class Evidence:
    """Base of all evidence: a subclass declares its figures as fields whose names end in their unit.

    A field that is None was not measured and is not shown. Evidence inside evidence is shown with it.
    """

    # What is wrong at `{where}`, in words; empty where the kind of the symptom says it.
    headline: ClassVar[str] = ""

    def figures(self) -> dict[str, Figure]:
        figures: dict[str, Figure] = {}
        for each in dataclasses.fields(self):
            value = getattr(self, each.name)
            if isinstance(value, Evidence):
                figures |= value.figures()
            elif value not in (None, ""):
                figures[each.name] = value
        return figures

    def summary(self) -> str:
        """The figures that matter most, in words."""
        first = dict(list(self.figures().items())[:FIGURES_IN_A_SENTENCE])
        return listing(first, separator=", ")

    @property
    def recoverable_s(self) -> float | None:
        """How much shorter batches would be without the cause; None if that is not known."""
        return None

    def find(self, kind: type[_Evidence]) -> _Evidence | None:
        """This evidence, or the part of it that is of this kind."""
        if isinstance(self, kind):
            return self
        parts = (getattr(self, each.name) for each in dataclasses.fields(self))
        matches = (part.find(kind) for part in parts if isinstance(part, Evidence))
        return next((match for match in matches if match is not None), None)


@dataclass(frozen=True, slots=True)
class Measured(Evidence):
    """Figures that are only shown: no decision reads them."""

    values: Mapping[str, Figure] = field(default_factory=dict)

    def figures(self) -> dict[str, Figure]:
        return dict(self.values)


@dataclass(frozen=True, slots=True)
class MissingMetric(Evidence):
    """A detector could not judge because a metric is missing."""

    headline: ClassVar[str] = "cannot tell how {where} is doing"
    detector: str
    missing: str

    def summary(self) -> str:
        return f"the detector {self.detector} needs {self.missing}, which is missing"


@dataclass(frozen=True, slots=True)
class Silence(Evidence):
    """No measurement has arrived for a while."""

    headline: ClassVar[str] = "{where} sends no measurements"
    detector: ClassVar[str] = "silence"
    quiet_s: float

    def summary(self) -> str:
        return f"no measurement arrived for {whole_span(self.quiet_s)}"


@dataclass(frozen=True, slots=True)
class StuckBatch(Evidence):
    """A batch is running, but it does not end."""

    headline: ClassVar[str] = "a batch does not end"
    batch: int
    running_s: float
    quiet_s: float
    tasks_done: int = 0
    tasks: int = 0

    def summary(self) -> str:
        progress = f", {number(self.tasks_done)} of {number(self.tasks)} tasks done" if self.tasks else ""
        return f"batch {self.batch} has been running for {whole_span(self.running_s)}{progress}"


@dataclass(frozen=True, slots=True)
class LoadRise(Evidence):
    """More will arrive than can be processed, `ahead_s` from now."""

    headline: ClassVar[str] = "more rows are forecast than {where} can process"
    arrival_per_s: float
    expected_per_s: float
    ahead_s: float
    limit_per_s: float
    over_limit: float
    forecasters: Evidence = Measured()

    def summary(self) -> str:
        expected, limit = whole(self.expected_per_s), whole(self.limit_per_s)
        return f"{expected} rows/s are forecast in {whole_span(self.ahead_s)}, it can process {limit}"


@dataclass(frozen=True, slots=True)
class SourceTrouble(Evidence):
    """What is wrong with a source, and the cause that this indicates."""

    headline: ClassVar[str] = "a source is in trouble"
    cause: str
    detail: str

    def summary(self) -> str:
        return self.detail


@dataclass(frozen=True, slots=True)
class LostTime(Evidence):
    """A batch would take `without_s` instead of `batch_s` without the cause. All are medians of the latest batches.

    `share` is the loss as a share of its trigger interval. `usual_s` is what batches lost to the cause before.
    `more_executors_win_s` is what twice as many executors would gain. `batches_in_a_row` lost time to it. `guessed`:
    the measurement that distinguishes the cause from another one is missing. `rest_s` is the batch without the causes
    that cost more and, for a cause outside of all tasks, without rows that had waited.
    """

    headline: ClassVar[str] = "batches of {where} lose time"
    cause: str
    lost_s: float
    batch_s: float
    share: float
    trigger_s: float | None = None
    usual_s: float | None = None
    more_executors_win_s: float | None = None
    batches_in_a_row: float = 0.0
    guessed: bool = False
    rest_s: float | None = None

    @property
    def recoverable_s(self) -> float:
        return self.lost_s

    @property
    def without_s(self) -> float:
        return max(0.0, self.batch_s - self.lost_s)

    @property
    def scaling_helps(self) -> bool:
        """Whether twice as many executors would gain as much as removing the cause; true if it is not known."""
        return self.more_executors_win_s is None or self.more_executors_win_s >= self.lost_s

    def summary(self) -> str:
        culprit = cause_of(self.cause).culprit or self.cause
        time_taken = f"{culprit} takes {span(self.lost_s)} of {span(self.batch_s)}"
        without = f"without it the batch would take {span(self.without_s)}"
        if self.more_executors_win_s is None:
            return f"{time_taken}; {without}"
        gain = (
            f"save {span(self.more_executors_win_s)}"
            if self.more_executors_win_s >= _WORTH_SAYING_S
            else "save nothing"
        )
        return f"{time_taken}; {without}; twice as many executors would {gain}"
