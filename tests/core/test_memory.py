"""What is not repeated, for how long, and what earns another chance."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.findings import Verdict
from homeostat.core.memory import DAY_S, ActionKey, Blacklist, Context, DecayingMemory, Entries, MemoryEntry, MemoryRule

KEY = ActionKey("under-provisioned", "scale-up", "count")
SETTLE_S = 60.0
HERE = Context(1000.0, {"parallelism.count": 8}, "plan-1", frozenset({"host-0", "host-1"}))
BEFORE = {"parallelism.count": 4}
PROVES_NOTHING: tuple[Verdict, ...] = ("confounded", "unclear", "untestable", "superseded")


def entry(verdict: Verdict, at_s: float = 0.0, key: ActionKey = KEY) -> MemoryEntry:
    return MemoryEntry(key, verdict, at_s, HERE, BEFORE, frozenset({"host-0"}))


def learned(rule: MemoryRule, *entries: MemoryEntry) -> Entries:
    memory: Entries = ()
    for each in entries:
        memory = rule.learn(memory, each)
    return memory


def blocked(memory: Entries, now_s: float, context: Context = HERE, key: ActionKey = KEY) -> bool:
    return bool(DecayingMemory().block_reason(memory, key, context, now_s, SETTLE_S))


def test_a_failure_rests_four_settling_times_and_each_further_one_doubles_that() -> None:
    once = learned(DecayingMemory(), entry("failed"))
    assert blocked(once, 4 * SETTLE_S - 1.0)
    assert not blocked(once, 4 * SETTLE_S)
    twice = learned(DecayingMemory(), entry("failed"), entry("harmful", 1.0))
    assert blocked(twice, 8 * SETTLE_S - 5.0)
    assert not blocked(twice, 8 * SETTLE_S + 5.0)
    reason = DecayingMemory().block_reason(twice, KEY, HERE, 100.0, SETTLE_S)
    assert reason.startswith("did not help 2× under the same circumstances; blocked for another ")


def test_many_failures_rest_a_day_and_no_longer() -> None:
    memory = learned(DecayingMemory(), *[entry("failed", float(n)) for n in range(30)])
    assert blocked(memory, 29.0 + DAY_S - 60.0)
    assert not blocked(memory, 29.0 + DAY_S)


def test_a_failure_of_yesterday_counts_half() -> None:
    old_and_new = learned(DecayingMemory(), entry("failed", 0.0), entry("failed", DAY_S))
    rest_s = 4 * SETTLE_S * 2**0.5
    assert blocked(old_and_new, DAY_S + rest_s - 5.0)
    assert not blocked(old_and_new, DAY_S + rest_s + 5.0)


def test_a_success_clears_the_failures_of_its_own_kind_only() -> None:
    other = KEY._replace(component="split")
    memory = learned(DecayingMemory(), entry("failed"), entry("failed", key=other), entry("helped", 1.0))
    assert not blocked(memory, 2.0)
    assert blocked(memory, 2.0, key=other)
    assert not blocked(learned(DecayingMemory(), entry("harmful"), entry("shrunk", 1.0)), 2.0)


@pytest.mark.parametrize("verdict", PROVES_NOTHING)
@pytest.mark.parametrize("rule", [DecayingMemory(), Blacklist()], ids=["decaying", "blacklist"])
def test_what_proves_nothing_is_never_counted(rule: MemoryRule, verdict: Verdict) -> None:
    memory = learned(rule, entry(verdict), entry(verdict), entry(verdict))
    assert memory == ()
    assert not rule.block_reason(memory, KEY, HERE, 1.0, SETTLE_S)
    assert rule.success_rate(memory, KEY) == 0.5
    failed = learned(rule, entry("failed"), entry(verdict, 1.0))
    assert rule.block_reason(failed, KEY, HERE, 2.0, SETTLE_S), "nor does it clear a failure"


@pytest.mark.parametrize(
    ("context", "forgiven"),
    [
        (HERE, False),
        (replace(HERE, values=BEFORE, hosts=frozenset({"host-0"})), False),
        (replace(HERE, arrival_per_s=1490.0), False),
        (replace(HERE, arrival_per_s=1510.0), True),
        (replace(HERE, arrival_per_s=670.0), False),
        (replace(HERE, arrival_per_s=660.0), True),
        (replace(HERE, arrival_per_s=math.nan), False),
        (replace(HERE, arrival_per_s=0.0), False),
        (replace(HERE, values={"parallelism.count": 6}), True),
        (replace(HERE, plan="plan-2"), True),
        (replace(HERE, hosts=frozenset({"host-0", "host-2"})), True),
    ],
    ids=[
        "the same",
        "taken back",
        "a little more load",
        "more load",
        "a little less load",
        "less load",
        "load unknown",
        "no load",
        "another configuration",
        "another plan",
        "other hosts",
    ],
)
def test_other_circumstances_forgive_and_taking_the_action_back_does_not(context: Context, forgiven: bool) -> None:
    assert blocked(learned(DecayingMemory(), entry("failed")), 10.0, context) is not forgiven


def test_the_success_rate_starts_in_the_middle_and_follows_the_outcomes() -> None:
    rule = DecayingMemory()
    assert rule.success_rate((), KEY) == 0.5
    assert rule.success_rate(learned(rule, entry("failed"), entry("failed")), KEY) == 1 / 4
    assert rule.success_rate(learned(rule, entry("failed"), entry("helped"), entry("helped")), KEY) == 3 / 4
    assert rule.success_rate(learned(rule, entry("failed")), KEY._replace(action="replace")) == 0.5


@given(st.lists(st.tuples(st.sampled_from(["failed", "harmful"]), st.floats(0.0, 3 * DAY_S)), min_size=1, max_size=20))
def test_every_rest_ends_within_a_day_of_the_last_failure(failures: list[tuple[Verdict, float]]) -> None:
    memory = learned(DecayingMemory(), *[entry(verdict, at_s) for verdict, at_s in failures])
    last_s = max(at_s for _, at_s in failures)
    assert blocked(memory, last_s)
    assert not blocked(memory, last_s + DAY_S)


def test_memory_keeps_only_so_much() -> None:
    memory = learned(DecayingMemory(capacity=3), *[entry("failed", float(n)) for n in range(10)])
    assert [each.at_s for each in memory] == [7.0, 8.0, 9.0]


def test_the_blacklist_counts_the_share_without_benefit_and_forgives_nothing() -> None:
    rule = Blacklist(threshold=0.5)
    failed = learned(rule, entry("failed"))
    assert rule.block_reason(failed, KEY, HERE, 0.0, SETTLE_S) == "blacklisted: 1 of 1 times without benefit"
    even = learned(rule, entry("failed"), entry("helped"))
    assert not rule.block_reason(even, KEY, HERE, 0.0, SETTLE_S)
    worse = learned(rule, entry("failed"), entry("helped"), entry("harmful"))
    elsewhere = Context(9999.0, {"parallelism.count": 99}, "plan-9", frozenset({"host-9"}))
    assert (
        rule.block_reason(worse, KEY, elsewhere, 100 * DAY_S, SETTLE_S) == "blacklisted: 2 of 3 times without benefit"
    )
    assert not rule.block_reason(worse, KEY._replace(cause="slow-instance"), HERE, 0.0, SETTLE_S)


def test_the_blacklist_may_wait_for_more_than_one_invocation() -> None:
    rule = Blacklist(least_invocations=2)
    assert not rule.block_reason(learned(rule, entry("failed")), KEY, HERE, 0.0, SETTLE_S)
    assert rule.block_reason(learned(rule, entry("failed"), entry("failed")), KEY, HERE, 0.0, SETTLE_S)


def test_the_blacklist_keeps_only_so_much_of_each_action() -> None:
    rule, other = Blacklist(capacity=10), ActionKey("data-skew", "adjust-skew", "count")
    memory = learned(rule, entry("failed", key=other), *[entry("helped", float(n)) for n in range(30)])
    assert len(memory) == 11
    assert rule.block_reason(memory, other, HERE, 100.0, SETTLE_S)
    assert [each.at_s for each in memory if each.key == KEY] == [float(n) for n in range(20, 30)]
