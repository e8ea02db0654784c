"""Each remedy of a plan is judged where it works, and one that failed is taken back alone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import pytest

from homeostat.core.actions import PLAN
from homeostat.core.arbiter import RankedArbiter
from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.findings import Diagnosis, Prediction, Proposal, Symptom
from homeostat.core.observation import Observation, TaskSample
from homeostat.core.policy_definition import Policy
from homeostat.core.records import ActionContent, OutcomeContent, with_content
from homeostat.core.view import View
from homeostat.resolvers.one_plan import OnePlan
from homeostat.testing import Played, instances, observations, play, view_of

SPLIT, COUNT = Knob(PARALLELISM, "split"), Knob(PARALLELISM, "count")
APPLIED_AT = 6


def tasks(split_s: float, count_s: float) -> Mapping[str, TaskSample]:
    return {
        "lines": instances(100.0, 0.1),
        "split": instances([50.0, 50.0], 50.0 * split_s),
        "count": instances([50.0, 50.0], 50.0 * count_s),
    }


def measured(after: tuple[float, float]) -> tuple[Observation, ...]:
    """Time per row of split and of count, before and after the sixth measurement."""
    return observations(16, lambda n: tasks(*((0.1, 0.08) if n < APPLIED_AT else after)), arrival_per_s=10.0)


@dataclass(frozen=True)
class TwoTroubles:
    """One at split and one at count. Those in `healed_components` end with the action."""

    healed_components: tuple[str, ...]
    name: str = "two troubles"

    def detect(self, view: View) -> Iterable[Symptom]:
        over = self.healed_components if view.now_s > 10.0 * APPLIED_AT else ()
        for component in ("split", "count"):
            if component not in over:
                yield Symptom("trouble", component, 0.5)

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return [Diagnosis("cause", symptom.component, 0.9, symptoms=(symptom,)) for symptom in symptoms]

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        if 10.0 * APPLIED_AT <= view.now_s < 10.0 * (APPLIED_AT + 1):
            for diagnosis in diagnoses:
                patch = Patch({Knob(PARALLELISM, diagnosis.component): 4})
                yield Proposal(
                    "grow", (diagnosis,), patch, diagnosis.component, Prediction(0.6, (diagnosis.component,))
                )


def run(after: tuple[float, float], healed_components: tuple[str, ...]) -> Played:
    part = TwoTroubles(healed_components)
    policy = Policy("two", (part,), (part,), (part,), arbiter=RankedArbiter(composer=OnePlan()))
    return play(policy, view_of(measured(after)), measured(after))


def verdicts(played: Played) -> dict[str, str]:
    (outcome,) = [content for _, content in with_content(played.records, OutcomeContent)]
    return {part.component: part.verdict for part in outcome.parts}


def test_both_remedies_are_one_action_with_two_predictions() -> None:
    played = run((0.04, 0.03), ("split", "count"))
    (action,) = [content for _, content in with_content(played.records, ActionContent)]
    assert action.action_kind == PLAN
    assert {(part.component, part.cause) for part in action.parts} == {("split", "cause"), ("count", "cause")}
    assert all(part.prediction is not None and part.prediction.gain == 0.6 for part in action.parts)
    assert verdicts(played) == {"split": "helped", "count": "helped"}


@pytest.mark.parametrize(("after", "healed_components", "failed"), [((0.04, 0.08), ("split",), "count")])
def test_a_part_that_failed_is_taken_back_alone(
    after: tuple[float, float], healed_components: tuple[str, ...], failed: str
) -> None:
    """Count was nearly as slow as split and has not changed, so that the plan gains little."""
    played = run(after, healed_components)
    assert verdicts(played)[failed] == "failed"
    assert verdicts(played)["split"] == "helped"
    assert played.texts("action")[1:] == ["revert: parallelism.count = 2"]
    assert {(entry.key.component, entry.verdict) for entry in played.state.memory} == {
        ("split", "helped"),
        ("count", "failed"),
    }


def test_a_plan_that_changed_nothing_failed_with_all_its_parts() -> None:
    played = run((0.1, 0.08), ())
    assert verdicts(played) == {"split": "failed", "count": "failed"}
    assert played.texts("action")[1:] == ["revert: parallelism.count = 2, parallelism.split = 2"]
