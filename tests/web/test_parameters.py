"""Parameters that are refused, each with the same shape of error."""

from __future__ import annotations

import httpx
import pytest


@pytest.mark.parametrize(
    ("path", "status", "what"),
    [
        ("/query.json", 400, "the parameter 'run' is missing"),
        ("/query.json?run=app/wrods", 404, "this log has no run with that name"),
        ("/record.json?run=app/words&id=a-99", 404, "this run has no record with that id"),
        ("/log.json?run=app/words&kind=actions", 400, "'kind' has an unknown value"),
        ("/log.json?run=app/words&limit=0", 400, "'limit' must be a whole number from 1 to 500"),
        ("/log.json?run=app/words&limit=1&limit=2", 400, "the parameter 'limit' occurs twice"),
        ("/index.json?page=2", 400, "unknown parameter 'page'"),
        ("/nowhere.json", 404, "page not found"),
        ("/static/../app.py", 404, "page not found"),
    ],
)
def test_refusals_have_one_shape(client: httpx.Client, path: str, status: int, what: str) -> None:
    answer = client.get(path)
    assert answer.status_code == status
    assert answer.json()["error"].keys() == {"status", "what", "where", "fix"}
    assert answer.json()["error"]["what"] == what
