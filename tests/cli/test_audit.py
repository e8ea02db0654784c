"""`homeostat audit`."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from homeostat.core.access_records import AccessContent
from homeostat.core.records import Record
from homeostat.runtime.orders import order
from homeostat.store.access_file import AccessFile
from homeostat.store.sqlite import SqliteStore

Homeostat = Callable[..., Any]


def test_who_did_what_is_listed(homeostat: Homeostat, tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    store = SqliteStore(log)
    store.append("app/words", [order("pause", by="alice", now_s=time.time() - 1, role="operate", origin="API")])
    store.close()
    content = AccessContent("sign-in", "alice", "operate", "10.0.0.1")
    AccessFile(log).append(Record.of("access-1", time.time() - 2, content, "alice signs in"))
    result = homeostat("audit", "--store", str(log), "--json")
    assert [(line["who"], line["what"], line["answer"]) for line in json.loads(result.out)] == [
        ("alice", "sign-in", ""),
        ("alice", "pause", "no answer yet"),
    ]
    table = homeostat("audit", "--store", str(log), "--run", "app/words").out
    assert "pause" in table
    assert "sign-in" not in table
