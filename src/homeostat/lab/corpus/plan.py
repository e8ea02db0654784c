"""Determines which runs are recorded: each case is a job with its faults, and each run of a case has a new random
strength and time.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from homeostat.core.errors import ConfigError
from homeostat.lab.corpus.faults import FAULTS

# The length of a run after its first batches. A choice: about 20 batches, a third of them before the fault, are enough
# to see it, and 60 runs take less than an hour.
LENGTH_S = 32.0
# Shares of the length at which a fault begins and ends.
EARLIEST, LATEST = 0.3, 0.45
EARLY_END = 0.8
# The shares of the runs whose fault is there from the start, and of those in which it ends. A choice.
FROM_START, ENDING = 0.2, 0.25
CLEAN = "clean"


@dataclass(frozen=True, slots=True)
class SessionPlan:
    """A Spark application in which several runs take place one after the other."""

    name: str
    executors: int = 3
    memory: str = "640m"
    settings: Mapping[str, str] = field(default_factory=dict)


USUAL = SessionPlan("usual")
# A slow executor stands out only among others. For the other faults two executors are enough.
PAIR = SessionPlan("pair", executors=2)
# A twentieth of the heap for execution: rows that are usually sorted in memory must spill.
TIGHT = SessionPlan("tight", executors=2, memory="512m", settings={"spark.memory.fraction": "0.05"})
# Such a small young generation is full after each large row, and live objects move to the old generation.
SMALL_HEAP = SessionPlan(
    "small-heap", executors=2, memory="512m", settings={"spark.executor.defaultJavaOptions": "-Xmn2m"}
)


@dataclass(frozen=True, slots=True)
class Case:
    """`faults` maps the name of each kind to its weakest and strongest strength."""

    job: str
    faults: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    session: SessionPlan = USUAL

    @property
    def name(self) -> str:
        session = [TIGHT.name] if self.session is TIGHT else []
        return "-".join([*session, self.job, *(self.faults or [CLEAN])])


@dataclass(frozen=True, slots=True)
class PlannedFault:
    kind: str
    strength: float
    at_s: float
    until_s: float


@dataclass(frozen=True, slots=True)
class PlannedRun:
    name: str
    case: Case
    faults: tuple[PlannedFault, ...]
    seed: int


CASES: Sequence[Case] = (
    *(Case(job) for job in ("service", "compute", "keyed")),
    *(Case(job, session=PAIR) for job in ("writing", "state", "shuffle", "join", "pairs", "files")),
    Case("service", {"slow-service": (2.5, 5.0)}),
    Case("service", {"slow-executor": (3.0, 5.0)}),
    Case("service", {"more-load": (2.5, 4.0)}),
    Case("service", {"less-load": (0.05, 0.15)}),
    Case("service", {"small-bound": (0.4, 0.7)}),
    Case("service", {"slow-source": (0.8, 2.5)}),
    Case("service", {"uneven-source": (0.7, 0.9)}),
    Case("service", {"failing-tasks": (0.25, 0.4)}),
    Case("service", {"poison-row": (2.0, 3.0)}),
    Case("service", {"dying-executors": (5.0, 9.0)}),
    Case("service", {"one-partition": (1.0, 1.0)}),
    Case("compute", {"burners": (2.0, 4.0)}),
    Case("compute", {"more-load": (2.0, 3.0)}),
    Case("compute", {"rising-cost": (150.0, 300.0)}),
    Case("compute", {"slow-executor": (3.0, 5.0)}),
    Case("keyed", {"hot-key": (0.5, 0.8)}),
    Case("keyed", {"colliding-keys": (0.5, 0.8)}),
    Case("keyed", {"costly-keys": (6.0, 12.0)}),
    Case("keyed", {"slow-service": (2.5, 5.0)}),
    Case("writing", {"slow-sink": (0.8, 2.5)}, PAIR),
    Case("writing", {"large-plan": (20.0, 60.0)}, PAIR),
    Case("writing", {"large-result": (15_000.0, 50_000.0)}, PAIR),
    Case("writing", {"slow-checkpoint": (0.2, 0.8)}, PAIR),
    Case("state", {"slow-checkpoint": (0.2, 0.8)}, PAIR),
    Case("state", {"slow-state-store": (0.3, 1.0)}, PAIR),
    Case("state", {"planning": (120.0, 220.0)}, PAIR),
    Case("state", {"endless-keys": (1.0, 1.0)}, PAIR),
    Case("state", {"burners": (2.0, 4.0)}, PAIR),
    Case("shuffle", {"many-partitions": (60.0, 130.0)}, PAIR),
    Case("join", {"skewed-join": (300.0, 1_000.0)}, PAIR),
    Case("pairs", {"idle-input": (0.0, 0.0)}, PAIR),
    Case("files", {"small-files-in": (4.0, 8.0)}, PAIR),
    Case("files", {"small-files-out": (20.0, 50.0)}, PAIR),
    Case("files", {"many-directories": (60.0, 200.0)}, PAIR),
    Case("keyed", {"hot-key": (0.5, 0.8), "slow-service": (2.0, 3.0)}),
    Case("writing", {"slow-sink": (1.0, 3.0), "burners": (2.0, 4.0)}, PAIR),
    Case("service", {"more-load": (2.0, 3.0), "slow-executor": (3.0, 5.0)}),
    Case("shuffle", session=TIGHT),
    Case("shuffle", {"large-rows": (600.0, 1200.0)}, TIGHT),
    Case("memory", session=SMALL_HEAP),
    Case("memory", {"garbage": (8_000.0, 20_000.0)}, SMALL_HEAP),
)


def planned_runs(names: Sequence[str], runs: int, seed: int, cases: Sequence[Case] = CASES) -> list[PlannedRun]:
    """The runs of the cases with these names, or of all, with the clean runs of a session first."""
    chosen = [case for case in cases if not names or any(_is_meant(case, name) for name in names)]
    for name in names:
        if not any(_is_meant(case, name) for case in cases):
            valid_names = sorted({word for case in cases for word in (case.job, case.name, *case.faults)})
            raise ConfigError(
                f"unknown job, fault or case {name!r}", where="--only", fix=f"use one of {', '.join(valid_names)}"
            )
    drawn = [_draw(case, number, seed) for case in chosen for number in range(1, runs + 1)]
    order = list(dict.fromkeys(case.session.name for case in cases))
    return sorted(drawn, key=lambda run: (order.index(run.case.session.name), bool(run.faults)))


def by_session(runs: Sequence[PlannedRun]) -> Iterator[tuple[SessionPlan, list[PlannedRun]]]:
    for session in dict.fromkeys(run.case.session.name for run in runs):
        mine = [run for run in runs if run.case.session.name == session]
        yield mine[0].case.session, mine


def _is_meant(case: Case, name: str) -> bool:
    return name in (case.name, case.job, *case.faults) or (name == CLEAN and not case.faults)


def _draw(case: Case, number: int, seed: int) -> PlannedRun:
    name = f"{case.name}-{number}"
    dice = random.Random(f"{seed}/{name}")
    faults = []
    for kind, (weakest, strongest) in case.faults.items():
        strength = dice.uniform(weakest, strongest)
        starts, ends = dice.random(), dice.random()
        at_s = 0.0 if FAULTS[kind].from_start or starts < FROM_START else LENGTH_S * dice.uniform(EARLIEST, LATEST)
        until_s = LENGTH_S * EARLY_END if ends < ENDING and not FAULTS[kind].from_start else LENGTH_S
        rounded = float(f"{strength:.2g}")
        faults.append(PlannedFault(kind, rounded, at_s, until_s))
    return PlannedRun(name, case, tuple(faults), dice.randrange(1, 10_000))
