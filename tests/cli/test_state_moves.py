"""`homeostat state` commands that save, restore and repartition, as far as they need no Spark."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Homeostat = Callable[..., Any]


@pytest.mark.parametrize("command", [["restore", "{}", "good"], ["rescale", "{}", "--partitions", "4"]])
def test_nothing_is_left_where_there_is_nothing(command: list[str], homeostat: Homeostat, tmp_path: Path) -> None:
    result = homeostat("state", *(word.format(tmp_path / "no" / "where") for word in command))
    assert result.code == 2
    assert "there is no such directory" in result.err
    assert not (tmp_path / "no").exists()


def test_a_way_back_that_was_cut_short_is_finished_by_a_rescale(homeostat: Homeostat, fresh: Path) -> None:
    """Between its two renames there is no checkpoint."""
    (fresh / "commits").mkdir()
    (fresh / "commits" / "0").write_text("v1\n{}")
    assert homeostat("state", "savepoint", fresh, "good").code == 0
    (fresh / "offsets" / "1").write_text((fresh / "offsets" / "0").read_text())
    fresh.rename(fresh.with_name("fresh.restoring"))
    fresh.with_name("fresh.restore.json").write_text('{"savepoint": "good", "batch": 0}')
    result = homeostat("state", "rescale", fresh, "--partitions", 4)
    assert "batch 1 is not finished, and only the application can finish it" in result.err
    assert fresh.exists()
    assert not fresh.with_name("fresh.restore.json").exists()


def test_a_damaged_savepoint_does_not_hide_the_others(homeostat: Homeostat, fresh: Path) -> None:
    (fresh / "commits").mkdir()
    (fresh / "commits" / "0").write_text("v1\n{}")
    assert homeostat("state", "savepoint", fresh, "good").code == 0
    assert homeostat("state", "savepoint", fresh, "bad").code == 0
    fresh.with_name("fresh.savepoints").joinpath("bad", "manifest.json").write_text("{")
    result = homeostat("state", "savepoints", fresh, "--json")
    assert [each["name"] for each in result.json] == ["good"]
    assert "bad" in result.err
