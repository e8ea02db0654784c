"""Examples to learn from: time that a batch lost to a cause, and whether the cause was really there."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from homeostat.core.evidence import LostTime
from homeostat.core.findings import Symptom
from homeostat.core.policy_definition import Policy
from homeostat.core.symptoms import LOST_TIME
from homeostat.diagnosers.strengths import Features, features_of
from homeostat.lab.bench.case_runs import is_right, play
from homeostat.lab.bench.diagnosis_cases import Case
from homeostat.lab.bench.diagnosis_corpus import is_standing, played_batches
from homeostat.lab.corpus.labels import read_labels

# Neighbouring batches of a run are nearly the same, so only every fifth is an example. A choice.
_EACH = 5


@dataclass(frozen=True, slots=True)
class Example:
    """Features of a cause in one batch of a run, and whether the run had this cause then."""

    run: str
    cause: str
    features: Features
    right: bool


def simulated_examples(case: Case, policy: Policy) -> Iterator[Example]:
    played = play(case, policy)
    ends_s = [sample.at_s for sample in played.truth]
    for cycle in played.cycles[::_EACH]:
        ended = bisect_right(ends_s, cycle.at_s)
        acting = played.labels.acting(played.truth[ended - 1]) if ended else ()
        for symptom, features, cause in _lost_times(cycle.symptoms):
            yield Example(case.scenario.name, cause, features, is_right(cause, symptom.component, acting))


def recorded_examples(directory: Path, policy: Policy, only: Collection[str] = ()) -> Iterator[Example]:
    """Recorded runs are short: every batch is an example. Without names in `only`, all runs are read."""
    for label in read_labels(directory):
        if only and label.run not in only:
            continue
        for batch, trace in played_batches(directory, label, policy):
            for _, features, cause in _lost_times(trace.symptoms):
                yield Example(label.run, cause, features, is_standing(label, cause, batch))


def _lost_times(symptoms: Sequence[Symptom]) -> Iterator[tuple[Symptom, Features, str]]:
    losses = [(s, s.evidence) for s in symptoms if s.kind == LOST_TIME and isinstance(s.evidence, LostTime)]
    all_lost_s = sum(evidence.lost_s for _, evidence in losses)
    for symptom, evidence in losses:
        yield symptom, features_of(evidence, all_lost_s), evidence.cause
