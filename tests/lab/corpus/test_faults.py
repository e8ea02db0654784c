"""Every fault is described, and those that change the job change only that."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.lab.corpus.faults import FAULTS
from homeostat.lab.corpus.jobs import JOBS
from homeostat.lab.corpus.switches import strength_of
from support.paths import DOCS


@pytest.mark.parametrize("name", FAULTS)
def test_every_fault_is_documented_with_its_cause(name: str) -> None:
    page = (DOCS / "reference" / "corpus.md").read_text(encoding="utf-8")
    assert f"| `{name}` | `{FAULTS[name].cause}` |" in page


@pytest.mark.parametrize("name", JOBS)
def test_every_job_is_documented(name: str) -> None:
    page = (DOCS / "reference" / "corpus.md").read_text(encoding="utf-8")
    assert f"| `{name}` | " in page


@pytest.mark.parametrize("name", [name for name, kind in FAULTS.items() if kind.from_start])
def test_a_fault_of_configuration_changes_the_shape(name: str) -> None:
    shape = JOBS["service"].shape
    assert FAULTS[name].shape(shape, 7.0) != shape


def test_a_switch_that_was_never_turned_on_is_off(tmp_path: Path) -> None:
    assert strength_of(str(tmp_path / "nothing")) == 0.0
