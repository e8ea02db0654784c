"""The settings for the next driver: of this version, of the one before, of a newer one, and damaged."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.runtime.knobs_file import read_knobs, write_knobs

OLD_KNOBS = Path(__file__).parents[1] / "recorded" / "version-0.1.0" / "knobs.json"
KNOBS = {"executors": {"counting": 4}, "values": {"trigger_s.counting": 10.0, "state_partitions.counting": 16}}


def silent(line: str) -> None:
    raise AssertionError(line)


def test_what_was_written_is_read_again(tmp_path: Path) -> None:
    assert read_knobs(tmp_path / "knobs.json", silent) == {}
    write_knobs(tmp_path / "knobs.json", KNOBS)
    assert read_knobs(tmp_path / "knobs.json", silent) == KNOBS


def test_a_file_of_version_0_1_0_is_taken_over(tmp_path: Path) -> None:
    path = Path(shutil.copy(OLD_KNOBS, tmp_path))
    assert "format" not in json.loads(path.read_text())
    assert read_knobs(path, silent) == KNOBS


def test_a_file_of_a_newer_version_is_refused_and_not_changed(tmp_path: Path) -> None:
    path = tmp_path / "knobs.json"
    path.write_text('{"format": 9, "executors": 3}')
    with pytest.raises(ConfigError, match="a newer Homeostat wrote these settings") as refused:
        read_knobs(path, silent)
    assert (refused.value.exit_code, path.read_text()) == (2, '{"format": 9, "executors": 3}')


@pytest.mark.parametrize(
    "text",
    [
        "{",
        "[]",
        '{"executors": {"counting": 0}}',
        '{"executors": {"counting": "many"}}',
        '{"values": {"trigger_s.counting": "soon"}}',
        '{"values": [1]}',
    ],
)
def test_a_damaged_file_is_set_aside_and_the_application_starts_without_it(tmp_path: Path, text: str) -> None:
    path, lines = tmp_path / "knobs.json", list[str]()
    path.write_text(text)
    assert read_knobs(path, lines.append) == {}
    assert not path.exists()
    assert (tmp_path / "knobs.json.set-aside").read_text() == text
    assert len(lines) == 1
