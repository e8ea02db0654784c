from __future__ import annotations

import math
from pathlib import Path

import pytest

from homeostat.spark.sense.disks import Disks, Space, space_of


class Clock:
    now_s = 0.0

    def __call__(self) -> float:
        return self.now_s


def test_the_real_disk_is_read_also_for_a_path_that_does_not_exist_yet(tmp_path: Path) -> None:
    (sample,) = Disks({"log": tmp_path / "not" / "yet"}).look()
    assert 0 < sample.free_bytes <= sample.total_bytes
    assert space_of(tmp_path / "missing") == pytest.approx(space_of(tmp_path), rel=0.1)


def test_paths_on_one_disk_are_one_sample(tmp_path: Path) -> None:
    disks = Disks({"checkpoints": tmp_path})
    disks.watch("log", tmp_path / "log")
    (sample,) = disks.look()
    assert sample.uses == ("checkpoints", "log")


def test_a_disk_that_fills_up_says_when_it_is_full(tmp_path: Path) -> None:
    clock = Clock()
    disks = Disks({"log": tmp_path}, lambda path: Space(1e9 - 1e5 * clock.now_s, 1e10), clock)
    assert math.isnan(disks.look()[0].full_in_s)
    for minute in range(1, 31):
        clock.now_s = minute * 60.0
        disks.look()
    (sample,) = disks.look()
    assert sample.full_in_s == pytest.approx(sample.free_bytes / 1e5, rel=0.01)


def test_a_disk_whose_space_grows_or_stays_is_never_full(tmp_path: Path) -> None:
    clock = Clock()
    disks = Disks({"log": tmp_path}, lambda path: Space(1e9 + clock.now_s, 1e10), clock)
    for minute in range(1_000):
        clock.now_s = minute * 60.0
        disks.look()
    assert math.isnan(disks.look()[0].full_in_s)
    assert all(len(moments) <= 360 for moments in disks._moments.values())


def test_a_disk_is_read_now_and_then_and_one_that_fails_is_left_out(tmp_path: Path) -> None:
    clock, reads = Clock(), []

    def fail(path: Path) -> Space:
        reads.append(path)
        raise OSError("gone")

    disks = Disks({"log": tmp_path}, fail, clock)
    assert [disks.look() for _ in range(5)] == [()] * 5
    assert len(reads) == 1
