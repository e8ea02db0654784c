"""Runs of queries, and the topology of all of them."""

from __future__ import annotations

from homeostat.spark.sense.declared_steps import DeclaredSteps
from homeostat.spark.sense.known_queries import QueryBook
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.stage_names import RanStage

STAGES = [RanStage(1, 1), RanStage(2, 1)]


def test_names_outlive_a_restart_and_another_plan_gets_its_own() -> None:
    handles = [QueryHandle("words", "run-1")]
    book = QueryBook(lambda: handles, lambda reason: None)
    (first,) = book.running()
    book.name(first, STAGES, whole=True)
    handles[:] = [QueryHandle("words", "run-2")]
    second = book.run("run-2")
    assert second is not None
    assert second.query is first.query
    assert second.query.names.parts
    handles[:] = [QueryHandle("words", "run-3", steps=DeclaredSteps(("split",)))]
    third = book.run("run-3")
    assert third is not None
    assert not third.query.names.parts
    assert book.run("of another query") is None


def test_the_topology_is_announced_when_it_is_known_and_when_it_changes() -> None:
    handles, reasons = [QueryHandle("words", "run-1")], list[str]()
    book = QueryBook(lambda: handles, reasons.append)
    (run,) = book.running()
    assert book.name(run, STAGES, whole=False) == {}
    assert book.name(run, STAGES, whole=True) == {1: "stage", 2: "stage-2"}
    book.name(run, STAGES, whole=True)
    assert reasons == ["the plan is known"]
    book.name(run, [*STAGES, RanStage(3, 1)], whole=True)
    assert reasons == ["the plan is known", "the plan changed"]


def test_with_several_queries_names_have_the_query_in_front() -> None:
    handles = [QueryHandle("words", "run-1"), QueryHandle("lines", "run-2")]
    book = QueryBook(lambda: handles, lambda reason: None)
    first, second = book.running()
    book.name(first, STAGES, whole=True)
    book.name(second, STAGES, whole=True)
    assert book.topology is not None
    assert set(book.topology.names) == {"words/stage", "words/stage-2", "lines/stage", "lines/stage-2"}
    assert book.source_names(first, 1) == ("words/stage",)


def test_the_runs_of_a_query_that_restarts_for_ever_are_forgotten_but_not_the_present_ones() -> None:
    handles = [QueryHandle("steady", "steady-run"), QueryHandle("words", "run-0")]
    book = QueryBook(lambda: handles, lambda reason: None)
    for number in range(1_000):
        handles[1] = QueryHandle("words", f"run-{number}")
        book.running()
    runs = [number for number in range(1_000) if book.run(f"run-{number}") is not None]
    assert runs == list(range(899, 1_000))
    assert book.run("steady-run") is not None
