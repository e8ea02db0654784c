"""Who did what, from the log and the file beside it."""

from __future__ import annotations

import time
from pathlib import Path

from homeostat.core.access_records import AccessContent
from homeostat.core.records import ActionContent, OperatorContent, Record, RejectionContent
from homeostat.log_views.audit import audit_trail
from homeostat.runtime.orders import order
from homeostat.store.access_file import AccessFile
from homeostat.store.sqlite import SqliteStore


def test_orders_with_their_answers_and_accesses_stand_together_newest_first(tmp_path: Path) -> None:
    log, now_s = tmp_path / "log.sqlite", time.time()
    store = SqliteStore(log)
    orders = [
        order("pause", by="alice", now_s=now_s - 9, why="a deployment", role="operate", origin="API from 10.0.0.1"),
        order("approve", by="bob", now_s=now_s - 8, target="v-1", role="operate", origin="command line on host"),
        order("apply", by="bob", now_s=now_s - 7, values={"executors.app": 4}, role="operate", origin="dashboard"),
        order("resume", by="eve", now_s=now_s - 6),
    ]
    store.append("app/words", orders)
    accepted = [
        Record.of(f"p-{number}", now_s, OperatorContent(each.text, "x"), "accepted", because=(each.id,))
        for number, each in enumerate(orders[:3])
    ]
    store.append("app/words", accepted)
    store.append("app/words", [Record.of("r-1", now_s, RejectionContent("no"), "rejected: no", because=("p-1",))])
    store.append("app/words", [Record.of("a-1", now_s, ActionContent("by-hand"), "four executors", because=("p-2",))])
    content = AccessContent("refusal", "", "", "10.0.0.9", "GET /index.json", "401", 3)
    AccessFile(log).append(Record.of("access-1", now_s - 5, content, "refused"))
    lines = audit_trail(store, log, 10)
    assert [(line.who, line.what, line.answer) for line in lines] == [
        ("", "refusal: GET /index.json", "401 (3 more refused requests before it)"),
        ("eve", "resume", "no answer yet"),
        ("bob", "apply executors.app=4", "four executors"),
        ("bob", "approve v-1", "rejected: no"),
        ("alice", "pause (a deployment)", "accepted"),
    ]
    assert (lines[-1].role, lines[-1].origin, lines[-1].run) == ("operate", "API from 10.0.0.1", "app/words")
    assert len(audit_trail(store, log, 2)) == 2
    assert [line.who for line in audit_trail(store, log, 10, "app/words")] == ["eve", "bob", "bob", "alice"]
    store.close()
