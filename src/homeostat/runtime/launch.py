"""What `homeostat run` tells the driver process, and where an application keeps its things."""

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
YARN_SETTINGS = ("HADOOP_CONF_DIR", "YARN_CONF_DIR")
USUAL_PORTS = {"https": 443, "http": 80}
_LOCAL = re.compile(r"local(\[ *(\*|[1-9]\d*) *(, *\d+ *)?\]|-cluster\[ *\d+ *, *\d+ *, *\d+ *\])?")


@dataclass(frozen=True, slots=True)
class Launch:
    """`app` is `path/to/app.py` or `path/to/app.py:name`; everything the application leaves goes below `directory`."""

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
    """All of it or nothing: a reader never sees half a file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    half = path.with_suffix(f".{os.getpid()}.new")
    half.write_text(json.dumps(value, indent=1))
    half.replace(path)


def read_json(path: Path) -> Any:
    """None if it is not there or cannot be read."""
    try:
        return json.loads(path.read_text())
    except (OSError, ValueError):
        return None


def require_master(master: str) -> None:
    """What Spark would find out late, or tell in many lines; for an absent standalone master it tries for a minute."""
    where = f"--master {master}"
    kind, _, rest = master.partition("://")
    if master.startswith("local"):
        if not _LOCAL.fullmatch(master):
            raise ConfigError("this is no local master of Spark", where=where, fix="write local, local[2] or local[*]")
    elif master == "yarn":
        if not any(os.environ.get(name) for name in YARN_SETTINGS):
            raise ConfigError("nothing tells where YARN is", where=where, fix=f"set {' or '.join(YARN_SETTINGS)}")
    elif kind == "k8s":
        if not _answers(rest if "://" in rest else f"https://{rest}"):
            raise ConfigError("no Kubernetes answers there", where=where, fix="write k8s://https://host:6443")
    elif kind == "spark":
        _require_standalone(rest.split(","), where)
    else:
        raise ConfigError("this is no master of Spark", where=where, fix="write spark://host:7077")


def _require_standalone(places: Sequence[str], where: str) -> None:
    """One of them is enough; what answers as something else says more than what does not answer."""
    reasons = []
    for place in places:
        reason = why_no_master(place)
        if not reason:
            return
        reasons.append(reason)
    wrong = [reason for reason in reasons if reason != NOBODY]
    if wrong:
        raise ConfigError(wrong[0], where=where, fix="write spark://host:7077, or leave --master out")
    raise ConfigError(NOBODY, where=where, fix="start it, or leave --master out")


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
