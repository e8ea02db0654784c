"""The contracts of detectors, diagnosers, resolvers and policies, as checks that you can run on your own."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from typing import TypeVar

import numpy as np

from homeostat.core.actions import ALERT
from homeostat.core.causes import OVER_PROVISIONED
from homeostat.core.cycle import step
from homeostat.core.events import Apply, Observed
from homeostat.core.evidence import Measured, MissingMetric
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.guards import GuardContext
from homeostat.core.loop_state import State
from homeostat.core.policy_definition import Detector, Diagnoser, Policy, Resolver
from homeostat.core.symptoms import UNKNOWN
from homeostat.core.validation import flaw
from homeostat.core.view import View
from homeostat.testing.builders import described
from homeostat.testing.sample_views import idle_views, partly_unknown_views, sample_views, unknown_views

_FOREIGN = "somebody else's"
_Finding = TypeVar("_Finding", Symptom, Diagnosis, Proposal)


def check_detector(detector: Detector) -> None:
    """Check that a detector keeps its contract.

    It handles every view, changes none of them, gives the same result each time, and yields only valid symptoms. Where
    no metric is known it yields only `unknown`.
    """
    for name, view in sample_views().items():
        with _read_only(view, detector.name, name):
            _symptoms(detector, view, name)
    for name, view in unknown_views().items():
        _only_unknown(_symptoms(detector, view, name), detector.name, name)


def check_diagnoser(diagnoser: Diagnoser, symptoms: Sequence[Symptom] = ()) -> None:
    """Check that a diagnoser keeps its contract.

    `symptoms` are some that it understands, at components named split or count. Beside what holds for a detector, it
    ignores symptoms that it does not know, and never shrinks because a metric is missing.
    """
    for name, view in sample_views().items():
        fitting = [one for one in symptoms if not one.component or one.component in view.topology]
        places = ["", *view.topology.names]
        foreign = [Symptom(_FOREIGN, place, 0.5, Measured({_FOREIGN: 1.0})) for place in places]
        unknown_symptoms = [Symptom(UNKNOWN, place, evidence=MissingMetric(_FOREIGN, "all")) for place in places]
        with _read_only(view, diagnoser.name, name):
            for case in ([], fitting, foreign, [*foreign, *fitting, *unknown_symptoms], *([one] for one in fitting)):
                _diagnoses(diagnoser, view, case, name)
            diagnoses = _diagnoses(diagnoser, view, unknown_symptoms, name)
        causes = [diagnosis.cause for diagnosis in diagnoses]
        assert OVER_PROVISIONED not in causes, f"{diagnoser.name} would shrink because metrics are missing ({name})"


def check_resolver(resolver: Resolver, diagnoses: Sequence[Diagnosis] = ()) -> None:
    """Check that a resolver keeps its contract.

    `diagnoses` are some that it understands, at components named split or count. Beside what holds for a detector, it
    ignores diagnoses that it does not know, and proposes nothing without a diagnosis.
    """
    for name, view in sample_views().items():
        fitting = [one for one in diagnoses if not one.component or one.component in view.topology]
        foreign = [Diagnosis(_FOREIGN, place, 0.9) for place in ("", *view.topology.names)]
        with _read_only(view, resolver.name, name):
            proposals = _proposals(resolver, view, [], name)
            for case in (fitting, foreign, [*foreign, *fitting], *([one] for one in fitting)):
                _proposals(resolver, view, case, name)
        assert not proposals, f"{resolver.name} acts without a diagnosis ({name})"


def check_policy(policy: Policy) -> None:
    """Check that a policy and all its parts keep their contracts. Each part gets the results of the parts before it.

    The policy never plans outside the bounds, and never shrinks while a metric is missing.
    """
    for name, view in sample_views().items():
        with _read_only(view, policy.name, name):
            chain(policy, view, name)
            _regulate(policy, view, name)
    for name, view in unknown_views().items():
        for detector in policy.detectors:
            _only_unknown(_symptoms(detector, view, name), detector.name, name)
    for name, view in {**unknown_views(), **partly_unknown_views()}.items():
        assert not shrinking(policy, view, name), f"{policy.name} would shrink: {name}"


def shrinks_when_idle(policy: Policy) -> bool:
    """Whether the policy shrinks an idle application of which all is known. If not, `check_policy` says little."""
    return all(shrinking(policy, view, name) for name, view in idle_views().items())


def shrinking(policy: Policy, view: View, name: str) -> list[Proposal]:
    context = GuardContext(view)
    return [proposal for proposal in chain(policy, view, name) if context.shrinks(proposal)]


def chain(policy: Policy, view: View, name: str) -> list[Proposal]:
    """The proposals of the policy for a view. Every part is checked on the way."""
    symptoms = [item for detector in policy.detectors for item in _symptoms(detector, view, name)]
    diagnoses = [item for diagnoser in policy.diagnosers for item in _diagnoses(diagnoser, view, symptoms, name)]
    return [item for resolver in policy.resolvers for item in _proposals(resolver, view, diagnoses, name)]


def _regulate(policy: Policy, view: View, name: str) -> None:
    """Runs the policy in the loop on the measurements of a view, one after the other."""
    state = State(mode="regulate", objective=view.objective)
    state, _, _ = step(policy, state, [described(view)], 0.0)
    for observation in view.window.observations:
        state, commands, trace = step(policy, state, [Observed(observation)], observation.at_s)
        failures = [record.text for record in trace.records if record.kind == "failure"]
        assert not failures, f"{policy.name}: {failures[0]} ({name})"
        for command in commands:
            if isinstance(command, Apply):
                _within_bounds(command, view, f"{policy.name}: {name}")


def _within_bounds(command: Apply, view: View, name: str) -> None:
    for knob, value in command.desired.values.items():
        spec = view.capabilities.knobs[knob]
        assert spec.minimum <= value <= spec.maximum, f"{knob} = {value} is out of bounds ({name})"


def _only_unknown(symptoms: Sequence[Symptom], detector: str, name: str) -> None:
    claims = [symptom.kind for symptom in symptoms if symptom.kind != UNKNOWN]
    assert not claims, f"{detector} claims {claims[0]}: {name}"


def _symptoms(detector: Detector, view: View, name: str) -> list[Symptom]:
    return _call_twice(detector.name, Symptom, lambda: detector.detect(view), view, name)


def _diagnoses(diagnoser: Diagnoser, view: View, symptoms: Sequence[Symptom], name: str) -> list[Diagnosis]:
    return _call_twice(diagnoser.name, Diagnosis, lambda: diagnoser.diagnose(view, symptoms), view, name)


def _proposals(resolver: Resolver, view: View, diagnoses: Sequence[Diagnosis], name: str) -> list[Proposal]:
    proposals = _call_twice(resolver.name, Proposal, lambda: resolver.resolve(view, diagnoses), view, name)
    for proposal in proposals:
        unknown_knobs = [str(knob) for knob in proposal.patch.values if knob not in view.capabilities.knobs]
        assert not unknown_knobs, f"{resolver.name} turns {unknown_knobs}, which is not there ({name})"
        assert proposal.kind == ALERT or proposal.patch, f"{resolver.name} proposes nothing ({name})"
    return proposals


def _call_twice(
    part: str, kind: type[_Finding], call: Callable[[], Iterable[_Finding]], view: View, name: str
) -> list[_Finding]:
    assert part, "a plug-in needs a name"
    try:
        first, again = list(call()), list(call())
    except Exception as error:
        raise AssertionError(f"{part} raised {type(error).__name__}: {error} ({name})") from error
    assert repr(first) == repr(again), f"{part} gives another result the second time ({name})"
    for finding in first:
        wrong = flaw(finding, kind, view.topology)
        assert not wrong, f"{part}: {wrong} ({name})"
    return first


@contextmanager
def _read_only(view: View, part: str, name: str) -> Iterator[None]:
    before = _fingerprint(view)
    yield
    assert _fingerprint(view) == before, f"{part} changed the view, which it may only read ({name})"


def _fingerprint(value: object) -> object:
    """Everything that could change in a value, in a form that can be compared."""
    if isinstance(value, np.ndarray):
        return value.tobytes()
    if isinstance(value, float):
        return value if not math.isnan(value) else "nan"
    if isinstance(value, Mapping):
        return tuple((key, _fingerprint(inner)) for key, inner in value.items())
    if isinstance(value, tuple | list):
        return tuple(_fingerprint(inner) for inner in value)
    if is_dataclass(value) and not isinstance(value, type):
        # What a value remembers of itself is no part of it.
        return tuple(_fingerprint(getattr(value, field.name)) for field in fields(value) if field.compare)
    return value
