"""What `homeostat run` tells the driver process, and where an application keeps its things."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

STARTED = "driver.json"
KNOBS = "knobs.json"
CAPABILITIES = "capabilities.json"
LEASE = "lease"


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
    fresh: bool = False
    room: int | None = None

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
