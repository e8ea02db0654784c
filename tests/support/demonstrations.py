"""A demonstration that looks as if it had run, without Spark."""

from __future__ import annotations

import math
import time
from pathlib import Path

from homeostat.cli.demo_display import Silent
from homeostat.core.records import Record
from homeostat.lab.demonstration import REGULATED, Performance, Plan
from homeostat.log_views.timeline import Change, Point, TakenAction, Timeline

PLAN = Plan(load=((0.0, 1000.0), (45.0, 2000.0), (160.0, 600.0)), slow_at_s=105.0, duration_s=210.0)


QUIET = Silent(lambda line: None)


def point(at_s: float, pending: float = 1000.0, executors: int = 2) -> Point:
    return Point(at_s, 2.0, PLAN.load_at(at_s), 0.98 * PLAN.load_at(at_s), pending, executors, 1.5, 2.0)


def performance(home: Path) -> Performance:
    """One that looks as if it had run for a hundred seconds."""
    performance = Performance(PLAN, REGULATED, home, QUIET)
    performance.began_s = time.time() - 100.0
    performance.points = [point(2.0 * number) for number in range(1, 49)]
    performance.points += [point(98.0, math.nan), point(100.0, 30_000, 4)]
    performance.events = [
        Record("", "change", 45.0, "the load rises from 1,000 to 2,000 rows/s"),
        Record("s-1", "symptom", 47.0, "pressure at scan", "scan", body={"symptom": "pressure"}),
        Record("s-2", "symptom", 47.0, "unknown (detector idle)", body={"symptom": "unknown"}),
        Record("d-1", "diagnosis", 47.0, "scan is under-provisioned (probability 0.90)", "scan"),
        Record("a-1", "action", 47.0, "scale-up: executors.app = 4", "scan"),
        Record("e-1", "diagnosis", 60.0, "under-provisioned ended after 13 s", "scan", body={"over": True}),
    ]
    return performance


def timeline(title: str = "regulated by Homeostat", *, differences: tuple[str, ...] = ()) -> Timeline:
    points = tuple(point(2.0 * n, 30_000 if 46 <= 2 * n < 60 else 1000, 2 + (2 * n > 50)) for n in range(1, 106))
    deeds = (
        TakenAction("a-1", 47.0, "scale-up", "scale-up: executors.app = 4", "under-provisioned", 9.0, "helped"),
        TakenAction("a-2", 190.0, "scale-down", "scale-down: executors.app = 1", "over-provisioned", None, ""),
    )
    changes = (*PLAN.load_changes[:1], Change(105.0, "executor 0 becomes 4 times slower"), *PLAN.load_changes[1:])
    return Timeline("demo", title, 210.0, PLAN.load, points, changes, deeds, 290_000, differences)


SHORT = Plan(load=((0.0, 300.0), (20.0, 600.0)), slow_at_s=25.0, duration_s=45.0)
