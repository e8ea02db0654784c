"""The launch order that `homeostat run` hands to the driver process, and the files of an application."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from homeostat.core.errors import ConfigError
from homeostat.runtime.loop_thread import SILENT_S
from homeostat.spark.cluster.masters import NOBODY, REACH_S, why_no_master

STARTED = "driver.json"
KNOBS = "knobs.json"
CAPABILITIES = "capabilities.json"
LEASE = "lease"
SUPERVISOR = "supervisor"
# The exit code of a driver with a query that has failed too often to be restarted.
QUERY_FAILED = 4
YARN_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
USUAL_PORTS = {"https": 443, "http": 80}
_LOCAL = re.compile(r"local(\[ *(\*|[1-9]\d*) *(, *\d+ *)?\]|-cluster\[ *\d+ *, *\d+ *, *\d+ *\])?")


@dataclass(frozen=True, slots=True)
class Launch:
    """`app` is `path/to/app.py` or `path/to/app.py:name`. All files of the application go below `directory`."""

    app: str
    master: str
    directory: str
    config: str | None = None
    flags: Mapping[str, Any] = field(default_factory=dict)
    conf: Mapping[str, str] = field(default_factory=dict)
    for_s: float | None = None
    allocation: str = "homeostat"
    room: int | None = None
    silent_s: float = SILENT_S

    def to_json(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_json(cls, text: str) -> Launch:
        return cls(**json.loads(text))


def write_json(path: Path, value: object) -> None:
    """Write the file atomically, so that a reader never sees half of it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_suffix(f".{os.getpid()}.new")
    temporary.write_text(json.dumps(value, indent=1))
    temporary.replace(path)


def read_json(path: Path) -> Any:
    """The content of the file, or None if it is missing or not readable."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def require_master(master: str) -> None:
    """Check the master first: Spark tries an absent standalone master for a minute, then prints many lines."""
    where = f"--master {master}"
    kind, _, rest = master.partition("://")
    if master.startswith("local"):
        if not _LOCAL.fullmatch(master):
            raise ConfigError("not a valid local Spark master", where=where, fix="write local, local[2] or local[*]")
    elif master == "yarn":
        if not any(os.environ.get(name) for name in YARN_SETTINGS):
            raise ConfigError("the YARN configuration is missing", where=where, fix=f"set {' or '.join(YARN_SETTINGS)}")
    elif kind == "k8s":
        if not _answers(rest if "://" in rest else f"https://{rest}"):
            raise ConfigError(
                "no Kubernetes API server answers at this address", where=where, fix="write k8s://https://host:6443"
            )
    elif kind == "spark":
        _require_standalone(rest.split(","), where)
    else:
        raise ConfigError("not a valid Spark master", where=where, fix="write spark://host:7077")


def _require_standalone(places: Sequence[str], where: str) -> None:
    """One reachable master is enough. Otherwise, an error about a wrong answer is preferred to one about a missing
    answer.
    """
    reasons = []
    for place in places:
        reason = why_no_master(place)
        if not reason:
            return
        reasons.append(reason)
    wrong = [reason for reason in reasons if reason != NOBODY]
    if wrong:
        raise ConfigError(wrong[0], where=where, fix="write spark://host:7077, or omit --master")
    raise ConfigError(NOBODY, where=where, fix="start it, or omit --master to run on a local cluster")


def _answers(address: str) -> bool:
    try:
        place = urlsplit(address)
        port = place.port or USUAL_PORTS.get(place.scheme)
        if not place.hostname or port is None:
            return False
        socket.create_connection((place.hostname, port), REACH_S).close()
    except (OSError, ValueError):
        return False
    return True
