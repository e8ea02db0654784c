"""Spark's REST API. Whatever goes wrong with it is one error, and no call takes longer than its time limit."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from homeostat.core.errors import HomeostatError
from homeostat.spark.sense.rest_answers import Application, Executor, Job, StageAttempt, Task

if TYPE_CHECKING:
    import httpx

FIRST_TIMEOUT_S = 15.0  # Spark builds its pages on the first request
TIMEOUT_S = 3.0
_LARGEST_BYTES = 256_000_000
_NOT_FOUND = 404
_T = TypeVar("_T")


class SensorError(HomeostatError):
    """Spark's REST API did not answer, or not with what it should. `kind` is the same for the same trouble."""

    def __init__(self, what: str, *, where: str = "", fix: str = "", kind: str = "") -> None:
        super().__init__(what, where=where, fix=fix)
        self.kind = kind or what


class RestClient:
    """One application's REST API, for Spark 3.5 and later; without `application`, the only one behind the address.

    It has no streaming progress: that comes from the query itself. Safe to use from several threads.
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

    def close(self) -> None:
        if self._client is not None:
            self._client.close()

    def version(self) -> str:
        return self._get("version", lambda answer: str(answer["spark"]))

    def applications(self) -> list[Application]:
        return self._get("applications", _each(Application.read))

    def executors(self) -> list[Executor]:
        """All that are or were, the driver among them (it has slots only in local mode)."""
        return self._get_mine("allexecutors", _each(Executor.read))

    def jobs(self) -> list[Job]:
        """All jobs that Spark still remembers, oldest first: a long answer, so better ask by `job`."""
        return sorted(self._get_mine("jobs", _each(Job.read)), key=lambda job: job.id)

    def job(self, number: int) -> Job | None:
        """None if there is no such job (yet, or any more)."""
        return self._get_mine(f"jobs/{number}", Job.read, missing=None)

    def stage(self, number: int) -> list[StageAttempt]:
        """Its attempts, oldest first; none if Spark does not know it."""
        none: list[StageAttempt] = []
        attempts = self._get_mine(f"stages/{number}?details=false", _each(StageAttempt.read), missing=none)
        return sorted(attempts, key=lambda attempt: attempt.attempt)

    def stage_with_tasks(self, number: int) -> list[tuple[StageAttempt, list[Task]]]:
        """The same, each with those of its tasks that succeeded: one request, for each costs the driver."""
        none: list[tuple[StageAttempt, list[Task]]] = []
        attempts = self._get_mine(f"stages/{number}?details=true", _each(_attempt_with_tasks), missing=none)
        return sorted(attempts, key=lambda found: found[0].attempt)

    def application(self) -> str:
        """The id of the application, looked up once."""
        if not self._application:
            found = self.applications()
            if not found:
                raise SensorError("its list of applications is empty", where=self.base_url)
            if len(found) > 1:
                raise SensorError(
                    f"{len(found)} applications where one was expected", where=self.base_url, fix="name the application"
                )
            self._application = found[0].id
        return self._application

    def _get_mine(self, path: str, read: Callable[[Any], _T], **missing: _T) -> _T:
        return self._get(f"applications/{self.application()}/{path}", read, **missing)

    def _get(self, path: str, read: Callable[[Any], _T], **missing: _T) -> _T:
        url = f"{self.base_url}/api/v1/{path}"
        status, body = self._fetch(url)
        if status == _NOT_FOUND and "missing" in missing:
            return missing["missing"]
        if not 200 <= status < 300:
            raise SensorError(f"status {status}", where=url, kind=f"status {status}")
        try:
            answer = json.loads(body)
        except (ValueError, RecursionError) as error:
            raise SensorError("an answer that is no JSON", where=url, kind="garbage") from error
        try:
            return read(answer)
        except (ValueError, KeyError, TypeError, AttributeError, IndexError) as error:
            raise SensorError(f"an answer that makes no sense ({error!r})", where=url, kind="garbage") from error

    def _fetch(self, url: str) -> tuple[int, bytes]:
        import httpx

        limit_s = self._timeout_s if self._has_answered else self._first_timeout_s
        deadline = time.monotonic() + limit_s
        body = bytearray()
        try:
            # A time limit of the library holds for each piece; here it holds for the whole answer.
            with self._connected().stream("GET", url, timeout=limit_s) as response:
                for piece in response.iter_bytes():
                    body += piece
                    if time.monotonic() > deadline or len(body) > _LARGEST_BYTES:
                        raise httpx.ReadTimeout("the answer does not end")
                self._has_answered = True
                return response.status_code, bytes(body)
        except httpx.TimeoutException as error:
            raise SensorError(f"no answer within {limit_s:g} s", where=url, kind="late") from error
        except (httpx.HTTPError, httpx.InvalidURL, OSError, ValueError, RuntimeError) as error:
            raise SensorError(f"cannot be read: {error}", where=url, kind=type(error).__name__) from error

    def _connected(self) -> httpx.Client:
        import httpx

        if self._client is None:
            # Loopback and cluster addresses: a proxy from the environment would only be in the way, and compressing the
            # answers would cost the driver more than sending them.
            headers = {"Accept-Encoding": "identity"}
            self._client = httpx.Client(trust_env=False, follow_redirects=True, headers=headers)
        return self._client


def _each(read: Callable[[Any], _T]) -> Callable[[Any], list[_T]]:
    return lambda answer: [read(entry) for entry in _listed(answer)]


def _listed(answer: Any) -> list[Any]:
    if not isinstance(answer, list):
        raise TypeError("a list was expected")
    return answer


def _attempt_with_tasks(answer: Any) -> tuple[StageAttempt, list[Task]]:
    tasks = answer.get("tasks", {}).values()
    done = [Task.read(task) for task in tasks if task["status"] == "SUCCESS" and "taskMetrics" in task]
    return StageAttempt.read(answer), done
