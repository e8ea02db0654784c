"""How often the right cause is named on recorded runs of real Spark, whose faults are known."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from homeostat.core.causes import UNDER_PROVISIONED
from homeostat.core.configuration import EXECUTORS_KNOB, Capabilities, Configuration, KnobSpec
from homeostat.core.cycle import Trace, step
from homeostat.core.events import EngineChanged, Event, Observed
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS, NEARLY_LATE
from homeostat.core.findings import Diagnosis
from homeostat.core.loop_state import State
from homeostat.core.policy_definition import Policy
from homeostat.lab.bench.diagnosis import NO_TROUBLE, Score, beside, summary
from homeostat.lab.bench.diagnosis_rivals import CLAIMS
from homeostat.lab.corpus.labels import InjectedFault, Label, read_labels
from homeostat.lab.corpus.replayed_log import observations

# Other names under which a diagnosis of the same thing is right.
_ALSO = {
    "small-files": ("source-bound", "sink-bound", "tiny-tasks"),
    "stalled-watermark": ("unbounded-state",),
    "hash-imbalance": ("data-skew",),
    "skewed-join": ("data-skew",),
    "costly-keys": ("data-skew",),
}
# Causes that follow from an injected one: naming them is not wrong, but the injected one must be named too.
_BROUGHT_ABOUT = {"small-files": ("driver-bound",), "tiny-tasks": ("driver-bound",)}
# A fault must be diagnosed only if it acted in this many batches, the number that every symptom needs.
_LEAST_BATCHES = LEAST_OBSERVATIONS
# A diagnosis that nothing explains counts as wrong if it was made in this many batches: one or two are chance.
_STOOD = 3


def score_run(directory: Path, label: Label, policy: Policy) -> Score:
    """Play the run to the policy, and compare its diagnoses with the injected faults."""
    cycles = [(batch, trace.diagnoses) for batch, trace in played_batches(directory, label, policy)]
    run = Score(clean=label.clean)
    for fault in (each for each in label.faults if _is_asked_for(each, label)):
        during = [(batch, named) for batch, named in cycles if fault.at_batch <= batch <= fault.until_batch + 1]
        hits = [batch for batch, named in during if any(_matches(fault, each) for each in named)]
        (run.right if hits else run.missed).append(fault.cause)
        run.batches_until_right.append(hits[0] - fault.at_batch + 1 if hits else math.inf)
    counts = Counter(each.cause for _, named in cycles for each in named if each.cause not in NO_TROUBLE)
    run.wrong = [cause for cause, count in counts.items() if count >= _STOOD and not _is_injected(label, cause)]
    for _, named in cycles:
        run.sure += [(d.probability, _is_injected(label, d.cause)) for d in named if d.cause not in NO_TROUBLE]
    return run


def played_batches(directory: Path, label: Label, policy: Policy) -> Iterator[tuple[int, Trace]]:
    """Each batch of the run, and the trace of the policy for it."""
    topology, observed = observations(directory, label)
    values = {EXECUTORS_KNOB: label.executors}
    capabilities = Capabilities({EXECUTORS_KNOB: KnobSpec(1, 100, live=True, apply_s=30.0, cost=1.0)})
    state = State(mode="advise")
    events: list[Event] = [EngineChanged(topology, Configuration(values), capabilities, 0.0)]
    for observation in observed:
        state, _, trace = step(policy, state, [*events, Observed(observation)], observation.at_s)
        events = []
        yield observation.batch, trace


def _is_asked_for(fault: InjectedFault, label: Label) -> bool:
    """Whether the fault acted long enough to be detected. More load is no problem if batches process it in time."""
    long_enough = fault.until_batch - fault.at_batch + 1 >= _LEAST_BATCHES
    harmless = fault.cause == UNDER_PROVISIONED and fault.during_s < NEARLY_LATE * label.trigger_s
    return fault.is_case and long_enough and not harmless


def _matches(fault: InjectedFault, diagnosis: Diagnosis) -> bool:
    return diagnosis.cause == fault.cause or diagnosis.cause in _ALSO.get(fault.cause, ())


def _is_injected(label: Label, cause: str) -> bool:
    return any(
        cause in (fault.cause, *_ALSO.get(fault.cause, ()), *_BROUGHT_ABOUT.get(fault.cause, ()))
        for fault in label.faults
    )


def is_standing(label: Label, cause: str, batch: int) -> bool:
    """Whether this cause, or one for which it is another name, was injected into this batch."""
    return any(
        cause in (fault.cause, *_ALSO.get(fault.cause, ())) and fault.at_batch <= batch <= fault.until_batch + 1
        for fault in label.faults
    )


def measure(policies: Mapping[str, Policy], directory: Path) -> dict[str, Any]:
    """Score every policy on the runs of a corpus."""
    labels = read_labels(directory)
    scores = {name: [score_run(directory, label, policy) for label in labels] for name, policy in policies.items()}
    summaries = {name: summary(each, CLAIMS.get(name)) for name, each in scores.items()}
    return {"runs": len(labels), "policies": summaries, "beside": beside(scores)}
