"""Faults are drawn at random, the same ones for the same seed."""

from __future__ import annotations

from itertools import islice
from random import Random

from homeostat.lab.bench.chaos import FAULTS
from homeostat.lab.chaos.kinds_of_fault import draw


def names(seed: int, count: int) -> list[str]:
    return [kind.name for kind in islice(draw(FAULTS, Random(seed)), count)]


def test_the_seed_decides() -> None:
    assert names(1, 100) == names(1, 100) != names(2, 100)


def test_every_kind_comes_once_before_any_comes_again() -> None:
    kinds = len(FAULTS)
    drawn = names(7, 2 * kinds)
    assert len(set(drawn[:kinds])) == len(set(drawn[kinds:])) == kinds
    assert drawn[:kinds] != drawn[kinds:]
