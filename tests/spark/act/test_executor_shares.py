"""Several queries ask for executors of their own, and the application runs the sum."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.configuration import EXECUTORS_KNOB, STATE_PARTITIONS, Configuration, Knob
from homeostat.core.events import Apply, Receipt
from homeostat.spark.act.executor_shares import ExecutorShares, observed_share, split

STATE = Knob(STATE_PARTITIONS, "left")


def command(id: str, executors: int) -> Apply:
    return Apply(id, 0.0, Configuration({EXECUTORS_KNOB: executors}, frozenset({"7"})), (), 60.0)


def receipt(command: Apply, applied: bool = True) -> Receipt:
    return Receipt(command.id, 1.0, command.desired, applied)


def test_commands_of_two_managers_with_the_same_id_stay_apart() -> None:
    shares = ExecutorShares({"left": 1, "right": 1})
    left, right = shares.request("left", command("a-1", 2)), shares.request("right", command("a-1", 3))
    assert left.id != right.id
    assert left.desired[EXECUTORS_KNOB] == 3
    assert right.desired[EXECUTORS_KNOB] == 5, "the other command is not done yet, but counts"
    assert left.desired.retired == {"7"}
    query, answer = shares.answer(receipt(right))
    assert (query, answer.command_id) == ("right", "a-1")
    shares.answer(receipt(left))
    assert shares.as_dict() == {"left": 2, "right": 3}
    assert shares.total == 5


def test_a_command_that_failed_changes_no_share() -> None:
    shares = ExecutorShares({"left": 1, "right": 1})
    shares.answer(receipt(shares.request("left", command("a-1", 4)), applied=False))
    assert shares.as_dict() == {"left": 1, "right": 1}
    assert shares.request("right", command("a-2", 2)).desired[EXECUTORS_KNOB] == 3


def test_a_command_about_other_knobs_leaves_the_executors_out() -> None:
    shares = ExecutorShares({"left": 2})
    whole = shares.request("left", Apply("a-1", 0.0, Configuration({STATE: 5}), (), 60.0))
    assert dict(whole.desired.values) == {STATE: 5}
    shares.answer(receipt(whole))
    assert shares.as_dict() == {"left": 2}


def test_a_query_sees_its_own_knobs_and_its_share() -> None:
    shares = ExecutorShares({"left": 1, "right": 3})
    whole = Configuration({EXECUTORS_KNOB: 4, STATE: 5, Knob(STATE_PARTITIONS, "right"): 6})
    assert dict(shares.configuration("left", {STATE: 5}, whole).values) == {EXECUTORS_KNOB: 1, STATE: 5}


@given(st.integers(0, 50), st.lists(st.text(min_size=1), min_size=1, max_size=8, unique=True))
def test_an_even_split_gives_out_all_and_at_least_one_each(count: int, names: list[str]) -> None:
    shares = split(count, names)
    assert list(shares) == names
    assert sum(shares.values()) == max(count, len(names))
    assert max(shares.values()) - min(shares.values()) <= 1
    assert min(shares.values()) >= 1


@given(st.dictionaries(st.sampled_from("abc"), st.integers(1, 9), min_size=1), st.integers(0, 30))
def test_nobody_sees_more_than_its_share_unless_it_is_alone(shares: dict[str, int], alive: int) -> None:
    for query in shares:
        part = observed_share(shares, query, alive)
        assert part == alive if len(shares) == 1 else 1 <= part <= shares[query]
