"""Two applications that share a log never share a run, and one manager at a time holds each of them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from homeostat.core.errors import LeaseLostError
from homeostat.core.records import Record
from homeostat.store.registered_applications import ApplicationTable, ForeignRunError, Holder
from homeostat.store.sqlite import SqliteStore

FIRST, SECOND = "1f" * 16, "2e" * 16
ME, OTHER = Holder("token-1", process=7, directory="/apps/words"), Holder("token-2", process=8)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[SqliteStore]:
    with closing(SqliteStore(tmp_path / "log.sqlite")) as opened:
        yield opened


@pytest.fixture
def table(store: SqliteStore) -> ApplicationTable:
    return ApplicationTable(store)


def test_a_second_application_of_the_same_name_gets_another_one_and_both_keep_theirs(table: ApplicationTable) -> None:
    assert [table.register(FIRST, "words"), table.register(SECOND, "words")] == ["words", "words-2e2e"]
    assert [table.register(FIRST, "moved"), table.register(SECOND, "moved")] == ["words", "words-2e2e"]
    assert table.register("2e2e" + "3" * 28, "words") == "words-2e2e3", "more of the identity if the first is taken"


def test_runs_that_belong_to_nobody_are_adopted_only_by_a_directory_that_is_older(
    store: SqliteStore, table: ApplicationTable
) -> None:
    store.append("words/counting", [Record("s-1", "symptom", 1.0, "by version 0.1.0")])
    assert table.register(FIRST, "words") == "words-1f1f"
    assert table.register(SECOND, "words", adopts=True) == "words"
    table.bind("words/counting", SECOND)
    assert [record.text for record in store.records("words/counting")] == ["by version 0.1.0"]


def test_a_run_of_another_application_is_refused_in_one_line(table: ApplicationTable) -> None:
    table.register(FIRST, "words")
    table.register(SECOND, "words")
    table.bind("words/counting", FIRST)
    table.bind("words/counting", FIRST)
    with pytest.raises(ForeignRunError, match="run words/counting belongs to another application") as refused:
        table.bind("words/counting", SECOND)
    assert "\n" not in refused.value.line


def test_one_holder_at_a_time(table: ApplicationTable) -> None:
    table.register(FIRST, "words")
    nobody = table.holder(FIRST)
    assert table.take(FIRST, ME, instead_of=nobody)
    assert not table.take(FIRST, OTHER, instead_of=nobody)
    held = table.holder(FIRST)
    assert replace(held, beats=0) == ME
    assert table.beat(FIRST, ME.token)
    assert not table.take(FIRST, OTHER, instead_of=held), "it has shown life since"
    assert table.take(FIRST, OTHER, instead_of=table.holder(FIRST))
    assert not table.beat(FIRST, ME.token)
    table.release(FIRST, ME.token)
    assert table.holder(FIRST).token == OTHER.token
    table.release(FIRST, OTHER.token)
    assert table.holder(FIRST).token == ""
    assert table.holder(FIRST).process == OTHER.process, "who held it last"


def test_a_manager_that_was_replaced_cannot_write(store: SqliteStore, table: ApplicationTable) -> None:
    table.register(FIRST, "words")
    table.take(FIRST, ME, instead_of=table.holder(FIRST))
    store.fence(FIRST, ME.token)
    store.append("words/counting", [Record("s-1", "symptom", 1.0, "")])
    table.take(FIRST, OTHER, instead_of=table.holder(FIRST))
    with pytest.raises(LeaseLostError):
        store.append("words/counting", [Record("a-1", "action", 2.0, "")])
    with pytest.raises(LeaseLostError):
        store.save_state("words/counting", "loop", {})
    assert [record.id for record in store.records("words/counting")] == ["s-1"]


def test_what_is_not_ours_in_the_table_is_left_out(store: SqliteStore, table: ApplicationTable) -> None:
    table.register(FIRST, "words")
    with store.transaction() as connection:
        connection.execute("""UPDATE applications SET token = 'x', about = '{"process": "7", "host": "h", "new": 1}'""")
    assert table.holder(FIRST) == Holder("x", host="h")
    with store.transaction() as connection:
        connection.execute("UPDATE applications SET about = 'garbage'")
    assert table.holder(FIRST) == Holder("x")
