"""Names of stages, from what Spark 4.3 said about real queries (`recorded/stages.json`)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from homeostat.core.configuration import Knob
from homeostat.core.topology import Topology
from homeostat.spark.sense.declared_steps import DeclaredSteps
from homeostat.spark.sense.plan_graph import PlanOperator, StageGraph, exchanges, from_scopes, read_dot
from homeostat.spark.sense.stage_names import NameBook, RanStage
from support.paths import RECORDED as LOGS

RECORDED: dict[str, Any] = json.loads((LOGS / "stages.json").read_text())


def batches(query: str) -> list[list[RanStage]]:
    """The stages that ran, batch by batch."""
    stages = [stage for stage in RECORDED[query]["stages"] if stage["ran"]]
    return [
        [RanStage(s["stage"], s["job"], read_dot(s["dot"], s["incoming"])) for s in stages if s["batch"] == batch]
        for batch in sorted({stage["batch"] for stage in stages})
    ]


def named(book: NameBook, stages: Sequence[RanStage]) -> list[str]:
    parts = book.assign(stages)
    return [parts[stage.id].name for stage in stages]


def book_of(query: str, names: tuple[str, ...] = (), *, plan_seen: bool = True) -> NameBook:
    book = NameBook(query, DeclaredSteps(names))
    if plan_seen:
        book.learn(exchanges(RECORDED[query]["plan"]))
    return book


@pytest.mark.parametrize("plan_seen", [True, False])
@pytest.mark.parametrize(
    ("query", "names", "expected"),
    [
        ("wordcount", ("split",), ["scan", "split", "aggregate"]),
        ("wordcount", (), ["scan", "map", "aggregate"]),
        ("stateless", ("spread",), ["scan", "spread"]),
        ("stateless", (), ["scan", "sink"]),
        ("twice", ("first", "second"), ["scan", "first", "second", "aggregate"]),
        ("twice", (), ["scan", "map", "map-2", "aggregate"]),
        ("join", (), ["scan", "scan-2", "join"]),
        ("union", (), ["scan", "aggregate"]),
        ("written_twice", (), ["scan", "aggregate", "aggregate"]),
        ("cached", (), ["scan", "aggregate", "map", "sink"]),
    ],
)
def test_names_are_readable_and_the_same_in_every_batch(
    query: str, names: tuple[str, ...], expected: list[str], plan_seen: bool
) -> None:
    book = book_of(query, names, plan_seen=plan_seen)
    assert [named(book, batch) for batch in batches(query)] == [expected, expected]


def test_a_restarted_driver_gives_the_same_signatures() -> None:
    first, second = batches("twice")
    before, after = book_of("twice", ("first", "second")), book_of("twice", ("first", "second"))
    assert list(before.assign(first).values()) == list(after.assign(second).values())


def test_components_know_their_inputs_knobs_and_keys() -> None:
    book = book_of("wordcount", ("split",))
    for batch in batches("wordcount"):
        book.assign(batch)
    scan, split, aggregate = book.components(prefixed=False)
    assert (scan.kind, scan.inputs, scan.partitions) == ("source", (), Knob("source_partitions", "wordcount"))
    assert (split.inputs, split.partitions) == (("scan",), Knob("parallelism", "wordcount/split"))
    assert (aggregate.inputs, aggregate.partitions) == (("split",), Knob("state_partitions", "wordcount"))
    assert [part.keyed for part in (scan, split, aggregate)] == [False, False, True]
    assert {part.scaled_by for part in (scan, split, aggregate)} == {Knob("executors", "app")}


def test_a_join_has_two_inputs_and_each_source_its_component() -> None:
    book = book_of("join")
    book.assign(batches("join")[0])
    topology = Topology(book.components(prefixed=True))
    assert topology["join/join"].inputs == ("join/scan", "join/scan-2")
    assert book.source_names(2) == ("scan", "scan-2")
    assert [part.name for part in topology if part.joins] == ["join/join"]


def stages_behind_two_scans(operator: str) -> list[RanStage]:
    """A stage with this operator that reads the exchanges of two others."""
    scan, exchange = PlanOperator("1", "WholeStageCodegen (1)", 1), PlanOperator("2", "Exchange", 2)
    scans = [
        StageGraph((replace(scan, first_rdd=rdd), replace(exchange, first_rdd=rdd + 1)), frozenset({rdd, rdd + 1}))
        for rdd in (1, 11)
    ]
    reading = StageGraph((exchange, PlanOperator("3", operator, 21)), frozenset({21}), reads=frozenset({2, 12}))
    return [RanStage(number, 1, graph) for number, graph in enumerate((*scans, reading))]


@pytest.mark.parametrize(("operator", "joins"), [("WholeStageCodegen (3)", True), ("Union", False)])
def test_a_stage_that_reads_two_exchanges_joins_them_unless_it_unites_them(operator: str, joins: bool) -> None:
    book = NameBook("q")
    book.assign(stages_behind_two_scans(operator))
    assert [part.joins for part in book.components(prefixed=False)] == [False, False, joins]


def test_sources_read_by_one_stage_share_its_name() -> None:
    book = book_of("union")
    book.assign(batches("union")[0])
    assert book.source_names(2) == ("scan", "scan")


def test_sources_have_names_before_anything_was_seen() -> None:
    assert NameBook("q").source_names(2) == ("scan", "scan-2")


def test_a_batch_in_which_a_source_had_nothing_is_recognised_all_the_same() -> None:
    book = book_of("wordcount", ("split",))
    whole = batches("wordcount")[0]
    book.assign(whole)
    assert [part.name for part in book.find(whole[1:]).values()] == ["split", "aggregate"]
    assert len(book.parts) == 3


def test_a_source_that_was_silent_at_first_is_linked_later_and_listed_before_what_it_feeds() -> None:
    book = book_of("join")
    whole = batches("join")[0]
    book.assign(whole[1:])
    book.assign(whole)
    topology = Topology(book.components(prefixed=False))
    assert set(topology["join"].inputs) == {"scan", "scan-2"}


def test_a_stage_under_way_is_only_looked_up() -> None:
    book = book_of("wordcount")
    assert book.find(batches("wordcount")[0]) == {}
    assert not book.parts


def test_a_name_from_the_plan_replaces_a_guess() -> None:
    book = book_of("twice", ("only",), plan_seen=False)
    first, second = batches("twice")
    assert named(book, first) == ["scan", "map", "map-2", "aggregate"]
    book.learn(exchanges(RECORDED["twice"]["plan"]))
    assert named(book, second) == ["scan", "only", "map-2", "aggregate"]
    assert book.components(prefixed=False)[2].inputs == ("only",)


def test_without_graphs_stages_are_named_by_their_position() -> None:
    book = NameBook("q")
    for first in (10, 20):
        assert named(book, [RanStage(first + n, first) for n in range(3)]) == ["stage", "stage-2", "stage-3"]


def test_the_plan_is_asked_for_until_every_exchange_was_seen_but_not_for_ever() -> None:
    book = book_of("wordcount")
    for batch in batches("wordcount"):
        book.assign(batch)
    assert not book.curious
    own_jobs = book_of("cached")
    for _ in range(10):
        for batch in batches("cached"):
            assert own_jobs.curious
            own_jobs.assign(batch)
    assert not own_jobs.curious


def test_a_sink_right_behind_an_exchange_is_a_sink() -> None:
    scan = from_scopes([(1, "a", "MicroBatchScan"), (2, "b", "Exchange")])
    sink = from_scopes([(3, "b", "Exchange")], reads=[2])
    assert named(NameBook("q"), [RanStage(1, 1, scan), RanStage(2, 1, sink)]) == ["scan", "sink"]
    assert (scan.feeds, sink.feeds) == (True, False)


def spread_stages(spread: bool) -> list[RanStage]:
    """A keyed operator as Spark 4.3 runs it, with the step that adds rows up before it and without."""
    scan = from_scopes([(1, "a", "MicroBatchScan"), (2, "b", "Exchange")])
    if not spread:
        state = from_scopes([(3, "b", "Exchange"), (4, "c", "TransformWithStateInPySpark")], reads=[2])
        return [RanStage(1, 1, scan), RanStage(2, 1, state)]
    combine = from_scopes([(3, "b", "Exchange"), (4, "c", "MapInArrow"), (5, "d", "Exchange")], reads=[2])
    state = from_scopes([(6, "d", "Exchange"), (7, "e", "TransformWithStateInPySpark")], reads=[5])
    return [RanStage(1, 1, scan), RanStage(2, 1, combine), RanStage(3, 1, state)]


@pytest.mark.parametrize(
    ("names", "expected"), [((), ["scan", "state"]), (("count-combine",), ["scan", "count-combine", "state"])]
)
def test_a_keyed_operator_knows_the_knob_that_spreads_its_rows(names: tuple[str, ...], expected: list[str]) -> None:
    book = NameBook("words", DeclaredSteps(names, spreads=("count",)))
    assert named(book, spread_stages(spread=bool(names))) == expected
    by_name = {component.name: component for component in book.components(prefixed=False)}
    knob = Knob("spread", "words/count")
    assert {name: component.spread for name, component in by_name.items() if component.spread} == {"state": knob}
    if names:
        assert by_name["count-combine"].partitions == knob
        assert by_name["state"].inputs == ("count-combine",)


def test_a_source_knows_the_knob_that_deals_its_rows_anew() -> None:
    book = NameBook("words", DeclaredSteps(rebalances=("lines",)))
    named(book, spread_stages(spread=False))
    scan, state = book.components(prefixed=False)
    assert (scan.spread, state.spread) == (Knob("spread", "words/lines"), None)
    assert "hs.keyed" in state.unspread


def test_a_keyed_operator_beside_one_of_another_kind_is_not_told_to_be_what_it_is() -> None:
    scan = spread_stages(spread=False)[0]
    keyed = from_scopes(
        [(3, "b", "Exchange"), (4, "c", "TransformWithStateInPySpark"), (5, "d", "Exchange")], reads=[2]
    )
    state = from_scopes([(6, "d", "Exchange"), (7, "e", "TransformWithStateInPySpark")], reads=[5])
    book = NameBook("words", DeclaredSteps(spreads=("count",)))
    named(book, [scan, RanStage(2, 1, keyed), RanStage(3, 1, state)])
    for component in book.components(prefixed=False)[1:]:
        assert component.spread is None
        assert "operators with custom state (2) differs from the number of calls (1)" in component.unspread
        assert "does not use hs.keyed" not in component.unspread


def test_what_spark_combines_itself_says_so() -> None:
    book = book_of("wordcount")
    named(book, batches("wordcount")[0])
    aggregate = book.components(prefixed=False)[-1]
    assert aggregate.spread is None
    assert "Spark already combines the rows of a key" in aggregate.unspread


def test_an_operator_that_cannot_be_spread_knows_where_its_keys_are_told() -> None:
    book = NameBook("words", DeclaredSteps(watches=("sessions",)))
    named(book, spread_stages(spread=False))
    scan, state = book.components(prefixed=False)
    assert (scan.watched, state.watched) == ("", "words/sessions")

    keyed = NameBook("words", DeclaredSteps(spreads=("count",), watches=("sessions",)))
    named(keyed, spread_stages(spread=False))
    assert [component.watched for component in keyed.components(prefixed=False)] == ["", ""]
