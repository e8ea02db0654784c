from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.causes import DISK_NEARLY_FULL, cause_of
from homeostat.core.events import Notify
from homeostat.core.findings import Symptom
from homeostat.core.observation import DiskSample
from homeostat.core.symptoms import DISK_SPACE
from homeostat.core.view import View, Window
from homeostat.detectors.disk_space import DiskSpaceDetector
from homeostat.diagnosers.state_risks import StateDiagnoser
from homeostat.policies import registry
from homeostat.testing import Played, play, view_of
from support.state_batches import batches

GB = 1e9


def disk(free_gb: float, total_gb: float = 100.0, full_in_s: float = math.nan) -> DiskSample:
    return DiskSample(("checkpoints", "log"), "/data", free_gb * GB, total_gb * GB, full_in_s)


def symptoms(*disks: DiskSample) -> list[Symptom]:
    view = view_of(batches(4))
    *earlier, latest = view.window.observations
    window = Window((*earlier, replace(latest, disks=disks)))
    return list(DiskSpaceDetector().detect(replace(view, window=window)))


@pytest.mark.parametrize(
    "low",
    [disk(1.5), disk(1.5, 10.0), disk(4.0, 100.0), disk(15.0, 1_000.0), disk(50.0, full_in_s=3_600.0)],
)
def test_little_space_or_soon_none_is_reported(low: DiskSample) -> None:
    (symptom,) = symptoms(disk(60.0), low)
    assert symptom.kind == DISK_SPACE
    assert "/data (checkpoints, log)" in symptom.evidence.summary()
    (diagnosis,) = StateDiagnoser().diagnose(view_of(batches(4)), [symptom])
    assert diagnosis.cause == DISK_NEARLY_FULL
    assert cause_of(diagnosis.cause).alerts


@pytest.mark.parametrize("enough", [disk(60.0), disk(25.0, 1_000.0), disk(50.0, full_in_s=1e6), disk(2.5, 20.0)])
def test_enough_space_is_not(enough: DiskSample) -> None:
    assert symptoms(enough) == []


def test_the_worst_disk_is_reported() -> None:
    (symptom,) = symptoms(disk(1.9), replace(disk(0.1), path="/tmp"))
    assert "/tmp" in symptom.evidence.summary()
    assert symptom.severity > symptoms(disk(1.9))[0].severity


def test_an_engine_that_does_not_know_its_disks_has_no_symptom() -> None:
    view: View = view_of(batches(4))
    assert list(DiskSpaceDetector().detect(view)) == []


def played(*free_gb: float) -> Played:
    observed = [replace(each, disks=(disk(gb),)) for each, gb in zip(batches(len(free_gb)), free_gb, strict=True)]
    return play(registry.build("provisioning", {}), view_of(observed), observed)


def test_the_loop_alerts_once_while_a_disk_stays_low_and_says_when_it_is_over() -> None:
    loop = played(*[60.0] * 6, *[1.5] * 12, *[60.0] * 12)
    (alert,) = [command for command in loop.commands if isinstance(command, Notify)]
    assert alert.title == DISK_NEARLY_FULL
    assert "1,500 MB (2%) are free on /data (checkpoints, log)" in alert.message
    texts = [text for text in loop.texts("diagnosis") if DISK_NEARLY_FULL in text]
    assert len(texts) == 2
    assert "ended" in texts[1]


def test_a_low_disk_changes_nothing_that_the_loop_does() -> None:
    quiet, low = played(*[60.0] * 30), played(*[1.5] * 30)
    assert low.actions == quiet.actions
