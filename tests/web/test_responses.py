"""Answers as JSON, and what is not sent again."""

from __future__ import annotations

import httpx
import pytest

TAGGED = [
    *(f"{page}{form}?run=app/words" for page in ("/query", "/stories", "/log") for form in ("", ".json")),
    *("/record?run=app/words&id=a-1", "/record.json?run=app/words&id=a-1"),
    *("/series.json?run=app/words", "/models/traffic.json?run=app/words"),
]


@pytest.mark.parametrize("path", ["/", "/index.json", "/openapi.json", *TAGGED])
def test_what_has_not_changed_is_not_sent_again(client: httpx.Client, path: str) -> None:
    tag = client.get(path).headers["etag"]
    for tags in (tag, f'"other", {tag}', tag.removeprefix("W/"), "*"):
        again = client.get(path, headers={"if-none-match": tags})
        assert (again.status_code, again.content) == (304, b"")
    assert client.get(path, headers={"if-none-match": '"other"'}).status_code == 200
