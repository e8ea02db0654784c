"""A short-lived cache of answers, so that twenty viewers of a page cost little more than one."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from homeostat.web.responses import Body

FRESH_S = 0.5
MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class Question:
    """How to make an answer. `position` returns the newest position in the log, None without a log; it and `make` run
    in a thread. A client that knows the log up to `client_position` accepts any answer made since. With `keep_s`, an
    answer is reused for that long, whatever is written to the log in the meantime.
    """

    key: Hashable
    position: Callable[[], int | None]
    make: Callable[[], bytes]
    client_position: int | None = None
    keep_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Answer:
    """`position` is the newest position in the log when the answer was made."""

    until_s: float
    position: int | None
    body: Body


class AnswerCache:
    """Clients that ask while an answer is being made wait for it.

    An answer is reused for half a second, because health depends on the clock, or for twice the time that it took to
    make, so that an expensive page never keeps the server busy all the time.
    """

    def __init__(self) -> None:
        self._answers: OrderedDict[Hashable, _Answer] = OrderedDict()
        self._in_progress: dict[Hashable, asyncio.Task[_Answer]] = {}

    async def get(self, question: Question) -> Body:
        while True:
            fresh = self._fresh(question.key)
            if fresh is not None and (question.keep_s or _is_recent(fresh, question.client_position)):
                return fresh.body
            task = self._in_progress.get(question.key)
            if task is not None:
                await asyncio.wait([task])
                continue
            task = asyncio.create_task(run_in_threadpool(_answer, question, fresh))
            self._in_progress[question.key] = task
            task.add_done_callback(lambda task: self._keep(question.key, task))
            return (await asyncio.shield(task)).body

    def _fresh(self, key: Hashable) -> _Answer | None:
        answer = self._answers.get(key)
        return answer if answer is not None and time.monotonic() < answer.until_s else None

    def _keep(self, key: Hashable, task: asyncio.Task[_Answer]) -> None:
        self._in_progress.pop(key, None)
        if task.cancelled() or task.exception() is not None or task.result().position is None:
            return
        self._answers[key] = task.result()
        self._answers.move_to_end(key)
        while len(self._answers) > MOST_KEPT:
            self._answers.popitem(last=False)


def _is_recent(answer: _Answer, client_position: int | None) -> bool:
    return client_position is not None and answer.position is not None and answer.position >= client_position


def _answer(question: Question, previous: _Answer | None) -> _Answer:
    asked_s = time.monotonic()
    position = question.position()
    if previous is not None and previous.position == position:
        return previous
    body = Body.of(question.make())
    took_s = time.monotonic() - asked_s
    return _Answer(asked_s + max(question.keep_s, FRESH_S, 2 * took_s), position, body)
