"""Sends alerts to a webhook from its own thread, so that a slow receiver delays nothing else."""

from __future__ import annotations

import threading
import urllib.error
import urllib.request
from collections.abc import Callable
from http.client import HTTPException
from urllib.parse import urlsplit

from homeostat.core.errors import ConfigError, StoreError
from homeostat.core.records import ALERT, DIAGNOSIS, ENGINE, SYMPTOM
from homeostat.store.protocol import BEGINNING_S, Placed, Store
from homeostat.web.alerts import MOST_ALERTS, Alert, Alerts, Shape, message
from homeostat.web.reader import Reader
from homeostat.web.responses import as_json

LOOK_AGAIN_S = 1.0
TIMEOUT_S = 10.0
LONGEST_PAUSE_S = 300.0
_PAGE = 500


class Notifier:
    """Sends a run's alerts again until the receiver accepts them; changes in the meantime are sent with them."""

    def __init__(
        self,
        reader: Reader,
        url: str,
        shape: Shape,
        dashboard: str,
        say: Callable[[str], None],
        pause_s: float = LOOK_AGAIN_S,
    ) -> None:
        self._host = _check_url(url)
        self._reader, self._url, self._shape, self._dashboard = reader, url, shape, dashboard
        self._say, self._pause_s = say, pause_s
        self._alerts = Alerts()
        self._position: int | None = None
        self._waiting: dict[str, list[Alert]] = {}
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
            self._look()
            is_sent = self._send()
            pause_s = self._pause_s if is_sent else min(2 * pause_s, LONGEST_PAUSE_S)

    def _look(self) -> None:
        try:
            if self._position is None:
                self._position = self._reader.read(self._begin)
            while news := self._reader.read(lambda store: store.after(self._position or 0, _PAGE)):
                self._alerts.take(news)
                self._position = news[-1].position
        except StoreError:
            return
        for run, alerts in self._alerts.take_changes().items():
            self._waiting[run] = _join(self._waiting.get(run, []), alerts)

    def _begin(self, store: Store) -> int:
        """Alerts from before this process started may still fire: reads every run from its manager's last start."""
        position = store.position()
        for info in store.runs():
            start = store.records(info.name, kinds=(ENGINE,), limit=1, newest_first=True)
            since_s = start[0].at_s if start else BEGINNING_S
            records = store.records(info.name, kinds=(ALERT, DIAGNOSIS, SYMPTOM), since_s=since_s)
            self._alerts.take(Placed(0, info.name, record) for record in records)
        return position

    def _send(self) -> bool:
        """Whether everything was sent. One message that is refused does not hold back the others."""
        for run in list(self._waiting):
            try:
                self._post(as_json(message(self._shape, run, self._waiting[run], self._dashboard)))
            except (OSError, HTTPException) as error:
                code = error.code if isinstance(error, urllib.error.HTTPError) else None
                how = f" with HTTP {code}" if code is not None else ""
                self._say(f"the webhook at {self._host} failed{how} ({type(error).__name__}); will retry")
                if code is None:
                    return False
            else:
                del self._waiting[run]
        return not self._waiting

    def _post(self, body: bytes) -> None:
        headers = {"content-type": "application/json", "user-agent": "homeostat"}
        request = urllib.request.Request(self._url, body, headers, method="POST")
        with urllib.request.urlopen(request, timeout=TIMEOUT_S) as answer:
            answer.read(1_000)


def _join(before: list[Alert], after: list[Alert]) -> list[Alert]:
    """Keeps ends that could not be sent yet."""
    changed = {alert.key for alert in after}
    ended_alerts = [alert for alert in before if not alert.firing and alert.key not in changed]
    return [*ended_alerts[-MOST_ALERTS:], *after]


def _check_url(url: str) -> str:
    """The host of the address, for messages: the rest of a webhook's address is often a secret."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(
            "not an http or https address", where="--webhook", fix="use an address such as https://host/hook"
        )
    return parts.hostname
