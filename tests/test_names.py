"""The tests as a whole."""

from __future__ import annotations

from collections import Counter
from pathlib import Path


def test_no_two_test_files_have_the_same_name() -> None:
    """`make soak` runs all of them in one process, where each is imported by its bare name."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, count in names.items() if count > 1] == []
