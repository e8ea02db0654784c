"""Finds the smallest configurations for a load: executors or instances, partitions, triggers and row limits."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from statistics import NormalDist

from homeostat.core.configuration import (
    ADMISSION_ROOM,
    EXECUTORS_KNOB,
    ROWS_PER_TRIGGER,
    TRIGGER_S,
    Configuration,
    Knob,
    Patch,
    Value,
)
from homeostat.models.batch_replay import BatchModel
from homeostat.models.objective_check import holds_in_time, longest_trigger_s
from homeostat.models.planning_question import Question
from homeostat.models.saturation import FlowModel

SMALLEST = "the smallest"

# Trigger intervals to try, relative to the present one: shorter lowers latency, longer saves fixed costs. With more of
# them a better one may be found, but each needs its own search. A choice.
_TRIGGER_FACTORS = (0.5, 0.25, 2.0)
# Trigger intervals to try, relative to the latency or lag of the objective: a row waits up to one interval, and then
# for a batch that may take as long.
_SHARES_OF_OBJECTIVE = (0.75, 0.5, 0.25)
# Numbers of partitions to try, relative to the present ones. A choice.
_PARTITION_FACTORS = (2, 4, 0.5)
# Shorter intervals are not proposed: Spark's fixed costs per batch are a large part of a second. A choice.
_SHORTEST_TRIGGER_S = 1.0
# The period of a batch without a trigger interval, when a row limit is computed from the load. A choice.
_LEAST_PERIOD_S = 1.0


@dataclass(frozen=True, slots=True)
class Smallest:
    """Proposes the fewest instances of each component of a dataflow, or the fewest executors of a micro-batch
    application, with the present partitions and trigger or with others."""

    name: str = SMALLEST

    def propose(self, question: Question) -> Iterator[Configuration]:
        performance = question.model.performance
        for each in (question, _catching_up(question)):
            if isinstance(performance, FlowModel):
                yield _fewest_instances(each, performance)
            else:
                yield from _batch_configurations(each, performance)


def _catching_up(question: Question) -> Question:
    """The same question with extra load: enough to process, in time, the backlog and the rows that arrive during a
    restart."""
    model = question.model
    pauses_s = [spec.apply_s for spec in model.capabilities.knobs.values() if not spec.live]
    waiting = model.backlog_rows + question.rate_per_s * max(pauses_s, default=0.0)
    more_per_s = waiting / question.catch_up_s if model.replays else 0.0
    return replace(question, rate_per_s=question.rate_per_s + more_per_s)


def _fewest_instances(question: Question, flow: FlowModel) -> Configuration:
    model, offered_per_s = question.model, flow.offered_rates(question.rate_per_s)
    z = NormalDist().inv_cdf(question.goal.confidence)
    values = dict(model.configuration.values)
    for operator in flow.operators:
        knob = model.topology[operator.name].scaled_by
        if knob in model.capabilities.knobs:
            sure = offered_per_s[operator.name] * math.exp(z * operator.error)
            values[knob] = int(model.capabilities.knobs[knob].clip(operator.fewest(sure)))
    return Configuration(values, model.configuration.retired)


def _batch_configurations(question: Question, batches: BatchModel) -> Iterator[Configuration]:
    model = question.model
    spec = model.capabilities.knobs.get(EXECUTORS_KNOB)
    for trigger in _trigger_choices(question):
        for cut in _partition_choices(question):
            changed = {**trigger, **cut}
            base = model.configuration.patched(Patch({**changed, **_admission(question, batches, trigger)}))
            if spec is None:
                yield base
                continue
            fewest = _fewest_executors(question, batches, base, int(spec.minimum), int(spec.maximum))
            for executors in (fewest, fewest - 1, fewest + 1, _affordable(question, fewest)):
                if spec.minimum <= executors <= spec.maximum:
                    yield base.patched(Patch({EXECUTORS_KNOB: executors}))
            if _in_time(question, batches, base, fewest):
                break  # other numbers of partitions would only cost more


def _fewest_executors(question: Question, batches: BatchModel, base: Configuration, low: int, high: int) -> int:
    """The fewest executors with which batches end in time; the largest useful number if none does. By bisection: more
    executors never make a batch longer, unless they compete for the CPU."""
    setup = question.model.setup(base)
    widest = max((stage.tasks(setup) for stage in batches.stages), default=1)
    high = min(high, max(low, math.ceil(widest / batches.slots)))
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if _in_time(question, batches, base, middle) else (middle + 1, high)
    return low


def _affordable(question: Question, executors: int) -> int:
    """This number of executors, or as many as the cost limit allows."""
    model, limit = question.model, question.model.objective.cost_limit
    each = model.capabilities.knobs[EXECUTORS_KNOB].cost
    if limit is None or each <= 0:
        return executors
    others = model.capabilities.cost(model.configuration.patched(Patch({EXECUTORS_KNOB: 0})))
    return min(executors, math.floor((limit - others) / each))


def _in_time(question: Question, batches: BatchModel, base: Configuration, executors: int) -> bool:
    setup = question.model.setup(base.patched(Patch({EXECUTORS_KNOB: executors})))
    return holds_in_time(batches, setup, question.rate_per_s, question.goal.confidence)


def _trigger_choices(question: Question) -> Iterator[dict[Knob, Value]]:
    """The present trigger; with an objective for lag or latency also others."""
    model = question.model
    yield {}
    limits_s = [each for each in (model.objective.latency_p95_s, model.objective.lag_s) if each is not None]
    if not limits_s:
        return
    for knob, spec in model.capabilities.knobs.items():
        now_s = model.configuration.values.get(knob)
        if knob.kind == TRIGGER_S and now_s:
            lengths_s = [now_s * factor for factor in _TRIGGER_FACTORS] + [
                min(limits_s) * part for part in _SHARES_OF_OBJECTIVE
            ]
            choices = {float(spec.clip(round(max(_SHORTEST_TRIGGER_S, each_s), 1))) for each_s in lengths_s}
            longest_s = max(now_s, longest_trigger_s(model.objective, spec))
            yield from ({knob: trigger_s} for trigger_s in sorted(choices - {now_s}) if trigger_s <= longest_s)


def _partition_choices(question: Question) -> Iterator[dict[Knob, Value]]:
    """The present partitions; more of them, because a stage with fewer tasks than slots leaves slots idle; or fewer,
    because each costs time."""
    model = question.model
    yield {}
    for cut in _PARTITION_FACTORS:
        others: dict[Knob, Value] = {}
        for knob in model.partition_knobs():
            if knob in model.configuration.values:
                others[knob] = int(model.capabilities.knobs[knob].clip(cut * model.configuration[knob]))
        if others and any(value != model.configuration[knob] for knob, value in others.items()):
            yield others


def _admission(question: Question, batches: BatchModel, trigger: dict[Knob, Value]) -> dict[Knob, Value]:
    """Raise a row limit that would be the next bottleneck."""
    model = question.model
    trigger_s = next(iter(trigger.values()), batches.setup.trigger_s)
    rows: dict[Knob, Value] = {}
    for knob, bound in model.configuration.values.items():
        spec = model.capabilities.knobs.get(knob)
        needed_rows = ADMISSION_ROOM * question.rate_per_s * max(float(trigger_s), _LEAST_PERIOD_S)
        if knob.kind == ROWS_PER_TRIGGER and spec is not None and bound < needed_rows / ADMISSION_ROOM:
            rows[knob] = int(spec.clip(math.ceil(needed_rows)))
    return rows
