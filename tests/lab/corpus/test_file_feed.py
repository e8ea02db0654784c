"""Files arrive with the rows that they should have, each row once, also when files become smaller."""

from __future__ import annotations

import json
from pathlib import Path

from homeostat.lab.corpus.file_feed import FileFeed


def test_every_row_arrives_once(tmp_path: Path) -> None:
    directory = tmp_path / "in"
    with FileFeed(directory, rate_per_s=100_000, rows_per_file=50) as feed:
        while len(list(directory.glob("*.json"))) < 4:
            pass
        feed.rows_per_file = 5
        while not any(len(path.read_text().splitlines()) == 5 for path in directory.glob("[0-9]*.json")):
            pass
    files = sorted(directory.glob("[0-9]*.json"), key=lambda path: int(path.stem))
    sizes = [len(path.read_text().splitlines()) for path in files]
    assert set(sizes) == {50, 5}
    rows = [json.loads(line)["row"] for path in files for line in path.read_text().splitlines()]
    assert rows == list(range(len(rows)))
