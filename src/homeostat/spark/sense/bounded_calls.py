"""Calls that must not keep their caller waiting, such as those into the JVM, which have no time limit of their own."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

from homeostat.spark.sense.sensor_error import HUNG, LATE, SensorError

_T = TypeVar("_T")


class BoundedCalls:
    """Runs calls one after another in a separate thread, and waits for each at most as long as the caller allows.

    A call cannot be cancelled. While a call that took too long is still running, further calls fail at once, so that
    there is never more than this one thread.
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._calls: queue.SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = queue.SimpleQueue()
        self._late: Future[Any] | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def run(self, work: Callable[[], _T], limit_s: float) -> _T:
        """The result of `work`, or its error. SensorError if it takes longer than the limit."""
        with self._lock:
            if self._late is not None and not self._late.done():
                raise SensorError("an earlier call has not ended yet", where=self._name, kind=HUNG)
            if self._thread is None:
                self._thread = threading.Thread(target=self._serve, name=f"homeostat {self._name}", daemon=True)
                self._thread.start()
        future: Future[_T] = Future()
        self._calls.put((future, work))
        try:
            return future.result(limit_s)
        except TimeoutError as error:
            if not future.cancel():
                self._late = future
            raise SensorError(f"no answer within {limit_s:g} s", where=self._name, kind=LATE) from error

    def close(self) -> None:
        """End the thread once it has nothing to do."""
        with self._lock:
            if self._thread is not None:
                self._calls.put(None)
                self._thread = None

    def _serve(self) -> None:
        while (call := self._calls.get()) is not None:
            future, work = call
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:  # the caller gets it
                future.set_exception(error)
            else:
                future.set_result(result)
