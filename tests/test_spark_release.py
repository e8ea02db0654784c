"""Versions of Spark compare by number."""

from __future__ import annotations

import pytest

from homeostat.spark_release import release


@pytest.mark.parametrize(
    ("version", "numbers"),
    [("4.3.0", (4, 3)), ("3.5.1-amzn-0", (3, 5)), ("4.0.0-preview2", (4, 0)), ("4.10.0", (4, 10))],
)
def test_only_the_first_two_numbers_count(version: str, numbers: tuple[int, ...]) -> None:
    assert release(version) == numbers


def test_a_later_release_is_greater() -> None:
    assert release("4.10.0") > release("4.9.2") > release("3.5.0")
