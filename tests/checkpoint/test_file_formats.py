"""Files that are cut off or overwritten are recognised from their bytes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.checkpoint.file_formats import end_problem, stream_problem

if TYPE_CHECKING:
    pass


CheckpointOf = Callable[[str], Path]


def test_large_files_are_judged_by_their_end(checkpoint_of: CheckpointOf) -> None:
    delta = (checkpoint_of("counts-hdfs") / "state/0/0/1.delta").read_bytes()
    assert stream_problem(delta, "lz4") is None
    assert end_problem(delta[-21:], "lz4") is None
    assert end_problem(delta[-22:-1], "lz4") == "is cut off"


def test_zstd_files_have_an_end_too() -> None:
    """A frame of one raw block: its magic number, a header, the block `abc`."""
    frame = b"\x28\xb5\x2f\xfd\x20\x03\x19\x00\x00abc"
    assert stream_problem(frame, "zstd") is None
    assert stream_problem(frame * 2, "zstd") is None
    assert stream_problem(frame[:-1], "zstd") == "is cut off"
    assert stream_problem(frame[:7], "zstd") == "is cut off"
    assert stream_problem(b"abc", "zstd") == "is not in zstd format"
