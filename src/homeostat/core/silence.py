"""Detects that no measurements arrive, or that a batch does not end, and sends the alert without waiting for a cycle.

Detectors run when there is a new observation. This module covers the case in which there is none.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from homeostat.core.alert_text import message
from homeostat.core.causes import EXTERNAL, INCONCLUSIVE
from homeostat.core.effects import Effects
from homeostat.core.evidence import Silence, StuckBatch
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.loop_state import State
from homeostat.core.records import SymptomContent
from homeostat.core.symptoms import STUCK_BATCH, UNKNOWN


@dataclass(frozen=True, slots=True)
class SilenceWatch:
    """When silence is a symptom. Shorter times find a hang sooner, but mistake slow batches for hangs. Choices."""

    # No alarm before this, however short the usual interval is.
    least_s: float = 60.0
    # Number of usual intervals without an observation, if no batch is known to be running.
    intervals: float = 3.0
    # Multiple of the last batch's duration, if a batch is known to be running.
    batches: float = 10.0
    # How probable it is that a batch that does not end waits for something outside: enough to act. A choice.
    stuck_probability: float = 0.8

    def detect(self, state: State, now_s: float) -> Symptom | None:
        if not state.history:
            return None
        last, running = state.history[-1], state.under_way
        quiet_s = now_s - last.at_s
        usual_s = max(self.least_s, self.intervals * last.span_s)
        if running is None or now_s - running.at_s >= usual_s:
            return Symptom(UNKNOWN, evidence=Silence(quiet_s)) if quiet_s > usual_s else None
        running_s = now_s - running.since_s
        if running_s <= max(self.least_s, self.batches * last.span_s):
            return None
        evidence = StuckBatch(running.batch, running_s, quiet_s, running.tasks_done, running.tasks)
        return Symptom(STUCK_BATCH, running.component, evidence=evidence)

    def diagnose(self, symptom: Symptom) -> Diagnosis:
        stuck = symptom.kind == STUCK_BATCH
        cause, probability = (EXTERNAL, self.stuck_probability) if stuck else (INCONCLUSIVE, 1.0)
        return Diagnosis(cause, symptom.component, probability, symptom.evidence, (symptom,))


def notice(state: State, effects: Effects, watch: SilenceWatch | None = None) -> State:
    """Alert once when silence begins, and record when it ends."""
    watch = watch or SilenceWatch()
    symptom = watch.detect(state, effects.now_s)
    if symptom is not None and not state.silent:
        diagnosis = effects.diagnosis(watch.diagnose(effects.symptom(symptom)))
        effects.alert(diagnosis.cause, diagnosis.component, message(diagnosis), [diagnosis.id])
    elif state.silent and symptom is None:
        effects.write_end(SymptomContent(UNKNOWN, over=True), "measurements arrive again")
    silent = symptom is not None
    return replace(state, silent=silent) if silent != state.silent else state
