"""Sends alerts to a webhook from its own thread, so that a slow receiver delays nothing else."""

from __future__ import annotations

import threading
import time
import urllib.error
import urllib.request
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from homeostat.core.errors import ConfigError, HomeostatError, StoreError
from homeostat.core.records import ALERT, DELIVERY, DIAGNOSIS, ENGINE, SYMPTOM, DeliveryContent, Record
from homeostat.store.opening import open_store
from homeostat.store.protocol import BEGINNING_S, Placed, Store
from homeostat.web.alert_messages import MOST_ALERTS, Alert, Alerts, Shape, message
from homeostat.web.reader import Reader
from homeostat.web.responses import as_json
from homeostat.web.signatures import HEADER, read_secrets, signature

LOOK_AGAIN_S = 1.0
TIMEOUT_S = 10.0
LONGEST_PAUSE_S = 300.0
# A receiver that is down for a day will be noticed in other ways. The alerts that it missed are in the log.
GIVE_UP_S = 86_400.0
# One message for each run, with at most MOST_ALERTS alerts: about 100 MB if all are as long as they may be.
MOST_WAITING = 500
RETRYING, SENT, GIVEN_UP, DROPPED = "retrying", "sent", "given up", "dropped"
_PAGE = 500


@dataclass(frozen=True, slots=True)
class Webhook:
    """Where alerts go, in which format. `secrets` is the file that signs them."""

    url: str
    shape: Shape
    secrets: Path

    @property
    def host(self) -> str:
        """The host of the address, for messages: the rest of a webhook's address is often a secret."""
        return urlsplit(self.url).hostname or ""

    def check(self) -> None:
        if urlsplit(self.url).scheme not in ("http", "https") or not self.host:
            raise ConfigError(
                "not an http or https address", where="--webhook", fix="use an address such as https://host/hook"
            )
        read_secrets(self.secrets)

    def post(self, body: bytes) -> None:
        at_s = int(time.time())
        headers = {
            "content-type": "application/json",
            "user-agent": "homeostat",
            HEADER: signature(read_secrets(self.secrets), at_s, body),
        }
        request = urllib.request.Request(self.url, body, headers, method="POST")
        with _OPENER.open(request, timeout=TIMEOUT_S) as answer:
            answer.read(1_000)


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    """A redirect is a failure: following it would send a GET without the alerts, perhaps to somebody else."""

    def http_error_302(self, *args: Any) -> None:
        return None  # the next handler raises it as an error

    http_error_301 = http_error_303 = http_error_307 = http_error_308 = http_error_302  # type: ignore[assignment]


_OPENER = urllib.request.build_opener(_NoRedirects)


@dataclass(slots=True)
class Waiting:
    """The pending alerts of a run. `record` is the id of the record about the failed delivery."""

    alerts: list[Alert] = field(default_factory=list)
    attempts: int = 0
    failed_s: float = 0.0
    pause_s: float = 0.0
    next_s: float = 0.0
    record: str = ""


class Notifier:
    """Sends a run's alerts again until the receiver accepts them; changes in the meantime are sent with them."""

    def __init__(
        self,
        reader: Reader,
        webhook: Webhook,
        dashboard: str,
        say: Callable[[str], None],
        pause_s: float = LOOK_AGAIN_S,
    ) -> None:
        webhook.check()
        self._reader, self._webhook, self._dashboard = reader, webhook, dashboard
        self._say, self._pause_s = say, pause_s
        self._alerts = Alerts()
        self._position: int | None = None
        self._file: tuple[int, int] | None = None
        self._waiting: dict[str, Waiting] = {}
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="homeostat alerts", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(2 * TIMEOUT_S)

    def _run(self) -> None:
        pause_s = self._pause_s
        while not self._stopping.wait(pause_s):
            try:
                self._look()
                self._send()
                pause_s = self._pause_s
            except Exception as error:  # the thread must not end, because it also sends the next alert
                self._say(f"alerts were not sent because of an unexpected {type(error).__name__}; will retry")
                pause_s = min(2 * pause_s, LONGEST_PAUSE_S)

    def _look(self) -> None:
        try:
            file = self._reader.file
            if self._position is None or file != self._file:
                self._position = self._reader.read(self._begin)
                self._file = file
            while news := self._reader.read(lambda store: store.after(self._position or 0, _PAGE)):
                self._alerts.take(news)
                self._position = news[-1].position
        except StoreError:
            return
        for run, alerts in self._alerts.take_changes().items():
            waiting = self._waiting.setdefault(run, Waiting(pause_s=self._pause_s))
            waiting.alerts = _join(waiting.alerts, alerts)
        while len(self._waiting) > MOST_WAITING:
            run = next(iter(self._waiting))
            self._end(run, DROPPED, f"more than {MOST_WAITING} messages wait")
        for run in [run for run, waiting in self._waiting.items() if not waiting.alerts]:
            self._end(run, DROPPED, "the server was restarted before they were sent")

    def _begin(self, store: Store) -> int:
        """Alerts from before this process started may still fire: reads every run from its manager's last start."""
        position = store.position()
        for info in store.runs():
            start = store.records(info.name, kinds=(ENGINE,), limit=1, newest_first=True)
            since_s = start[0].at_s if start else BEGINNING_S
            records = store.records(info.name, kinds=(ALERT, DIAGNOSIS, SYMPTOM), since_s=since_s)
            self._alerts.take(Placed(0, info.name, record) for record in records)
            last = store.records(info.name, kinds=(DELIVERY,), limit=1, newest_first=True)
            delivery = last[0].content_as(DeliveryContent) if last else None
            if delivery is not None and delivery.state == RETRYING:
                self._waiting[info.name] = Waiting(
                    [], delivery.attempts, time.monotonic(), self._pause_s, 0.0, last[0].id
                )
        return position

    def _send(self) -> None:
        """A refused message does not delay the others. A receiver that does not answer does."""
        for run, waiting in list(self._waiting.items()):
            if time.monotonic() < waiting.next_s:
                continue
            waiting.attempts += 1
            try:
                self._webhook.post(as_json(message(self._webhook.shape, run, waiting.alerts, self._dashboard)))
            except Exception as error:  # any error of the receiver, a proxy or the address
                code = error.code if isinstance(error, urllib.error.HTTPError) else None
                self._failed(run, waiting, _reason(error))
                if code is None:
                    for other in self._waiting.values():
                        other.next_s = max(other.next_s, waiting.next_s)
                    return
            else:
                self._end(run, SENT)

    def _failed(self, run: str, waiting: Waiting, reason: str) -> None:
        now_s = time.monotonic()
        waiting.failed_s = waiting.failed_s or now_s
        waiting.pause_s = min(2 * waiting.pause_s, LONGEST_PAUSE_S)
        waiting.next_s = now_s + waiting.pause_s
        if now_s - waiting.failed_s > GIVE_UP_S:
            self._end(run, GIVEN_UP, reason)
            return
        self._say(f"the webhook at {self._webhook.host} failed {reason}; will retry")
        if not waiting.record:
            waiting.record = self._write(run, waiting, RETRYING, reason)

    def _end(self, run: str, state: str, reason: str = "") -> None:
        waiting = self._waiting.pop(run)
        if waiting.record or state != SENT:
            self._write(run, waiting, state, reason)

    def _write(self, run: str, waiting: Waiting, state: str, reason: str) -> str:
        content = DeliveryContent(state, self._webhook.host, len(waiting.alerts), waiting.attempts, reason)
        because = (waiting.record,) if waiting.record else ()
        record = Record.of(f"delivery-{uuid.uuid4().hex[:12]}", time.time(), content, sentence(content), "", because)
        try:
            store = open_store(self._reader.log, guest=True)
            try:
                store.append(run, [record])
            finally:
                store.close()
        except HomeostatError as error:
            self._say(error.line)
            return waiting.record
        return record.id


def sentence(delivery: DeliveryContent) -> str:
    """
    >>> sentence(DeliveryContent("retrying", "hooks.example", 1, 3, "with HTTP 500"))
    '1 alert was not accepted by hooks.example: the last attempt failed with HTTP 500; delivery will be retried'
    >>> sentence(DeliveryContent("sent", "hooks.example", 2, 4))
    '2 alerts were accepted by hooks.example at attempt 4'
    """
    one = delivery.alerts == 1
    subject = f"{delivery.alerts} alert{'' if one else 's'} {'was' if one else 'were'}"
    match delivery.state:
        case "sent":
            return f"{subject} accepted by {delivery.host} at attempt {delivery.attempts}"
        case "retrying":
            failure = f"the last attempt failed {delivery.error}"
            return f"{subject} not accepted by {delivery.host}: {failure}; delivery will be retried"
        case "given up":
            return f"{subject} not sent to {delivery.host} in {delivery.attempts} attempts: it failed {delivery.error}"
    return f"{subject} not sent to {delivery.host}: {delivery.error}"


def _reason(error: Exception) -> str:
    code = error.code if isinstance(error, urllib.error.HTTPError) else None
    if code is not None and 300 <= code < 400:
        return f"with a redirect (HTTP {code}), which is not followed"
    return f"with HTTP {code}" if code is not None else f"({type(error).__name__})"


def _join(before: list[Alert], after: list[Alert]) -> list[Alert]:
    """Keeps ends that could not be sent yet."""
    changed = {alert.key for alert in after}
    ended_alerts = [alert for alert in before if not alert.firing and alert.key not in changed]
    return [*ended_alerts[-MOST_ALERTS:], *after]
