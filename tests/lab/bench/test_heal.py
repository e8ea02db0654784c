"""`homeostat bench heal` counts what the log says."""

from __future__ import annotations

from collections import Counter

import pytest

from homeostat.core.actions import REPLACE, SCALE_UP
from homeostat.core.records import ACTION, BATCH, OUTCOME, RECEIPT, Record
from homeostat.lab.bench.heal import (
    CLEAN,
    LONGEST,
    SETTLED,
    Run,
    false_replacements,
    has_settled,
    over,
    plan_runs,
    result_of,
    summary,
)

TRIGGER_S = 5.0


def batches(*times_s: float, seconds: float = 3.0) -> list[Record]:
    return [Record(f"b-{at_s}", BATCH, at_s, "", body={"seconds": seconds}) for at_s in times_s]


def replacement(id: str, executor: str, decided_s: float, replaced_s: float | None = None) -> list[Record]:
    action = Record(id, ACTION, decided_s, "", body={"kind": REPLACE, "retire": [executor]})
    if replaced_s is None:
        return [action]
    return [action, Record(f"c-{id}", RECEIPT, replaced_s, "", body={"action": id, "applied": True})]


def judged(id: str, at_s: float) -> Record:
    return Record(f"o-{id}", OUTCOME, at_s, "", body={"action": id})


def test_batches_count_from_the_one_under_way_when_the_executor_turned_slow() -> None:
    records = [*batches(95, 100, 105, 110, 115, 120), *replacement("a-1", "3", 111, 119)]
    result = result_of(Run(4.0, started_s=98, ended_s=121, slow="3"), records)
    assert (result.decided, result.replaced) == (3, 4)


def test_a_replacement_of_another_executor_heals_nothing_and_is_false() -> None:
    run = Run(4.0, started_s=98, ended_s=121, slow="3")
    records = [*batches(100, 105, 110), *replacement("a-1", "2", 106, 109)]
    assert result_of(run, records).replaced is None
    assert false_replacements([run], records) == ["2"]


def test_a_replacement_in_a_clean_run_is_false() -> None:
    run = Run(CLEAN, started_s=98, ended_s=121)
    figures = summary([run], [*batches(100, 105), *replacement("a-1", "2", 106, 109)], (4.0,))
    assert figures["clean_runs_with_a_replacement"]["share"] == 1.0
    assert figures["falsely_replaced"] == ["2"]


def test_an_executor_that_was_slow_before_is_not_falsely_replaced() -> None:
    slow = Run(2.0, started_s=50, ended_s=90, slow="2")
    clean = Run(CLEAN, started_s=98, ended_s=121)
    assert false_replacements([slow, clean], replacement("a-1", "2", 106)) == []


def test_a_replacement_before_the_fault_is_false() -> None:
    assert false_replacements([Run(4.0, 100, 120, "2")], replacement("a-1", "2", 99)) == ["2"]


def test_a_run_is_over_when_the_slow_one_was_replaced_or_after_the_longest_time() -> None:
    decided, replaced = replacement("a-1", "3", 106), replacement("a-1", "3", 106, 109)
    assert not over([*batches(100, 105), *decided], 98, "3")
    assert over([*batches(100, 105), *replaced], 98, "3")
    assert not over([*batches(100, 105), *replaced], 98, "")
    assert over(batches(*range(100, 100 + LONGEST)), 98, "3")


def test_it_has_settled_after_some_batches_that_kept_up_once_the_action_was_judged() -> None:
    quiet = batches(*range(120, 120 + SETTLED))
    done = replacement("a-1", "3", 106, 109)
    assert has_settled(quiet, 98, TRIGGER_S)
    assert not has_settled(quiet[1:], 98, TRIGGER_S)
    assert not has_settled([*quiet, *replacement("a-1", "3", 106)], 98, TRIGGER_S)
    assert not has_settled([*quiet, *done], 98, TRIGGER_S)
    assert has_settled([*quiet, *done, judged("a-1", 118)], 98, TRIGGER_S)
    assert not has_settled([*quiet, *done, judged("a-1", 118)], quiet[0].at_s, TRIGGER_S)
    assert not has_settled(batches(*range(120, 120 + SETTLED), seconds=6.0), 98, TRIGGER_S)


def test_an_action_without_effect_needs_no_verdict() -> None:
    action = Record("a-1", ACTION, 106, "", body={"kind": SCALE_UP, "retire": []})
    refused = Record("c-1", RECEIPT, 109, "", body={"action": "a-1", "applied": False})
    assert has_settled([action, refused, *batches(*range(120, 120 + SETTLED))], 98, TRIGGER_S)


def test_the_summary_has_shares_and_counts_for_each_factor() -> None:
    runs = [Run(4.0, 0, 30, "1"), Run(4.0, 100, 130, "2"), Run(CLEAN, 200, 230)]
    records = [
        *batches(5, 10, 15, 20, 105, 110, 115, 205, 210),
        *replacement("a-1", "1", 11, 19),
        *replacement("a-2", "2", 111),
    ]
    figures = summary(runs, records, (4.0,))
    slowed = figures["slowed"]["4"]
    assert slowed["healed"]["share"] == slowed["healed_within_5"]["share"] == 0.5
    assert slowed["batches_until_decided"]["each"] == [2, 2]
    assert slowed["batches_until_replaced"] == {"median": 3, "p90": None, "each": [3]}
    assert figures["false_replacements"]["share"] == figures["clean_runs_with_a_replacement"]["share"] == 0.0
    assert figures["actions"] == {REPLACE: 2}
    assert figures["batches"] == 9


@pytest.mark.parametrize("seed", [1, 2])
def test_the_order_of_the_runs_depends_on_the_seed_alone(seed: int) -> None:
    plan = plan_runs(20, (2.0, 4.0), seed)
    assert plan == plan_runs(20, (2.0, 4.0), seed) != plan_runs(20, (2.0, 4.0), seed + 1)
    assert Counter(plan) == {CLEAN: 20, 2.0: 20, 4.0: 20}
