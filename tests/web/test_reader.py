"""A log that is damaged, missing or replaced."""

from __future__ import annotations

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from homeostat.core.records import Record
from homeostat.store.postgres import PostgresStore
from homeostat.store.sqlite import SqliteStore
from support.living import Living
from support.postgres import PostgresServer
from support.serving import OPERATE, serving


def test_a_row_that_no_program_of_ours_wrote_hides_nothing_else(tmp_path: Path) -> None:
    log, now_s = tmp_path / "log.sqlite", time.time()
    store = SqliteStore(log)
    odd = {
        "deep": ("body", '{"a":' + "[" * 450 + "]" * 450 + "}"),
        "deeper": ("body", '{"a":' + "[" * 50_000 + "]" * 50_000 + "}"),
        "orphan": ("because", "5"),
        "timeless": ("at_s", "whenever"),
        "bytes": ("text", b"\xff\xfe"),
        "halves": ("body", '{"cause": "\\ud800", "evidence": {"\\ud800": 1}}'),
    }
    for run in (*odd, "fine"):
        store.append(run, [Record("a-1", "action", now_s, "acts"), Record("b-1", "batch", now_s, "", body={"rows": 1})])
    with closing(sqlite3.connect(log)) as raw, raw:
        for run, (column, value) in odd.items():
            raw.execute(
                f"UPDATE records SET {column} = ? WHERE run = (SELECT run FROM runs WHERE name = ?)", (value, run)
            )
        raw.execute("INSERT INTO state SELECT run, 'present', '{' FROM runs")
    with serving(log) as served, served.client() as client:
        listed = client.get("/index.json").json()
        assert {each["name"] for each in listed["applications"]} == {*odd, "fine"}
        assert client.get("/").status_code == client.get("/metrics").status_code == 200
        for run in odd:
            for path in ("/query", "/series", "/stories", "/log", "/record", "/models/traffic", "/plans"):
                parameters = {"run": run, "id": "a-1"} if path == "/record" else {"run": run}
                for form in ("", ".json"):
                    status = client.get(path + form, params=parameters).status_code
                    assert status in ((200, 404) if run in ("deep", "halves") else (200, 404, 503)), (run, path)
        with client.stream("GET", "/events", headers={"last-event-id": "0"}) as stream:
            lines = stream.iter_lines()
            assert [_event(lines)["run"] for _ in range(6)][-1] == "fine"
    store.close()


def test_a_log_that_is_not_there_yet_is_an_empty_list(tmp_path: Path) -> None:
    with serving(tmp_path / "later.sqlite") as served, served.client() as client:
        assert client.get("/index.json").json()["total"] == 0
        assert "The log has no runs yet." in client.get("/").text
        assert client.get("/metrics").text == ""
        assert client.get("/query.json?run=x").status_code == 404
        Living(tmp_path / "later.sqlite", "app/late").close()
        assert client.get("/index.json").json()["total"] == 1


def _event(lines: object) -> dict[str, object]:
    for line in lines:  # type: ignore[attr-defined]
        if line.startswith("data: "):
            return dict(json.loads(line.removeprefix("data: ")))
    raise AssertionError("the stream ended")


def test_one_dashboard_shows_the_applications_of_all_machines(postgres: PostgresServer) -> None:
    log, now_s = postgres.new_address(), time.time()
    with serving(log) as served, served.client(OPERATE) as client:
        assert client.get("/index.json").json()["applications"] == [], "a database without a log is not an error"
        with closing(PostgresStore(log)) as store:
            for run in ("words/counting", "clicks/counting"):
                store.append(run, [Record("b-1", "batch", now_s, "", body={"rows": 1})])
            assert {each["name"] for each in client.get("/index.json").json()["applications"]} == {"words", "clicks"}
            with client.stream("GET", "/events", headers={"last-event-id": str(store.position())}) as stream:
                lines = stream.iter_lines()
                order = {"run": "words/counting", "command": "pause", "why": "a test"}
                assert client.post("/orders.json", json=order).status_code == 202
                assert _event(lines)["run"] == "words/counting"
            assert [record.kind for record in store.records("words/counting")] == ["batch", "order"]
        for path in ("/", "/query?run=words/counting", "/log?run=words/counting", "/metrics", "/audit"):
            assert client.get(path).status_code == 200
        postgres.stop()
        assert client.get("/index.json").status_code == 503
        postgres.start()
        assert len(client.get("/index.json").json()["applications"]) == 2
