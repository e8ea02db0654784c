"""Savepoints are looked at every few minutes."""

from __future__ import annotations

from pathlib import Path

from homeostat.spark.sense.savepoint_watch import EVERY_S, SavepointWatch


def savepoint(location: Path, name: str) -> None:
    place = Path(f"{location}.savepoints") / name
    place.mkdir(parents=True)
    (place / "manifest.json").write_text("{}")


def test_a_new_savepoint_is_seen_at_the_next_look(tmp_path: Path) -> None:
    now_s, location = [0.0], tmp_path / "words"
    watch = SavepointWatch(clock=lambda: now_s[0])
    counts = []
    for number in range(3):
        savepoint(location, f"batch-{number}")
        sample = watch.look(str(location))
        assert sample is not None
        counts.append(sample.count)
        now_s[0] += EVERY_S / 2
    assert counts == [1, 1, 3]


def test_each_checkpoint_has_its_own_savepoints(tmp_path: Path) -> None:
    watch = SavepointWatch()
    savepoint(tmp_path / "words", "batch-1")
    samples = [watch.look(str(tmp_path / name)) for name in ("words", "clicks")]
    assert [sample.count for sample in samples if sample is not None] == [1, 0]
    assert watch.look("s3a://bucket/words") is None
    assert watch.look("") is None
