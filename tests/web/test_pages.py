"""Pages: each has a JSON twin and strict headers, and shows whatever is in the log as text."""

from __future__ import annotations

import re

import httpx
import pytest

from support.serving import HOSTILE


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
