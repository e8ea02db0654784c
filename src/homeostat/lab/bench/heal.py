"""Measures whether slow executors are replaced, how soon, and whether healthy ones are left alone."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median, quantiles
from typing import Any

from homeostat.core.actions import REPLACE
from homeostat.core.errors import HomeostatError
from homeostat.core.objective import Objective
from homeostat.core.records import BATCH, ActionContent, ReceiptContent, Record, with_content
from homeostat.lab.bench.ground import ground, machine
from homeostat.lab.bench.intervals import share
from homeostat.lab.bench.trial_log import action_kinds, batches_after, settled_since_s
from homeostat.lab.experiment import Trial
from homeostat.lab.faults import SlowExecutor
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import specification
from homeostat.sim.scenario.spec import WorkloadSpec

RUNS = 20
FACTORS = (2.0, 4.0)
CLEAN = 1.0
PROMPT = 5
# A run ends when the slow executor is replaced, or after this many batches. A clean run always lasts that long.
LONGEST = 12
SETTLED = 2
EXECUTORS, PARTITIONS = 4, 16
TRIGGER_S, LOAD_PER_S, WAIT_MS = 4.0, 1_000.0, 1.0
# All runs have equally many executors. Without this limit the loop would fill the cluster when the machine is busy with
# something else for a minute, and would not shrink it again.
OBJECTIVE = Objective(cost_limit=EXECUTORS)
# Faster than for a real application, so that many runs fit into an hour.
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "guards": {"cooldown": "4 s", "cooldown_shrink": "1 h", "confirm": "1 h"},
    "loop": {"settle": "12 s", "window": "1 min", "patience": "30 s", "catch_up": "30 s"},
}
# The longest time for a run and the pause before the next.
LONGEST_RUN_S = 300.0
TELL_EACH_S = 60.0


@dataclass(frozen=True, slots=True)
class Run:
    """A part of the application's time in which one executor is `factor` times slower, or none (`CLEAN`)."""

    factor: float
    started_s: float
    ended_s: float
    slow: str = ""


@dataclass(frozen=True, slots=True)
class Result:
    """How many batches ended between the slowdown and the decision to replace the executor, and until it was replaced.

    None if that did not happen.
    """

    factor: float
    executor: str
    decided: int | None
    replaced: int | None


def measure(
    *,
    runs: int = RUNS,
    factors: Sequence[float] = FACTORS,
    seed: int = 1,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The numbers of `homeostat bench heal`."""
    before = machine()
    plan = plan_runs(runs, factors, seed)
    tell(f"starting a cluster; {len(plan)} runs take about {len(plan)} minutes")
    with ground("bench-heal", EXECUTORS) as here:
        spec = specification(
            Profile(WorkloadSpec("constant", LOAD_PER_S)),
            here.directory / "ledger",
            OBJECTIVE,
            wait_ms=WAIT_MS,
            trigger_s=TRIGGER_S,
            executors=EXECUTORS,
            source_partitions=PARTITIONS,
        )
        trial = Trial(here.spark, here.directory / "heal", spec, settings=SETTINGS)
        course = Course(plan, random.Random(seed), tell)
        try:
            result = trial.run(LONGEST_RUN_S * len(plan), until=lambda _: course.is_over, each=course.look)
        finally:
            course.stop()
    if not course.is_over:
        raise HomeostatError(f"only {len(course.runs)} of {len(plan)} runs were completed", where="bench heal")
    return {
        **summary(course.runs, result.records, factors),
        "seed": seed,
        "differences": list(result.differences),
        "setup": {
            "executors": EXECUTORS,
            "cost_limit": OBJECTIVE.cost_limit,
            "trigger_s": TRIGGER_S,
            "load_per_s": LOAD_PER_S,
            "wait_ms_a_row": WAIT_MS,
            "source_partitions": PARTITIONS,
            "longest_run_batches": LONGEST,
            "settings": SETTINGS,
        },
        "machine": {"before": before, "after": machine()},
    }


def plan_runs(runs: int, factors: Sequence[float], seed: int) -> list[float]:
    """The factor of each run, in random order, so that no factor gains from slow changes of the machine."""
    plan = [factor for factor in (*factors, CLEAN) for _ in range(runs)]
    random.Random(seed).shuffle(plan)
    return plan


@dataclass
class Course:
    """Goes through the planned runs one at a time, each from a settled state. Call `look` a few times a second."""

    plan: list[float]
    chance: random.Random
    tell: Callable[[str], None]
    runs: list[Run] = field(default_factory=list)
    _factor: float = CLEAN
    _slow: str = ""
    _since_s: float | None = None
    _fault: SlowExecutor | None = None
    _minutes_reported: int = 0

    @property
    def is_over(self) -> bool:
        return len(self.runs) == len(self.plan)

    def look(self, trial: Trial) -> None:
        if self.is_over:
            return
        if self._since_s is None:
            if has_settled(trial.records(), self._quiet_since_s(trial), TRIGGER_S) and self._complete(trial):
                self._begin(trial)
            else:
                self._tell_of_waiting(trial)
        elif over(trial.records(), self._since_s, self._slow):
            self._end(trial)

    def stop(self) -> None:
        if self._fault is not None:
            self._fault.stop()
            self._fault = None

    def _quiet_since_s(self, trial: Trial) -> float:
        return max(trial.started_s, self.runs[-1].ended_s if self.runs else 0.0)

    def _tell_of_waiting(self, trial: Trial) -> None:
        """Tell the user why nothing happens: on a machine that is too busy, the application never settles."""
        minutes = int((time.time() - self._quiet_since_s(trial)) / TELL_EACH_S)
        if minutes > self._minutes_reported:
            took = [f"{batch.seconds:.1f}" for batch in batches_after(trial.records(BATCH), -math.inf)[-SETTLED:]]
            self.tell(f"waiting for {SETTLED} batches within {TRIGGER_S:g} s each; the last: {', '.join(took)}")
        self._minutes_reported = minutes

    def _complete(self, trial: Trial) -> bool:
        return len(trial.application.sensors.workers().ids) >= EXECUTORS

    def _begin(self, trial: Trial) -> None:
        self._factor, self._slow = self.plan[len(self.runs)], ""
        if self._factor != CLEAN:
            self._slow = self.chance.choice(sorted(trial.application.sensors.workers().ids, key=int))
            self._fault = SlowExecutor(self._slow, self._factor, str(trial.spark.sparkContext.applicationId))
            self._fault.start()
        self._since_s = time.time()

    def _end(self, trial: Trial) -> None:
        assert self._since_s is not None
        self.stop()
        run = Run(self._factor, self._since_s, time.time(), self._slow)
        self.runs.append(run)
        self._since_s = None
        self.tell(f"run {len(self.runs)} of {len(self.plan)}: {_run_text(run, trial.records())}")


def has_settled(records: Sequence[Record], since_s: float, trigger_s: float) -> bool:
    """Whether no action is under way or unjudged, and the last batches kept up."""
    last_change_s = settled_since_s(records)
    if last_change_s is None:
        return False
    recent = batches_after(records, max(since_s, last_change_s))[-SETTLED:]
    return len(recent) == SETTLED and all(batch.seconds <= trigger_s for batch in recent)


def over(records: Sequence[Record], since_s: float, slow: str) -> bool:
    is_replaced = slow and _replacement(records, since_s, slow)[1] is not None
    return bool(is_replaced) or _batches(records, since_s, float("inf")) >= LONGEST


def result_of(run: Run, records: Sequence[Record]) -> Result:
    decided_s, replaced_s = _replacement(records, run.started_s, run.slow, run.ended_s)
    return Result(
        run.factor,
        run.slow,
        None if decided_s is None else _batches(records, run.started_s, decided_s),
        None if replaced_s is None else _batches(records, run.started_s, replaced_s),
    )


def false_replacements(runs: Sequence[Run], records: Sequence[Record]) -> list[str]:
    """Every executor that the loop decided to replace while it was as fast as the others.

    An executor that was slow before is not counted, because earlier measurements were evidence against it.
    """
    wrong = []
    for record, action in _replacements(records):
        slow = {run.slow for run in runs if run.started_s <= record.at_s}
        wrong += [executor for executor in action.retire if executor not in slow]
    return wrong


def summary(runs: Sequence[Run], records: Sequence[Record], factors: Sequence[float]) -> dict[str, Any]:
    results = [result_of(run, records) for run in runs]
    wrong = false_replacements(runs, records)
    clean = [run for run in runs if run.factor == CLEAN]
    clean_with_replacement = sum(any(_during(run, record) for record, _ in _replacements(records)) for run in clean)
    kinds = action_kinds(records)
    retired_count = sum(len(action.retire) for _, action in with_content(records, ActionContent))
    return {
        "slowed": {f"{factor:g}": _healing_json([r for r in results if r.factor == factor]) for factor in factors},
        "clean_runs_with_a_replacement": share(clean_with_replacement, len(clean)),
        "false_replacements": share(len(wrong), retired_count),
        "falsely_replaced": wrong,
        "actions": {kind: kinds.count(kind) for kind in sorted(set(kinds))},
        "batches": sum(record.kind == BATCH for record in records),
    }


def _healing_json(results: Sequence[Result]) -> dict[str, Any]:
    until_decided = [result.decided for result in results if result.decided is not None]
    until_replaced = [result.replaced for result in results if result.replaced is not None]
    return {
        "healed": share(len(until_replaced), len(results)),
        f"healed_within_{PROMPT}": share(sum(count <= PROMPT for count in until_replaced), len(results)),
        "batches_until_decided": _spread_json(until_decided),
        "batches_until_replaced": _spread_json(until_replaced),
    }


def _spread_json(counts: Sequence[int]) -> dict[str, Any]:
    p90 = quantiles(counts, n=10, method="inclusive")[-1] if len(counts) > 1 else None
    return {"median": median(counts) if counts else None, "p90": p90, "each": list(counts)}


def _replacement(
    records: Sequence[Record], since_s: float, executor: str, until_s: float = float("inf")
) -> tuple[float | None, float | None]:
    """When the loop decided to replace the executor, and when the replacement took effect."""
    applied_s = {
        receipt.action: record.at_s for record, receipt in with_content(records, ReceiptContent) if receipt.applied
    }
    for record, action in _replacements(records):
        if executor in action.retire and since_s <= record.at_s <= until_s:
            return record.at_s, applied_s.get(record.id)
    return None, None


def _replacements(records: Sequence[Record]) -> Iterator[tuple[Record, ActionContent]]:
    return (each for each in with_content(records, ActionContent) if each[1].action_kind == REPLACE)


def _batches(records: Sequence[Record], since_s: float, until_s: float) -> int:
    return sum(record.kind == BATCH and since_s < record.at_s <= until_s for record in records)


def _during(run: Run, record: Record) -> bool:
    return run.started_s <= record.at_s <= run.ended_s


def _run_text(run: Run, records: Sequence[Record]) -> str:
    if run.factor == CLEAN:
        return "clean"
    result = result_of(run, records)
    outcome = "not replaced" if result.replaced is None else f"replaced after {result.replaced} batches"
    return f"executor {run.slow} {run.factor:g} times slower: {outcome}"
