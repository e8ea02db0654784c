"""The API keeps to its own description, whatever it is asked; and nothing it is asked makes it fail."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from schemathesis import GenerationMode

from homeostat.web.endpoints import description
from support.living import BATCHES, Living
from support.serving import OPERATE, Served, serving, write_hostile

SCHEMA = schemathesis.openapi.from_dict(description())
SCHEMA.config.max_stream_events = 1
OPERATIONS = [(path, method) for path, methods in description()["paths"].items() for method in methods]
# What takes nothing cannot be asked wrongly.
CASES = [(*each, mode) for each in OPERATIONS for mode in GenerationMode if mode.is_positive or each[0] != "/metrics"]
BEYOND = 10**11 - 1
ADDRESSES = [*dict(OPERATIONS), "/openapi.json"]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    log = tmp_path_factory.mktemp("schema") / "log.sqlite"
    Living(log, "app/words").close()
    Living(log, "app/batches", scenario=BATCHES).close()
    write_hostile(log)
    with serving(log) as served:
        yield served


@pytest.mark.hypothesis
@pytest.mark.parametrize(("path", "method", "mode"), CASES)
def test_the_api_keeps_to_its_description(server: Served, path: str, method: str, mode: GenerationMode) -> None:
    headers = {"Authorization": f"Bearer {OPERATE}"} if method == "post" else {}
    operation = SCHEMA[path][method]

    # A quarter of what the profile says, because each example is a request.
    @settings(max_examples=settings().max_examples // 4, suppress_health_check=list(HealthCheck))
    @given(operation.as_strategy(generation_mode=mode), st.booleans())
    def check_answer(case: schemathesis.Case[Any], use_a_known_run: bool) -> None:
        if use_a_known_run and mode is GenerationMode.POSITIVE and "run" in (case.query or {}):
            case.query["run"] = "app/batches" if path in ("/models/performance.json", "/plans.json") else "app/words"
        if path == "/events" and mode.is_positive:
            # It would wait for news; so it has something to say at once.
            case.query["after"] = BEYOND
            if str(case.headers.get("Last-Event-ID", "")).isdigit():
                del case.headers["Last-Event-ID"]
        answer = case.call(base_url=server.url, headers=headers)
        assert answer.status_code < 500
        case.validate_response(answer)

    check_answer()


@pytest.mark.parametrize("path", ADDRESSES)
@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "OPTIONS", "BREW"])
def test_other_methods_are_refused(server: Served, path: str, method: str) -> None:
    with server.client(OPERATE) as client:
        assert client.request(method, path).status_code == 405


def test_a_log_that_is_no_log_is_an_error_of_one_shape(tmp_path: Path) -> None:
    (tmp_path / "log.sqlite").write_text("this is no log at all, but long enough to look like something")
    with serving(tmp_path / "log.sqlite") as served, served.client() as client:
        answer = client.get("/index.json")
    assert answer.status_code == 404
    assert answer.json()["error"]["what"] == "this is not a Homeostat log"
