"""`homeostat state` before and beside Spark: what is refused at once.

What the commands print is in tests/state, where a session and real checkpoints are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Homeostat = Callable[..., Any]


@pytest.mark.parametrize("command", ["ls", "show", "top", "changes"])
def test_a_place_that_is_no_checkpoint_is_refused(command: str, homeostat: Homeostat, tmp_path: Path) -> None:
    result = homeostat("state", command, tmp_path / "nowhere")
    assert (result.code, result.out) == (2, "")
    assert "there is no such directory (give the checkpointLocation of a streaming query)" in result.err
    assert "this directory is not a checkpoint" in homeostat("state", command, tmp_path).err


def test_a_note_that_cannot_be_read_is_named(homeostat: Homeostat, fresh: Path) -> None:
    fresh.with_name("fresh.rescale.json").write_text('{"before": 3')
    result = homeostat("state", "ls", fresh)
    assert (result.code, result.out) == (1, "")
    assert "fresh.rescale.json: the journal of an interrupted rescale cannot be read" in result.err


def test_a_query_without_state_needs_no_spark(homeostat: Homeostat, fresh: Path) -> None:
    result = homeostat("state", "ls", fresh)
    assert result.code == 0
    assert "0 was started but not committed" in result.out
    answer = homeostat("state", "ls", fresh, "--json").json
    assert (answer["last_batch_committed"], answer["kept"], answer["operators"]) == (False, [], [])


def test_without_a_committed_batch_there_is_nothing_to_read(homeostat: Homeostat, fresh: Path) -> None:
    result = homeostat("state", "show", fresh)
    assert result.code == 2
    assert "no batch has been committed yet (let the query finish its first batch)" in result.err


def test_damage_is_listed_and_ends_with_3(homeostat: Homeostat, fresh: Path) -> None:
    (fresh / "metadata").unlink()
    (fresh / "offsets" / "0").write_text("")
    result = homeostat("state", "ls", fresh)
    assert result.code == 3
    assert [line.split()[0] for line in result.out.splitlines() if "is missing" in line or "is empty" in line] == [
        "metadata",
        "offsets/0",
    ]
    result = homeostat("state", "ls", fresh, "--json")
    assert [each["path"] for each in result.json["damage"]] == ["metadata", "offsets/0"]
    refused = homeostat("state", "query", fresh, "SELECT 1")
    assert refused.code == 3
    assert "metadata is missing" in refused.err
    assert "`homeostat state ls` lists 1 more" in refused.err
