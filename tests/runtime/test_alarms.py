"""Alerts that the loop cannot send reach the terminal and the log, and a broken log is no error."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from homeostat.core.causes import NO_MANAGER, QUERY_STOPPED
from homeostat.core.records import AlertContent
from homeostat.runtime.alarms import Alarm
from homeostat.runtime.hold import ApplicationHold
from homeostat.store.registered_applications import ApplicationTable
from homeostat.store.sqlite import SqliteStore
from homeostat.web.alert_messages import Alerts


def alarm_of(hold: ApplicationHold, say: Callable[[str], None], *runs: str) -> Alarm:
    return Alarm(lambda: hold.open_log(*runs), runs, say)


@pytest.fixture
def hold(tmp_path: Path) -> Iterator[ApplicationHold]:
    with ApplicationHold(tmp_path / "app", tmp_path / "log.sqlite") as hold:
        yield hold


def test_an_alarm_is_reported_and_is_an_alert_in_the_log_of_every_query(tmp_path: Path, hold: ApplicationHold) -> None:
    messages: list[str] = []
    alarm = alarm_of(hold, messages.append, "app/clicks", "app/orders")
    alarm.ring(NO_MANAGER, "it has ended again")
    alarm.ring(QUERY_STOPPED, "query clicks: no disk")
    assert messages[0] == (
        "The manager failed too often (it has ended again). "
        "What to do: look for errors in the output of the driver, and restart the application."
    )
    store = SqliteStore(tmp_path / "log.sqlite")
    for run in ("app/clicks", "app/orders"):
        records = store.records(run)
        assert [record.text for record in records] == messages
        assert [record.content_as(AlertContent) for record in records] == [
            AlertContent(NO_MANAGER),
            AlertContent(QUERY_STOPPED),
        ]


def test_the_webhook_hears_an_alarm(tmp_path: Path, hold: ApplicationHold) -> None:
    alarm_of(hold, lambda _: None, "app/clicks").ring(NO_MANAGER, "it has ended again")
    alerts = Alerts()
    alerts.take(SqliteStore(tmp_path / "log.sqlite").after(0, 10))
    ((alert,),) = alerts.take_changes().values()
    assert (alert.run, alert.cause, alert.firing) == ("app/clicks", NO_MANAGER, True)


def test_a_log_that_cannot_be_written_is_reported_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_text("not a log" * 1_000)
    messages: list[str] = []
    alarm = Alarm(lambda: SqliteStore(tmp_path / "log.sqlite"), ("app/clicks",), messages.append)
    alarm.ring(NO_MANAGER, "it has ended again")
    assert messages[0].startswith("The manager failed too often")
    assert messages[1].startswith("the alert is not in the log: ")


def test_a_manager_that_was_replaced_writes_no_alert(tmp_path: Path, hold: ApplicationHold) -> None:
    store = SqliteStore(tmp_path / "log.sqlite")
    table, identity = ApplicationTable(store), hold.identity.id
    holder = table.holder(identity)
    while not table.take(identity, replace(holder, token="another"), instead_of=holder):  # it beats meanwhile
        holder = table.holder(identity)
    messages: list[str] = []
    alarm_of(hold, messages.append, "app/clicks").ring(NO_MANAGER, "it has ended again")
    assert messages[1].startswith("the alert is not in the log: LeaseLostError")
    assert store.records("app/clicks") == []
    store.close()
