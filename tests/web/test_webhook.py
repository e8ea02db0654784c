"""Alerts to a real receiver on this machine: told once, together, until they are over, however the receiver fares."""

from __future__ import annotations

import json
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from queue import Queue
from typing import Any

import pytest

from homeostat.core.errors import ConfigError
from homeostat.core.records import DELIVERY, DeliveryContent, Record
from homeostat.store.sqlite import SqliteStore
from homeostat.web.alert_messages import Shape
from homeostat.web.reader import Reader
from homeostat.web.responses import as_json
from homeostat.web.signatures import own_secret, read_secrets, signature
from homeostat.web.webhook import Notifier, Waiting, Webhook

AT_S = 1.7e9
DIAGNOSIS = Record("d-1", "diagnosis", AT_S, "count is under-provisioned", "count", (), {"cause": "under-provisioned"})
ALERT = Record("n-1", "alert", AT_S, "Too slow. What to do: scale", "count", ("d-1",), {"cause": "under-provisioned"})
OVER = Record("e-1", "diagnosis", AT_S + 60, "it is over", "count", ("d-1",), {"over": True})
SILENT = Record("n-2", "alert", AT_S, "No observation for 70 s.", "", ("d-2",), {"cause": "inconclusive"})
HEARD = Record("e-2", "symptom", AT_S + 90, "observations arrive again", body={"over": True})
STARTED = Record("g-1", "engine", AT_S + 99, "the engine runs", body={"reason": "start"})


class Receiver:
    """Keeps what it is sent, and fails as often as it is told to: for a while, for a run, or by answering nonsense."""

    def __init__(self) -> None:
        self.messages: Queue[dict[str, Any]] = Queue()
        self.failures = 0
        self.nonsense = 0
        self.refused = ""
        self.redirect = ""
        self.signatures: list[str] = []
        self.methods: list[str] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.methods.append("GET")
                self.send_response(200)
                self.end_headers()

            def do_POST(self) -> None:
                outer.methods.append("POST")
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.signatures.append(self.headers["homeostat-signature"])
                if outer.redirect:
                    self.send_response(302)
                    self.send_header("location", outer.redirect)
                    self.end_headers()
                    outer.redirect = ""
                    return
                if outer.nonsense:
                    outer.nonsense -= 1
                    self.wfile.write(b"what?\r\n\r\n")
                    return
                if outer.refused and outer.refused.encode() in body:
                    self.send_response(400)
                elif outer.failures:
                    outer.failures -= 1
                    self.send_response(500)
                else:
                    outer.messages.put(json.loads(body))
                    self.send_response(200)
                self.end_headers()

            def log_message(self, format: str, *args: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/secret-path"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def next(self) -> dict[str, Any]:
        return self.messages.get(timeout=20.0)

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    receiver = Receiver()
    yield receiver
    receiver.close()


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    store = SqliteStore(tmp_path / "log.sqlite")
    yield store
    store.close()


@pytest.fixture
def reports() -> list[str]:
    return []


def notifier(store: SqliteStore, receiver: Receiver, reports: list[str], shape: Shape = "plain") -> Notifier:
    webhook = Webhook(receiver.url, shape, secret_file(store.path.parent))
    sending = Notifier(Reader(store.path), webhook, "http://127.0.0.1:8088/", reports.append, pause_s=0.05)
    sending.start()
    return sending


def secret_file(folder: Path) -> Path:
    return own_secret(folder / "secret")


def statuses_by_cause(message: dict[str, Any]) -> list[tuple[str, str]]:
    return [(alert["cause"], alert["status"]) for alert in message["alerts"]]


def test_an_alert_is_reported_once_and_again_when_it_is_over(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    store.append("app/words", [DIAGNOSIS, ALERT, SILENT])
    sending = notifier(store, receiver, reports)
    first = receiver.next()
    assert (first["run"], first["status"]) == ("app/words", "firing")
    assert statuses_by_cause(first) == [("under-provisioned", "firing"), ("inconclusive", "firing")], (
        "one message for both"
    )
    again = Record("n-9", "alert", AT_S + 5, "the same", "count", ("d-1",), {"cause": "under-provisioned"})
    store.append("app/words", [again])
    store.append("app/words", [OVER])
    assert statuses_by_cause(receiver.next()) == [("under-provisioned", "resolved"), ("inconclusive", "firing")]
    store.append("app/words", [HEARD])
    last = receiver.next()
    assert (last["status"], statuses_by_cause(last)) == ("resolved", [("inconclusive", "resolved")])
    sending.stop()
    assert receiver.messages.empty()
    assert reports == []


def test_the_shape_of_alertmanager(store: SqliteStore, receiver: Receiver, reports: list[str]) -> None:
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports, "alertmanager")
    message = receiver.next()
    sending.stop()
    assert (message["version"], message["status"], message["groupLabels"]) == ("4", "firing", {"run": "app/words"})
    (alert,) = message["alerts"]
    labels = {"alertname": "under-provisioned", "run": "app/words", "component": "count", "severity": "warning"}
    assert alert["labels"] == message["commonLabels"] == labels
    assert message["truncatedAlerts"] == 0
    assert alert["annotations"] == {"summary": "Too slow", "description": "Too slow. What to do: scale"}
    assert (alert["startsAt"], alert["endsAt"]) == ("2023-11-14T22:13:20Z", "0001-01-01T00:00:00Z")
    assert alert["generatorURL"] == "http://127.0.0.1:8088/query?run=app%2Fwords"


def test_a_receiver_that_fails_is_tried_again_and_nothing_is_lost(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    receiver.failures = 3
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    while receiver.failures:
        threading.Event().wait(0.01)
    store.append("app/words", [OVER])
    statuses = statuses_by_cause(receiver.next())
    if ("under-provisioned", "resolved") not in statuses:
        statuses = statuses_by_cause(receiver.next())
    assert statuses == [("under-provisioned", "resolved")]
    sending.stop()
    assert reports[0] == "the webhook at 127.0.0.1 failed with HTTP 500; will retry"
    assert "secret" not in "".join(reports)


def test_alerts_of_one_message_have_in_common_what_is_the_same_in_all(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    store.append("app/words", [DIAGNOSIS, ALERT, SILENT])
    sending = notifier(store, receiver, reports, "alertmanager")
    message = receiver.next()
    sending.stop()
    assert message["commonLabels"] == {"run": "app/words", "severity": "warning"}
    assert "component" not in message["alerts"][1]["labels"], "to Alertmanager an empty label is none"
    assert len({alert["fingerprint"] for alert in message["alerts"]}) == 2


def test_a_run_whose_message_is_refused_does_not_keep_the_others_back(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    receiver.refused, receiver.nonsense = "app/a", 2
    store.append("app/a", [DIAGNOSIS, ALERT])
    store.append("app/b", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    assert receiver.next()["run"] == "app/b"
    receiver.refused = ""
    assert receiver.next()["run"] == "app/a"
    sending.stop()
    assert "BadStatusLine" in reports[0]


def test_a_hostile_alert_is_reported_like_any_other(store: SqliteStore, receiver: Receiver, reports: list[str]) -> None:
    hostile = 'x\ud800"}\n' + "long " * 5_000
    store.append(hostile, [Record("n-1", "alert", AT_S, hostile, hostile, (), {"cause": hostile})])
    written = '{"cause":"\\ud800"}'  # as another program may write it
    with closing(sqlite3.connect(store.path)) as raw, raw:
        raw.execute("UPDATE records SET body = ?", (written,))
    sending = notifier(store, receiver, reports, "alertmanager")
    message = receiver.next()
    sending.stop()
    (alert,) = message["alerts"]
    assert (message["status"], alert["status"]) == ("firing", "firing")
    assert len(alert["annotations"]["description"]) <= 2_000
    assert reports == []


def test_what_a_manager_that_died_had_told_is_over_when_the_next_one_starts(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    receiver.next()
    store.append("app/words", [STARTED])
    assert statuses_by_cause(receiver.next()) == [("under-provisioned", "resolved")]
    sending.stop()


def test_alerts_of_a_log_that_replaced_the_first_one_are_sent(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    store.append("app/words", [Record(f"b-{n}", "batch", AT_S, "") for n in range(20)])
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    assert statuses_by_cause(receiver.next()) == [("under-provisioned", "firing")]
    another = SqliteStore(store.path.with_name("new.sqlite"))
    another.append("app/clicks", [DIAGNOSIS, ALERT])
    another.close()
    store.path.with_name("new.sqlite").replace(store.path)
    for suffix in ("-wal", "-shm"):
        store.path.with_name(store.path.name + suffix).unlink(missing_ok=True)
    message = receiver.next()
    assert (message["run"], statuses_by_cause(message)) == ("app/clicks", [("under-provisioned", "firing")])
    sending.stop()


def test_a_delivery_begins_no_run_in_a_log_that_has_replaced_the_first_one(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    store.append("app/words", [DIAGNOSIS])
    webhook = Webhook(receiver.url, "plain", secret_file(store.path.parent))
    waiting = Notifier(Reader(store.path), webhook, "", reports.append)
    waiting._waiting["app/gone"] = Waiting(attempts=1)
    waiting._look()
    assert any("the log has no run 'app/gone'" in line for line in reports)
    assert [info.name for info in store.runs()] == ["app/words"]


def test_nobody_is_woken_by_a_simulation(store: SqliteStore, receiver: Receiver, reports: list[str]) -> None:
    store.append("sim/run", [Record("n-1", "alert", 60.0, "simulated", body={"cause": "slow"})])
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    assert receiver.next()["run"] == "app/words"
    sending.stop()
    assert receiver.messages.empty()


@pytest.mark.parametrize("url", ["", "file:///etc/passwd", "http://", "ftp://host/x"])
def test_what_is_no_address_is_refused(store: SqliteStore, url: str) -> None:
    with pytest.raises(ConfigError, match="not an http or https address"):
        Webhook(url, "plain", secret_file(store.path.parent)).check()


def deliveries(store: SqliteStore, run: str = "app/words") -> list[DeliveryContent]:
    contents = [record.content_as(DeliveryContent) for record in store.records(run, kinds=(DELIVERY,))]
    return [content for content in contents if content is not None]


@pytest.mark.parametrize("place", ["/elsewhere", f"http://{'x' * 70}.example/hook", "http://[", "ftp://host/"])
def test_a_redirect_is_a_failure_that_is_tried_again_and_ends_nothing(
    store: SqliteStore, receiver: Receiver, reports: list[str], place: str
) -> None:
    receiver.redirect = place
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    assert statuses_by_cause(receiver.next()) == [("under-provisioned", "firing")]
    store.append("app/words", [OVER])
    assert statuses_by_cause(receiver.next()) == [("under-provisioned", "resolved")]
    sending.stop()
    assert set(receiver.methods) == {"POST"}, "nothing is fetched from the place that it names"
    assert reports == ["the webhook at 127.0.0.1 failed with a redirect (HTTP 302), which is not followed; will retry"]


def test_what_could_not_be_sent_is_in_the_log_until_it_is_sent(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    receiver.failures = 2
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    receiver.next()
    while [each.state for each in deliveries(store)] != ["retrying", "sent"]:
        threading.Event().wait(0.01)
    sending.stop()
    first, last = deliveries(store)
    assert (first.host, first.alerts, first.attempts, first.error) == ("127.0.0.1", 1, 1, "with HTTP 500")
    assert last.attempts == 3
    assert "secret" not in "".join(record.text for record in store.records("app/words"))


def test_what_cannot_be_sent_for_too_long_is_given_up(
    store: SqliteStore, receiver: Receiver, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeostat.web.webhook.GIVE_UP_S", 0.0)
    receiver.refused = "app/words"
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    while "given up" not in [each.state for each in deliveries(store)]:
        threading.Event().wait(0.01)
    store.append("app/b", [DIAGNOSIS, ALERT])
    assert receiver.next()["run"] == "app/b"
    sending.stop()


def test_only_so_many_messages_wait(
    store: SqliteStore, receiver: Receiver, reports: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeostat.web.webhook.MOST_WAITING", 2)
    receiver.refused = "app/"
    for name in ("app/a", "app/b", "app/c"):
        store.append(name, [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports)
    while "dropped" not in [each.state for each in deliveries(store, "app/a")]:
        threading.Event().wait(0.01)
    sending.stop()


def test_what_was_waiting_when_the_server_ended_is_sent_or_reported(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    waiting = DeliveryContent("retrying", "127.0.0.1", 1, 1, "with HTTP 500")
    for name in ("app/words", "app/b"):
        store.append(name, [DIAGNOSIS, ALERT, Record.of("delivery-1", AT_S, waiting, "not accepted")])
    store.append("app/b", [STARTED])
    sending = notifier(store, receiver, reports)
    assert receiver.next()["run"] == "app/words"
    while [each.state for each in deliveries(store)] != ["retrying", "sent"]:
        threading.Event().wait(0.01)
    while [each.state for each in deliveries(store, "app/b")] != ["retrying", "dropped"]:
        threading.Event().wait(0.01)
    sending.stop()


def test_every_message_is_signed_with_the_secrets_of_the_moment(
    store: SqliteStore, receiver: Receiver, reports: list[str]
) -> None:
    store.append("app/words", [DIAGNOSIS, ALERT])
    sending = notifier(store, receiver, reports, "plain")
    body = as_json(receiver.next())
    file = secret_file(store.path.parent)
    (old,) = read_secrets(file)
    file.write_text(f"{old}\na-new-secret-for-it\n")
    store.append("app/words", [OVER])
    receiver.next()
    sending.stop()
    first, second = receiver.signatures
    assert first == signature([old], int(first.partition(",")[0].removeprefix("t=")), body)
    assert second.count("v1=") == 2
