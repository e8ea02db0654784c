"""A real server over a log, and a run that was written to do harm."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import httpx
import uvicorn

from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.store.address import LogAddress
from homeostat.store.sqlite import SqliteStore
from homeostat.web.app import Dashboard
from homeostat.web.connections import IdleClosingProtocol
from homeostat.web.reader import Reader
from homeostat.web.token_file import Person, Tokens

OPERATE, READ = "operate-token-of-alice", "read-only-token-of-bob"
TOKENS = Tokens({OPERATE: Person("alice", "operate"), READ: Person("bob", "read")})
HOSTILE = "<img src=x onerror=alert(1)>/\"'--><script>alert(2)</script>\u202eevil\x1b[31m"
LONG = "very long " * 20_000


class Served(NamedTuple):
    url: str
    dashboard: Dashboard
    server: uvicorn.Server

    @property
    def connections(self) -> int:
        return len(self.server.server_state.connections)

    def client(self, token: str = "") -> httpx.Client:
        headers = {"authorization": f"Bearer {token}"} if token else {}
        return httpx.Client(base_url=self.url, headers=headers, timeout=30.0)


@contextmanager
def serving(
    log: LogAddress, *, local: bool = True, secure: bool = False, tokens: Tokens = TOKENS, limit: int | None = None
) -> Iterator[Served]:
    """`limit`: connections at which the server answers everyone with 503."""
    dashboard = Dashboard(Reader(log), tokens, local=local, secure=secure)
    config = uvicorn.Config(
        dashboard.application(),
        port=0,
        log_level="warning",
        http=IdleClosingProtocol,
        ws="none",
        timeout_graceful_shutdown=1,
        limit_concurrency=limit,
    )
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.01)
    port = server.servers[0].sockets[0].getsockname()[1]
    try:
        yield Served(f"http://127.0.0.1:{port}", dashboard, server)
    finally:
        server.should_exit = True
        thread.join()


def write_hostile(log: Path) -> None:
    now_s = time.time()
    nasty: dict[str, JSON] = {
        "kind": HOSTILE,
        "evidence": {HOSTILE: LONG},
        "patch": [HOSTILE],
        "steps": {"a": HOSTILE},
        "prediction": 3,
    }
    records = [
        Record(HOSTILE, "symptom", now_s - 9, HOSTILE + LONG, HOSTILE, body=nasty),
        Record("d-1", "diagnosis", now_s - 8, LONG, HOSTILE, (HOSTILE,), {"cause": HOSTILE, "probability": "x"}),
        Record("a-1", "action", now_s - 7, HOSTILE, HOSTILE, ("d-1",), nasty),
        Record("u-1", "outcome", now_s - 6, HOSTILE, "", ("a-1",), {"action": "a-1", "verdict": HOSTILE}),
        Record("b-1", "batch", now_s - 5, HOSTILE, body={"rows": HOSTILE, "span_s": 0, "phases_s": {HOSTILE: 1e308}}),
        Record("b-2", "batch", now_s - 4, "", body={"rows": float("nan"), "seconds": float("inf"), "workers": 10**400}),
        Record("x-1", HOSTILE, now_s - 3, "a kind of its own"),
        Record("n-1", "alert", now_s - 2, HOSTILE, body={"cause": HOSTILE}),
    ]
    store = SqliteStore(log)
    store.append(HOSTILE, records)
    nodes: list[JSON] = [{"name": HOSTILE, "inputs": [HOSTILE], "busy": 1e300}, {"name": HOSTILE, "instances": -1}]
    standing: list[JSON] = [{"id": HOSTILE, "what": HOSTILE, "text": HOSTILE, "component": HOSTILE}]
    present: dict[str, JSON] = {"mode": HOSTILE, "paused": HOSTILE, "observed": {HOSTILE: 1}, "components": nodes}
    store.save_state(
        HOSTILE, "present", present | {"conditions": [HOSTILE], "diagnoses": standing, "advised": standing}
    )
    store.save_state(HOSTILE, "matrices", {"components": {HOSTILE: {"workers": [3]}}})
    store.save_state(HOSTILE, "model", {"format": 1, "at_s": HOSTILE, "topology": nodes, "configuration": {HOSTILE: 1}})
    store.save_state("only a state", "present", [1, 2])
    store.close()
