"""The indices: answers take no more work when the log grows."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from itertools import count
from pathlib import Path

from homeostat.core.records import Record
from homeostat.store.protocol import Store
from homeostat.store.sqlite import SqliteStore

QUESTIONS: dict[str, Callable[[Store], object]] = {
    "newest": lambda store: store.records("run", limit=50, newest_first=True),
    "newest of some kinds": lambda store: store.records(
        "run", kinds=("action", "alert", "outcome"), limit=50, newest_first=True
    ),
    "rare component": lambda store: store.records("run", component="rare", limit=50, newest_first=True),
    "rare component and kinds": lambda store: store.records(
        "run", kinds=("symptom", "alert"), component="rare", limit=50, newest_first=True
    ),
    "chain": lambda store: store.chain("run", "s-7"),
    "one": lambda store: store.get("run", "s-7"),
    "runs": lambda store: store.runs(),
}


def test_answers_take_no_more_work_when_the_log_is_twenty_times_longer(tmp_path: Path) -> None:
    work: list[dict[str, int]] = []
    for length in (500, 10_000):
        with closing(SqliteStore(tmp_path / f"{length}.sqlite")) as store:
            kinds = ("symptom", "symptom", "diagnosis", "alert")
            store.append(
                "run",
                [
                    Record(f"s-{n}", kinds[n % 4], float(n), "", "rare" if n < 10 else "count", (f"s-{n ^ 1}",))
                    for n in range(length)
                ],
            )
            work.append({name: _instructions(store, ask) for name, ask in QUESTIONS.items()})
    short, long = work
    assert {name: long[name] <= 1.5 * short[name] for name in QUESTIONS} == dict.fromkeys(QUESTIONS, True)


def _instructions(store: SqliteStore, ask: Callable[[Store], object]) -> int:
    """How many instructions of SQLite's machine an answer takes, in tens."""
    steps = count()
    store._connection.set_progress_handler(lambda: next(steps) < 0, 10)
    ask(store)
    store._connection.set_progress_handler(None, 0)
    return next(steps) + 1
