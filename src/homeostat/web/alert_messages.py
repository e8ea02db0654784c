"""Turns the log into alerts that begin and end, and into messages for a webhook."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import urlencode

from homeostat.core.causes import EXTERNAL, INCONCLUSIVE
from homeostat.core.records import AlertContent, DiagnosisContent, EngineContent, Record, SymptomContent
from homeostat.store.protocol import Placed
from homeostat.web.summary import CLOCK_S
from homeostat.web.texts import clip

Shape = Literal["alertmanager", "plain"]
SHAPES: tuple[Shape, ...] = ("alertmanager", "plain")
MOST_ALERTS = 100
LONGEST_LABEL = 100
LONGEST_MESSAGE = 2_000
_NEVER = "0001-01-01T00:00:00Z"
_SILENCE = (INCONCLUSIVE, EXTERNAL)


@dataclass(frozen=True, slots=True)
class Alert:
    """`diagnoses` are the ids of the diagnoses that it is about: the alert ends when one of them does."""

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
    """The alerts that fire now, by run. Every change is reported once by `take_changes`."""

    def __init__(self) -> None:
        self._firing: dict[str, dict[tuple[str, str], Alert]] = {}
        self._ended: dict[str, list[Alert]] = {}
        self._changed: set[str] = set()

    def take(self, news: Iterable[Placed]) -> None:
        for placed in news:
            if placed.record.at_s >= CLOCK_S:  # a simulation must not wake anybody
                self._record(placed.run, placed.record)

    def take_changes(self) -> dict[str, list[Alert]]:
        """For each run that changed: the alerts that ended since the last call, then those that fire now."""
        alerts = {
            run: [*self._ended.pop(run, ()), *self._firing.get(run, {}).values()] for run in sorted(self._changed)
        }
        self._changed.clear()
        return alerts

    def _record(self, run: str, record: Record) -> None:
        firing, content = self._firing.get(run, {}), record.content
        if isinstance(content, AlertContent):
            alert = _alert(run, record, content)
            if alert.key not in firing and len(firing) < MOST_ALERTS:
                self._firing.setdefault(run, {})[alert.key] = alert
                self._changed.add(run)
            return
        for alert in [each for each in firing.values() if _ends(record, each)]:
            del firing[alert.key]
            self._ended.setdefault(run, []).append(replace(alert, ended_s=record.at_s))
            self._changed.add(run)
        if not firing:
            self._firing.pop(run, None)


def _alert(run: str, record: Record, content: AlertContent) -> Alert:
    cause = clip(content.cause or "alert", LONGEST_LABEL)
    component, text = clip(record.component, LONGEST_LABEL), clip(record.text, LONGEST_MESSAGE)
    return Alert(run, record.id, cause, component, text, record.at_s, record.because)


def _ends(record: Record, alert: Alert) -> bool:
    """An alert ends with its diagnosis, when observations arrive again after a silence, or when a manager starts."""
    match record.content:
        case EngineContent(reason=reason):
            return reason == "start"
        case SymptomContent(over=True):
            return not record.because and alert.cause in _SILENCE
        case DiagnosisContent(over=True):
            return bool(set(record.because) & set(alert.diagnoses))
    return False


def message(shape: Shape, run: str, alerts: list[Alert], dashboard: str) -> dict[str, Any]:
    """If there are too many alerts, only the last ones are sent, which are those that fire."""
    newest = alerts[-MOST_ALERTS:]
    if shape == "plain":
        return _plain(run, newest)
    return _alertmanager(run, newest, dashboard) | {"truncatedAlerts": len(alerts) - len(newest)}


def _status(alerts: list[Alert]) -> str:
    return "firing" if any(alert.firing for alert in alerts) else "resolved"


def _plain(run: str, alerts: list[Alert]) -> dict[str, Any]:
    items = [
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
    return {"run": run, "status": _status(alerts), "alerts": items}


def _alertmanager(run: str, alerts: list[Alert], dashboard: str) -> dict[str, Any]:
    """The payload that Alertmanager sends to webhooks, version 4."""
    page = f"{dashboard}query?{urlencode({'run': run}, errors='backslashreplace')}" if dashboard else ""
    labels = [_labels(run, alert) for alert in alerts]
    annotations = [{"summary": alert.text.partition(". ")[0], "description": alert.text} for alert in alerts]
    items = [
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
        "alerts": items,
    }


def _labels(run: str, alert: Alert) -> dict[str, str]:
    """Without empty labels: Alertmanager treats them as missing."""
    labels = {"alertname": alert.cause, "run": run, "component": alert.component, "severity": "warning"}
    return {name: value for name, value in labels.items() if value}


def _common(all_: list[dict[str, str]]) -> dict[str, str]:
    return {name: value for name, value in all_[0].items() if all(each.get(name) == value for each in all_)}


def _iso(at_s: float) -> str:
    try:
        return datetime.fromtimestamp(at_s, UTC).isoformat().replace("+00:00", "Z")
    except (OverflowError, ValueError, OSError):
        return _NEVER
