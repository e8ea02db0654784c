"""The API over a real server: the right numbers, pages of them, and refusals of one shape."""

from __future__ import annotations

import asyncio
import json
import math
import re
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx
import pytest

from homeostat.core.records import Record
from homeostat.lab.bench.dashboard import write_history
from homeostat.lab.bench.viewers import Viewer
from homeostat.store.sqlite import SqliteStore
from support.living import Living
from support.serving import HOSTILE, Served, serving

RUN = {"run": "app/words"}
TAGGED = [
    *(f"{page}{form}?run=app/words" for page in ("/query", "/stories", "/log") for form in ("", ".json")),
    *("/record?run=app/words&id=a-1", "/record.json?run=app/words&id=a-1"),
    *("/series.json?run=app/words", "/models/traffic.json?run=app/words"),
]


def test_the_list_names_every_run_with_its_health(client: httpx.Client) -> None:
    listed = client.get("/index.json").json()
    assert listed["total"] == 4
    queries = {q["run"]: q for application in listed["applications"] for q in application["queries"]}
    assert queries["app/words"]["health"] == "healthy"
    assert queries["app/words"]["latest"]["process_per_s"] == pytest.approx(200, rel=0.05)
    assert queries["app/advised"]["health"] == "falling behind"
    assert queries["app/advised"]["advised"]


def test_lists_come_in_pages(client: httpx.Client) -> None:
    first = client.get("/index.json", params={"limit": 1}).json()
    second = client.get("/index.json", params={"limit": 1, "offset": first["next"]}).json()
    assert first["applications"] != second["applications"]
    every = client.get("/log.json", params=RUN).json()["records"]
    page = client.get("/log.json", params=RUN | {"limit": 2, "offset": 1}).json()
    assert page["records"] == every[1:3]
    assert page["next"] == 3


def test_a_query_shows_what_the_manager_sees(client: httpx.Client, words: Living) -> None:
    shown = client.get("/query.json", params=RUN).json()
    state = words.manager.state
    assert shown["present"]["mode"] == "regulate"
    assert shown["present"]["observed"] == state.observed.as_json()
    assert [c["name"] for c in shown["present"]["components"]] == ["lines", "count"]
    assert shown["conditions"][0] == {"name": "observations arrive", "holds": "yes", "reason": "batches are reported"}
    assert shown["answer"].startswith("Nothing needs to happen")
    action = next(told for told in shown["stories"] if told["kind"] == "action")
    stages = [step["stage"] for step in action["steps"]]
    assert [s for s in ("symptom", "diagnosis", "proposal", "action", "effect", "outcome") if s not in stages] == []


def test_advice_that_waits_is_the_answer_to_why_nothing_happens(client: httpx.Client) -> None:
    shown = client.get("/query.json", params={"run": "app/advised"}).json()
    (advice, *_) = shown["summary"]["advised"]
    assert shown["answer"] == f"Mode advise: it only says what it would do; {advice['id']} waits for approval."


def test_the_series_are_the_batches_and_mark_every_action(client: httpx.Client, words: Living) -> None:
    shown = client.get("/series.json", params=RUN | {"points": 2000}).json()
    batches = words.store.records(words.run, kinds=("batch",))
    assert shown["columns"]["at_s"] == [batch.at_s for batch in batches]
    assert shown["columns"]["rows"] == pytest.approx([batch.body["rows"] for batch in batches])
    assert [a["id"] for a in shown["actions"]] == [a.id for a in words.store.records(words.run, kinds=("action",))]
    few = client.get("/series.json", params=RUN | {"points": 10}).json()["columns"]
    assert len(few["at_s"]) == len(few["rows"]) <= 10
    assert sum(few["rows"]) == pytest.approx(sum(shown["columns"]["rows"]))
    recent = client.get("/series.json", params=RUN | {"last": "15 min"}).json()["columns"]
    assert 85 <= len(recent["at_s"]) <= 92


def test_a_record_is_explained_with_its_chain(client: httpx.Client) -> None:
    shown = client.get("/record.json", params=RUN | {"id": "a-1"}).json()
    assert "What came of it" in shown["text"]
    assert {"symptom", "diagnosis", "action", "outcome"} <= {line["kind"] for line in shown["chain"]}


@pytest.mark.parametrize("path", ["/", "/index.json", "/openapi.json", *TAGGED])
def test_what_has_not_changed_is_not_sent_again(client: httpx.Client, path: str) -> None:
    tag = client.get(path).headers["etag"]
    for known in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = client.get(path, headers={"if-none-match": known})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get(path, headers={"if-none-match": '"other"'}).status_code == 200


@pytest.mark.parametrize(
    ("path", "status", "what"),
    [
        ("/query.json", 400, "'run' is missing"),
        ("/query.json?run=app/wrods", 404, "there is no such run in this log"),
        ("/record.json?run=app/words&id=a-99", 404, "this run has no such record"),
        ("/log.json?run=app/words&kind=actions", 400, "'kind' cannot be that"),
        ("/log.json?run=app/words&limit=0", 400, "'limit' is no whole number from 1 to 500"),
        ("/log.json?run=app/words&limit=1&limit=2", 400, "'limit' is given twice"),
        ("/index.json?page=2", 400, "there is no parameter 'page'"),
        ("/nowhere.json", 404, "there is no such page"),
        ("/static/../app.py", 404, "there is no such page"),
    ],
)
def test_refusals_have_one_shape(client: httpx.Client, path: str, status: int, what: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["error"].keys() == {"status", "what", "where", "fix"}
    assert answer.json()["error"]["what"] == what


def test_every_page_has_a_twin_and_strict_headers(client: httpx.Client) -> None:
    for path in (
        "/",
        "/query?run=app/words",
        "/models/performance?run=app/batches",
        "/plans?run=app/batches",
        "/stories?run=app/words",
        "/log?run=app/words",
        "/record?run=app/words&id=a-1",
    ):
        page = client.get(path, headers={"accept": "text/html"})
        assert page.status_code == 200
        assert "default-src 'none'" in page.headers["content-security-policy"]
        assert "unsafe" not in page.headers["content-security-policy"]
        twin = page.text.split('<a href="')[-3].split('"')[0].replace("&amp;", "&")
        assert client.get(twin).json()


@pytest.mark.parametrize(
    "path",
    [
        *("/query", "/stories", "/log", "/models/performance", "/plans"),
        *("/series.json", "/query.json", "/log.json", "/stories.json", "/models/performance.json", "/plans.json"),
    ],
)
def test_a_hostile_run_is_shown_as_text(client: httpx.Client, path: str) -> None:
    answer = client.get(path, params={"run": HOSTILE}, headers={"accept": "text/html"})
    assert answer.status_code == 200
    assert len(answer.content) < 300_000
    if not path.endswith(".json"):
        assert "<img src=x" not in answer.text
        assert "<script>alert" not in answer.text
        visible = re.sub(r'="[^"]*"', "", answer.text)
        assert "\x1b" not in visible
        assert "\u202e" not in visible


@pytest.mark.parametrize("id", [HOSTILE, "d-1", "a-1", "u-1", "b-1", "b-2", "x-1"])
def test_a_hostile_record_is_shown_as_text(client: httpx.Client, id: str) -> None:
    for path in ("/record", "/record.json"):
        answer = client.get(path, params={"run": HOSTILE, "id": id}, headers={"accept": "text/html"})
        assert answer.status_code == 200
        assert path.endswith(".json") or "<script>alert" not in answer.text


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
    with serving(log) as found, found.client() as client:
        listed = client.get("/index.json").json()
        assert {each["name"] for each in listed["applications"]} == {*odd, "fine"}
        assert client.get("/").status_code == client.get("/metrics").status_code == 200
        for run in odd:
            for path in ("/query", "/series", "/stories", "/log", "/record", "/models/traffic", "/plans"):
                asked = {"run": run, "id": "a-1"} if path == "/record" else {"run": run}
                for form in ("", ".json"):
                    status = client.get(path + form, params=asked).status_code
                    assert status in ((200, 404) if run in ("deep", "halves") else (200, 404, 503)), (run, path)
        with client.stream("GET", "/events", headers={"last-event-id": "0"}) as stream:
            lines = stream.iter_lines()
            assert [_event(lines)["run"] for _ in range(6)][-1] == "fine"
    store.close()


def test_a_log_that_is_not_there_yet_is_an_empty_list(tmp_path: Path) -> None:
    with serving(tmp_path / "later.sqlite") as found, found.client() as client:
        assert client.get("/index.json").json()["total"] == 0
        assert "no run yet" in client.get("/").text
        assert client.get("/metrics").text == ""
        assert client.get("/query.json?run=x").status_code == 404
        Living(tmp_path / "later.sqlite", "app/late").close()
        assert client.get("/index.json").json()["total"] == 1


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
    seen = {"last-event-id": place}
    with served.client() as client, client.stream("GET", "/events", params=RUN, headers=seen) as stream:
        assert _event(stream.iter_lines())["run"] == "app/words"


def test_a_place_that_the_log_does_not_have_is_answered_by_reset(served: Served, words: Living) -> None:
    with served.client() as client, client.stream("GET", "/events", params=RUN | {"after": "9999999"}) as stream:
        lines = stream.iter_lines()
        told = [next(lines) for _ in range(6)]
        assert told[1:3] == ["id: 9999999", ""]
        assert told[4:] == ["event: reset", "data: {}"]
        words.step()
        assert _event(lines)["run"] == "app/words"


def test_a_log_that_begins_while_someone_watches_is_told_at_once(tmp_path: Path) -> None:
    with serving(tmp_path / "later.sqlite") as found, found.client() as client:
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


def _event(lines: object) -> dict[str, object]:
    for line in lines:  # type: ignore[attr-defined]
        if line.startswith("data: "):
            return dict(json.loads(line.removeprefix("data: ")))
    raise AssertionError("the stream ended")


def test_orders_reach_the_loop_and_their_answer_is_in_the_log(alice: httpx.Client, words: Living) -> None:
    given = alice.post("/orders.json", json={"run": "app/words", "command": "pause", "why": "a deployment"})
    assert given.status_code == 202
    (waiting,) = alice.get("/query.json", params=RUN).json()["unanswered"]
    assert (waiting["id"], waiting["text"]) == (given.json()["id"], "alice asks: pause")
    words.step()
    shown = alice.get("/query.json", params=RUN).json()
    assert shown["unanswered"] == []
    assert shown["summary"]["paused"] == "paused by alice: a deployment"
    assert shown["answer"] == "Paused by alice: a deployment." or "no diagnosis" in shown["answer"]
    chain = alice.get("/record.json", params=RUN | {"id": given.json()["id"]}).json()["chain"]
    assert {line["kind"] for line in chain} == {"order", "operator"}
    assert alice.post("/orders.json", json={"run": "app/words", "command": "resume"}).status_code == 202
    words.step()
    assert alice.get("/query.json", params=RUN).json()["summary"]["paused"] == ""


def test_an_advised_action_can_be_approved(alice: httpx.Client, advised: Living) -> None:
    shown = alice.get("/query.json", params={"run": advised.run}).json()
    before = advised.configuration.as_json()
    order = {"run": advised.run, "command": "approve", "target": shown["summary"]["advised"][0]["id"]}
    assert alice.post("/orders.json", json=order).status_code == 202
    for _ in range(30):
        advised.step()
    assert advised.configuration.as_json()["parallelism.count"] > before["parallelism.count"]


def test_a_resolver_that_has_nothing_to_say_says_so(alice: httpx.Client, words: Living) -> None:
    shown = alice.get("/query.json", params=RUN).json()
    assert "scale-up" in shown["present"]["resolvers"]
    given = alice.post("/orders.json", json={"run": words.run, "command": "resolve", "target": "scale-up"})
    words.step()
    chain = alice.get("/record.json", params=RUN | {"id": given.json()["id"]}).json()["chain"]
    (answer,) = (line for line in chain if line["kind"] == "rejection")
    assert answer["text"] == "not done: scale-up proposes nothing: the diagnoses that stand are: none"


def test_the_traffic_ahead_is_told_with_an_interval_once_it_is_known(client: httpx.Client, tmp_path: Path) -> None:
    told = client.get("/models/traffic.json", params=RUN | {"horizon": "15 min"}).json()
    assert (told["run"], told["usable"], told["sources"]) == ("app/words", False, [])
    assert "of history, but there is only" in told["reason"]
    end_s = time.time()
    write_history(tmp_path / "week.sqlite", queries=5, days=7.0, batch_s=600.0)
    with serving(tmp_path / "week.sqlite") as found, found.client() as other:
        told = other.get("/models/traffic", params={"run": "app0/query0", "horizon": "1 d"}).json()
    assert told["usable"]
    assert len(told["forecast"]) * told["step_s"] == 86_400
    for step in told["forecast"]:
        then_s = told["made_at_s"] + step["ahead_s"] - told["step_s"] / 2
        wave = 1_000.0 * (1.5 + math.sin((then_s - end_s) / 86_400 * 2 * math.pi))
        assert step["expected"] == pytest.approx(wave, rel=0.25)
        assert step["low"] <= step["expected"] <= step["high"]


def test_the_traffic_ahead_names_the_champion_of_each_of_several_sources(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "two.sqlite")
    waves = [1_000.0 + 500.0 * math.sin(number / 60 * 2 * math.pi) for number in range(400)]
    store.append(
        "app/two",
        [
            Record(
                f"b-{number}",
                "batch",
                1e9 + 60.0 * number,
                "a batch",
                body={
                    "arrival_per_s": wave + 100.0,
                    "span_s": 60.0,
                    "arrivals_per_s": {"clicks": wave, "orders": 100.0},
                },
            )
            for number, wave in enumerate(waves)
        ],
    )
    store.close()
    with serving(tmp_path / "two.sqlite") as found, found.client() as client:
        told = client.get("/models/traffic.json", params={"run": "app/two", "horizon": "15 min"}).json()
    clicks, orders = told["sources"]
    assert (clicks["name"], clicks["usable"], orders["name"], orders["usable"]) == ("clicks", True, "orders", False)
    assert clicks["champion"] == told["champion"]


def test_without_batches_there_is_no_traffic_to_forecast(client: httpx.Client) -> None:
    answer = client.get("/models/traffic.json", params={"run": HOSTILE})
    assert (answer.status_code, answer.json()["error"]["fix"]) == (404, "let it run for a while")


def test_a_presence_without_its_shape_is_not_shown(log: Path, client: httpx.Client) -> None:
    store = SqliteStore(log)
    store.append("app/odd", [Record("s-1", "symptom", 1e9, "seen")])
    store.save_state("app/odd", "present", {"components": [{"name": "", "busy": "much"}], "mode": 3})
    store.close()
    shown = client.get("/query.json", params={"run": "app/odd"}).json()
    assert (shown["present"]["mode"], shown["present"]["components"]) == ("", [])
