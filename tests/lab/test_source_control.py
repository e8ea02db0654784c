"""The control file of the experiment source, and the checks of its options."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.load_profile import Profile
from homeostat.lab.source_control import (
    Control,
    ControlFile,
    Feed,
    add_load_step,
    write_control,
)
from homeostat.sim.scenario.spec import WorkloadSpec

STEADY = Profile(WorkloadSpec("constant", rate_per_s=100.0), keys=50)
# 3,000 rows, long ago: what has arrived does not depend on when the test runs.
FINISHED = Profile(WorkloadSpec("steps", steps=((0.0, 1000.0), (3.0, 0.0))), keys=50)
LONG_AGO_S = 1_000_000_000.0


@pytest.fixture
def control(tmp_path: Path) -> Path:
    return tmp_path / "control.json"


def test_control_keeps_what_is_not_given(control: Path) -> None:
    write_control(control, rows_per_trigger=500)
    write_control(control, load=[(10, 2)])
    assert ControlFile(str(control)).read() == Control(500, ((10.0, 2.0),))
    write_control(control, rows_per_trigger=float("inf"))
    assert ControlFile(str(control)).read() == Control(0, ((10.0, 2.0),))
    write_control(control, first_share=0.5)
    assert ControlFile(str(control)).read() == Control(0, ((10.0, 2.0),), 0.5)
    assert list(control.parent.iterdir()) == [control]


def test_load_steps_add_up(control: Path) -> None:
    for from_s, factor in ((10.0, 2.0), (20.0, 0.5), (15.0, 3.0)):
        add_load_step(control, from_s, factor)
    assert ControlFile(str(control)).read().load == ((10.0, 2.0), (15.0, 3.0))


@pytest.mark.parametrize(
    "text",
    [
        *("", "{", "[]", '{"rows_per_trigger": -1}', '{"rows_per_trigger": "many"}', '{"load": [[5]]}', '{"load": 3}'),
        *('{"first_share": 2}', '{"first_share": "most"}', '{"first_share": []}'),
    ],
)
def test_a_garbled_or_missing_control_file_changes_nothing(control: Path, text: str) -> None:
    followed = ControlFile(str(control))
    assert followed.read() == Control()
    write_control(control, rows_per_trigger=7)
    assert followed.read() == Control(7)
    control.write_text(text)
    assert followed.read() == Control(7)
    control.unlink()
    assert followed.read() == Control(7)


def test_control_refuses_a_load_that_makes_no_sense(control: Path) -> None:
    with pytest.raises(ValueError, match="load"):
        write_control(control, load=[(0, float("nan"))])
    assert not control.exists()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "profile"),
        ({"partitions": "0"}, "partitions"),
        ({"rowsPerTrigger": "-5"}, "rowsPerTrigger"),
        ({"start": "noon"}, "start"),
        ({"firstShare": "1.5"}, "firstShare"),
        ({"firstShare": "most"}, "firstShare"),
    ],
)
def test_options_are_checked(options: dict[str, str], message: str) -> None:
    all_options = {"profile": STEADY.to_json(), **options} if options else {}
    with pytest.raises(ConfigError, match=message):
        Feed.from_options(all_options)
