"""Alerts that the loop cannot send reach the terminal and the log, and a broken log is no error."""

from __future__ import annotations

from pathlib import Path

from homeostat.core.causes import NO_MANAGER, QUERY_STOPPED
from homeostat.core.records import AlertContent
from homeostat.runtime.alarms import Alarm
from homeostat.store.sqlite import SqliteStore
from homeostat.web.alerts import Alerts


def test_an_alarm_is_told_and_is_an_alert_in_the_log_of_every_query(tmp_path: Path) -> None:
    told: list[str] = []
    alarm = Alarm(tmp_path / "log.sqlite", ("app/clicks", "app/orders"), told.append)
    alarm.ring(NO_MANAGER, "it has ended again")
    alarm.ring(QUERY_STOPPED, "query clicks: no disk")
    assert told[0] == (
        "The manager failed too often (it has ended again). "
        "What to do: see the output of the driver for the errors, and restart the application."
    )
    store = SqliteStore(tmp_path / "log.sqlite")
    for run in ("app/clicks", "app/orders"):
        records = store.records(run)
        assert [record.text for record in records] == told
        assert [record.content_as(AlertContent) for record in records] == [
            AlertContent(NO_MANAGER),
            AlertContent(QUERY_STOPPED),
        ]


def test_the_webhook_hears_an_alarm(tmp_path: Path) -> None:
    Alarm(tmp_path / "log.sqlite", ("app/clicks",), lambda _: None).ring(NO_MANAGER, "it has ended again")
    alerts = Alerts()
    alerts.take(SqliteStore(tmp_path / "log.sqlite").after(0, 10))
    ((alert,),) = alerts.take_changes().values()
    assert (alert.run, alert.cause, alert.firing) == ("app/clicks", NO_MANAGER, True)


def test_a_log_that_cannot_be_written_is_told_and_stops_nothing(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_text("not a log" * 1_000)
    told: list[str] = []
    Alarm(tmp_path / "log.sqlite", ("app/clicks",), told.append).ring(NO_MANAGER, "it has ended again")
    assert told[0].startswith("The manager failed too often")
    assert told[1].startswith("the alert is not in the log: ")
