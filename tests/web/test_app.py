"""Orders over HTTP reach the loop, and their answers reach the log."""

from __future__ import annotations

import httpx
import pytest

from support.living import Living

pytestmark = pytest.mark.changes_runs

RUN = {"run": "app/words"}


def test_orders_reach_the_loop_and_their_answer_is_in_the_log(alice: httpx.Client, words: Living) -> None:
    response = alice.post("/orders.json", json={"run": "app/words", "command": "pause", "why": "a deployment"})
    assert response.status_code == 202
    (waiting,) = alice.get("/query.json", params=RUN).json()["unanswered"]
    assert (waiting["id"], waiting["text"]) == (response.json()["id"], "alice requested: pause")
    words.step()
    page = alice.get("/query.json", params=RUN).json()
    assert page["unanswered"] == []
    assert page["summary"]["paused"] == "paused by alice: a deployment"
    assert page["answer"] == "There is nothing to do. No problem is diagnosed."
    (allowed,) = (check for check in page["conditions"] if check["name"] == "The loop may act")
    assert (allowed["holds"], allowed["reason"]) == ("no", "Paused by alice: a deployment.")
    chain = alice.get("/record.json", params=RUN | {"id": response.json()["id"]}).json()["chain"]
    assert {line["kind"] for line in chain} == {"order", "operator"}
    assert alice.post("/orders.json", json={"run": "app/words", "command": "resume"}).status_code == 202
    words.step()
    assert alice.get("/query.json", params=RUN).json()["summary"]["paused"] == ""


def test_an_advised_action_can_be_approved(alice: httpx.Client, advised: Living) -> None:
    page = alice.get("/query.json", params={"run": advised.run}).json()
    before = advised.configuration.as_json()
    order = {"run": advised.run, "command": "approve", "target": page["summary"]["advised"][0]["id"]}
    assert alice.post("/orders.json", json=order).status_code == 202
    for _ in range(30):
        advised.step()
    assert advised.configuration.as_json()["parallelism.count"] > before["parallelism.count"]


def test_a_resolver_that_has_nothing_to_say_says_so(alice: httpx.Client, words: Living) -> None:
    page = alice.get("/query.json", params=RUN).json()
    assert "scale-up" in page["present"]["resolvers"]
    response = alice.post("/orders.json", json={"run": words.run, "command": "resolve", "target": "scale-up"})
    words.step()
    chain = alice.get("/record.json", params=RUN | {"id": response.json()["id"]}).json()["chain"]
    (answer,) = (line for line in chain if line["kind"] == "rejection")
    assert answer["text"] == "Not done: scale-up proposes nothing: the current diagnoses are: none"
