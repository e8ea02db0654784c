"""A batch during which executors were added, as it would have been with all of them from its beginning.

Such a batch belongs to neither configuration. But the rows and the times of its tasks hardly depend on the number of
other tasks that run, so its stages can be replayed on the present slots. This matters for late batches, which otherwise
hide other problems for minutes.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from homeostat.core.configuration import EXECUTORS_KNOB, Patch
from homeostat.core.makespan import makespan_s
from homeostat.core.observation import NAN, Observation

_STAGES_PHASE = "addBatch"


def only_adds_executors(patch: Patch) -> bool:
    return not patch.retire and set(patch.values) == {EXECUTORS_KNOB}


def with_present_slots(observation: Observation) -> Observation:
    """Replay each stage on the present slots."""
    workers = observation.workers
    slots = int(workers.slots[workers.alive].sum())
    saved_s, tasks = 0.0, {}
    for name, sample in observation.tasks.items():
        finish_s = sample.finish_s[np.isfinite(sample.finish_s)]
        took_s = float(finish_s.max()) if len(finish_s) else 0.0
        if slots and took_s > 0:
            then_s = min(took_s, makespan_s(sample.run_s[np.isfinite(sample.run_s)], slots))
            finish_s = sample.finish_s * (then_s / took_s)
            sample = replace(sample, finish_s=finish_s, began_s=NAN, ended_s=NAN)
            saved_s += took_s - then_s
        tasks[name] = sample
    flows = tuple(
        replace(
            flow,
            seconds=flow.seconds - saved_s,
            phases_s={
                phase: seconds - saved_s if phase == _STAGES_PHASE else seconds
                for phase, seconds in flow.phases_s.items()
            },
        )
        for flow in observation.flows
    )
    return replace(observation, tasks=tasks, flows=flows)
