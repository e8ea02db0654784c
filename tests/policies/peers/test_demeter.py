"""Demeter sizes for the forecast load, so that latency and recovery hold, and goes to the default if latency is bad."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.observation import Observation
from homeostat.policies.peers import DemeterSettings, demeter
from support.one_thought import chain, only, proposed_values, think

# Every size from 1 to 24, and the smallest valid one of them.
FINE = DemeterSettings(step=1, least_share=0.01, spare=1.0, segment=0.0, buffer=1.0)


def at(
    arrival_per_s: float, settings: DemeterSettings = FINE, size: int = 10, ticks: int = 70, waiting: float = 0.0
) -> float:
    """What is proposed for instances of 200 rows/s each; the size if nothing is. Rows wait in the last minute."""

    def late(observation: Observation) -> Observation:
        if observation.batch < ticks - 6:
            return observation
        return replace(observation, flows=(replace(observation.flows[0], pending_rows=waiting),))

    trace = think(demeter(settings), chain(size, 5.0), arrival_per_s=arrival_per_s, ticks=ticks, damage=late)
    return proposed_values(trace).get("parallelism.count", size)


def test_a_configuration_is_kept_for_ten_minutes() -> None:
    assert at(400.0, ticks=59) == 10
    assert at(400.0, ticks=61) == 3


def test_the_smallest_size_that_recovers_in_time_is_chosen() -> None:
    """1.25 · (30 + 40 · u ÷ (1 − u)) ≤ 180 holds up to a utilisation of 0.74."""
    assert at(2_000.0) == 14
    assert at(2_000.0, replace(FINE, margin=1.0)) == 13
    assert at(2_000.0, replace(FINE, recovery_s=1e9)) == 11


def test_the_load_is_planned_with_a_buffer_and_rounded_up_to_a_segment() -> None:
    """Steadily 2,000: the segments begin there, so the buffer leads into the first one, of 600 rows/s."""
    assert at(2_000.0, replace(FINE, buffer=1.1)) == 15
    assert at(2_000.0, replace(FINE, buffer=1.1, segment=0.3)) == 18


def test_scale_outs_are_four_apart_and_not_below_a_third_of_the_default() -> None:
    assert at(2_000.0, DemeterSettings()) == 24
    assert at(400.0, DemeterSettings(), size=20) == 12
    assert at(400.0, replace(DemeterSettings(), spare=1.0), size=20) == 8


def test_a_gain_of_one_in_twenty_is_not_worth_a_change() -> None:
    assert at(2_700.0, size=20) == 20
    assert at(2_700.0, replace(FINE, least_gain=0.0), size=20) == 19


def test_a_load_that_no_size_holds_gets_the_default() -> None:
    assert at(9_000.0) == 24
    assert at(9_000.0, replace(FINE, largest=16)) == 16


def test_bad_latency_leads_to_the_default_whatever_the_load() -> None:
    """10 s and 8 s of waiting rows are below 2.14 times the lowest latency, 10 s and 15 s above."""
    assert at(1_000.0, waiting=8_000.0) == 7
    assert at(1_000.0, waiting=15_000.0) == 24
    evidence = only(think(demeter(FINE), chain(10, 5.0), arrival_per_s=2_000.0, ticks=70)).because[0].evidence
    assert evidence.figures()["true rate_per_s"] == pytest.approx(200.0)
