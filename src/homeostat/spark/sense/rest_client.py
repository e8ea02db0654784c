"""A client for Spark's REST API. Every problem raises SensorError, and no call exceeds its time limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, TypeVar

from homeostat.core.errors import HomeostatError
from homeostat.spark.sense.rest_answers import Executor, Job, ListedApplication, StageAttempt, Task

if TYPE_CHECKING:
    import httpx

FIRST_TIMEOUT_S = 15.0  # measured: Spark's UI can take over 4 s for its first answer
TIMEOUT_S = 3.0  # a choice: a slow answer is as good as none, since the next batch comes soon
# A choice: several times the answer about a stage with as many tasks as are read at once, or about 10,000 executors.
_LARGEST_BYTES = 32_000_000
_NOT_FOUND = 404
_T = TypeVar("_T")


class SensorError(HomeostatError):
    """Spark's REST API did not answer, or gave an unexpected answer. Equal problems have the same `kind`."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", kind: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.kind = kind or what


class RestClient:
    """The REST API of one application, for Spark 3.5 and newer. Without `application`, the only one at the address.

    The API has no streaming progress, which comes from the query itself. Safe to use from several threads.
    """

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
        return self._get("applications", _each(ListedApplication.read))

    def executors(self) -> list[Executor]:
        """All executors, also those that are gone, and the driver, which has slots only in local mode."""
        return self._get_mine("allexecutors", _each(Executor.read))

    def jobs(self) -> list[Job]:
        """All jobs that Spark still remembers, oldest first. The answer can be long: prefer `job`."""
        return sorted(self._get_mine("jobs", _each(Job.read)), key=lambda job: job.id)

    def job(self, number: int) -> Job | None:
        """None if Spark does not know the job, yet or any more."""
        return self._get_mine(f"jobs/{number}", Job.read, missing=None)

    def stage(self, number: int) -> list[StageAttempt]:
        """Its attempts, oldest first. Empty if Spark does not know the stage."""
        none: list[StageAttempt] = []
        attempts = self._get_mine(f"stages/{number}?details=false", _each(StageAttempt.read), missing=none)
        return sorted(attempts, key=lambda attempt: attempt.attempt)

    def stage_with_tasks(self, number: int) -> list[tuple[StageAttempt, list[Task]]]:
        """Its attempts with their successful tasks, in one request, since every request costs the driver time."""
        none: list[tuple[StageAttempt, list[Task]]] = []
        attempts = self._get_mine(f"stages/{number}?details=true", _each(_attempt_with_tasks), missing=none)
        return sorted(attempts, key=lambda entry: entry[0].attempt)

    def tasks(self, number: int, attempt: int, offset: int, length: int) -> tuple[int, list[Task]]:
        """How many tasks an attempt has from `offset` on, at most `length`, and the successful ones of them."""
        page = f"stages/{number}/{attempt}/taskList?offset={offset}&length={length}"
        none: tuple[int, list[Task]] = (0, [])
        return self._get_mine(page, lambda answer: (len(_as_list(answer)), _successful(answer)), missing=none)

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
                    if time.monotonic() > deadline or len(body) > _LARGEST_BYTES:
                        raise httpx.ReadTimeout("the answer does not end")
                self._has_answered = True
                self._hear_date(response.headers.get("date", ""))
                return response.status_code, bytes(body)
        except httpx.TimeoutException as error:
            raise SensorError(f"no answer within {limit_s:g} s", where=url, kind="late") from error
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


def _each(read: Callable[[Any], _T]) -> Callable[[Any], list[_T]]:
    return lambda answer: [read(entry) for entry in _as_list(answer)]


def _as_list(answer: Any) -> list[Any]:
    if not isinstance(answer, list):
        raise TypeError("expected a list")
    return answer


def _attempt_with_tasks(answer: Any) -> tuple[StageAttempt, list[Task]]:
    return StageAttempt.read(answer), _successful(answer.get("tasks", {}).values())


def _successful(tasks: Iterable[Any]) -> list[Task]:
    return [Task.read(task) for task in tasks if task["status"] == "SUCCESS" and "taskMetrics" in task]
