"""Server-sent events: they arrive soon, and a viewer that was cut off catches up."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from homeostat.core.records import Record
from homeostat.lab.bench.open_dashboards import Viewer
from homeostat.store.sqlite import SqliteStore
from support.living import Living
from support.serving import Served, serving

pytestmark = pytest.mark.changes_runs

RUN = {"run": "app/words"}


def _event(lines: object) -> dict[str, object]:
    for line in lines:  # type: ignore[attr-defined]
        if line.startswith("data: "):
            return dict(json.loads(line.removeprefix("data: ")))
    raise AssertionError("the stream ended")


def test_events_arrive_and_are_caught_up_with(served: Served, words: Living) -> None:
    before = words.store.position()
    with served.client() as client, client.stream("GET", "/events", params=RUN) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        words.step()
        first = _event(lines)
        assert first["run"] == "app/words"
    words.step()
    with served.client() as client:
        headers = {"last-event-id": str(before)}
        with client.stream("GET", "/events", params=RUN, headers=headers) as stream:
            lines = stream.iter_lines()
            missed = [_event(lines) for _ in range(2)]
    assert missed[0] == first
    assert [event["kind"] for event in missed].count("batch") >= 1


def test_who_was_cut_off_before_the_first_event_still_catches_up(served: Served, words: Living) -> None:
    with served.client() as client, client.stream("GET", "/events", params=RUN) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "retry: 1000"
        place = next(lines).removeprefix("id: ")
    words.step()
    headers = {"last-event-id": place}
    with served.client() as client, client.stream("GET", "/events", params=RUN, headers=headers) as stream:
        assert _event(stream.iter_lines())["run"] == "app/words"


def test_a_place_that_the_log_does_not_have_is_answered_by_reset(served: Served, words: Living) -> None:
    with served.client() as client, client.stream("GET", "/events", params=RUN | {"after": "9999999"}) as stream:
        lines = stream.iter_lines()
        event_lines = [next(lines) for _ in range(6)]
        assert event_lines[1:3] == ["id: 9999999", ""]
        assert event_lines[4:] == ["event: reset", "data: {}"]
        words.step()
        assert _event(lines)["run"] == "app/words"


def test_a_log_that_begins_while_someone_watches_is_reported_at_once(tmp_path: Path) -> None:
    with serving(tmp_path / "later.sqlite") as served, served.client() as client:
        with client.stream("GET", "/events") as stream:
            lines = stream.iter_lines()
            assert next(lines) == "retry: 1000"
            store = SqliteStore(tmp_path / "later.sqlite")
            store.append("app/late", [Record("s-1", "symptom", 1e9, "seen")])
            store.close()
            assert _event(lines)["run"] == "app/late"
        assert client.head("/events").status_code == 200
        assert client.get("/index.json").json()["total"] == 1


def test_a_viewer_of_the_benchmark_reads_pages_when_there_is_news(served: Served, words: Living) -> None:
    host, port = served.url.removeprefix("http://").split(":")

    async def watched() -> int:
        viewer = Viewer(host, int(port), words.run)
        watching = asyncio.create_task(viewer.watch())
        await viewer.connected.wait()
        while not viewer.reads and not watching.done():
            words.step()
            await asyncio.sleep(0.1)
        watching.cancel()
        return viewer.reads

    assert asyncio.run(watched()) >= 1
