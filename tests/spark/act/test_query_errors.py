"""Why a query does not start, in one line that says what to do."""

from __future__ import annotations

from pathlib import Path

from homeostat.checkpoint.files import files_of
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.core.errors import ConfigError
from homeostat.spark.act.query_errors import start_error


def checkpoint(directory: Path, batches: int = 0) -> Checkpoint:
    for batch in range(batches):
        (directory / "offsets").mkdir(parents=True, exist_ok=True)
        (directory / "offsets" / str(batch)).write_text("v1\n{}\n0")
    return Checkpoint(str(directory), files_of(str(directory), None))


def test_a_checkpoint_of_another_query(tmp_path: Path) -> None:
    error = RuntimeError("[STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key schema does not match")
    line = start_error("words", checkpoint(tmp_path), error).line
    assert line.startswith(f"query words: the checkpoint {tmp_path} belongs to another query (give each query its own")


def test_a_checkpoint_that_cannot_be_continued(tmp_path: Path) -> None:
    line = start_error("words", checkpoint(tmp_path, batches=1), RuntimeError("the topic is gone\nat x")).line
    assert line.startswith(f"query words: cannot continue from the checkpoint {tmp_path}: the topic is gone (")


def test_a_new_query(tmp_path: Path) -> None:
    assert (
        start_error("words", checkpoint(tmp_path), RuntimeError("no topic")).line
        == "query words: cannot start: no topic"
    )


def test_a_mistake_in_the_application_is_not_blamed_on_the_checkpoint(tmp_path: Path) -> None:
    error = ConfigError("the function returns None")
    assert start_error("words", checkpoint(tmp_path, batches=1), error).line == (
        "query words: cannot start: the function returns None"
    )
