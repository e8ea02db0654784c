"""The ledger notices every row that is lost, doubled, changed or made up."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from homeostat.core.errors import HomeostatError
from homeostat.lab import ledger
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec

PROFILE = Profile(WorkloadSpec("constant", rate_per_s=10.0), keys=5)


def write_batch(directory: Path, batch_id: int, **columns: Sequence[object]) -> None:
    import pyarrow as pa
    from pyarrow import parquet

    directory.mkdir(exist_ok=True)
    parquet.write_table(pa.table(dict(columns)), directory / f"{batch_id}.parquet")


def write_words(directory: Path, batch_id: int, start: int, stop: int) -> None:
    write_batch(directory, batch_id, row=range(start, stop), word=PROFILE.words(start, stop).tolist())


def test_the_last_update_of_a_word_counts(tmp_path: Path) -> None:
    write_batch(tmp_path, 10, word=["a"], count=[7])
    write_batch(tmp_path, 9, word=["a", "b"], count=[5, 2])
    (tmp_path / ".11.draft").write_text("half a file")
    assert ledger.read_counts(tmp_path) == {"a": 7, "b": 2}


def test_equal_counts_have_no_differences(tmp_path: Path) -> None:
    expected = PROFILE.expected_counts(100)
    write_batch(tmp_path, 0, word=list(expected), count=list(expected.values()))
    assert ledger.check(tmp_path, PROFILE, 100) == []


def test_every_count_that_differs_is_named(tmp_path: Path) -> None:
    expected = PROFILE.expected_counts(100)
    counts = {**expected, "word-0": expected["word-0"] + 1, "stranger": 1}
    del counts["word-4"]
    write_batch(tmp_path, 0, word=list(counts), count=list(counts.values()))
    assert ledger.check(tmp_path, PROFILE, 100) == [
        "'stranger': counted 1 times instead of 0",
        f"'word-0': counted {expected['word-0'] + 1} times instead of {expected['word-0']}",
        f"'word-4': counted 0 times instead of {expected['word-4']}",
    ]


def test_rows_that_all_came_once_have_no_differences(tmp_path: Path) -> None:
    write_words(tmp_path, 0, 0, 60)
    write_words(tmp_path, 1, 60, 100)
    assert ledger.check_rows(tmp_path, PROFILE, 100) == []


def test_every_row_that_differs_is_named(tmp_path: Path) -> None:
    write_words(tmp_path, 0, 0, 50)
    write_words(tmp_path, 1, 49, 97)
    write_batch(tmp_path, 2, row=[97, 120], word=["stranger", "word-0"])
    assert ledger.check_rows(tmp_path, PROFILE, 99) == [
        "row 98: lost",
        "row 49: received 2 times",
        "row 97: received with another word",
        "row 120: not in the profile",
    ]


def test_many_differences_are_shortened(tmp_path: Path) -> None:
    assert ledger.check_rows(tmp_path, PROFILE, 100)[-2:] == ["row 19: lost", "and 80 more"]


def test_committed_rows_are_those_of_the_last_commit(tmp_path: Path) -> None:
    assert ledger.committed_rows(tmp_path) == 0
    for name in ("commits", "offsets"):
        (tmp_path / name).mkdir()
    for batch_id in (0, 9, 10, 11):
        offset = json.dumps({"row": 100 * batch_id, "started_s": 1.5})
        (tmp_path / "offsets" / str(batch_id)).write_text(f'v1\n{{}}\n{{"other": 1}}\n{offset}')
    for name in ("0", "9", "10", ".10.crc"):
        (tmp_path / "commits" / name).write_text("v1\n{}")
    assert ledger.committed_rows(tmp_path) == 1000
    write_words(tmp_path / "ledger", 11, 0, 5)
    assert ledger.recorded_rows(tmp_path / "ledger", tmp_path) == 1100
    (tmp_path / "offsets" / "10").write_text('v1\n{}\n{"other": 1}')
    with pytest.raises(HomeostatError, match="does not read"):
        ledger.committed_rows(tmp_path)
