"""Every shipped part keeps its contract, and the checks catch parts that break it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import count

import pytest

from homeostat.core.causes import OVER_PROVISIONED
from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.evidence import Measured
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.policy_definition import Policy
from homeostat.core.symptoms import IDLE, UNKNOWN
from homeostat.core.view import View
from homeostat.policies import registry
from homeostat.testing import (
    check_detector,
    check_diagnoser,
    check_policy,
    check_resolver,
    sample_views,
)
from homeostat.testing.plugins import shrinks_when_idle


@pytest.mark.slow
@pytest.mark.parametrize("name", registry.names())
def test_every_policy_and_all_its_parts_keep_their_contract(name: str) -> None:
    check_policy(registry.build(name, scenario_peak_per_s=400.0))


@pytest.mark.parametrize("name", ["provisioning", "provisioning.paper", "throughput", "ds2", "hpa", "dstream"])
def test_policies_that_shrink_would_do_so_if_no_metric_were_missing(name: str) -> None:
    """Else it would be no merit that they do not."""
    assert shrinks_when_idle(registry.build(name))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["provisioning", "provisioning.paper", "throughput.paper", "heron"])
def test_diagnosers_and_resolvers_leave_alone_what_they_do_not_know(name: str) -> None:
    policy = registry.build(name)
    for diagnoser in policy.diagnosers:
        check_diagnoser(diagnoser)
    for resolver in policy.resolvers:
        check_resolver(resolver)


class Plain:
    """A plug-in that does nothing wrong, as long as nobody tells it to."""

    name = "plain"

    def detect(self, view: View) -> Iterable[Symptom]:
        return []

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return []

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        return []


def test_a_plain_object_will_do() -> None:
    check_detector(Plain())
    check_diagnoser(Plain())
    check_resolver(Plain())
    check_policy(Policy("plain", (Plain(),), (Plain(),), (Plain(),)))


class Raises(Plain):
    def detect(self, view: View) -> Iterable[Symptom]:
        yield Symptom("late", severity=view.window.observations[-1].span_s / 1e6)


class Forgetful(Plain):
    numbers = count()

    def detect(self, view: View) -> Iterable[Symptom]:
        return [Symptom("count", evidence=Measured({"calls": float(next(self.numbers))}))]


class Meddles(Plain):
    def detect(self, view: View) -> Iterable[Symptom]:
        for observation in view.window.observations:
            observation.tasks["own"] = observation.tasks.get("split")  # type: ignore[index]
        return []


class Overdoes(Plain):
    def detect(self, view: View) -> Iterable[Symptom]:
        return [Symptom("alarm", severity=2.0)]


class Invents(Plain):
    def detect(self, view: View) -> Iterable[Symptom]:
        return [Symptom("alarm", "elsewhere")]


class Optimist(Plain):
    def detect(self, view: View) -> Iterable[Symptom]:
        return [Symptom(IDLE, name) for name in view.topology.names if len(view.current) > 5]

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return [Diagnosis(OVER_PROVISIONED, s.component) for s in symptoms if s.kind in (IDLE, UNKNOWN)]


class Eager(Plain):
    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        patch = Patch({component.scaled_by: 1 for component in view.topology})
        return [Proposal("shrink", tuple(diagnoses) or (Diagnosis("boredom"),), patch)]


class Stranger(Plain):
    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        return [Proposal("turn", (d,), Patch({Knob(PARALLELISM, "elsewhere"): 2})) for d in diagnoses]


@pytest.mark.parametrize(
    ("broken", "why"),
    [
        (Raises(), "plain raised IndexError"),
        (Forgetful(), "gives another result the second time"),
        (Meddles(), "plain changed the view, which it may only read"),
        (Overdoes(), "its severity 2.0 is not between 0 and 1"),
        (Invents(), "there is no component 'elsewhere'"),
        (Optimist(), "plain claims idle"),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_detector_that_breaks_its_contract_is_found_out(broken: Plain, why: str) -> None:
    sample_views.cache_clear()
    with pytest.raises(AssertionError, match=why):
        check_detector(broken)
    sample_views.cache_clear()


def test_a_diagnoser_or_resolver_that_breaks_its_contract_is_found_out() -> None:
    with pytest.raises(AssertionError, match="plain would shrink because metrics are missing"):
        check_diagnoser(Optimist())
    with pytest.raises(AssertionError, match="plain acts without a diagnosis"):
        check_resolver(Eager())
    with pytest.raises(AssertionError, match="which is not there"):
        check_resolver(Stranger())


class Shrinks(Plain):
    """Trusts what it was told, also where nothing was told."""

    def detect(self, view: View) -> Iterable[Symptom]:
        held = [name for name in view.topology.names if view.column(name, "pressured", last=3).sum() > 0]
        if len(view.current) > 5 and not held and any(d.components for d in view.current[-3:]):
            for name in view.topology.names:
                if name in view.current[-1].components and view.current[-1].components[name].known_share > 0:
                    yield Symptom(IDLE, name)

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return [Diagnosis(OVER_PROVISIONED, symptom.component) for symptom in symptoms if symptom.kind == IDLE]

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        for diagnosis in diagnoses:
            knob = view.topology[diagnosis.component].scaled_by
            yield Proposal("shrink", (diagnosis,), Patch({knob: 1}), diagnosis.component)


def test_a_policy_that_shrinks_on_what_it_did_not_see_is_found_out() -> None:
    with pytest.raises(AssertionError, match="carefree would shrink: idle"):
        check_policy(Policy("carefree", (Shrinks(),), (Shrinks(),), (Shrinks(),)))
