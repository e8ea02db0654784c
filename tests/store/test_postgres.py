"""A log on a real PostgreSQL server keeps the contract of stores, is shared by processes, and refuses what it cannot
use."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Thread

import pytest
from hypothesis import settings

from homeostat.core.errors import StoreError
from homeostat.core.records import BATCH, MINUTE, BatchContent, Record
from homeostat.settings import LogSettings
from homeostat.store import migrations
from homeostat.store.postgres import TABLES, PostgresStore
from homeostat.store.protocol import Store
from homeostat.store.retention import Retention
from homeostat.store.sql_database import Connection
from homeostat.store.sqlite import SqliteStore
from homeostat.testing import STORE_CHECKS, check_survives_kill
from support.postgres import GUARDED, PASSWORD, PostgresServer


@pytest.fixture
def fewer_examples() -> Iterator[None]:
    """Every example opens two connections, each of them a process of the server. The soak draws as many as ever."""
    before = settings.get_current_profile_name()
    settings.load_profile("quick" if before == "usual" else before)
    yield
    settings.load_profile(before)


@pytest.mark.usefixtures("fewer_examples")
@pytest.mark.parametrize("check", STORE_CHECKS, ids=lambda check: check.__name__)
def test_store_keeps_its_contract(postgres: PostgresServer, check: Callable[[Callable[[], Store]], None]) -> None:
    address = postgres.new_address()
    PostgresStore(address).close()
    check(lambda: PostgresStore(postgres.emptied(address)))


def test_a_killed_writer_loses_nothing_that_returned_and_leaves_nothing_in_part(postgres: PostgresServer) -> None:
    check_survives_kill(partial(PostgresStore, postgres.new_address()))


def test_writers_take_turns_so_that_a_follower_misses_no_record(postgres: PostgresServer) -> None:
    """A number is drawn before its record can be seen. A later one must not be seen first."""
    address = postgres.new_address()
    with closing(PostgresStore(address)) as one, closing(PostgresStore(address)) as other:
        with one.transaction() as connection:
            connection.execute("INSERT INTO runs (name) VALUES (?)", ("run",))
            key = one.run_key("run")
            connection.execute(
                "INSERT INTO records (run, id, kind, at_s, component, text, because, body) "
                "VALUES (?, 's-1', 'symptom', 1.0, '', '', '[]', '{}')",
                (key,),
            )
            second = Thread(target=other.append, args=("run", [Record("s-2", "symptom", 1.0, "")]))
            second.start()
            second.join(0.2)
            with closing(PostgresStore(address, read_only=True)) as reader:
                assert (second.is_alive(), reader.after(0, 10)) == (True, [])
        second.join()
        assert [placed.record.id for placed in one.after(0, 10)] == ["s-1", "s-2"]


def test_the_store_goes_on_when_the_server_was_started_again(postgres: PostgresServer) -> None:
    action = Record("a-1", "action", 1.0, "grow")
    with closing(PostgresStore(postgres.new_address())) as store:
        store.append("run", [action])
        postgres.stop()
        with pytest.raises(StoreError, match="no PostgreSQL server answers"):
            store.get("run", "a-1")
        postgres.start()
        assert store.get("run", "a-1") == action
        store.append("run", [replace(action, id="a-2")])
        assert store.ids("run", ["action"]) == ["a-1", "a-2"]


def test_a_transaction_is_not_continued_on_another_connection(postgres: PostgresServer) -> None:
    def lose_the_connection(connection: Connection) -> None:
        connection.execute("DELETE FROM records")
        ((backend,),) = connection.execute("SELECT pg_backend_pid()").fetchall()
        postgres.ask(f"SELECT pg_terminate_backend({backend})")
        with pytest.raises(Exception, match="terminating connection"):
            connection.execute("DELETE FROM links")
        connection.execute("DELETE FROM counts")

    with closing(PostgresStore(postgres.new_address())) as store:
        store.append("run", [Record("s-1", "symptom", 1.0, "")])
        with pytest.raises(StoreError, match="the server cannot be used"):
            store.maintain(lose_the_connection)
        assert store.ids("run", ["symptom"]) == ["s-1"]
        assert store.runs()[0].counts == {"symptom": 1}


@pytest.mark.parametrize(("kind", "waits"), [("action", "on"), ("symptom", "off")])
def test_only_an_intent_waits_for_the_disk(postgres: PostgresServer, kind: str, waits: str) -> None:
    with closing(PostgresStore(postgres.new_address())) as store:
        modes: list[object] = []

        def look(connection: Connection) -> None:
            modes.extend(connection.execute("SELECT current_setting('synchronous_commit')").fetchone())

        with store.transaction(durable=kind == "action") as connection:
            look(connection)
        assert modes == [waits]


def test_every_refusal_is_one_line_without_the_password(postgres: PostgresServer) -> None:
    guarded = postgres.address(user=GUARDED, password="wr0ng")
    log_of_another = postgres.new_address()
    postgres.ask("CREATE TABLE records (name TEXT)", address=log_of_another)
    newer = postgres.new_address()
    PostgresStore(newer).close()
    postgres.ask("UPDATE homeostat_log SET version = 7", address=newer)
    nowhere = replace(guarded, text=f"postgresql://{GUARDED}@127.0.0.1:1/postgres")
    for address, read_only, message in (
        (guarded, True, "the server refuses the password (set HOMEOSTAT_STORE_PASSWORD, or use ~/.pgpass)"),
        (nowhere, True, "no PostgreSQL server answers (start the server, or check host and port)"),
        (replace(guarded, password=PASSWORD), False, "this user may not do that (grant the user all rights on"),
        (postgres.new_address(), True, "the database has no log yet (start a run first)"),
        (log_of_another, False, "another program has a table 'records' in this schema (use a database or schema"),
        (newer, True, "a newer Homeostat wrote this log (version 7; this one reads 2) (upgrade homeostat"),
    ):
        with pytest.raises(StoreError) as refused:
            PostgresStore(address, read_only=read_only)
        assert refused.value.line.startswith(f"{address.text}: {message}")
        assert "\n" not in refused.value.line
        assert not re.search("wr0ng|s3cret", refused.value.line)


def test_an_id_that_cannot_be_indexed_is_refused_with_all_of_its_call(postgres: PostgresServer) -> None:
    long = "".join(chr(0x4E00 + n % 7919) for n in range(0, 90_000, 13))
    with closing(PostgresStore(postgres.new_address())) as store:
        with pytest.raises(StoreError, match="an id, a component or a key is longer than PostgreSQL can index"):
            store.append("run", [Record("s-1", "symptom", 1.0, ""), Record(long, "symptom", 1.0, "")])
        store.append("run", [Record("s-2", "symptom", 1.0, long)])
        assert [(record.id, record.text) for record in store.records("run")] == [("s-2", long)]


def test_a_guest_writes_only_to_runs_that_the_log_has(postgres: PostgresServer) -> None:
    address = postgres.new_address()
    with closing(PostgresStore(address)) as store:
        store.append("run", [Record("s-1", "symptom", 1.0, "")])
    with closing(PostgresStore(address, guest=True)) as guest:
        guest.append("run", [Record("s-2", "symptom", 2.0, "")])
        with pytest.raises(StoreError, match="the log has no run 'other'"):
            guest.append("other", [Record("s-3", "symptom", 3.0, "")])
        assert guest.ids("run", ["symptom"]) == ["s-1", "s-2"]


def test_old_batches_become_minutes_and_the_size_is_known(postgres: PostgresServer) -> None:
    with closing(PostgresStore(postgres.new_address())) as store:
        flow = BatchContent(10.0, 1.0, 60.0, arrival_per_s=10.0, pending_rows=0.0, span_s=60.0, batch=1)
        batches = [Record.of(f"b-{n}", 60.0 * n, flow, "") for n in range(1, 400)]
        store.append("run", batches)
        Retention(store, LogSettings.model_validate({"detail": "1 h"})).finish()
        counts = {kind: len(store.records("run", kinds=(kind,))) for kind in (BATCH, MINUTE)}
        assert counts[BATCH] < 130
        assert counts[MINUTE] > 380
        store.compact()
        usage = store.usage()
        assert 0 <= usage.used_bytes <= usage.file_bytes
        assert usage.file_bytes > 10_000


def test_the_tables_are_those_of_sqlite(postgres: PostgresServer, tmp_path: Path) -> None:
    """The same columns in the same order, because both are made by the same migrations."""
    address = postgres.new_address()
    PostgresStore(address).close()
    with closing(SqliteStore(tmp_path / "log.sqlite")) as store:
        for table in TABLES:
            expected = [name for _, name, *_ in store.rows(f"PRAGMA table_info({table})")]
            rows = postgres.ask(
                "SELECT column_name FROM information_schema.columns WHERE table_schema = current_schema() "
                f"AND table_name = '{table}' ORDER BY ordinal_position",
                address=address,
            )
            assert [name for (name,) in rows] == expected


def test_processes_that_open_a_new_log_at_once_agree(postgres: PostgresServer) -> None:
    address = postgres.new_address()

    def write(number: int) -> None:
        with closing(PostgresStore(address)) as store:
            store.append("run", [Record(f"s-{number}", "symptom", float(number), "")])

    with ThreadPoolExecutor(8) as threads:
        list(threads.map(write, range(8)))
    with closing(PostgresStore(address, read_only=True)) as store:
        assert store.ids("run", ["symptom"]) == [f"s-{n}" for n in range(8)]


def test_a_reader_needs_no_right_to_write(postgres: PostgresServer) -> None:
    address = postgres.new_address()
    schema = address.text.rpartition("%3D")[2]
    with closing(PostgresStore(address)) as store:
        store.append("run", [Record("s-1", "symptom", 1.0, "")])
    grants = ("USAGE ON SCHEMA {}", "SELECT ON ALL TABLES IN SCHEMA {}")
    postgres.ask(*(f"GRANT {grant.format(schema)} TO {GUARDED}" for grant in grants))
    mine = postgres.address(schema, user=GUARDED, password=PASSWORD)
    with closing(PostgresStore(mine, read_only=True)) as store:
        assert store.ids("run", ["symptom"]) == ["s-1"]
    with (
        closing(PostgresStore(mine, guest=True)) as store,
        pytest.raises(StoreError, match="this user may not do that"),
    ):
        store.append("run", [Record("o-1", "order", 2.0, "")])


def test_a_log_of_an_earlier_version_is_migrated_as_a_whole_or_not_at_all(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def add_column(connection: Connection) -> None:
        connection.execute("ALTER TABLE runs ADD COLUMN colour INTEGER")

    def fail(connection: Connection) -> None:
        add_column(connection)
        connection.execute("DELETE FROM no_such_table")

    address = postgres.new_address()
    with closing(PostgresStore(address)) as store:
        store.append("run", [Record("s-1", "symptom", 1.0, "")])
    newest = migrations.SCHEMA_VERSION + 1
    monkeypatch.setattr(migrations, "SCHEMA_VERSION", newest)
    monkeypatch.setattr("homeostat.store.postgres.SCHEMA_VERSION", newest)
    for migration, version in ((fail, newest - 1), (add_column, newest)):
        monkeypatch.setattr(migrations, "MIGRATIONS", {**migrations.MIGRATIONS, newest: migration})
        with closing(PostgresStore(address, read_only=True)) as store:
            assert store.ids("run", ["symptom"]) == ["s-1"], "reading does not need the new tables"
        with suppress(StoreError), closing(PostgresStore(address)) as store:
            assert store.rows("SELECT colour FROM runs") == [(None,)]
        assert postgres.ask("SELECT version FROM homeostat_log", address=address) == [(version,)]
