"""The demonstration on real Spark: a load that rises and falls, an executor that becomes slow, and the reactions."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any, Protocol

from homeostat.core.actions import REPLACE, SCALE_DOWN, SCALE_UP
from homeostat.core.errors import HomeostatError
from homeostat.core.loop_state import Mode
from homeostat.core.records import BATCH, Record
from homeostat.lab.demonstration_feed import PARTITIONS, PROFILE, ExperimentFeed, Feed, ledger_of
from homeostat.lab.faults import SlowExecutor, executor_processes
from homeostat.lab.ledger import check_counts
from homeostat.lab.wordcount import NAME, specification, write_app
from homeostat.log_views.following import Follower
from homeostat.log_views.timeline import Change, Point, TakenAction, Timeline, actions_of, points_of
from homeostat.runtime.launch import LEASE, STARTED, SUPERVISOR, Launch, read_json
from homeostat.runtime.lease import Lease
from homeostat.runtime.supervisor import INTERRUPTED, Supervisor

LOG = "log.sqlite"
CHANGE = "change"
WORKERS, CORES = 3, 2  # room for more executors, and another host for a replacement
STATE_PARTITIONS = 2
WARM_BATCHES = 4  # a choice: the first batches are slower than usual, and would look like overload
# The loop acts faster than for a real application, since a demonstration is short. It also takes smaller steps: a small
# machine cannot start four executors and work at the same time.
SETTINGS = """\
policy = "provisioning"

[guards]
largest_change = 2
cooldown = "5 s"
cooldown_shrink = "5 s"
confirm = "5 s"

[loop]
settle = "15 s"
window = "1 min"
patience = "30 s"
catch_up = "3 min"
"""
# Spark's dynamic allocation with its default times.
DYNAMIC_ALLOCATION = {
    "spark.dynamicAllocation.minExecutors": "1",
    "spark.dynamicAllocation.maxExecutors": str(WORKERS * CORES),
    "spark.dynamicAllocation.executorIdleTimeout": "60s",
    "spark.dynamicAllocation.schedulerBacklogTimeout": "1s",
    "spark.dynamicAllocation.sustainedSchedulerBacklogTimeout": "1s",
}


@dataclass(frozen=True, slots=True)
class Plan:
    """The events and their times, in seconds since the plan began. Events after the first can come earlier, unless the
    plan is `fixed`: see `hasten`.

    `load` has pairs (second, rows per second). Two executors can handle the first load; the second needs three."""

    load: tuple[tuple[float, float], ...] = ((0.0, 850.0), (25.0, 1700.0), (130.0, 300.0))
    slow_at_s: float = 80.0
    slow_factor: float = 4.0
    duration_s: float = 202.0
    executors: int = 2
    trigger_s: float = 3.0
    fixed: bool = False

    def load_at(self, at_s: float) -> float:
        return next((rate for from_s, rate in reversed(self.load) if from_s <= at_s), self.load[0][1])

    def hasten(self, actions: Sequence[TakenAction], now_s: float) -> Plan:
        """The plan, with its next event moved to now if the reaction to the previous event has been judged.

        So a fast machine need not wait as long as a slow one.
        """
        if self.fixed:
            return self
        answers = self._answers
        last_s = max((at_s for at_s in answers if at_s <= now_s), default=None)
        if last_s is None or not any(d.kind == answers[last_s] and d.at_s >= last_s and d.verdict for d in actions):
            return self
        next_s = min((at_s for at_s in (*answers, self.duration_s) if at_s > now_s), default=None)

        def move(at_s: float) -> float:
            return now_s if at_s == next_s else at_s

        return replace(
            self,
            load=tuple((move(at_s), rate_per_s) for at_s, rate_per_s in self.load),
            slow_at_s=move(self.slow_at_s),
            duration_s=move(self.duration_s),
        )

    @property
    def _answers(self) -> dict[float, str]:
        """The kind of action that each change should cause, by the time of the change."""
        steps = {at_s: SCALE_UP if after > before else SCALE_DOWN for (_, before), (at_s, after) in pairwise(self.load)}
        return {**steps, self.slow_at_s: REPLACE}

    @property
    def rows_per_trigger(self) -> int:
        """Twice the highest load: enough to catch up, without a batch that takes minutes."""
        return round(2 * self.trigger_s * max(rate for _, rate in self.load))

    @property
    def load_changes(self) -> list[Change]:
        return [
            Change(at_s, f"the load {'rises' if after > before else 'falls'} from {before:,.0f} to {after:,.0f} rows/s")
            for (_, before), (at_s, after) in pairwise(self.load)
        ]


@dataclass(frozen=True, slots=True)
class Variant:
    """A way to run the demonstration: Homeostat, Spark or nobody changes the number of executors."""

    name: str
    title: str
    mode: Mode
    allocation: str = "homeostat"


REGULATED = Variant("demo", "regulated by Homeostat", "regulate")
UNREGULATED = Variant("demo-unregulated", "not regulated", "observe")
SPARKS_OWN = Variant("demo-spark", "Spark's dynamic allocation", "observe", "spark")


class Viewer(Protocol):
    """Shows a performance. `tell` gets a line about the start or the end, `look` is called a few times per second."""

    def tell(self, line: str) -> None: ...

    def look(self, performance: Performance) -> None: ...


class Performance:
    """One run of the plan. Afterwards `plan` has the times at which everything happened.

    `events` has the changes from outside and all records of the loop except batches. `about` is the driver's
    description of itself, once it runs.
    """

    def __init__(
        self,
        plan: Plan,
        variant: Variant,
        home: Path,
        viewer: Viewer,
        feed: Callable[[Path], Feed] = ExperimentFeed,
    ) -> None:
        self.plan, self.variant, self._viewer = plan, variant, viewer
        self.directory = (home / variant.name).resolve()
        self.log = self.directory / LOG
        self._feed = feed(self.directory)
        self.points: list[Point] = []
        self.events: list[Record] = []
        self.about: Mapping[str, Any] = {}
        self.opened_s = time.time()
        self.stopping = False
        self._changes: list[Change] = []
        self._records: list[Record] = []
        self.began_s: float | None = None
        self._slow: SlowExecutor | None = None
        self._follower = Follower(self.log, f"{variant.name}/{NAME}")

    @property
    def elapsed_s(self) -> float | None:
        """Seconds since the plan began; None before."""
        return None if self.began_s is None else time.time() - self.began_s

    def run(self) -> Timeline:
        """Start everything, follow the plan, and stop everything, also after an error."""
        output = self.directory / "logs" / "driver.out"
        supervisor = Supervisor(self._launch(), workers=WORKERS, cores=CORES, say=self._viewer.tell, log=output)
        try:
            code = supervisor.run(lambda: self._moment(supervisor), prepare=self.prepare)
        finally:
            if self._slow is not None:
                self._slow.stop()
            self._follower.close()
            self._feed.stop()
        if code == INTERRUPTED:
            raise KeyboardInterrupt
        if code or self.began_s is None:
            raise HomeostatError(
                f"the driver exited with code {code}: {_last_line(output)}", where="demo", fix=f"see {output}"
            )
        return self._timeline(self.began_s)

    def prepare(self) -> None:
        """Delete the files of an earlier demonstration, and start the feed. The lease files stay: they keep two
        demonstrations from running at once."""
        with Lease(self.directory / LEASE):
            for entry in self.directory.iterdir():
                if entry.is_dir():
                    shutil.rmtree(entry)
                elif entry.name not in (LEASE, SUPERVISOR):
                    entry.unlink()
        self._feed.start(self._viewer.tell)
        plan = self.plan
        spec = specification(
            PROFILE,
            ledger_of(self.directory),
            trigger_s=plan.trigger_s,
            executors=plan.executors,
            source_partitions=PARTITIONS,
            state_partitions=STATE_PARTITIONS,
            rows_per_trigger=plan.rows_per_trigger,
            **self._feed.options,
        )
        write_app(self._app, spec)
        self._settings.write_text(SETTINGS)

    def _launch(self) -> Launch:
        return Launch(
            app=str(self._app),
            master="",
            directory=str(self.directory),
            config=str(self._settings),
            flags={"mode": self.variant.mode, "store": str(self.log)},
            conf=DYNAMIC_ALLOCATION if self.variant == SPARKS_OWN else {},
            allocation=self.variant.allocation,
        )

    def _moment(self, supervisor: Supervisor) -> None:
        self._feed.check()
        if self.began_s is None:
            self._begin()
        else:
            self.go_on(time.time() - self.began_s, self.began_s)
            if time.time() - self.began_s >= self.plan.duration_s:
                supervisor.stop("the plan is done")
        if supervisor.stopping and not self.stopping:
            self.stopping = True
            self._viewer.tell("stopping everything")
        self._viewer.look(self)

    def _begin(self) -> None:
        """Once the query has done a few batches, pass the planned load to its source."""
        self.about = read_json(self.directory / STARTED) or {}
        self._records += self._follower.new()
        if not self.about or sum(record.kind == BATCH for record in self._records) < WARM_BATCHES:
            return
        self.began_s = time.time()
        self._feed.follow(self.plan.load, self.began_s)

    def go_on(self, elapsed_s: float, began_s: float) -> None:
        """Read the log, and carry out the plan for this moment."""
        fresh = self._follower.new()
        self._records += fresh
        self.points += points_of((r for r in fresh if r.at_s > began_s), began_s, self.plan.load_at)
        self.events += [replace(r, at_s=r.at_s - began_s) for r in fresh if r.kind != BATCH]
        self._hasten(elapsed_s, began_s)
        for change in self.plan.load_changes:
            if change.at_s <= elapsed_s and change not in self._changes:
                self._apply_change(change)
        if self._slow is None and elapsed_s >= self.plan.slow_at_s:
            self._slow_down(elapsed_s)

    def _hasten(self, elapsed_s: float, began_s: float) -> None:
        before, self.plan = self.plan, self.plan.hasten(actions_of(self._records, began_s), elapsed_s)
        if self.plan.load != before.load:
            self._feed.follow(self.plan.load, began_s)

    def _apply_change(self, change: Change) -> None:
        self._changes.append(change)
        self.events.append(Record("", CHANGE, change.at_s, change.text))

    def _slow_down(self, elapsed_s: float) -> None:
        """Slow down the oldest running executor."""
        application = self.about["application"]  # never an executor of another application
        running = executor_processes(application)
        if not running:
            return
        victim = min(running, key=int)
        self._slow = SlowExecutor(victim, self.plan.slow_factor, application)
        self._slow.start()
        self._apply_change(Change(elapsed_s, f"executor {victim} becomes {self.plan.slow_factor:g} times slower"))

    def _timeline(self, began_s: float) -> Timeline:
        expected_counts = self._feed.expected_counts()
        changes = sorted(self._changes, key=lambda change: change.at_s)
        return Timeline(
            self.variant.name,
            self.variant.title,
            self.plan.duration_s,
            self.plan.load,
            tuple(self.points),
            tuple(changes),
            actions_of(self._records, began_s),
            sum(expected_counts.values()),
            tuple(check_counts(ledger_of(self.directory), expected_counts)),
        )

    @property
    def _app(self) -> Path:
        return self.directory / "wordcount.py"

    @property
    def _settings(self) -> Path:
        return self.directory / "homeostat.toml"


def perform_each(
    variants: Sequence[Variant], plan: Plan, perform: Callable[[Plan, Variant], Timeline]
) -> list[Timeline]:
    """Runs the variants one after the other.

    If there are several, all get the load and the fault at the times of the plan. If one could hasten it, the others
    would get the next disturbance when that one was ready for it.
    """
    common = replace(plan, fixed=True) if len(variants) > 1 else plan
    return [perform(common, variant) for variant in variants]


def _last_line(path: Path) -> str:
    lines = path.read_text(errors="replace").split("\n") if path.exists() else []
    return next((line.strip() for line in reversed(lines) if line.strip()), "no output")
