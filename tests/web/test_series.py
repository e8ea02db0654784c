"""The columns of the charts."""

from __future__ import annotations

import httpx
import pytest

from support.living import Living

RUN = {"run": "app/words"}


def test_the_series_are_the_batches_and_mark_every_action(client: httpx.Client, words: Living) -> None:
    series = client.get("/series.json", params=RUN | {"points": 2000}).json()
    batches = words.store.records(words.run, kinds=("batch",))
    assert series["columns"]["at_s"] == [batch.at_s for batch in batches]
    assert series["columns"]["rows"] == pytest.approx([batch.body["rows"] for batch in batches])
    assert [a["id"] for a in series["actions"]] == [a.id for a in words.store.records(words.run, kinds=("action",))]
    few = client.get("/series.json", params=RUN | {"points": 10}).json()["columns"]
    assert len(few["at_s"]) == len(few["rows"]) <= 10
    assert sum(few["rows"]) == pytest.approx(sum(series["columns"]["rows"]))
    recent = client.get("/series.json", params=RUN | {"last": "15 min"}).json()["columns"]
    assert 85 <= len(recent["at_s"]) <= 92
