"""What the hooks of `support.ci` do with the test files."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.ci import halves


def test_each_test_file_is_in_one_half(pytestconfig: pytest.Config) -> None:
    first, second = halves(pytestconfig.rootpath).values()
    assert first | second == set((pytestconfig.rootpath / "tests").rglob("test_*.py")) >= {Path(__file__)}
    assert not first & second
    assert abs(len(first) - len(second)) <= 1
