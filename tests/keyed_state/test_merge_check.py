"""Functions whose result depends on how rows are cut into parts are found out, and others are not accused."""

from __future__ import annotations

import operator
import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.errors import ConfigError
from homeostat.keyed_state.merge_check import Merging, alike, require_mergeable

NUMBERS = (0, 1, 2, 3, 5, -4)


def count(so_far: int, row: int) -> int:
    return so_far + 1


def mean(part: tuple[int, float]) -> float:
    return part[1] / part[0]


def grown(words: dict[str, int], row: int) -> dict[str, int]:
    words[str(row)] = words.get(str(row), 0) + 1
    return words


def joined(one: dict[str, int], other: dict[str, int]) -> dict[str, int]:
    return {word: one.get(word, 0) + other.get(word, 0) for word in one.keys() | other.keys()}


@pytest.mark.parametrize(
    "merging",
    [
        Merging(0, count, operator.add),
        Merging(0.0, lambda total, row: total + 0.1 * row, operator.add),
        Merging((0, 0.0), lambda p, row: (p[0] + 1, p[1] + row), lambda a, b: (a[0] + b[0], a[1] + b[1]), mean),
        Merging(dict, grown, joined),
        Merging({}, grown, joined),
        Merging(-99, max, max),
        Merging(frozenset(), lambda so_far, row: so_far | {row}, operator.or_, len),
        # The order of what is kept differs, that of the result does not.
        Merging((), lambda kept, row: (*kept, row), operator.add, sorted),
    ],
)
def test_functions_that_may_be_cut_anywhere_are_accepted(merging: Merging) -> None:
    require_mergeable(merging, NUMBERS, "keyed")


@pytest.mark.parametrize(
    ("zero", "add", "merge", "complaint"),
    [
        (0, count, operator.sub, "keyed: zero is not neutral: merge(zero, 1) is -1 instead of 1"),
        (1, count, operator.add, "keyed: zero is not neutral: merge(zero, 2) is 3 instead of 2"),
        ("", lambda text, row: text + str(row), operator.add, "keyed: merge is not commutative: merge('"),
        (0, lambda last, row: row, lambda a, b: b or a, "keyed: merge is not commutative: merge("),
        (0.0, lambda m, row: m + row, lambda a, b: a + b + a * b * (a - b) ** 2, "keyed: merge is not associative: "),
        (0, lambda total, row: total + row * row, max, "keyed: "),
        (0, lambda total, row: max(total, row), operator.add, "keyed: "),
    ],
)
def test_others_are_refused_with_the_example_that_was_found(
    zero: Any, add: Callable[[Any, Any], Any], merge: Callable[[Any, Any], Any], complaint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        require_mergeable(Merging(zero, add, merge), NUMBERS, "keyed")
    assert refused.value.line.startswith(complaint)
    assert refused.value.line.endswith(
        "(make the result independent of the order of the rows and of how they are divided into parts)"
    )
    assert "\n" not in refused.value.line


def test_add_and_merge_must_agree() -> None:
    with pytest.raises(
        ConfigError, match=r"add and merge do not agree: add\(.*, .*\) is .*, but merge\(.*, add\(zero, "
    ):
        require_mergeable(Merging(0, lambda total, row: total + row + (total != 0), operator.add), (1, 2), "keyed")


@pytest.mark.parametrize(
    ("zero", "add", "merge", "complaint"),
    [
        (0, operator.add, lambda a, b: b and a + b, "zero is not neutral: merge("),
        (None, lambda a, row: row if a is None else a + row, lambda a, b: b if a is None else a + b, "merge raised "),
        # Right until there are more than five.
        ((), lambda a, row: (*sorted((*a, row))[:5],), lambda a, b: (*sorted(a + b)[:9],), "add and merge do not "),
        (0, operator.add, lambda a, b: a + b if a + b < 900 else 0, "merge is not associative: "),
    ],
)
def test_what_goes_wrong_only_now_and_then_is_found(
    zero: Any, add: Callable[[Any, Any], Any], merge: Callable[[Any, Any], Any], complaint: str
) -> None:
    with pytest.raises(ConfigError) as refused:
        require_mergeable(Merging(zero, add, merge), (*NUMBERS, 300), "keyed")
    assert refused.value.line.startswith(f"keyed: {complaint}")


def test_every_sample_is_tried_however_many_there_are() -> None:
    def largest_but_for_one(one: int, other: int) -> int:
        return one if 777 in (one, other) else max(one, other)

    require_mergeable(Merging(-1, max, largest_but_for_one), range(700), "keyed")
    with pytest.raises(ConfigError, match=r"merge\(.*777.*\)"):
        require_mergeable(Merging(-1, max, largest_but_for_one), range(800), "keyed")


def test_rows_with_gaps_need_not_be_understood_but_must_not_change_the_result() -> None:
    rows, gaps = [(1,), (2,), (5,)], [(None,)]

    def last_gap_wins(total: int, row: tuple[int | None]) -> int:
        return 0 if row[0] is None else total + row[0]

    require_mergeable(Merging(0, lambda total, row: total + row[0], operator.add), rows, "keyed", perhaps=gaps)
    require_mergeable(Merging(0, lambda total, row: total + (row[0] or 0), operator.add), rows, "keyed", perhaps=gaps)
    require_mergeable(Merging(0, last_gap_wins, operator.add), rows, "keyed")
    with pytest.raises(ConfigError, match=r"add and merge do not agree: add\(.*, \(None,\)\) is 0, but merge"):
        require_mergeable(Merging(0, last_gap_wins, operator.add), rows, "keyed", perhaps=gaps)


def test_functions_that_change_what_they_are_given_are_accepted_if_they_return_it() -> None:
    def grow_in_place(words: dict[str, int], other: dict[str, int]) -> dict[str, int]:
        for word, times in other.items():
            words[word] = words.get(word, 0) + times
        other.clear()
        return words

    shared: dict[str, int] = {}
    require_mergeable(Merging(dict, grown, grow_in_place), NUMBERS, "keyed")
    with pytest.raises(ConfigError, match=r"add returns None \(return the new part\)"):
        require_mergeable(Merging(dict, lambda words, row: words.update({row: 1}), grow_in_place), NUMBERS, "keyed")
    with pytest.raises(ConfigError, match="zero is not neutral"):
        require_mergeable(Merging(lambda: shared, grown, joined), NUMBERS, "keyed", stored_form=dict)


def test_what_the_state_makes_of_a_part_must_be_understood_too() -> None:
    tupled = Merging((), lambda kept, row: (*kept, row), operator.add, sorted)
    require_mergeable(tupled, NUMBERS, "keyed", stored_form=tuple)
    with pytest.raises(ConfigError, match="merge raised TypeError: can only concatenate"):
        require_mergeable(tupled, NUMBERS, "keyed", stored_form=list)


def test_the_function_that_fails_is_named() -> None:
    def added(total: int, row: int) -> int:
        return total + row if total < 3 else total / 0  # type: ignore[return-value]

    with pytest.raises(
        ConfigError, match=r"keyed: finish raised ZeroDivisionError: division by zero \(called with 1\)"
    ):
        require_mergeable(Merging(0, operator.add, operator.add, lambda total: total / 0), (1,), "keyed")
    with pytest.raises(
        ConfigError, match=r"keyed: add raised ZeroDivisionError: division by zero \(called with 3, 3\)"
    ):
        require_mergeable(Merging(0, added, operator.add), (3,), "keyed")


def test_functions_that_do_not_understand_the_samples_are_told_what_to_do() -> None:
    with pytest.raises(ConfigError) as refused:
        require_mergeable(Merging(0, lambda total, row: total + row["amount"], operator.add), NUMBERS, "keyed")
    assert "add raised TypeError: " in refused.value.line
    assert refused.value.line.endswith("(pass rows that the functions can process: samples=[…])")


@pytest.mark.slow
@given(rows=st.lists(st.integers(-50, 50), min_size=1, max_size=30), seed=st.integers(0, 1000))
def test_what_is_accepted_gives_the_same_result_in_whatever_parts(rows: list[int], seed: int) -> None:
    merging = Merging((0, 0, -99), _summed, _merged, lambda part: (part[0], part[1] / part[0], part[2]))
    require_mergeable(merging, NUMBERS, "keyed")
    chance = random.Random(seed)
    parts: list[list[int]] = [[] for _ in range(chance.randint(1, 6))]
    for row in chance.sample(rows, len(rows)):
        chance.choice(parts).append(row)
    state = merging.start()
    for part in chance.sample(parts, len(parts)):
        state = merging.merge(state, merging.over(part))
    assert alike(merging.result(state), merging.result(merging.over(rows)))


def _summed(part: tuple[int, int, int], row: int) -> tuple[int, int, int]:
    return part[0] + 1, part[1] + row, max(part[2], row)


def _merged(one: tuple[int, int, int], other: tuple[int, int, int]) -> tuple[int, int, int]:
    return one[0] + other[0], one[1] + other[1], max(one[2], other[2])
