"""A judgement on a disturbed machine is repeated, and wrong data is never excused."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from homeostat.lab.bench.quiet import MOST_TAKEN, CpuTime, Watch
from support.judged import MOST_ATTEMPTS, judge_attempts

MUCH = 2 * MOST_TAKEN


class Machine:
    """Each look at its counters is 40 seconds later; others take the given share."""

    def __init__(self, steal_share: float) -> None:
        self._steal_share = steal_share
        self._looks = 0

    def __call__(self) -> CpuTime:
        self._looks += 1
        return CpuTime(40.0 * self._looks, 40.0 * self._looks * self._steal_share)


def run(results: Iterator[int], steal_share: float, *, right_data: bool = True) -> int:
    """A result is the number of the attempt; those below 2 fail the judgement."""

    def data(_: int) -> None:
        assert right_data, "a row is missing"

    def judgement(result: int) -> None:
        assert result >= 2, "the loop should have acted"

    return judge_attempts(
        lambda: next(results),
        data=data,
        judgement=judgement,
        watch=lambda: Watch(Machine(steal_share)),
        wait=lambda _: None,
    )


def test_a_judgement_that_fails_on_a_disturbed_machine_is_repeated(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(iter((1, 2)), MUCH) == 2
    assert "attempt 1 is repeated: others used 30% of the machine" in capsys.readouterr().err


def test_a_judgement_that_fails_on_a_quiet_machine_is_final() -> None:
    with pytest.raises(AssertionError, match="should have acted"):
        run(iter((1, 2)), 0.0)


def test_wrong_data_is_final_on_any_machine() -> None:
    with pytest.raises(AssertionError, match="a row is missing"):
        run(iter((1, 2)), MUCH, right_data=False)


def test_the_last_attempt_counts_on_any_machine() -> None:
    attempts = iter(range(1, MOST_ATTEMPTS + 2))
    with pytest.raises(AssertionError, match="should have acted"):
        run((next(attempts) and 0 for _ in range(MOST_ATTEMPTS)), MUCH)
    assert next(attempts) == MOST_ATTEMPTS + 1


def test_a_judgement_that_passes_needs_no_quiet_machine() -> None:
    assert run(iter((2,)), MUCH) == 2
