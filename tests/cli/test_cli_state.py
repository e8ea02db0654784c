"""`homeostat state` before and beside Spark: what is refused at once.

What the commands print is in tests/state, where a session and real checkpoints are.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Homeostat = Callable[..., Any]


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """The checkpoint of a query that has just been started: no batch is committed, and there is no state."""
    path = tmp_path / "fresh"
    (path / "offsets").mkdir(parents=True)
    (path / "metadata").write_text('{"id":"8b9c5f4e-0000-4000-8000-000000000000"}')
    (path / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}\n0')
    return path


@pytest.mark.parametrize("command", ["ls", "show", "top", "changes"])
def test_a_place_that_is_no_checkpoint_is_refused(command: str, homeostat: Homeostat, tmp_path: Path) -> None:
    ran = homeostat("state", command, tmp_path / "nowhere")
    assert (ran.code, ran.out) == (2, "")
    assert "there is nothing here (give the directory of a query's checkpoint)" in ran.err
    assert "this is no checkpoint" in homeostat("state", command, tmp_path).err


def test_a_query_without_state_needs_no_spark(homeostat: Homeostat, fresh: Path) -> None:
    ran = homeostat("state", "ls", fresh)
    assert ran.code == 0
    assert "0 was begun and is not committed" in ran.out
    told = homeostat("state", "ls", fresh, "--json").json
    assert (told["last_batch_committed"], told["kept"], told["operators"]) == (False, [], [])


def test_without_a_committed_batch_there_is_nothing_to_read(homeostat: Homeostat, fresh: Path) -> None:
    ran = homeostat("state", "show", fresh)
    assert ran.code == 2
    assert "no batch is committed yet (let the query finish its first batch)" in ran.err


def test_damage_is_listed_and_ends_with_3(homeostat: Homeostat, fresh: Path) -> None:
    (fresh / "metadata").unlink()
    (fresh / "offsets" / "0").write_text("")
    ran = homeostat("state", "ls", fresh)
    assert ran.code == 3
    assert [line.split()[0] for line in ran.out.splitlines() if "is missing" in line or "is empty" in line] == [
        "metadata",
        "offsets/0",
    ]
    told = homeostat("state", "ls", fresh, "--json")
    assert [each["path"] for each in told.json["damage"]] == ["metadata", "offsets/0"]
    refused = homeostat("state", "query", fresh, "SELECT 1")
    assert refused.code == 3
    assert "metadata is missing" in refused.err
    assert "1 more, listed by `homeostat state ls`" in refused.err
