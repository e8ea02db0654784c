"""The demonstration on Spark: its plan, and one short real run."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from homeostat.core.errors import HomeostatError
from homeostat.core.records import Record
from homeostat.lab.demonstration import REGULATED, SPARKS_OWN, UNREGULATED, Performance, Plan, Variant, perform_each
from homeostat.lab.demonstration_feed import ExperimentFeed
from homeostat.lab.faults import executor_processes
from homeostat.lab.kafka.feed import KafkaFeed
from homeostat.lab.source_control import ControlFile
from homeostat.log_views.timeline import TakenAction, Timeline
from homeostat.runtime.launch import LEASE
from homeostat.store.sqlite import SqliteStore
from support.demonstrations import PLAN, QUIET, SHORT, timeline


def test_the_plan_knows_its_load_and_says_what_changes() -> None:
    assert [PLAN.load_at(at_s) for at_s in (-1.0, 0.0, 44.9, 45.0, 1e6)] == [1000, 1000, 1000, 2000, 600]
    assert [change.text for change in PLAN.load_changes] == [
        "the load rises from 1,000 to 2,000 rows/s",
        "the load falls from 2,000 to 600 rows/s",
    ]


def deed(kind: str, at_s: float, verdict: str = "helped") -> TakenAction:
    return TakenAction("a-1", at_s, kind, kind, "cause", 9.0, verdict)


def times(plan: Plan) -> tuple[float, ...]:
    return (*(at_s for at_s, _ in plan.load), plan.slow_at_s, plan.duration_s)


@pytest.mark.parametrize(
    ("deeds", "now_s", "then"),
    [
        ((), 60.0, times(PLAN)),
        ((deed("scale-up", 10.0),), 12.0, times(PLAN)),
        ((deed("scale-up", 47.0, ""),), 60.0, times(PLAN)),
        ((deed("scale-up", 44.0),), 60.0, times(PLAN)),
        ((deed("replace", 50.0),), 60.0, times(PLAN)),
        ((deed("scale-up", 47.0),), 60.0, (0.0, 45.0, 160.0, 60.0, 210.0)),
        ((deed("scale-up", 47.0, "confounded"),), 60.0, (0.0, 45.0, 160.0, 60.0, 210.0)),
        ((deed("scale-up", 47.0),), 110.0, times(PLAN)),
        ((deed("replace", 106.0),), 120.0, (0.0, 45.0, 120.0, 105.0, 210.0)),
        ((deed("replace", 106.0),), 170.0, times(PLAN)),
        ((deed("scale-down", 165.0),), 180.0, (0.0, 45.0, 160.0, 105.0, 180.0)),
        ((deed("scale-down", 165.0),), 211.0, times(PLAN)),
    ],
)
def test_what_is_next_comes_as_soon_as_the_answer_to_what_came_before_has_been_judged(
    deeds: tuple[TakenAction, ...], now_s: float, then: tuple[float, ...]
) -> None:
    assert times(PLAN.hasten(deeds, now_s)) == then


def test_a_plan_that_was_hastened_goes_on_from_there() -> None:
    risen = deed("scale-up", 47.0)
    plan = PLAN.hasten((risen,), 60.0)
    assert plan.hasten((risen,), 61.0) == plan
    replaced = (risen, deed("replace", 70.0))
    assert times(plan.hasten(replaced, 90.0)) == (0.0, 45.0, 90.0, 60.0, 210.0)


def test_the_source_is_told_of_a_load_that_falls_early(tmp_path: Path) -> None:
    performance = Performance(replace(PLAN, slow_at_s=200.0), REGULATED, tmp_path, QUIET)
    offsets = performance.directory / "checkpoints" / "wordcount" / "offsets"
    offsets.mkdir(parents=True)
    (offsets / "7").write_text('v1\n{}\n{"started_s": 990.0, "row": 100}')
    (performance.directory / "control").mkdir()
    control = ControlFile(str(performance.directory / "control" / "wordcount.json"))
    with closing(SqliteStore(performance.log)) as log:
        log.append("demo/wordcount", [Record("a-1", "action", 1050.0, "scale-up", body={"kind": "scale-up"})])
        performance.go_on(119.0, 1000.0)
        assert control.read().load == ()
        verdict = {"action": "a-1", "verdict": "helped"}
        log.append("demo/wordcount", [Record("u-1", "outcome", 1120.0, "a-1 helped", body=verdict)])
        performance.go_on(120.0, 1000.0)
    assert [tuple(step) for step in control.read().load] == [(10.0, 10.0), (55.0, 20.0), (130.0, 6.0)]
    assert performance.events[-1].text == "the load falls from 2,000 to 600 rows/s"


def test_in_a_comparison_all_get_the_load_and_the_fault_at_the_times_of_the_plan() -> None:
    variants = (REGULATED, UNREGULATED, SPARKS_OWN)
    performed: list[tuple[Variant, Plan]] = []

    def perform(plan: Plan, variant: Variant) -> Timeline:
        performed.append((variant, plan))
        return timeline(variant.title)

    timelines = perform_each(variants, PLAN, perform)
    assert [variant for variant, _ in performed] == list(variants)
    assert {times(plan.hasten((deed("scale-up", 47.0),), 60.0)) for _, plan in performed} == {times(PLAN)}
    assert [each.title for each in timelines] == [variant.title for variant in variants]


def test_alone_the_demonstration_may_hasten_its_plan() -> None:
    plans: list[Plan] = []

    def perform(plan: Plan, variant: Variant) -> Timeline:
        plans.append(plan)
        return timeline(variant.title)

    perform_each((REGULATED,), PLAN, perform)
    assert plans == [PLAN]


def test_what_an_earlier_demonstration_left_is_removed(tmp_path: Path) -> None:
    directory = tmp_path / REGULATED.name
    (directory / "ledger").mkdir(parents=True)
    (directory / "ledger" / "0.parquet").touch()
    (directory / "log.sqlite").touch()
    Performance(PLAN, REGULATED, tmp_path, QUIET).prepare()
    assert {path.name for path in directory.iterdir()} == {LEASE, "wordcount.py", "homeostat.toml"}


class BrokenFeed(ExperimentFeed):
    def check(self) -> None:
        raise HomeostatError("the rows have ended")


@pytest.mark.spark
@pytest.mark.soak
def test_if_no_more_rows_can_be_produced_everything_stops_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(HomeostatError, match="the rows have ended"):
        Performance(SHORT, REGULATED, tmp_path, QUIET, BrokenFeed).run()


@pytest.mark.soak
def test_a_short_one_on_kafka_counts_every_row_of_the_topic_once(kafka_jars: None, tmp_path: Path) -> None:
    pytest.importorskip("confluent_kafka", reason="no Kafka: pip install 'homeostat[kafka]'")
    performance = Performance(SHORT, REGULATED, tmp_path, QUIET, KafkaFeed)
    result = performance.run()
    assert result.differences == ()
    # The load alone has 300 rows/s for 20 s and 600 for 25 s.
    assert result.rows > 10_000
    assert "becomes 4 times slower" in result.changes[1].text
    assert executor_processes(performance.about["application"]) == {}


@pytest.mark.spark
@pytest.mark.soak
@pytest.mark.parametrize("variant", [REGULATED, UNREGULATED, SPARKS_OWN], ids=lambda variant: variant.name)
def test_a_short_one_on_real_spark_loses_nothing_and_leaves_nothing(tmp_path: Path, variant: Variant) -> None:
    performance = Performance(SHORT, variant, tmp_path, QUIET)
    result = performance.run()
    assert result.differences == ()
    assert result.rows > 0
    assert result.points
    assert [change.at_s for change in result.changes[:1]] == [20.0]
    assert "becomes 4 times slower" in result.changes[1].text
    assert executor_processes(performance.about["application"]) == {}
