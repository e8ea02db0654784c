"""Twenty viewers of one page cost hardly more than one."""

from __future__ import annotations

import asyncio

from homeostat.web.answer_cache import AnswerCache, Question


class Log:
    """A log at a position, and how often an answer was made from it."""

    def __init__(self) -> None:
        self.position, self.made = 1, 0

    def make(self) -> bytes:
        self.made += 1
        return str(self.position).encode()

    def question(self, position: int | None = None, keep_s: float = 0.0) -> Question:
        return Question("page", lambda: self.position, self.make, position, keep_s)


def test_clients_that_ask_at_once_share_one_answer() -> None:
    async def ask() -> list[bytes]:
        cache = AnswerCache()
        return [body.plain for body in await asyncio.gather(*(cache.get(log.question()) for _ in range(20)))]

    log = Log()
    assert asyncio.run(ask()) == [b"1"] * 20
    assert log.made == 1


def test_an_answer_is_made_again_only_for_clients_that_know_of_something_newer() -> None:
    async def ask() -> list[bytes]:
        cache = AnswerCache()
        first = await cache.get(log.question(position=1))
        log.position = 2
        same = await cache.get(log.question(position=1))
        newer = await cache.get(log.question(position=2))
        return [first.plain, same.plain, newer.plain]

    log = Log()
    assert asyncio.run(ask()) == [b"1", b"1", b"2"]


def test_an_expensive_answer_is_kept_whatever_is_written() -> None:
    async def ask() -> list[bytes]:
        cache = AnswerCache()
        first = await cache.get(log.question(keep_s=60.0))
        log.position = 2
        return [first.plain, (await cache.get(log.question(position=2, keep_s=60.0))).plain]

    log = Log()
    assert asyncio.run(ask()) == [b"1", b"1"]
