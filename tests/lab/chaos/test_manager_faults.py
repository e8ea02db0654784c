"""Faults of the manager's surroundings end when they should, and leave nothing behind."""

from __future__ import annotations

import sqlite3
from random import Random

import pytest

from homeostat.lab.chaos import manager_faults
from homeostat.lab.chaos.deployment import Deployment
from homeostat.lab.chaos.kinds_of_fault import InjectionError
from homeostat.lab.chaos.steering import Steering, read_steering
from homeostat.lab.rest_proxy import Behaviour
from homeostat.store.sqlite import SqliteStore


@pytest.fixture
def deployment(waiting_program: Deployment) -> Deployment:
    SqliteStore(waiting_program.log.path).close()
    return waiting_program


def test_the_manager_is_steered_while_the_fault_lasts(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    file = deployment.home / "steering.json"
    during: list[Steering] = []
    monkeypatch.setattr(deployment, "hold", lambda seconds: during.append(read_steering(file)))
    manager_faults.steer_for_a_while(clock_s=60.0)(deployment, Random(1))
    assert [steering.clock_s for steering in during] == [60.0]
    assert read_steering(file).clock_s == 0.0


def test_a_log_is_locked_for_others_while_the_fault_lasts(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> None:
        connection = sqlite3.connect(deployment.log.path, timeout=0.0, isolation_level=None)
        try:
            connection.execute("BEGIN IMMEDIATE")
        finally:
            connection.close()

    def hold(seconds: float) -> None:
        with pytest.raises(sqlite3.OperationalError, match="locked"):
            write()

    monkeypatch.setattr(deployment, "hold", hold)
    manager_faults.lock_store(deployment, Random(1))
    write()


def test_a_log_is_removed_or_cut(deployment: Deployment) -> None:
    size = deployment.log.path.stat().st_size
    manager_faults.truncate_store(deployment, Random(1))
    assert deployment.log.path.stat().st_size < size
    manager_faults.remove_store(deployment, Random(1))
    assert not deployment.log.path.exists()


def test_a_rest_api_that_nobody_asks_is_no_fault(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deployment, "hold", lambda seconds: None)
    with pytest.raises(InjectionError, match="no request was sent"):
        manager_faults.misbehave(Behaviour.GARBAGE)(deployment, Random(1))


def test_a_second_manager_that_is_not_refused_is_a_failure_and_is_ended(
    deployment: Deployment, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(manager_faults, "REFUSAL_LIMIT_S", 1.0)
    injection = manager_faults.second_manager(deployment, Random(1))
    assert injection.failure.startswith("not refused")
    assert len(deployment.family().processes) == 1


def test_an_order_that_is_not_taken_harms_nobody(deployment: Deployment, monkeypatch: pytest.MonkeyPatch) -> None:
    (driver,) = deployment.family().processes
    monkeypatch.setattr(manager_faults, "choose", lambda *_: driver)
    with pytest.raises(InjectionError, match="the command was not accepted"):  # nobody manages anything in this log
        manager_faults.interrupt_order("executors.app", (2, 3))(deployment, Random(1))
    assert [each.pid for each in deployment.family().processes] == [driver.pid]
