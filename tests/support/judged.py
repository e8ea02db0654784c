"""Experiments on real Spark whose decisions depend on how fast the machine is.

The data must be right in every attempt. What the loop decided is judged apart from that: batches slow down when others
use the machine, and then another decision is the right one. Such an attempt is repeated, a few times at most, and the
last attempt counts whatever happened to the machine. Nothing is skipped and no failure is hidden.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import TypeVar

from homeostat.lab.bench import quiet
from homeostat.lab.experiment import TrialResult

Result = TypeVar("Result")

MOST_ATTEMPTS = 3
LONGEST_WAIT_S = 120.0


def judge_attempts(
    attempt: Callable[[], Result],
    *,
    data: Callable[[Result], None],
    judgement: Callable[[Result], None],
    watch: Callable[[], quiet.Watch] = quiet.Watch,
    wait: Callable[[float], None] = quiet.wait_for_quiet,
) -> Result:
    """The result of the first attempt that passes the judgement, or of the first that fails it on a quiet machine.

    `data` and `judgement` raise AssertionError. A failure of `data` is final.
    """
    for number in range(1, MOST_ATTEMPTS + 1):
        machine = watch()
        with quiet.watching(machine):
            result = attempt()
        machine.end()
        data(result)
        try:
            judgement(result)
        except AssertionError as error:
            if number == MOST_ATTEMPTS or not machine.is_disturbed():
                raise
            print(
                f"attempt {number} is repeated: others used {machine.most:.0%} of the machine, and {error}",
                file=sys.stderr,
            )
            wait(LONGEST_WAIT_S)
        else:
            return result
    raise AssertionError("unreachable: the last attempt returns or raises")


def every_row_once(result: TrialResult) -> None:
    """The data of any experiment: no row is lost or counted twice, and the loop had no failure of its own."""
    assert result.rows > 0
    assert result.differences == ()
    assert result.complaints == ()
