from __future__ import annotations

from homeostat.spark.act.recent_ids import RecentIds


def test_the_newest_ids_are_kept() -> None:
    recent = RecentIds(3)
    for number in range(10):
        recent.add([str(number)])
    assert recent.ids == {"7", "8", "9"}


def test_an_id_that_comes_again_is_new() -> None:
    recent = RecentIds(3)
    recent.add(["1", "2", "3"])
    recent.add(["1", "4"])
    assert recent.ids == {"1", "3", "4"}
