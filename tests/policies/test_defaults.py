"""What the default flavour does about micro-batches: admission, partitions that leave slots idle, batches that hang."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.actions import ADMIT_MORE, SCALE_UP
from homeostat.core.causes import ADMISSION_LIMITED
from homeostat.core.configuration import (
    EXECUTORS,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    Capabilities,
    Knob,
    KnobSpec,
)
from homeostat.core.cycle import step
from homeostat.core.events import Apply, Event, Notify, Observed, UnderWay
from homeostat.core.loop_state import State
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View
from homeostat.policies import registry
from homeostat.testing import instances, observations, play, view_of
from homeostat.testing.builders import described

ROWS = Knob(ROWS_PER_TRIGGER, "main")
WORKERS = Knob(EXECUTORS, "app")
SPLIT = Knob(PARALLELISM, "main/split")
POLICY = registry.build("provisioning")


def full_batches(arrival_per_s: float, seconds: float) -> View:
    """A bound of 1,000 rows for each trigger of two seconds, always reached, with ever more rows waiting."""
    tasks = {"lines": instances([250.0] * 4, 0.1, finish_s=0.1), "count": instances([250.0] * 4, 0.2, finish_s=0.2)}
    waiting = [1000.0 + 100 * n for n in range(12)]
    observed = observations(
        12,
        tasks,
        span_s=2.0,
        executors=4,
        arrival_per_s=arrival_per_s,
        rows=1000.0,
        seconds=seconds,
        trigger_s=2.0,
        pending_rows=waiting,
    )
    knobs = {WORKERS: KnobSpec(1, 20, cost=1.0), ROWS: KnobSpec(1, 10**9)}
    return view_of(observed, values={ROWS: 1000}, capabilities=Capabilities(knobs, can_replace=True))


def test_a_bound_on_rows_that_holds_the_rate_down_is_raised_and_no_executor_is_added() -> None:
    view = full_batches(arrival_per_s=550.0, seconds=0.5)
    played = play(POLICY, view, view.window.observations)

    causes = [r.body["cause"] for r in played.records if r.kind == "diagnosis" and "cause" in r.body]
    actions = [c for c in played.commands if isinstance(c, Apply)]
    assert causes[0] == ADMISSION_LIMITED
    assert actions[0].desired[ROWS] == 2 * 550 * 2
    assert actions[0].desired[WORKERS] == view.configuration[WORKERS]
    kinds = [r.body["kind"] for r in played.records if r.kind == "action"]
    assert kinds[0] == ADMIT_MORE


def test_a_raised_bound_says_what_it_expects_and_is_judged_by_that() -> None:
    view = full_batches(arrival_per_s=550.0, seconds=0.5)
    played = play(POLICY, view, view.window.observations)

    action = next(r for r in played.records if r.kind == "action")
    expected = "batches of up to 2,200 rows instead of 1,000, 1,100 rows/s if they end in time"
    assert action.body["prediction"] == {"gain": 0.0, "touched": ["lines", "count"], "text": expected}
    outcome = next(r for r in played.records if r.kind == "outcome")
    assert outcome.body["action"] == action.id


def test_a_bound_that_the_application_sets_itself_is_reported_and_not_raised() -> None:
    view = full_batches(arrival_per_s=550.0, seconds=0.5)
    cannot = Capabilities({WORKERS: view.capabilities.knobs[WORKERS]}, can_replace=True)
    played = play(POLICY, replace(view, capabilities=cannot), view.window.observations)

    assert not [command for command in played.commands if isinstance(command, Apply)]
    alerts = [command.message for command in played.commands if isinstance(command, Notify)]
    assert any("rows per trigger" in alert and "the application sets it itself" in alert for alert in alerts)


def test_full_batches_that_take_too_long_are_not_the_bounds_fault() -> None:
    view = full_batches(arrival_per_s=550.0, seconds=2.6)
    played = play(POLICY, view, view.window.observations)

    causes = {r.body["cause"] for r in played.records if r.kind == "diagnosis" and "cause" in r.body}
    assert ADMISSION_LIMITED not in causes


def one_partition(arrival_per_s: float) -> View:
    """One executor and one partition, which takes 1,000 rows a second."""
    tasks = {"split": instances([2000.0], 2.0, finish_s=2.0)}
    observed = observations(
        10, tasks, span_s=2.2, executors=1, arrival_per_s=arrival_per_s, rows=2000.0, seconds=2.2, trigger_s=2.0
    )
    shape = Topology((Component("split", "source", WORKERS, partitions=SPLIT),))
    knobs = {WORKERS: KnobSpec(1, 20, cost=1.0), SPLIT: KnobSpec(1, 100, live=False, apply_s=5.0)}
    knobs[ROWS] = KnobSpec(1, 10**9, live=False)
    values = {SPLIT: 1, ROWS: 4000}
    return view_of(observed, topology=shape, values=values, capabilities=Capabilities(knobs, can_replace=True))


def test_executors_come_with_the_partitions_that_make_them_useful_in_one_plan() -> None:
    view = one_partition(arrival_per_s=3000.0)
    played = play(POLICY, view, view.window.observations)

    actions = [c for c in played.commands if isinstance(c, Apply)]
    assert next(r.body["kind"] for r in played.records if r.kind == "action") == SCALE_UP
    desired = actions[0].desired
    assert desired[WORKERS] >= 4
    assert desired[SPLIT] >= desired[WORKERS]
    assert desired[ROWS] >= 2 * 3000 * 2, "the bound on rows grows with the plan that restarts anyway"


def test_a_batch_that_hangs_is_reported_with_where_and_how_far_it_is() -> None:
    view = full_batches(arrival_per_s=450.0, seconds=0.5)
    state = State(mode="regulate")
    last_s = view.window.observations[-1].at_s
    events: list[Event] = [described(view), *(Observed(o) for o in view.window.observations)]
    state, _, _ = step(POLICY, state, events, last_s)
    hanging = UnderWay("", 12, last_s, last_s, "count", tasks_done=3, tasks=4)

    alerts: list[Notify] = []
    for seconds in range(5, 120, 5):
        event = replace(hanging, at_s=last_s + seconds)
        state, commands, _ = step(POLICY, state, [event], last_s + seconds)
        alerts += [c for c in commands if isinstance(c, Notify) and "batch 12" in c.message.lower()]
    assert len(alerts) == 1
    assert alerts[0].component == "count"
    assert "3 of 4 tasks" in alerts[0].message


def test_a_long_batch_that_is_seen_running_is_no_silence() -> None:
    view = full_batches(arrival_per_s=450.0, seconds=0.5)
    last_s = view.window.observations[-1].at_s
    events: list[Event] = [described(view), *(Observed(o) for o in view.window.observations)]
    state, _, _ = step(POLICY, State(mode="regulate"), events, last_s)

    running = UnderWay("", 12, last_s + 40, last_s + 70)
    state, commands, _ = step(POLICY, state, [running], last_s + 70)
    assert not state.silent
    assert not [c for c in commands if isinstance(c, Notify)]
