"""The gain of several remedies together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from homeostat.core.configuration import EXECUTORS_KNOB, Knob, Value
from homeostat.core.stats import median
from homeostat.core.view import View
from homeostat.models.batch_model import RECENT
from homeostat.models.capacity import Load, level, loads
from homeostat.models.model_fitting import batch_model


@dataclass(frozen=True, slots=True)
class Mends:
    """The effects of several remedies. At the components in `even`, rows and speeds become even. `values` are the
    changed knobs."""

    even: frozenset[str] = frozenset()
    values: Mapping[Knob, Value] = field(default_factory=dict)


def combined_gain(view: View, mends: Mends) -> float:
    """Return ln(time before ÷ after) of the whole application at the load of the latest observations; NaN if unknown.

    A batch is replayed with all remedies at once. A dataflow is as fast as its bottleneck before and after.
    """
    return _of_batches(view, mends) if view.micro_batch else _of_dataflow(view, mends)


def _of_batches(view: View, mends: Mends) -> float:
    model = batch_model(view)
    rows = [d.rows for d in view.current if d.rows > 0][-RECENT:]
    if model is None or not rows:
        return math.nan
    mended = model
    for name in sorted(mends.even):
        mended = mended.with_even_rows(name)
    knobs = {c.name: c.partitions for c in view.topology if c.partitions is not None}
    partitions = {name: int(mends.values[knob]) for name, knob in knobs.items() if knob in mends.values}
    executors = int(mends.values.get(EXECUTORS_KNOB, model.setup.executors))
    then = replace(model.setup, executors=executors, partitions={**model.setup.partitions, **partitions})
    usual = median(np.array(rows))
    before_s, after_s = model.plain_s(usual, model.setup), mended.plain_s(usual, then)
    return math.log(before_s / after_s) if before_s > 0 and after_s > 0 else math.nan


def _of_dataflow(view: View, mends: Mends) -> float:
    before, after = [], []
    for name, load in loads(view).items():
        offered_per_s = level(load.offered_per_s)
        ratios = _capacity(load, even=False) / offered_per_s, _capacity(load, even=name in mends.even) / offered_per_s
        if all(math.isfinite(ratio) and ratio > 0 for ratio in ratios):
            instances = mends.values.get(view.topology[name].scaled_by, load.instances)
            before.append(ratios[0])
            after.append(ratios[1] * instances / load.instances)
    return math.log(min(after) / min(before)) if before else math.nan


def _capacity(load: Load, *, even: bool) -> float:
    return max(load.even_per_s, load.capacity_per_s) if even else load.capacity_per_s
