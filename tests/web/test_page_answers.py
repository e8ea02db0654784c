"""What each page and its JSON twin say about a run."""

from __future__ import annotations

import math
import re
import time
from pathlib import Path

import httpx
import pytest

from homeostat.core.records import Record
from homeostat.lab.bench.dashboard import write_history
from homeostat.store.sqlite import SqliteStore
from support.living import Living
from support.serving import HOSTILE, serving

RUN = {"run": "app/words"}


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
    page = client.get("/query.json", params=RUN).json()
    state = words.manager.state
    assert page["present"]["mode"] == "regulate"
    assert page["present"]["observed"] == state.observed.as_json()
    assert [c["name"] for c in page["present"]["components"]] == ["lines", "count"]
    assert page["conditions"][0] == {"name": "Observations arrive", "holds": "yes", "reason": "Batches are reported."}
    assert page["answer"] == "There is nothing to do. No problem is diagnosed."
    action = next(story for story in page["stories"] if story["kind"] == "action")
    stages = [step["stage"] for step in action["steps"]]
    assert [s for s in ("symptom", "diagnosis", "proposal", "action", "effect", "outcome") if s not in stages] == []


def test_a_query_that_falls_behind_says_when_it_will_have_caught_up(client: httpx.Client) -> None:
    page = client.get("/query.json", params={"run": "app/advised"}).json()
    assert re.fullmatch(
        r"[\d,]+ rows wait: never caught up with 4 instances \(200 rows/s arrive, they can process 150\)",
        page["catching_up"],
    )
    assert page["catching_up"].partition(":")[2] in client.get("/query", params={"run": "app/advised"}).text
    assert client.get("/query.json", params=RUN).json()["catching_up"] == ""


def test_advice_that_waits_is_the_answer_to_why_nothing_happens(client: httpx.Client) -> None:
    page = client.get("/query.json", params={"run": "app/advised"}).json()
    (advice, *_) = page["summary"]["advised"]
    assert page["answer"] == (
        f"The mode is advise: Homeostat only says what it would do. {advice['id']} waits for your approval."
    )


def test_a_record_is_explained_with_its_chain(client: httpx.Client) -> None:
    record = client.get("/record.json", params=RUN | {"id": "a-1"}).json()
    assert "What came of it" in record["text"]
    assert {"symptom", "diagnosis", "action", "outcome"} <= {line["kind"] for line in record["chain"]}


def test_the_traffic_ahead_is_reported_with_an_interval_once_it_is_known(client: httpx.Client, tmp_path: Path) -> None:
    forecast = client.get("/models/traffic.json", params=RUN | {"horizon": "15 min"}).json()
    assert (forecast["run"], forecast["usable"], forecast["sources"]) == ("app/words", False, [])
    assert "of history, but there is only" in forecast["reason"]
    end_s = time.time()
    write_history(tmp_path / "week.sqlite", queries=5, days=7.0, batch_s=600.0)
    with serving(tmp_path / "week.sqlite") as served, served.client() as other:
        forecast = other.get("/models/traffic", params={"run": "app0/query0", "horizon": "1 d"}).json()
    assert forecast["usable"]
    assert len(forecast["forecast"]) * forecast["step_s"] == 86_400
    for step in forecast["forecast"]:
        then_s = forecast["made_at_s"] + step["ahead_s"] - forecast["step_s"] / 2
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
    with serving(tmp_path / "two.sqlite") as served, served.client() as client:
        forecast = client.get("/models/traffic.json", params={"run": "app/two", "horizon": "15 min"}).json()
    clicks, orders = forecast["sources"]
    assert (clicks["name"], clicks["usable"], orders["name"], orders["usable"]) == ("clicks", True, "orders", False)
    assert clicks["champion"] == forecast["champion"]


def test_without_batches_there_is_no_traffic_to_forecast(client: httpx.Client) -> None:
    answer = client.get("/models/traffic.json", params={"run": HOSTILE})
    assert (answer.status_code, answer.json()["error"]["fix"]) == (404, "let it run for a while")


def test_a_presence_without_its_shape_is_not_shown(log: Path, client: httpx.Client) -> None:
    store = SqliteStore(log)
    store.append("app/odd", [Record("s-1", "symptom", 1e9, "seen")])
    store.save_state("app/odd", "present", {"components": [{"name": "", "busy": "much"}], "mode": 3})
    store.close()
    page = client.get("/query.json", params={"run": "app/odd"}).json()
    assert (page["present"]["mode"], page["present"]["components"]) == ("", [])
