"""What `homeostat run` tells the driver process, and where an application keeps its things."""

from __future__ import annotations

import json
import os
import re
import socket
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from homeostat.core.errors import ConfigError
from homeostat.service.loop import SILENT_S

STARTED = "driver.json"
KNOBS = "knobs.json"
CAPABILITIES = "capabilities.json"
LEASE = "lease"
SUPERVISOR = "supervisor"
REACH_S = 5.0
MASTERS = ("local", "spark://", "yarn", "k8s://")
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
    if not master.startswith(MASTERS):
        raise ConfigError("this is no master of Spark", where=where, fix="write spark://host:7077")
    if master.startswith("local") and not _LOCAL.fullmatch(master):
        raise ConfigError("this is no local master of Spark", where=where, fix="write local, local[2] or local[*]")
    if not master.startswith("spark://"):
        return
    for place in master.removeprefix("spark://").split(","):
        host, _, port = place.rpartition(":")
        try:
            socket.create_connection((host, int(port)), REACH_S).close()
            return
        except (OSError, ValueError, OverflowError):
            continue
    raise ConfigError("no master answers there", where=where, fix="start it, or leave --master out")
