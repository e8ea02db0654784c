"""The work of the recorded queries for each row, and the faults that act there.

The functions run in Python workers on the executors. A fault that is switched on acts from the next task on.
"""

from __future__ import annotations

import hashlib
import random
import socket
import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from homeostat.lab.corpus.switches import strength_of
from homeostat.spark.python_workers import spare_the_collector

if TYPE_CHECKING:
    from pandas import DataFrame as Pandas

# Rows of one request. A busy machine answers milliseconds late; with fewer, longer requests, rows take the intended
# time.
ROWS_A_REQUEST = 10
REQUEST = struct.Struct(">d")
COSTLY_KEYS = 3  # the number of the most frequent keys that become costly
# Rounds of SHA-256 that one core computes in about a microsecond. Only the proportions matter.
_ROUNDS_PER_US = 1.5
_remembered: list[int] = []


@dataclass(frozen=True, slots=True)
class RowWork:
    """The service at `service_port` answers after `wait_ms` for each row; with port 0, no service is called. Each row
    takes about `burn_us` microseconds of CPU time.

    `switches` is the directory of the switches, and `costly` names the column with the keys, or is empty.
    """

    service_port: int = 0
    wait_ms: float = 0.0
    burn_us: float = 0.0
    switches: str = ""
    costly: str = ""

    def strength(self, name: str) -> float:
        return strength_of(f"{self.switches}/{name}")


def worker(work: RowWork) -> Callable[[Iterator[Pandas]], Iterator[Pandas]]:
    """A function for `mapInPandas` that does the work and passes the rows on."""

    def run(batches: Iterator[Pandas]) -> Iterator[Pandas]:
        spare_the_collector()
        _fail_if_injected(work)
        factor, growth = work.strength("costly-keys"), work.strength("rising-cost")
        if not growth:
            _remembered.clear()  # a worker process outlives the query
        with _connection(work.service_port) as service:
            for batch in batches:
                rows = weighted_rows(batch, work.costly, factor)
                if growth:
                    _search_all_earlier(batch["row"].tolist(), growth)
                _compute(rows * work.burn_us)
                if service is not None:
                    _ask(service, rows, work.wait_ms)
                yield batch

    return run


def _fail_if_injected(work: RowWork) -> None:
    from pyspark import TaskContext

    context = TaskContext.get()
    partition, attempt = (0, 0) if context is None else (context.partitionId(), context.attemptNumber())
    if random.random() < work.strength("failing-tasks"):
        raise OSError("injected: the connection was reset")
    if partition == 1 and attempt < work.strength("poison-row"):
        raise ValueError("injected: a row of this partition cannot be parsed")


def weighted_rows(batch: Pandas, column: str, factor: float) -> float:
    """The number of rows, where each row of a costly key counts as `factor` rows."""
    if not factor or not column:
        return float(len(batch))
    costly = int(batch[column].isin([f"word-{number}" for number in range(COSTLY_KEYS)]).sum())
    return len(batch) + costly * (factor - 1)


def _search_all_earlier(rows: list[int], growth: float) -> None:
    """Look each row up in a list that keeps growing, as a forgotten cache does."""
    for row in rows:
        _remembered.extend([row] * round(growth))
        assert -1 not in _remembered


def remembered_count() -> int:
    return len(_remembered)


def _compute(us: float) -> None:
    if us:
        hashlib.pbkdf2_hmac("sha256", b"row", b"salt", max(1, round(us * _ROUNDS_PER_US)))


def _ask(service: socket.socket, rows: float, wait_ms: float) -> None:
    while rows > 0:
        service.sendall(REQUEST.pack(min(rows, ROWS_A_REQUEST) * wait_ms))
        if not service.recv(1):
            raise ConnectionError("the service closed the connection")
        rows -= ROWS_A_REQUEST


class _NoService:
    def __enter__(self) -> None:
        return None

    def __exit__(self, *error: object) -> None:
        return None


def _connection(port: int) -> Any:
    return socket.create_connection(("127.0.0.1", port)) if port else _NoService()


def rekeyer(switches: str, colliding: tuple[str, ...]) -> Callable[[Iterator[Pandas]], Iterator[Pandas]]:
    """Adds the column `key`: the word, a hot key for a share of the rows, or keys that fall on one partition."""

    def run(batches: Iterator[Pandas]) -> Iterator[Pandas]:
        spare_the_collector()
        hot, together = strength_of(f"{switches}/data-skew"), strength_of(f"{switches}/hash-imbalance")
        for batch in batches:
            part = (batch["row"] % 1000) / 1000
            key = batch["word"]
            key = key.mask(part < hot, "hot")
            if together:
                substitutes = [colliding[row % len(colliding)] for row in batch["row"].tolist()]
                key = key.mask(part < together, substitutes)
            yield batch.assign(key=key)[["row", "word", "key"]]

    return run


def pause(path: str) -> None:
    """Sleep for the number of seconds in the switch."""
    time.sleep(strength_of(path))
