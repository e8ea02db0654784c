"""A client for Spark's REST API. Every problem raises SensorError, and no call exceeds its time limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from homeostat.spark.sense.rest_answers import Executor, Job, ListedApplication, StageAttempt
from homeostat.spark.sense.sensor_error import LATE, SensorError
from homeostat.spark.sense.status_source import (
    FIRST_TIMEOUT_S,
    LARGEST_ANSWER_BYTES,
    TIMEOUT_S,
    read_attempts,
    read_attempts_with_tasks,
    read_each,
    read_jobs,
    read_page,
)
from homeostat.spark.sense.task_answers import TaskList

if TYPE_CHECKING:
    import httpx

_NOT_FOUND = 404
_T = TypeVar("_T")


class RestClient:
    """The REST API of one application, for Spark 3.5 and newer. Without `application`, the only one at the address.

    It is a StatusSource. The API has no streaming progress, which comes from the query itself.
    """

    way = "the driver's REST API"

    def __init__(
        self,
        base_url: str,
        application: str = "",
        *,
        first_timeout_s: float = FIRST_TIMEOUT_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.base_url = base_url.rstrip("/")
        self._application = application
        self._first_timeout_s, self._timeout_s = first_timeout_s, timeout_s
        self._has_answered = False
        self._client: httpx.Client | None = None
        self.on_date: Callable[[float], None] = _ignore_date  # gets the time of the driver with every answer

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def version(self) -> str:
        return self._get("version", lambda answer: str(answer["spark"]))

    def applications(self) -> list[ListedApplication]:
        return self._get("applications", read_each(ListedApplication.read))

    def executors(self) -> list[Executor]:
        return self._get_mine("allexecutors", read_each(Executor.read))

    def properties(self) -> dict[str, str]:
        none: dict[str, str] = {}
        return self._get_mine("environment", lambda answer: dict(answer["sparkProperties"]), missing=none)

    def jobs(self) -> list[Job]:
        return self._get_mine("jobs", read_jobs)

    def job(self, number: int) -> Job | None:
        return self._get_mine(f"jobs/{number}", Job.read, missing=None)

    def stage(self, number: int) -> list[StageAttempt]:
        none: list[StageAttempt] = []
        return self._get_mine(f"stages/{number}?details=false", read_attempts, missing=none)

    def stage_with_tasks(self, number: int) -> list[tuple[StageAttempt, TaskList]]:
        none: list[tuple[StageAttempt, TaskList]] = []
        return self._get_mine(f"stages/{number}?details=true", read_attempts_with_tasks, missing=none)

    def tasks(self, number: int, attempt: int, offset: int, length: int) -> tuple[int, TaskList]:
        page = f"stages/{number}/{attempt}/taskList?offset={offset}&length={length}"
        return self._get_mine(page, read_page, missing=(0, TaskList()))

    def newest_sql(self) -> int:
        page = "sql?details=false&planDescription=false&length=100000"
        none: list[int] = []
        return max(self._get_mine(page, read_each(lambda answer: int(answer["id"])), missing=none), default=-1)

    def sql(self, number: int, read: Callable[[Any], _T]) -> _T | None:
        return self._get_mine(f"sql/{number}?details=true&planDescription=false", read, missing=None)

    def application(self) -> str:
        """The id of the application, looked up once."""
        if not self._application:
            applications = self.applications()
            if not applications:
                raise SensorError("this address has no running application", where=self.base_url)
            if len(applications) > 1:
                raise SensorError(
                    f"this address has {len(applications)} applications",
                    where=self.base_url,
                    fix="name the application",
                )
            self._application = applications[0].id
        return self._application

    def _get_mine(self, path: str, read: Callable[[Any], _T], **missing: _T) -> _T:
        return self._get(f"applications/{self.application()}/{path}", read, **missing)

    def _get(self, path: str, read: Callable[[Any], _T], **missing: _T) -> _T:
        url = f"{self.base_url}/api/v1/{path}"
        status, body = self._fetch(url)
        if status == _NOT_FOUND and "missing" in missing:
            return missing["missing"]
        if not 200 <= status < 300:
            raise SensorError(f"the answer has status {status}", where=url, kind=f"status {status}")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise SensorError("the answer is not JSON", where=url, kind="garbage") from error
        try:
            return read(answer)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise SensorError(f"unexpected answer ({error!r})", where=url, kind="garbage") from error

    def _fetch(self, url: str) -> tuple[int, bytes]:
        import httpx

        limit_s = self._timeout_s if self._has_answered else self._first_timeout_s
        deadline = time.monotonic() + limit_s
        body = bytearray()
        try:
            # httpx applies a time limit to each chunk. This loop applies it to the whole answer.
            with self._open_client().stream("GET", url, timeout=limit_s) as response:
                for chunk in response.iter_bytes():
                    body += chunk
                    if time.monotonic() > deadline or len(body) > LARGEST_ANSWER_BYTES:
                        raise httpx.ReadTimeout("the answer does not end")
                self._has_answered = True
                self._hear_date(response.headers.get("date", ""))
                return response.status_code, bytes(body)
        except httpx.TimeoutException as error:
            raise SensorError(f"no answer within {limit_s:g} s", where=url, kind=LATE) from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RuntimeError) as error:
            raise SensorError(f"the request failed: {error}", where=url, kind=type(error).__name__) from error

    def _hear_date(self, date: str) -> None:
        try:
            self.on_date(parsedate_to_datetime(date).timestamp())
        except (ValueError, TypeError):
            return  # Spark sends the header; a proxy may drop it

    def _open_client(self) -> httpx.Client:
        import httpx

        if self._client is None:
            # The addresses are local to the cluster, so a proxy from the environment would fail. Compressing an answer
            # costs the driver more than sending it.
            headers = {"Accept-Encoding": "identity"}
            self._client = httpx.Client(trust_env=False, follow_redirects=True, headers=headers)
        return self._client


def _ignore_date(moment_s: float) -> None:
    """The default for `on_date`."""
