"""From the log to alerts that begin and end: each is told once, together with the others of its run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlencode

from homeostat.core.causes import EXTERNAL, INCONCLUSIVE
from homeostat.core.records import ALERT, ENGINE, SYMPTOM, Record
from homeostat.store.protocol import Placed
from homeostat.web.stories import clipped
from homeostat.web.summary import CLOCK_S

Shape = Literal["alertmanager", "plain"]
SHAPES: tuple[Shape, ...] = ("alertmanager", "plain")
MOST_ALERTS = 100
_NEVER = "0001-01-01T00:00:00Z"
_SILENCE = (INCONCLUSIVE, EXTERNAL)


@dataclass(frozen=True, slots=True)
class Alert:
    """`diagnoses` are the ids whose end is its end."""

    run: str
    id: str
    cause: str
    component: str
    text: str
    began_s: float
    diagnoses: tuple[str, ...] = ()
    ended_s: float | None = None

    @property
    def key(self) -> tuple[str, str]:
        return self.cause, self.component

    @property
    def firing(self) -> bool:
        return self.ended_s is None

    @property
    def fingerprint(self) -> str:
        name = "\0".join((self.run, *self.key)).encode("utf-8", "backslashreplace")
        return hashlib.blake2b(name, digest_size=8).hexdigest()


class Alerts:
    """Which alerts stand. `changed` gives the runs about which there is something to tell, and what."""

    def __init__(self) -> None:
        self._standing: dict[str, dict[tuple[str, str], Alert]] = {}
        self._over: dict[str, list[Alert]] = {}
        self._changed: set[str] = set()

    def take(self, news: Iterable[Placed]) -> None:
        for placed in news:
            if placed.record.at_s >= CLOCK_S:  # nobody is to be woken by a simulation
                self._record(placed.run, placed.record)

    def changed(self) -> dict[str, list[Alert]]:
        """Per run what stands now and what has ended since the last call."""
        told = {run: [*self._over.pop(run, ()), *self._standing.get(run, {}).values()] for run in sorted(self._changed)}
        self._changed.clear()
        return told

    def _record(self, run: str, record: Record) -> None:
        standing = self._standing.setdefault(run, {})
        if record.kind == ALERT:
            cause = clipped(record.body.get("cause") or "alert", 100)
            alert = Alert(
                run,
                record.id,
                cause,
                clipped(record.component, 100),
                clipped(record.text, 2_000),
                record.at_s,
                record.because,
            )
            if alert.key not in standing and len(standing) < MOST_ALERTS:
                standing[alert.key] = alert
                self._changed.add(run)
            return
        for alert in [each for each in standing.values() if _ends(record, each)]:
            del standing[alert.key]
            self._over.setdefault(run, []).append(replace(alert, ended_s=record.at_s))
            self._changed.add(run)


def _ends(record: Record, alert: Alert) -> bool:
    """A diagnosis that is over, observations that arrive again after a silence, or a manager that begins anew."""
    if record.kind == ENGINE:
        return record.body.get("reason") == "start"
    if not record.body.get("over"):
        return False
    if record.kind == SYMPTOM:
        return not record.because and alert.cause in _SILENCE
    return bool(set(record.because) & set(alert.diagnoses))


def message(shape: Shape, run: str, alerts: list[Alert], dashboard: str) -> dict[str, Any]:
    """Of too many the last are told: those that stand."""
    told = alerts[-MOST_ALERTS:]
    if shape == "plain":
        return _plain(run, told)
    return _alertmanager(run, told, dashboard) | {"truncatedAlerts": len(alerts) - len(told)}


def _status(alerts: list[Alert]) -> str:
    return "firing" if any(alert.firing for alert in alerts) else "resolved"


def _plain(run: str, alerts: list[Alert]) -> dict[str, Any]:
    told = [
        {
            "status": "firing" if alert.firing else "resolved",
            "id": alert.id,
            "cause": alert.cause,
            "component": alert.component,
            "text": alert.text,
            "began": _iso(alert.began_s),
            "ended": None if alert.ended_s is None else _iso(alert.ended_s),
        }
        for alert in alerts
    ]
    return {"run": run, "status": _status(alerts), "alerts": told}


def _alertmanager(run: str, alerts: list[Alert], dashboard: str) -> dict[str, Any]:
    """Version 4 of what Alertmanager sends to a webhook."""
    page = f"{dashboard}query?{urlencode({'run': run}, errors='backslashreplace')}" if dashboard else ""
    labels = [_labels(run, alert) for alert in alerts]
    annotations = [{"summary": alert.text.partition(". ")[0], "description": alert.text} for alert in alerts]
    told = [
        {
            "status": "firing" if alert.firing else "resolved",
            "labels": labels[place],
            "annotations": annotations[place],
            "startsAt": _iso(alert.began_s),
            "endsAt": _NEVER if alert.ended_s is None else _iso(alert.ended_s),
            "generatorURL": page,
            "fingerprint": alert.fingerprint,
        }
        for place, alert in enumerate(alerts)
    ]
    return {
        "version": "4",
        "groupKey": f"{{}}:{{run={json.dumps(run)}}}",
        "status": _status(alerts),
        "receiver": "homeostat",
        "groupLabels": {"run": run},
        "commonLabels": _common(labels),
        "commonAnnotations": _common(annotations),
        "externalURL": dashboard,
        "alerts": told,
    }


def _labels(run: str, alert: Alert) -> dict[str, str]:
    """To Alertmanager an empty label is none."""
    labels = {"alertname": alert.cause, "run": run, "component": alert.component, "severity": "warning"}
    return {name: value for name, value in labels.items() if value}


def _common(all_: list[dict[str, str]]) -> dict[str, str]:
    return {name: value for name, value in all_[0].items() if all(each.get(name) == value for each in all_)}


def _iso(at_s: float) -> str:
    try:
        return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return _NEVER
