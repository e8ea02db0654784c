"""A decision as three sentences: what was wrong, what was done, what came of it."""

from __future__ import annotations

import pytest

from homeostat.core.records import ActionContent, DiagnosisContent, OutcomeContent, ReceiptContent, Record
from homeostat.store.in_memory import MemoryStore
from homeostat.web.stories import Story, stories

DIAGNOSIS = Record.of("d-1", 10.0, DiagnosisContent(cause="under-provisioned"), "count is too slow", "count")
ACTION = Record.of(
    "a-1",
    10.0,
    ActionContent(action_kind="scale-up", patch={"parallelism.count": 5}, previous={"parallelism.count": 3}),
    "scale-up: parallelism.count = 5",
    "count",
    ("d-1",),
)
RECEIPT = Record.of("c-1", 20.0, ReceiptContent("a-1", True), "a-1 took effect", "count", ("a-1",))
OUTCOME = Record.of("u-1", 90.0, OutcomeContent("a-1", "helped"), "a-1 helped", "count", ("a-1",))
OVER = Record.of("e-1", 95.0, DiagnosisContent(over=True), "it is over", "count", ("d-1",))


def story_of(*records: Record) -> Story:
    store = MemoryStore()
    store.append("run", records)
    (story,) = stories(store, "run", 0, 10).stories
    return story


def test_a_judged_action_is_reported_from_problem_to_result() -> None:
    story = story_of(DIAGNOSIS, ACTION, RECEIPT, OUTCOME, OVER)
    assert story.problem == "count is too slow."
    assert story.done == "Scale-up: parallelism.count 3 → 5."
    assert story.result == "a-1 helped."
    assert [step.id for step in story.steps] == ["d-1", "a-1", "c-1", "u-1"], "the end of a diagnosis is no step"


@pytest.mark.parametrize(
    ("records", "result"),
    [
        ((ACTION,), "No effect has been observed yet."),
        ((ACTION, RECEIPT), "a-1 took effect. It has not been judged yet."),
    ],
)
def test_an_action_that_is_not_judged_says_how_far_it_is(records: tuple[Record, ...], result: str) -> None:
    assert story_of(DIAGNOSIS, *records).result == result


def test_decisions_come_in_pages_the_newest_first() -> None:
    store = MemoryStore()
    store.append("run", [Record.of(f"a-{n}", float(n), ActionContent(), f"action {n}") for n in range(5)])
    first = stories(store, "run", 0, 2)
    assert ([story.id for story in first.stories], first.next) == (["a-4", "a-3"], 2)
    assert stories(store, "run", 4, 2).next is None
