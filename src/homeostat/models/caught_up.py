"""When the waiting rows will have been processed, with the present configuration and with others."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from homeostat.core.configuration import EXECUTORS_KNOB, Configuration, Patch
from homeostat.core.observation import NAN
from homeostat.core.record_json import JSON
from homeostat.core.view import View
from homeostat.core.wording import moment, whole
from homeostat.models.application_model import ApplicationModel, application_model, beyond_one_batch
from homeostat.models.capacity import backlog_rows
from homeostat.models.planning_question import CATCH_UP_S
from homeostat.strict.units import clock

# The largest number of executors that is tried: four times the present number plus eight, as in sizing. A choice.
_MOST_TIMES, _MORE = 4, 8
# From this far ahead on, a time is shown with its date. A choice: half a day.
_DATE_FROM_S = 43_200.0


@dataclass(frozen=True, slots=True)
class Backlog:
    """`rows` wait at `at_s`, and `arrival_per_s` more arrive. If `rows` is an estimate, at most `at_most` rows wait."""

    at_s: float
    rows: float
    arrival_per_s: float
    at_most: float = NAN


@dataclass(frozen=True, slots=True)
class CaughtUp:
    """When the application will have caught up with this many instances. `at_s` is infinite if it never will.

    `capacity_per_s` is how many rows per second they can process.
    """

    instances: float
    at_s: float
    capacity_per_s: float


@dataclass(frozen=True, slots=True)
class CatchUp:
    """When a backlog is gone: with the present configuration, and with `others`, the fewest instances first.

    Of the others, more instances always catch up sooner than the present ones, and fewer later. Any that do not are
    left out.
    """

    backlog: Backlog
    present: CaughtUp
    others: tuple[CaughtUp, ...] = ()
    unit: str = "executors"

    @property
    def sentence(self) -> str:
        """`caught up at 14:51:40 with 4 executors, at 14:32:10 with 6`."""
        texts = [self._text(each) for each in self.others]
        return ", ".join([f"{self._text(self.present)} {self.unit}{self._why_never}", *texts])

    def to_json(self) -> dict[str, JSON]:
        times: list[JSON] = [
            {
                "instances": each.instances,
                "at_s": each.at_s if math.isfinite(each.at_s) else None,
                "capacity_per_s": each.capacity_per_s,
            }
            for each in (self.present, *self.others)
        ]
        backlog = self.backlog
        return {"at_s": backlog.at_s, "rows": backlog.rows, "arrival_per_s": backlog.arrival_per_s, "times": times}

    def _text(self, each: CaughtUp) -> str:
        is_first = each is self.present
        if math.isinf(each.at_s):
            return f"never {'caught up ' if is_first else ''}with {each.instances:g}"
        far = each.at_s - self.backlog.at_s >= _DATE_FROM_S
        when = moment(each.at_s) if far else clock(each.at_s)
        return f"{'caught up ' if is_first else ''}at {when} with {each.instances:g}"

    @property
    def _why_never(self) -> str:
        if math.isfinite(self.present.at_s):
            return ""
        arriving, capacity = whole(self.backlog.arrival_per_s), whole(self.present.capacity_per_s)
        return f" ({arriving} rows/s arrive, they can process {capacity})"


def when_caught_up(
    model: ApplicationModel,
    backlog: Backlog,
    now: Configuration,
    *,
    ordered: Configuration | None = None,
) -> CatchUp | None:
    """Return when the backlog is gone; None if there is none, or if it is unknown.

    The times are those with the configuration `now`, with one that was `ordered`, and with the fewest executors that
    catch up within the objective's time. While a change is applied, the present configuration continues to process
    rows, except during a restart.
    """
    if not (math.isfinite(backlog.rows) and backlog.arrival_per_s >= 0):
        return None
    question = _Question(replace(model, configuration=now), model, backlog, now)
    present = question.caught_up(now)
    if present.at_s <= backlog.at_s:
        return None
    others = [ordered] if ordered is not None else []
    within_s = model.objective.catch_up_s or CATCH_UP_S
    if present.at_s - backlog.at_s > within_s:
        others += question.fewest_within(within_s)
    unit = "executors" if EXECUTORS_KNOB in now.values else "instances"
    return CatchUp(backlog, present, tuple(_sensible(present, map(question.caught_up, others))), unit)


def caught_up_in(view: View) -> CatchUp | None:
    """Return the same for the backlog and the load in a view; None also if there are too few batches for a model."""
    model = application_model(view)
    if model is None:
        return None
    backlog = Backlog(view.history[-1].at_s, backlog_rows(view), model.arrival_per_s)
    return when_caught_up(model, backlog, view.configuration)


@dataclass(frozen=True, slots=True)
class _Question:
    """`model` was fitted, perhaps with another configuration. `changing` is the same model with the present
    configuration, from which a change starts."""

    changing: ApplicationModel
    model: ApplicationModel
    backlog: Backlog
    now: Configuration

    def caught_up(self, configuration: Configuration) -> CaughtUp:
        instances = configuration.get(EXECUTORS_KNOB, self.model.capabilities.cost(configuration))
        capacity_per_s = self.model.predict(configuration, self.backlog.arrival_per_s).most_per_s
        return CaughtUp(float(instances), self.backlog.at_s + self._seconds(configuration), capacity_per_s)

    def fewest_within(self, within_s: float) -> Iterator[Configuration]:
        """The fewest executors that catch up in time; the largest number if none does. By bisection: more executors
        never process less, unless they compete for the CPU."""
        spec = self.model.capabilities.knobs.get(EXECUTORS_KNOB)
        present = int(self.now.get(EXECUTORS_KNOB, 0))
        if spec is None or not present:
            return
        low, high = present + 1, min(_MOST_TIMES * present + _MORE, self._most_executors(int(spec.maximum)))
        if high < low:
            return
        while low < high:
            middle = (low + high) // 2
            enough = self._seconds(self._with_executors(middle)) <= within_s
            low, high = (low, middle) if enough else (middle + 1, high)
        yield self._with_executors(low)

    def _most_executors(self, maximum: int) -> int:
        limit, each = self.model.objective.cost_limit, self.model.capabilities.knobs[EXECUTORS_KNOB].cost
        if limit is None or each <= 0:
            return maximum
        others = self.model.capabilities.cost(self._with_executors(0))
        return min(maximum, math.floor((limit - others) / each))

    def _with_executors(self, executors: int) -> Configuration:
        return self.now.patched(Patch({EXECUTORS_KNOB: executors}))

    def _seconds(self, then: Configuration) -> float:
        rate = self.backlog.arrival_per_s
        waiting = beyond_one_batch(self.model.performance, self.backlog.rows, rate)
        pause_s, restart_s = self.changing.pause_s(then), self.changing.restart_s(then)
        if not pause_s:
            return self.model.catch_up_s(then, rate, waiting)
        beside_s = pause_s - restart_s
        without_change_s = self.model.catch_up_s(self.now, rate, waiting)
        if without_change_s <= beside_s:
            return without_change_s
        gained = beside_s * (self.model.predict(self.now, rate).most_per_s - rate)
        return pause_s + self.model.catch_up_s(then, rate, max(0.0, waiting - gained) + rate * restart_s)


def _sensible(present: CaughtUp, others: Iterable[CaughtUp]) -> Iterator[CaughtUp]:
    """Those that catch up sooner with more instances or later with fewer, each number of instances once."""
    soonest_s, last = present.at_s, present.instances
    for each in sorted(others, key=lambda one: one.instances):
        if each.instances < present.instances and each.at_s > present.at_s:
            yield each
        elif each.instances > last and each.at_s < soonest_s:
            soonest_s, last = each.at_s, each.instances
            yield each
