"""`homeostat fetch`: what it fetches, and what it says where it cannot."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.spark.cluster.kafka_connector import connector_jars

Homeostat = Callable[..., Any]


def test_what_is_there_already_is_named(homeostat: Homeostat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    for jar in connector_jars():
        jar.path.parent.mkdir(parents=True, exist_ok=True)
        jar.path.write_bytes(b"")
    result = homeostat("fetch", "kafka", "--json")
    assert (result.code, result.err) == (0, "")
    assert result.json["files"] == [str(jar.path) for jar in connector_jars()]


def test_another_name_is_refused(homeostat: Homeostat) -> None:
    result = homeostat("fetch", "rabbits")
    assert (result.code, result.err) == (2, "homeostat: cannot fetch 'rabbits' (write kafka or kafka-broker)\n")
