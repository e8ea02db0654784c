"""A plug-in that fails is reported and left out; the others still act."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import pytest

from homeostat.core.actions import ALERT
from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.evidence import Measured
from homeostat.core.findings import Diagnosis, Outcome, Prediction, Proposal, Symptom
from homeostat.core.guards import GuardContext
from homeostat.core.policy_definition import Policy
from homeostat.core.trial import Trial
from homeostat.core.view import View
from homeostat.testing import instances, observations, play, view_of

SPLIT = Knob(PARALLELISM, "split")
OBSERVED = observations(12, {"lines": instances(100.0, 1.0), "split": instances([50.0, 50.0], 5.0)}, arrival_per_s=10.0)
ENGINE = view_of(OBSERVED)
TROUBLE = Symptom("trouble", "split", 0.5)
CAUSE = Diagnosis("cause", "split", 0.9)
ODD: Any = [1, 2]
TEXT: Any = "4"
GROW = Proposal("grow", (CAUSE,), Patch({SPLIT: 5}), "split", Prediction(0.5, ("split",)))


@dataclass(frozen=True)
class Says:
    """Any of the three plug-ins: yields what it was given, or does what it was told."""

    findings: Iterable[Any] | Callable[[View], Iterable[Any]] = ()
    name: str = "says"

    def detect(self, view: View) -> Iterable[Symptom]:
        return self.findings(view) if callable(self.findings) else self.findings

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return self.findings(view) if callable(self.findings) else self.findings

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        return self.findings(view) if callable(self.findings) else self.findings


SOUND = Policy("sound", (Says([TROUBLE]),), (Says([CAUSE]),), (Says([GROW]),))


def at_once(view: View) -> Iterable[Any]:
    raise RuntimeError("no such column")


def half_way(view: View) -> Iterator[Any]:
    yield TROUBLE
    raise RuntimeError("no such column")


def leaves_the_program(view: View) -> Iterable[Any]:
    raise SystemExit(3)


def with_first(policy: Policy, part: str, plug_in: Says) -> Policy:
    return replace(policy, **{part: (plug_in, *getattr(policy, part))})  # type: ignore[arg-type]


@pytest.mark.parametrize("part", ["detectors", "diagnosers", "resolvers"])
@pytest.mark.parametrize("fails", [at_once, half_way])
def test_one_that_raises_is_left_out_and_the_others_still_act(
    part: str, fails: Callable[[View], Iterable[Any]]
) -> None:
    played = play(with_first(SOUND, part, Says(fails, "broken")), ENGINE, OBSERVED[:3])
    assert played.actions[0].desired[SPLIT] == 5
    assert played.texts("failure") == ["broken failed and was skipped: RuntimeError: no such column"]
    assert played.texts("symptom") == ["trouble at split"], "what it yielded before it failed does not count"


def test_one_that_would_end_the_program_is_left_out_as_any_other() -> None:
    played = play(with_first(SOUND, "detectors", Says(leaves_the_program, "broken")), ENGINE, OBSERVED[:3])
    assert played.actions[0].desired[SPLIT] == 5
    assert played.texts("failure") == ["broken failed and was skipped: SystemExit: 3"]


def test_a_failure_is_reported_once_for_as_long_as_it_lasts() -> None:
    def now_and_then(view: View) -> Iterable[Any]:
        if len(view.window) in (2, 3, 4, 7, 8):
            raise RuntimeError(f"at {view.now_s}")
        return ()

    policy = Policy("watching", (Says(now_and_then, "broken"),))
    failures = play(policy, ENGINE, OBSERVED).texts("failure")
    assert failures == [f"broken failed and was skipped: RuntimeError: at {at_s}" for at_s in (20.0, 70.0)]


@pytest.mark.parametrize(
    ("part", "finding", "why"),
    [
        ("detectors", "pressure", "it yields str instead of Symptom"),
        ("detectors", None, "it yields NoneType instead of Symptom"),
        ("detectors", CAUSE, "it yields Diagnosis instead of Symptom"),
        ("detectors", Symptom(""), "its kind is ''"),
        ("detectors", Symptom("x", "nowhere"), "there is no component 'nowhere'"),
        ("detectors", Symptom("x", severity=math.nan), "its severity nan is not between 0 and 1"),
        ("detectors", Symptom("x", severity=1.5), "its severity 1.5 is not between 0 and 1"),
        (
            "detectors",
            Symptom("x", evidence=Measured({"rows": ODD})),
            "its evidence 'rows' is neither a number nor text",
        ),
        ("diagnosers", Diagnosis("x", probability=-0.1), "its probability -0.1 is not between 0 and 1"),
        ("diagnosers", Diagnosis("x", "nowhere"), "there is no component 'nowhere'"),
        ("resolvers", Proposal("x", ()), "x does not name the diagnosis that it is for"),
        ("resolvers", Proposal("x", (CAUSE,), Patch({SPLIT: math.nan})), "x sets parallelism.split to nan"),
        ("resolvers", Proposal("x", (CAUSE,), Patch({SPLIT: TEXT})), "x sets parallelism.split to '4'"),
        ("resolvers", Proposal("x", (CAUSE,), benefit=math.inf), "the benefit of x is inf"),
        ("resolvers", Proposal("x", (CAUSE,), prediction=Prediction(math.nan)), "the predicted gain of x is nan"),
        ("resolvers", Proposal(ALERT, (CAUSE,)), "an alert needs a message and no patch"),
    ],
)
def test_a_finding_of_no_use_is_left_out_and_the_rest_stays(part: str, finding: object, why: str) -> None:
    played = play(with_first(SOUND, part, Says([finding], "odd")), ENGINE, OBSERVED[:3])
    assert played.texts("failure") == [f"odd failed and was skipped: {why}"]
    assert played.actions[0].desired[SPLIT] == 5


class BrokenGuard:
    name = "broken"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        raise ZeroDivisionError("division by zero")


def test_when_a_guard_fails_nothing_is_done_and_the_loop_goes_on() -> None:
    played = play(replace(SOUND, guards=(BrokenGuard(),)), ENGINE, OBSERVED)
    assert played.commands == ()
    assert played.texts("failure") == ["choosing an action failed and was skipped: ZeroDivisionError: division by zero"]


class BrokenJudge:
    def judge(self, trial: Trial) -> Outcome | None:
        raise ZeroDivisionError("division by zero")


def test_when_the_judge_fails_the_outcome_is_unclear_and_proves_nothing() -> None:
    played = play(replace(SOUND, judge=BrokenJudge()), ENGINE, OBSERVED[:5])
    assert played.texts("outcome") == ["Could not tell whether a-1 helped: the judge failed"]
    assert played.texts("failure") == ["the judge failed and was skipped: ZeroDivisionError: division by zero"]
    assert played.state.memory == ()


def test_detectors_see_enough_observations_even_if_those_take_longer_than_the_window() -> None:
    window_sizes: list[int] = []

    def count(view: View) -> Iterator[Symptom]:
        window_sizes.append(len(view.window))
        return iter(())

    counting = Says(count)
    play(Policy("counts", (counting,), window_s=25.0), ENGINE, OBSERVED[:8], mode="observe")
    assert window_sizes[-1] == 3
    play(Policy("counts", (counting,), window_s=25.0, least_window=5), ENGINE, OBSERVED[:8], mode="observe")
    assert window_sizes[-1] == 5
