"""Labels are written and read back exactly; anything that is not a label is refused with its line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.corpus.labels import LABELS, LEAST_EFFECTS, InjectedFault, Label, read_labels, write_labels

FAULT = InjectedFault(
    cause="sink-bound",
    component="",
    at_batch=9,
    until_batch=20,
    at_s=1000.5,
    until_s=1030.0,
    strength=2.0,
    effect=0.6,
    measure="batch time",
    before_s=0.8,
    during_s=2.0,
)
LABEL = Label(
    run="writing-slow-sink-1",
    log="writing-slow-sink-1.zstd",
    job="writing",
    spark_version="4.3.0",
    trigger_s=2.0,
    executors=3,
    slots=3,
    batches=21,
    began_s=990.0,
    ended_s=1032.0,
    others_cpu=0.1,
    faults=(FAULT,),
    seed=7,
)
CLEAN = replace(LABEL, run="service-clean-1", log="service-clean-1.zstd", faults=())


def test_labels_are_read_back_as_they_were_written(tmp_path: Path) -> None:
    write_labels(tmp_path, [LABEL, CLEAN])
    assert read_labels(tmp_path) == (CLEAN, LABEL)
    assert (CLEAN.clean, LABEL.clean) == (True, False)


def test_a_fault_without_effect_is_no_case() -> None:
    weak = replace(FAULT, effect=LEAST_EFFECTS[FAULT.measure] / 2)
    assert replace(LABEL, faults=(FAULT, weak)).cases == (FAULT,)


def changed(**changes: Any) -> dict[str, Any]:
    return {**LABEL.as_json(), **changes}


def with_fault(**changes: Any) -> dict[str, Any]:
    values = LABEL.as_json()
    return {**values, "faults": [{**values["faults"][0], **changes}]}


@pytest.mark.parametrize(
    ("values", "complaint"),
    [
        (changed(colour="red"), "the key 'colour' is unknown"),
        ({name: value for name, value in changed().items() if name != "seed"}, "the key 'seed' is missing"),
        (changed(trigger_s="2"), "trigger_s = '2' must be a number"),
        (changed(executors=2.5), "executors = 2.5 must be a whole number"),
        (changed(job=3), "job = 3 must be text"),
        (changed(clean=True), "clean = True, but it has 1 faults"),
        (changed(faults="none"), "is not a list"),
        (with_fault(cause="gremlins"), "unknown cause 'gremlins'"),
        (with_fault(measure="mood"), "unknown measure 'mood'"),
        (with_fault(effect=1.5), "effect = 1.5 must be between 0 and 1"),
    ],
)
def test_what_is_not_a_label_is_refused(tmp_path: Path, values: dict[str, Any], complaint: str) -> None:
    (tmp_path / LABELS).write_text(json.dumps(CLEAN.as_json()) + "\n" + json.dumps(values) + "\n")
    with pytest.raises(ConfigError, match=r"labels\.jsonl:2: not a label") as refused:
        read_labels(tmp_path)
    assert complaint in refused.value.line


def test_two_labels_of_one_run_are_refused(tmp_path: Path) -> None:
    (tmp_path / LABELS).write_text((json.dumps(CLEAN.as_json()) + "\n") * 2)
    with pytest.raises(ConfigError, match="has two labels"):
        read_labels(tmp_path)


def test_a_directory_without_labels_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="has no labels"):
        read_labels(tmp_path)
