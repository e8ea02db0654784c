"""What-if and plan over HTTP: the same numbers as on the command line, and no model that makes the server fail."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx
import pytest

from homeostat.core.records import BatchContent, Record
from homeostat.lab.bench.dashboard import write_history
from homeostat.store.in_memory import MemoryStore
from homeostat.store.present import PRESENT, Present, PresentAction
from homeostat.store.sqlite import SqliteStore
from homeostat.web.whatif import missing_model
from support.serving import HOSTILE, Served, serving

RUN = {"run": "app/batches"}
Homeostat = Callable[..., Any]


def answer_of(client: httpx.Client, path: str = "/models/performance.json", **parameters: object) -> dict[str, Any]:
    answer = client.get(path, params=RUN | {name: str(value) for name, value in parameters.items()})
    assert answer.status_code == 200
    return dict(answer.json())


def test_a_prediction_is_that_of_the_command(client: httpx.Client, log: Path, homeostat: Homeostat) -> None:
    prediction = answer_of(client, rate=2000, executors=8, partitions=48)
    result = homeostat(
        *("whatif", "--store", log, "--run", RUN["run"], "--json"),
        *("--rate", "2000", "--executors", 8, "--partitions", 48),
    )
    assert {name: prediction[name] for name in ("now", "then", "errors")} == {
        name: result.json[name] for name in ("now", "then", "errors")
    }


def test_a_plan_is_that_of_the_command_and_comes_in_pages(
    client: httpx.Client, log: Path, homeostat: Homeostat
) -> None:
    result = homeostat("plan", "--store", log, "--run", RUN["run"], "--rate", "3k", "--cost-limit", 20, "--json").json
    first = answer_of(client, "/plans.json", rate=3000, cost=20, limit=1)
    assert (first["holds"], first["change"], first["best"]) == (True, result["change"], result["best"])
    assert (len(first["candidates"]), first["total"], first["next"]) == (1, len(result["candidates"]), 1)
    rest = answer_of(client, "/plans.json", rate=3000, cost=20, offset=first["next"])
    assert first["candidates"] + rest["candidates"] == result["candidates"]
    assert rest["next"] is None


def test_a_plan_is_for_the_forecast_as_on_the_command_line_and_for_a_rate_that_is_named(
    log: Path, served: Served, tmp_path: Path, homeostat: Homeostat
) -> None:
    week, run = tmp_path / "week.sqlite", "app0/query0"
    write_history(week, queries=1, days=7.0, batch_s=600.0)
    store = SqliteStore(week)
    store.save_state(run, "model", model_of(log, RUN["run"]))
    store.close()
    command_answer = homeostat("plan", "--store", week, "--run", run, "--horizon", "6 h", "--json").json
    with serving(week) as served, served.client() as client:
        question = {"run": run, "horizon": "6 h"}
        answer = client.get("/plans.json", params=question | {"limit": "100"}).json()
        page = client.get("/plans", params=question).text
        steady = client.get("/plans.json", params=question | {"rate": "1000"}).json()
    assert answer["load"].startswith("The load is forecast by")
    assert answer["load"] in page
    assert {name: answer[name] for name in ("load", "rate_per_s", "change", "best")} == {
        name: command_answer[name] for name in ("load", "rate_per_s", "change", "best")
    }
    assert steady["load"] == "The load is assumed to stay constant."
    assert steady["rate_per_s"] == pytest.approx(1_000, rel=0.2)
    assert answer["rate_per_s"] > 1.3 * steady["rate_per_s"]


def test_without_enough_history_a_plan_says_that_the_load_is_taken_to_stay(client: httpx.Client) -> None:
    assert answer_of(client, "/plans.json")["load"].startswith(
        "The load is assumed to stay constant; a forecast is not"
    )


def test_the_curve_rises_with_the_rate_and_ends_at_what_can_be_taken(client: httpx.Client) -> None:
    prediction = answer_of(client, executors=8)
    curve = prediction["curve"]
    assert curve["trigger_s"] == 10
    assert curve["rate_per_s"][-1] == prediction["sliders"][0]["high"] > prediction["now"]["saturation_per_s"]["p50"]
    for name in ("now", "then"):
        throughput = curve[name]["throughput_per_s"]
        assert throughput == pytest.approx(sorted(throughput), rel=0.01)
        assert throughput[0] == pytest.approx(curve["rate_per_s"][0])
        assert len(curve[name]["batch_s"]["p50"]) == len(curve["rate_per_s"])
    long = [batch_s for batch_s in curve["now"]["batch_s"]["p50"] if batch_s is not None]
    assert long == sorted(long)
    assert curve["now"]["batch_s"]["p50"][-1] is None
    assert curve["then"]["throughput_per_s"][-1] > 1.5 * curve["now"]["throughput_per_s"][-1]


def test_sliders_are_what_the_engine_has(client: httpx.Client) -> None:
    sliders = {each["name"]: each for each in answer_of(client, executors=7)["sliders"]}
    assert list(sliders) == ["rate", "executors", "partitions"]
    assert (sliders["executors"]["now"], sliders["executors"]["value"], sliders["executors"]["high"]) == (4, 7, 16)
    dataflow = client.get("/models/performance.json", params={"run": "app/words"}).json()
    assert [each["name"] for each in dataflow["sliders"]] == ["rate", "parallelism.count", "parallelism.lines"]


def test_a_knob_of_a_dataflow_can_be_set(client: httpx.Client) -> None:
    few, many = (
        answer_of(client, run="app/words", rate=400, set=knobs)
        for knobs in ("parallelism.count=2", "parallelism.count=20,parallelism.lines=2")
    )
    assert not few["then"]["stable"]
    assert many["then"]["stable"]
    assert many["then"]["configuration"] == {"parallelism.count": 20, "parallelism.lines": 2}


@pytest.mark.parametrize(
    ("parameters", "reason"),
    [
        ({"executors": 31}, "executors.app = 31 is outside its bounds 1 to 30."),
        ({"set": "parallelism.nothing=3"}, "There is no knob 'parallelism.nothing'."),
        ({"set": "parallelism.count=lots"}, "'set' takes whole numbers, for example parallelism.count=8."),
        ({"set": "parallelism.count=99999999"}, "parallelism.count can be at most 20000 here."),
    ],
)
def test_what_the_engine_cannot_do_is_reported(client: httpx.Client, parameters: dict[str, Any], reason: str) -> None:
    prediction = answer_of(client, **parameters)
    assert (prediction["usable"], prediction["reason"]) == (False, reason)


@pytest.mark.parametrize("path", ["/models/performance.json", "/plans.json"])
@pytest.mark.parametrize(
    ("parameters", "status"),
    [({"rate": "nan"}, 400), ({"rate": "-1"}, 400), ({"rate": "1_000"}, 400), ({"rate": "9" * 50}, 400)],
)
def test_rates_of_no_sense_are_refused(
    client: httpx.Client, path: str, parameters: dict[str, str], status: int
) -> None:
    assert client.get(path, params=RUN | parameters).status_code == status


def test_unchanged_answers_are_not_sent_again(client: httpx.Client) -> None:
    for path in ("/models/performance.json", "/plans.json"):
        answer = client.get(path, params=RUN)
        again = client.get(path, params=RUN, headers={"if-none-match": answer.headers["etag"]})
        assert again.status_code == 304


def model_of(log: Path, run: str) -> dict[str, Any]:
    store = SqliteStore(log, read_only=True)
    state = store.load_state(run, "model")
    store.close()
    return dict(json.loads(json.dumps(state)))


def test_a_model_that_makes_no_sense_is_reported_and_nothing_fails(served: Served, log: Path) -> None:
    sane = model_of(log, RUN["run"])
    odd: list[Any] = [
        [1, 2],
        {"format": 99},
        {**sane, "at_s": "<script>"},
        {**sane, "arrival_per_s": "many"},
        {**sane, "arrival_per_s": float("nan")},
        {**sane, "errors": {"x": "y"}},
        {**sane, "configuration": {"executors.app": "x"}},
        {**sane, "topology": [{"name": HOSTILE}]},
        {**sane, "batches": {**sane["batches"], "stages": []}},
        {**sane, "batches": {**sane["batches"], "slots": 0}},
        {**sane, "batches": {**sane["batches"], "driver_s": []}},
    ]
    store = SqliteStore(log)
    with served.client() as client:
        for number, model in enumerate(odd):
            store.append(f"odd/{number}", [Record("s-1", "symptom", 1e9, "seen")])
            store.save_state(f"odd/{number}", "model", model)
            for path in ("/models/performance", "/plans"):
                for form in ("", ".json"):
                    answer = client.get(path + form, params={"run": f"odd/{number}"}, headers={"accept": "text/html"})
                    assert answer.status_code == 200, (number, path)
    store.close()


def batches(count: int, rows: float = 1_000.0, arrival_per_s: float = 100.0) -> list[Record]:
    content = BatchContent(
        rows=rows, seconds=4, trigger_s=10, arrival_per_s=arrival_per_s, pending_rows=0, span_s=10, workers=4
    )
    return [Record.of(f"b-{number}", 1e9 + 10.0 * number, content, "") for number in range(count)]


@pytest.mark.parametrize(
    ("records", "present", "reason"),
    [
        (batches(9), Present(), "No manager has reported on this run."),
        (batches(2), Present(mode="advise"), "The model needs 3 batches with rows and has seen 2."),
        (batches(9, rows=0), Present(mode="advise"), "The model needs 3 batches with rows and has seen 0."),
        (
            batches(9),
            Present(mode="regulate", active=(PresentAction("a-1", "", "under way"),)),
            "The model waits until a-1 has taken effect.",
        ),
        (
            batches(9, arrival_per_s=float("nan")),
            Present(mode="advise"),
            "The rate at which rows arrive is unknown.",
        ),
        (batches(9), Present(mode="advise"), "The manager has not fitted a model yet. It tries once a minute."),
    ],
)
def test_what_the_model_lacks_is_said(records: list[Record], present: Present, reason: str) -> None:
    store = MemoryStore()
    store.append("run", records)
    store.save_state("run", PRESENT, present.to_json())
    assert missing_model(store, "run") == reason


def test_the_page_says_what_the_model_lacks(client: httpx.Client) -> None:
    page = client.get("/models/performance", params={"run": HOSTILE}, headers={"accept": "text/html"}).text
    assert "No prediction yet. The model in the log is damaged." in page
