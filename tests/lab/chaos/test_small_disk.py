"""A disk that can be full."""

from __future__ import annotations

import os
from pathlib import Path

from homeostat.lab.chaos.small_disk import SmallDisk


def test_a_disk_of_its_own_is_full_until_it_is_cleared_and_gone_afterwards(tmp_path: Path) -> None:
    place = tmp_path / "log"
    with SmallDisk(place) as disk:
        (place / "log.sqlite").write_text("kept")
        if disk.mounted:
            disk.fill()
            assert os.statvfs(place).f_bavail == 0
            disk.clear()
            assert os.statvfs(place).f_bavail > 0
            assert disk.how == "a file system of 64m"
        else:
            assert disk.how == "a limit on the size of files"
    assert not os.path.ismount(place)
    assert [file.name for file in place.iterdir()] == ["log.sqlite"], "what was on it stays there"
    assert (place / "log.sqlite").read_text() == "kept"
    assert list(tmp_path.iterdir()) == [place]
