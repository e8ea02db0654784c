"""Processes are killed, or stopped for a while and always continued."""

from __future__ import annotations

from random import Random

import psutil
import pytest

from homeostat.lab.chaos import process_faults
from homeostat.lab.chaos.deployment import Deployment
from homeostat.lab.chaos.kinds_of_fault import InjectionError
from homeostat.lab.chaos.processes import OTHER

LIMIT_S = 60.0


def test_a_killed_process_must_be_gone_for_good(waiting_program: Deployment) -> None:
    (process,) = waiting_program.family().processes
    injection = process_faults.kill(OTHER)(waiting_program, Random(1))
    assert waiting_program.wait(injection.holds, LIMIT_S)
    assert not process.is_running() or process.status() == psutil.STATUS_ZOMBIE


def test_a_stopped_process_goes_on(waiting_program: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    (process,) = waiting_program.family().processes
    stops: list[bool] = []

    def is_stopped() -> bool:
        return bool(process.status() == psutil.STATUS_STOPPED)

    monkeypatch.setattr(
        waiting_program, "hold", lambda seconds: stops.append(waiting_program.wait(is_stopped, LIMIT_S))
    )
    process_faults.stop(OTHER, 10.0)(waiting_program, Random(1))
    assert stops == [True]
    assert waiting_program.wait(lambda: not is_stopped(), LIMIT_S)


def test_where_nobody_plays_the_role_nothing_is_injected(waiting_program: Deployment) -> None:
    with pytest.raises(InjectionError, match="no master is running"):
        process_faults.kill("master")(waiting_program, Random(1))
