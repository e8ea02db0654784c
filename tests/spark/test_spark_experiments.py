"""The paper's experiments on real Spark: every row is counted once, and the loop's decisions are judged.

Short forms belong to `make test`, long ones to `make soak`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import ExitStack
from functools import partial
from itertools import count, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.actions import PLAN, SCALE_DOWN, SCALE_UP
from homeostat.core.causes import DATA_SKEW, SLOW_INSTANCE, UNDER_PROVISIONED
from homeostat.core.configuration import EXECUTORS, SOURCE_PARTITIONS, Knob
from homeostat.core.loop_state import Mode
from homeostat.core.objective import Objective
from homeostat.core.records import ACTION, ActionContent, Record, with_content
from homeostat.lab.bench.ground import Ground
from homeostat.lab.bench.twin_experiments import EXPERIMENTS, Done, on_spark
from homeostat.lab.experiment import Moment, Trial, TrialResult
from homeostat.lab.faults import SlowExecutor, executor_processes
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import NAME, specification
from homeostat.sim.scenario.spec import Noise, WorkloadSpec
from support.judged import every_row_once, judge_attempts

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS = Knob(EXECUTORS, "app")
PARTITIONS = Knob(SOURCE_PARTITIONS, NAME)
QUICK = {
    "loop": {"settle": "12 s"},
    "guards": {"cooldown": "4 s", "cooldown_shrink": "8 s", "confirm": "8 s"},
}
SLOWDOWN = 4.0
Start = Callable[..., Trial]
Judgement = Callable[[TrialResult], None]


@pytest.fixture
def trial(spark: SparkSession, workspace: Path) -> Start:
    """Makes a word count in a directory of its own each time."""
    numbers = count(1)

    def make(
        rate_per_s: float,
        *,
        noise: float = 0.0,
        hot: tuple[tuple[int, float], ...] = (),
        policy: str = "provisioning",
        mode: Mode = "regulate",
        **spec: Any,
    ) -> Trial:
        home = workspace / f"attempt-{next(numbers)}"
        workload = WorkloadSpec(kind="constant", rate_per_s=rate_per_s, noise=Noise(noise))
        profile = Profile(workload, hot=hot)
        word_count = specification(profile, home / "ledger", spec.pop("objective", None), trigger_s=2.0, **spec)
        return Trial(spark, home / "app", word_count, policy, QUICK, mode)

    return make


def assert_decisions(attempt: Callable[[], TrialResult], judgement: Judgement) -> None:
    judge_attempts(attempt, data=every_row_once, judgement=judgement)


def acted(*kinds: str) -> Callable[[Trial], bool]:
    """Whether these kinds of action took effect, in this order, with others between them or not."""

    def done(trial: Trial) -> bool:
        applied = {str(r.body["action"]) for r in trial.records("receipt") if r.body["applied"]}
        taken = iter(str(r.body["kind"]) for r in trial.records("action") if r.id in applied)
        return all(kind in taken for kind in kinds)

    return done


def replaced(trial: Trial) -> bool:
    """Whether an executor was replaced, by an action of its own or as a part of a plan."""
    applied = {str(r.body["action"]) for r in trial.records("receipt") if r.body["applied"]}
    return any(record.id in applied and action.retire for record, action in actions_of(trial.records("action")))


def has_grown(trial: Trial) -> bool:
    return acted(SCALE_UP)(trial) or acted(PLAN)(trial)


def actions_of(records: Iterable[Record]) -> list[tuple[Record, ActionContent]]:
    return list(with_content(records, ActionContent))


def diagnosed(cause: str) -> Callable[[Trial], bool]:
    return lambda trial: any(r.body.get("cause") == cause for r in trial.records("diagnosis"))


def test_e1_a_load_that_doubles_is_met_with_more_executors(trial: Start) -> None:
    def attempt() -> TrialResult:
        return trial(750.0, executors=2).run(180.0, [Moment(8.0, lambda t: t.load(2.1))], until=acted(SCALE_UP))

    def judgement(result: TrialResult) -> None:
        assert result.actions == [SCALE_UP]
        assert result.causes()[-1] == UNDER_PROVISIONED
        assert result.final[WORKERS] >= 3

    assert_decisions(attempt, judgement)


@pytest.mark.soak
def test_e1_executors_follow_the_load_up_and_down(trial: Start) -> None:
    """−20 %, +30 %, twice the load, which is more than three can do, then a fifth of it."""
    steps = ((60.0, 0.8), (120.0, 1.3), (180.0, 2.0), (270.0, 0.2))
    executors: list[int] = []

    def attempt() -> TrialResult:
        executors.clear()
        return trial(1000.0, executors=3).run(
            600.0,
            [Moment(at_s, partial(Trial.load, factor=factor)) for at_s, factor in steps],
            until=lambda t: t.elapsed_s > 300.0 and acted(SCALE_UP, SCALE_DOWN)(t),
            each=lambda t: executors.append(len(t.application.sensors.workers().ids)),
        )

    def judgement(result: TrialResult) -> None:
        doubled = [str(r.body["kind"]) for r in result.of("action") if 180.0 < r.at_s - result.started_s < 270.0]
        before = [str(r.body["kind"]) for r in result.of("action") if r.at_s - result.started_s < 180.0]
        assert doubled[:1] == [SCALE_UP]
        assert len(before) <= 2, "a load that hardly changes is no reason to go up and down"
        assert result.actions[-1] == SCALE_DOWN
        assert result.final[WORKERS] < max(executors)

    assert_decisions(attempt, judgement)


@pytest.mark.soak
@pytest.mark.usefixtures("two_executors")
def test_e1_what_the_load_does_not_need_is_given_back_and_taken_again_when_it_doubles(
    spark: SparkSession, workspace: Path
) -> None:
    """As in `bench twin`: −20 %, then +30 %, then twice the load, from twice the executors that it needs at first."""
    (e1,) = (experiment for experiment in EXPERIMENTS if experiment.name == "E1")
    numbers = count(1)

    def attempt() -> tuple[Done, TrialResult]:
        home = workspace / f"attempt-{next(numbers)}"
        home.mkdir()
        return on_spark(Ground(spark, home), e1)

    def judgement(results: tuple[Done, TrialResult]) -> None:
        done, _ = results
        assert [kind for kind, _ in groupby(done.kinds)] == [SCALE_DOWN, SCALE_UP]
        assert done.executors >= e1.executors, "it had given some back"

    judge_attempts(attempt, data=lambda results: every_row_once(results[1]), judgement=judgement)


@pytest.mark.soak
def test_e2_from_one_executor_and_one_partition_to_the_objective(trial: Start) -> None:
    objective = Objective(throughput_per_s=1200.0)

    def attempt() -> TrialResult:
        word_count = trial(1200.0, objective=objective, policy="throughput", executors=1, source_partitions=1)
        return word_count.run(240.0, until=lambda t: len(t.records("outcome")) > 0)

    def judgement(result: TrialResult) -> None:
        assert result.actions == [SCALE_UP]
        assert result.verdicts == ["helped"]
        assert result.final[WORKERS] >= 2
        assert result.final[PARTITIONS] >= result.final[WORKERS]

    assert_decisions(attempt, judgement)


@pytest.mark.soak
def test_e2_goes_on_until_nothing_waits_any_more(trial: Start) -> None:
    objective = Objective(throughput_per_s=1800.0)

    def attempt() -> TrialResult:
        word_count = trial(1800.0, objective=objective, policy="throughput", executors=1, source_partitions=1)
        return word_count.run(600.0, until=lambda t: len(t.records("outcome")) > 0 and keeps_up(t))

    def judgement(result: TrialResult) -> None:
        assert result.actions[0] == SCALE_UP
        assert result.final[PARTITIONS] >= result.final[WORKERS] >= 3

    assert_decisions(attempt, judgement)


def with_a_slow_executor(
    word_count: Trial, longest_s: float, load: float, until: Callable[[Trial], bool]
) -> TrialResult:
    """After 12 seconds the first executor that runs turns four times slower, after 16 more rows arrive."""
    with ExitStack() as faults:

        def slow_down(trial: Trial) -> None:
            application = trial.spark.sparkContext.applicationId
            running = executor_processes(application)  # the test before may have left one that is about to end
            victim = next(each for each in trial.application.sensors.workers().ids if each in running)
            faults.enter_context(SlowExecutor(victim, SLOWDOWN, application))

        return word_count.run(longest_s, [Moment(12.0, slow_down), Moment(16.0, lambda t: t.load(load))], until=until)


def test_e3_a_slow_executor_is_replaced_and_reported_from_too_few_of_them(trial: Start) -> None:
    def attempt() -> TrialResult:
        word_count = trial(900.0, executors=3, rows_per_trigger=8000)
        return with_a_slow_executor(word_count, 300.0, 2.4, lambda t: replaced(t) and diagnosed(UNDER_PROVISIONED)(t))

    def judgement(result: TrialResult) -> None:
        assert any(action.retire for _, action in actions_of(result.of(ACTION)))
        assert {SLOW_INSTANCE, UNDER_PROVISIONED} <= set(result.causes())

    assert_decisions(attempt, judgement)


@pytest.mark.soak
def test_e3_a_slow_executor_and_too_few_of_them_are_both_mended(trial: Start) -> None:
    def attempt() -> TrialResult:
        word_count = trial(900.0, executors=3, rows_per_trigger=8000)
        return with_a_slow_executor(word_count, 600.0, 2.0, lambda t: replaced(t) and has_grown(t))

    def judgement(result: TrialResult) -> None:
        assert any(action.retire for _, action in actions_of(result.of(ACTION)))
        assert result.final[WORKERS] > 3
        assert {SLOW_INSTANCE, UNDER_PROVISIONED} <= set(result.causes())

    assert_decisions(attempt, judgement)


def noisy(trial: Start) -> Trial:
    """One wave of tasks leaves a third of the trigger; with an executor less there would be two, which take it all."""
    return trial(1000.0, noise=0.15, executors=3, source_partitions=3, state_partitions=2)


@pytest.mark.soak
def test_e4_noise_alone_is_no_reason_to_act(trial: Start) -> None:
    def judgement(result: TrialResult) -> None:
        assert len(result.batches) > 10
        assert result.actions == []

    assert_decisions(lambda: noisy(trial).run(180.0, until=lambda t: len(t.records("batch")) > 10), judgement)


@pytest.mark.soak
def test_e4_noise_for_ten_minutes_is_no_reason_to_act(trial: Start) -> None:
    def judgement(result: TrialResult) -> None:
        assert result.actions == []

    assert_decisions(lambda: noisy(trial).run(600.0), judgement)


def only_the_hot_key_is_named(result: TrialResult) -> None:
    assert DATA_SKEW in result.causes()
    assert SLOW_INSTANCE not in result.causes()


def test_e6_a_hot_key_is_distinguished_from_a_slow_executor(trial: Start) -> None:
    def attempt() -> TrialResult:
        word_count = trial(900.0, hot=((0, 0.7),), executors=3, mode="advise", keyed=True, rows_per_trigger=3600)
        return word_count.run(180.0, until=diagnosed(DATA_SKEW))

    assert_decisions(attempt, only_the_hot_key_is_named)


@pytest.mark.soak
def test_e6_a_key_that_grows_hot_is_named_and_nothing_else_is(trial: Start) -> None:
    """A fifth of the rows, half of them, then 70 %: from the half on its partition is more than one task can do."""
    rate_per_s, each_s = 1300.0, 120.0
    hot = tuple((round(step * each_s * rate_per_s), share) for step, share in enumerate((0.2, 0.5, 0.7)))

    def attempt() -> TrialResult:
        word_count = trial(rate_per_s, hot=hot, executors=4, mode="advise", keyed=True, rows_per_trigger=5200)
        return word_count.run(600.0, until=lambda t: t.elapsed_s > 3 * each_s and diagnosed(DATA_SKEW)(t))

    assert_decisions(attempt, only_the_hot_key_is_named)


def keeps_up(trial: Trial) -> bool:
    """Three batches in a row behind which hardly anything waits."""
    last = [r.body for r in trial.records("batch")][-3:]
    return len(last) == 3 and all(float(b["pending_rows"] or 1e9) < 6000 for b in last)  # type: ignore[arg-type]
