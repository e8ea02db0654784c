"""What the latency policy plans for: the load there is, or the one that is forecast."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from homeostat.core.actions import ALERT, SCALE_UP
from homeostat.core.causes import OVER_PROVISIONED, RISE_AHEAD, SLO_UNMET, SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.core.configuration import EXECUTORS_KNOB, Capabilities, Configuration, KnobSpec
from homeostat.core.evidence import LoadRise
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.objective import GivesWay, Objective
from homeostat.core.observation import Array
from homeostat.core.symptoms import SLO_VIOLATION
from homeostat.core.trust import Trust
from homeostat.core.view import View
from homeostat.models.planning_question import Question
from homeostat.resolvers.retune import RetuneResolver
from homeostat.testing import instances, observations, view_of

LOAD_PER_S, TRIGGER_S, EXECUTORS, TASKS = 1_000.0, 4.0, 4, 16


def batches(pending_rows: float = 0.0, apply_s: float = 0.0, arrival_per_s: float | Array = LOAD_PER_S) -> View:
    """2 ms a row in 16 tasks on 4 executors: a batch of 4,000 rows takes 2 of the 4 seconds of its trigger."""
    rows = LOAD_PER_S * TRIGGER_S
    task_s = 0.002 * rows / TASKS
    tasks = {
        "lines": instances([rows / TASKS] * TASKS, 0.001, finish_s=0.001),
        "count": instances([rows / TASKS] * TASKS, task_s, finish_s=task_s),
    }
    observed = observations(
        20,
        tasks,
        span_s=TRIGGER_S,
        executors=EXECUTORS,
        arrival_per_s=arrival_per_s,
        rows=rows,
        seconds=2.2,
        trigger_s=TRIGGER_S,
        pending_rows=pending_rows,
    )
    knobs = {EXECUTORS_KNOB: KnobSpec(1, 40, apply_s=apply_s, cost=1.0)}
    view = view_of(observed, values={EXECUTORS_KNOB: EXECUTORS}, capabilities=Capabilities(knobs))
    return replace(view, objective=Objective(latency_p95_s=8.0))


def rise(expected_per_s: float) -> LoadRise:
    return LoadRise(0.0, expected_per_s, ahead_s=60.0, limit_per_s=0.0, over_limit=1.0)


def planned(expected_per_s: float, *others: Diagnosis, view: View | None = None) -> list[Proposal]:
    ahead = Diagnosis(RISE_AHEAD, "count", 0.9, rise(expected_per_s))
    return list(RetuneResolver().resolve(view or batches(), [ahead, *others]))


def test_a_rise_that_is_forecast_is_planned_for_by_what_holds_the_latency_then() -> None:
    (proposal,) = planned(2_000.0)
    assert proposal.kind == SCALE_UP
    assert proposal.patch.values[EXECUTORS_KNOB] > EXECUTORS
    assert proposal.prediction is not None
    assert "for 2,000 rows/s, p95 latency" in proposal.prediction.text
    (larger,) = planned(3_000.0)
    assert larger.patch.values[EXECUTORS_KNOB] > proposal.patch.values[EXECUTORS_KNOB]


@pytest.mark.parametrize("expected_per_s", [LOAD_PER_S, 0.2 * LOAD_PER_S])
def test_nothing_is_given_back_ahead_of_a_fall(expected_per_s: float) -> None:
    assert planned(expected_per_s) == []
    assert planned(expected_per_s, Diagnosis(OVER_PROVISIONED, "count")) == []


@dataclass
class Asked:
    """Remembers what load it was asked about."""

    rates: list[float] = field(default_factory=list)
    name: str = "asked"

    def propose(self, question: Question) -> Iterable[Configuration]:
        self.rates.append(question.rate_per_s)
        return ()


@pytest.mark.parametrize(
    ("arrival_per_s", "times"),
    [
        pytest.param(LOAD_PER_S * 1.02 ** np.arange(20.0), 1.02 ** ((2 * 5.0 + 20.0) / TRIGGER_S), id="it rises"),
        pytest.param(LOAD_PER_S * 1.2 ** np.arange(20.0), 1.5, id="it rises steeply"),
        pytest.param(LOAD_PER_S * np.where(np.arange(20) < 16, 1.0, 2.0), 1.0, id="it has jumped"),
        pytest.param(LOAD_PER_S * 0.98 ** np.arange(20.0), 1.0, id="it falls"),
    ],
)
def test_a_rising_load_is_planned_for_as_it_will_be_when_another_change_could_have_taken_effect(
    arrival_per_s: Array, times: float
) -> None:
    view = batches(apply_s=5.0, arrival_per_s=arrival_per_s)

    def planned_for(settle_s: float) -> float:
        proposer = Asked()
        list(
            RetuneResolver(settle_s=settle_s, proposers=(proposer,)).resolve(
                view, [Diagnosis(UNDER_PROVISIONED, "count")]
            )
        )
        return proposer.rates[0]

    assert planned_for(20.0) / planned_for(-10.0) == pytest.approx(times, rel=0.02)


def test_when_a_backlog_will_be_gone_is_reported_by_the_clock_the_time_to_get_there_included() -> None:
    def announced_end(apply_s: float) -> tuple[int, int, int, int]:
        view = batches(pending_rows=2_000_000.0, apply_s=apply_s)
        (proposal,) = RetuneResolver().resolve(view, [Diagnosis(UNDER_PROVISIONED, "count")])
        assert proposal.prediction is not None
        clock = r"0:(\d\d):(\d\d)"
        match = re.search(
            rf"caught up at {clock} with (\d+) executors, at {clock} with (\d+)", proposal.prediction.text
        )
        assert match is not None
        minute, second, executors, later, after, fewer = map(int, match.groups())
        assert executors == proposal.patch.values[EXECUTORS_KNOB]
        return 60 * minute + second, executors, 60 * later + after, fewer

    soon_s, executors, late_s, fewer = announced_end(apply_s=0.0)
    assert soon_s < late_s
    assert executors > fewer
    assert announced_end(apply_s=30.0)[0] == pytest.approx(soon_s + 30, abs=1)


def test_trouble_that_is_there_goes_first() -> None:
    assert planned(2_000.0, Diagnosis(SLOW_INSTANCE, "count")) == []


LATE = Diagnosis(SLO_UNMET, "", 0.8, symptoms=(Symptom(SLO_VIOLATION, "", 0.5),))


def held(gives_way: GivesWay, **objective: float) -> tuple[list[Proposal], str]:
    """What is proposed once the latency is missed, and what it says."""
    view = replace(batches(), objective=Objective(latency_p95_s=8.0, **objective))
    proposals = list(RetuneResolver(gives_way=gives_way).resolve(view, [LATE]))
    return proposals, " ".join(p.message or (p.prediction.text if p.prediction else "") for p in proposals)


def test_a_throughput_objective_is_planned_for_together_with_the_latency() -> None:
    (proposal,), text = held("latency", throughput_per_s=2_000.0)
    assert proposal.patch.values[EXECUTORS_KNOB] > EXECUTORS
    assert text.startswith("for 2,000 rows/s, p95 latency")


def test_what_gives_way_is_said() -> None:
    (alone,), text = held("latency", throughput_per_s=3_000.0)
    needed = alone.patch.values[EXECUTORS_KNOB]
    assert "the cost limit of 7" not in text

    (closest, alert), _ = held("latency", throughput_per_s=3_000.0, cost_limit=7.0)
    assert closest.patch.values == {EXECUTORS_KNOB: 7}
    assert alert.kind == ALERT
    sentence = f"the cost limit of 7 does not allow the latency: {needed:g} instances would meet it"
    assert closest.prediction is not None
    assert closest.prediction.text.endswith(sentence)
    assert sentence in alert.message

    (dearer,), text = held("cost", throughput_per_s=3_000.0, cost_limit=7.0)
    assert dearer.patch.values[EXECUTORS_KNOB] == needed
    assert text.endswith("the plan exceeds the cost limit of 7")


def test_a_throughput_that_gives_way_is_held_as_far_as_rows_arrive() -> None:
    objective = Objective(latency_p95_s=8.0, throughput_per_s=3_000.0, cost_limit=8.0)
    ahead = Diagnosis(RISE_AHEAD, "count", 0.9, rise(1_500.0))
    (proposal,) = RetuneResolver(gives_way="throughput").resolve(replace(batches(), objective=objective), [ahead])
    assert EXECUTORS < proposal.patch.values[EXECUTORS_KNOB] <= 8
    assert proposal.prediction is not None
    assert proposal.prediction.text.startswith("for 1,500 rows/s")
    assert proposal.prediction.text.endswith("the plan covers what arrives instead of 3,000 rows/s")


def test_a_model_that_was_wrong_sizes_nothing_ahead() -> None:
    doubted = replace(batches(), trust={"count": Trust(0.9, 3), "lines": Trust(0.9, 3)})
    assert planned(2_000.0, view=doubted) == []
    tolerated = replace(doubted, objective=Objective(latency_p95_s=8.0, model_error=1.0))
    assert len(planned(2_000.0, view=tolerated)) == 1
