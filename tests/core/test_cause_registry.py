"""Causes are declared once, and all of them are there as soon as any is used."""

from __future__ import annotations

import subprocess
import sys

import pytest

from homeostat.core.cause_registry import Cause, cause_of, declare, declared_causes
from homeostat.core.errors import ConfigError


def test_every_shipped_cause_is_known_wherever_causes_are_imported() -> None:
    code = "from homeostat.core.causes import cause_of; print(cause_of('sink-bound').title)"
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert process.stdout.strip() == "The sink takes much of the batch"


def test_a_name_that_nobody_declared_gets_an_entry_without_a_remedy() -> None:
    assert cause_of("odd").sentence.format(where="count") == "count has the problem 'odd'"
    assert cause_of("odd") not in declared_causes()


def test_a_cause_is_declared_once() -> None:
    shipped = cause_of("under-provisioned")
    assert declare(shipped) == shipped.name, "the same entry again does no harm"
    with pytest.raises(ConfigError, match="declared twice"):
        declare(Cause("under-provisioned", "{where} is different"))
