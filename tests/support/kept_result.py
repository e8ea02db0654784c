"""A kept result of a bench, without figures."""

from __future__ import annotations

from datetime import date

from homeostat.lab.bench.circumstances import Machine
from homeostat.lab.bench.kept_results import KeptResult

KEPT = KeptResult(
    bench="noise",
    command="homeostat bench noise --days 1",
    measured_on=date(2026, 1, 2),
    took_s=3.5,
    version="0.2.0",
    commit=None,
    seeds={"seeds": 4},
    machine=Machine(2, 8.0, "a processor", "Linux", "3.11.2"),
    result={"engines": {}},
)
