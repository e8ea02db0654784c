"""What the stores on SQL databases have in common: the queries, and how rows become records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import Any

from homeostat.core.errors import UnreadableError
from homeostat.core.record_json import JSON
from homeostat.core.records import ACTION, OUTCOME, RECEIPT, OutcomeContent, ReceiptContent, Record, content_of
from homeostat.store.codec import dump, dump_of, load, load_body, mend, split_record
from homeostat.store.protocol import BEGINNING_S, SET_ASIDE, Placed, RunInfo
from homeostat.store.sql import CHAIN, COLUMNS, NO_LIMIT, OPEN_INTENTS, UNJUDGED
from homeostat.store.sql_database import Connection, SqlDatabase, UnreadableRecord

NOTHING: Mapping[str, str | float] = MappingProxyType({})


class SqlStore(SqlDatabase):
    """A store on an SQL database.

    Used by one thread at a time; threads and processes that work at once open the log each for themselves.
    """

    def append(self, run: str, records: Sequence[Record]) -> None:
        rows = [split_record(record) for record in records]
        if not rows:
            return
        with self.transaction(durable=any(head.kind == ACTION for head, _ in rows), fenced=True) as connection:
            key = self.run_key(run)
            new_records = [head for head, body in rows if _insert(connection, key, head, body)]
            _count(connection, key, new_records)

    def get(self, run: str, id: str) -> Record | None:
        records = self._records(f"SELECT {COLUMNS} FROM records WHERE run = :run AND id = :id", run, {"id": mend(id)})
        return records[0] if records else None

    def records(
        self,
        run: str,
        *,
        kinds: Sequence[str] = (),
        component: str = "",
        since_s: float = BEGINNING_S,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Record]:
        direction = "DESC" if newest_first else "ASC"
        values: dict[str, str | float] = {"since_s": since_s, "limit": limit if limit > 0 else NO_LIMIT}
        where = "run = :run AND at_s >= :since_s"
        if component:
            where += " AND component = :component"
            values["component"] = component
        # One select per kind, each along its own index, instead of a search through all kinds.
        wheres = []
        for position, kind in enumerate(dict.fromkeys(kinds)):
            wheres.append(f"{where} AND kind = :kind{position}")
            values[f"kind{position}"] = kind
        selects = " UNION ALL ".join(
            f"SELECT * FROM (SELECT number, {COLUMNS} FROM records WHERE {each} "
            f"ORDER BY at_s {direction}, number {direction} LIMIT :limit) AS of_one_kind"
            for each in wheres or [where]
        )
        order = f"ORDER BY at_s {direction}, number {direction} LIMIT :limit"
        return self._records(f"SELECT {COLUMNS} FROM ({selects}) AS of_all_kinds {order}", run, values)

    def ids(self, run: str, kinds: Sequence[str]) -> list[str]:
        if not kinds:
            return []
        marks = ", ".join("?" for _ in kinds)
        where = f"name = ? AND kind IN ({marks}) ORDER BY at_s, number"
        query = f"SELECT id FROM records JOIN runs USING (run) WHERE {where}"
        return [str(id) for (id,) in self.rows(query, (mend(run), *kinds))]

    def chain(self, run: str, id: str) -> list[Record]:
        return self._records(CHAIN, run, {"id": mend(id)})

    def open_intents(self, run: str) -> list[Record]:
        return self._records(OPEN_INTENTS, run, placeholders=True)

    def unjudged(self, run: str) -> list[Record]:
        return self._records(UNJUDGED, run, placeholders=True)

    def save_state(self, run: str, key: str, value: JSON) -> None:
        text = dump_of(value, f"the state {key!r}")
        with self.transaction(fenced=True):
            self._database.execute(
                "INSERT INTO state VALUES (?, ?, ?) ON CONFLICT (run, key) DO UPDATE SET value = excluded.value",
                (self.run_key(run), mend(key), text),
            )

    def load_state(self, run: str, key: str) -> JSON | None:
        rows = self.rows(
            "SELECT value FROM state JOIN runs USING (run) WHERE name = ? AND key = ?",
            (mend(run), mend(key)),
        )
        with self._translated_errors():
            return load(rows[0][0]) if rows else None

    def set_aside(self, run: str, key: str) -> None:
        names = {"run": mend(run), "key": mend(key), "aside": f"{mend(key)}{SET_ASIDE}"}
        where = "run = (SELECT run FROM runs WHERE name = :run)"
        with self.transaction(fenced=True) as connection:
            connection.execute(
                f"INSERT INTO state SELECT run, :aside, value FROM state WHERE {where} AND key = :key "
                "ON CONFLICT (run, key) DO UPDATE SET value = excluded.value",
                names,
            )
            connection.execute(f"DELETE FROM state WHERE {where} AND key = :key", names)

    def runs(self) -> list[RunInfo]:
        rows = self.rows(
            "SELECT run, name, kind, records, first_s, last_s FROM runs JOIN counts USING (run) ORDER BY run, kind"
        )
        by_run: dict[int, list[Any]] = {}
        for row in rows:
            by_run.setdefault(row[0], []).append(row[1:])
        return [
            RunInfo(
                name=kinds[0][0],
                started_s=min(first_s for *_, first_s, _ in kinds),
                last_s=max(last_s for *_, last_s in kinds),
                counts={kind: records for _, kind, records, *_ in kinds},
            )
            for kinds in by_run.values()
        ]

    def position(self) -> int:
        ((newest,),) = self.rows("SELECT coalesce(max(number), 0) FROM records")
        return int(newest)

    def after(self, position: int, limit: int) -> list[Placed]:
        query = f"SELECT number, name, {COLUMNS} FROM records JOIN runs USING (run)"
        rows = self.rows(f"{query} WHERE number > ? ORDER BY number LIMIT ?", (position, limit))
        placed_records: list[Placed] = []
        for number, run, *row in rows:
            with suppress(
                ValueError, RecursionError
            ):  # skip rows that cannot be read, so that they do not block later ones
                placed_records.append(Placed(number, run, _record(row)))
        return placed_records

    def _records(
        self, query: str, run: str, values: Mapping[str, str | float] = NOTHING, *, placeholders: bool = False
    ) -> list[Record]:
        keys = self.rows("SELECT run FROM runs WHERE name = ?", (mend(run),))
        if not keys:
            return []
        records = []
        for row in self.rows(query, {**values, "run": keys[0][0]}):
            try:
                with self._translated_errors():
                    records.append(_record(row))
            except UnreadableError as error:
                if placeholders and isinstance(row[0], str):
                    records.append(Record(row[0], str(row[1]), row[2] if isinstance(row[2], float) else 0.0, ""))
                elif self._on_unreadable is not None:
                    self._on_unreadable(UnreadableRecord(run, str(row[0]), str(row[1]), str(error.__cause__)))
                else:
                    raise
        return records


def _record(row: Sequence[Any]) -> Record:
    id, kind, at_s, text, component, because, body = row
    if not isinstance(at_s, float) or any(isinstance(each, bytes) for each in row):
        raise ValueError(f"record {id!r} has columns of the wrong type")
    parents = () if because == "[]" else load(because)
    if not isinstance(parents, list | tuple):
        raise ValueError(f"record {id!r} comes from {because[:40]!r}")
    return Record(id, kind, at_s, text, component, tuple(map(str, parents)), load_body(body))


def _insert(connection: Connection, run: int, head: Record, body: str) -> bool:
    """Add a record, unless the run has its id already."""
    answer = content_of(head.kind, load_body(body)) if head.kind in (RECEIPT, OUTCOME) else None
    action = answer.action if isinstance(answer, ReceiptContent | OutcomeContent) else None
    because = dump(head.because)
    row = (run, head.id, head.kind, head.at_s, head.component, head.text, because, body, action or None)
    added = connection.execute(
        "INSERT INTO records (run, id, kind, at_s, component, text, because, body, action) "
        "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, id) DO NOTHING",
        row,
    )
    if not added.rowcount:
        return False
    connection.executemany(
        "INSERT INTO links VALUES (?, ?, ?)",
        [(run, parent, head.id) for parent in dict.fromkeys(head.because)],
    )
    return True


def _count(connection: Connection, run: int, new_records: Sequence[Record]) -> None:
    times_s: dict[str, list[float]] = {}
    for head in new_records:
        times_s.setdefault(head.kind, []).append(head.at_s)
    connection.executemany(
        "INSERT INTO counts VALUES (?, ?, ?, ?, ?) ON CONFLICT (run, kind) DO UPDATE SET "
        "records = counts.records + excluded.records, "
        "first_s = CASE WHEN excluded.first_s < counts.first_s THEN excluded.first_s ELSE counts.first_s END, "
        "last_s = CASE WHEN excluded.last_s > counts.last_s THEN excluded.last_s ELSE counts.last_s END",
        [(run, kind, len(each_s), min(each_s), max(each_s)) for kind, each_s in times_s.items()],
    )
