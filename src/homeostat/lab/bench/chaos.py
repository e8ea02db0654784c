"""Injects random faults into an application that `homeostat run` has started, and checks that it recovers each time."""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from math import inf
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.lab.bench.ground import machine
from homeostat.lab.chaos import deployment as setup
from homeostat.lab.chaos.deployment import Deployment
from homeostat.lab.chaos.kinds_of_fault import FaultKind, Injection, InjectionError, draw
from homeostat.lab.chaos.manager_faults import manager_faults
from homeostat.lab.chaos.process_faults import process_faults
from homeostat.lab.chaos.processes import describe
from homeostat.lab.chaos.small_disk import SmallDisk
from homeostat.lab.chaos.tally import so_far, summary
from homeostat.lab.chaos.trial import Trial
from homeostat.lab.ledger import committed_rows, last_batch, recorded_rows
from homeostat.lab.row_ledger import RowDifferences, RowLedger
from homeostat.strict.toml_reading import nearest

FAULTS: tuple[FaultKind, ...] = (*process_faults(), *manager_faults())
MINUTES = 30.0
NEW_BATCHES = 2
START_LIMIT_S = 600.0
GONE_LIMIT_S = 60.0
TIME_IS_UP, INTERRUPTED = "time is up", "interrupted"
CALM_S = 5.0  # the longest quiet time between two faults: the next fault may hit a loop that has hardly settled


@dataclass
class Course:
    """Injects one fault after the other, and waits each time until the application has recovered."""

    deployment: Deployment
    seed: int
    tell: Callable[[str], None]
    trials: list[Trial] = field(default_factory=list)
    injection_errors: list[str] = field(default_factory=list)
    cut_off: list[Trial] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.chance = Random(self.seed)
        self._rows = RowLedger(self.deployment.ledger)

    def begin(self) -> None:
        self.deployment.start()
        if not self._recovers(Injection(""), START_LIMIT_S):
            lines = " / ".join(self.deployment.last_lines())
            raise HomeostatError(f"the application did not start: {self._lack()}; {lines}", where="bench chaos")

    def strike(self, kind: FaultKind) -> None:
        began_s = time.monotonic()
        try:
            trial = self._trial(kind, began_s)
        except (InjectionError, OSError) as error:
            self.injection_errors.append(f"{kind.name}: {error}")
            self.tell(f"{kind.name} could not be injected: {error}")
            return
        except KeyboardInterrupt:
            self.cut_off.append(Trial(kind.name, began_s, "", None, over_s=inf))
            raise
        self.trials.append(trial)
        self.tell(f"{len(self.trials)}. {kind.name} ({trial.detail}): {_outcome(trial)}")
        self.tell(so_far(self.trials, self.deployment.log.actions, self._differences_so_far()))
        if trial.recover_s is None:
            self._start_anew()

    def _trial(self, kind: FaultKind, began_s: float) -> Trial:
        deployment = self.deployment
        exits = len(deployment.exits)
        injection = kind.inject(deployment, self.chance)
        ended_s = deployment.clock()
        recovered = self._recovers(injection, kind.limit_s)
        recover_s = deployment.clock() - ended_s if recovered else None
        failure = injection.failure
        if not recovered:
            lack = self._lack() or ("" if injection.holds() else "the requested value is not in effect")
            failure = "; ".join(filter(None, (failure, lack or "no new batches or records", *deployment.last_lines())))
        exits = len(deployment.exits) - exits
        over_s = time.monotonic()
        return Trial(kind.name, began_s, injection.detail, recover_s, failure, exits, over_s, injection.executor)

    def _start_anew(self) -> None:
        """Start the command again. The consequences of the restart count as those of the fault."""
        try:
            self.deployment.kill()
            self.begin()
        finally:
            self.trials[-1] = replace(self.trials[-1], over_s=time.monotonic())

    def _differences_so_far(self) -> RowDifferences:
        deployment = self.deployment
        deployment.handed_out.look()
        committed, ends = deployment.commits(), deployment.handed_out.ends
        self._rows.read(ends, committed)
        return self._rows.differences(ends.get(committed, 0))

    def _recovers(self, injection: Injection, limit_s: float) -> bool:
        """Whether all processes run again and the manager has seen newly committed batches, according to the files of
        the application.
        """
        deployment = self.deployment
        until_s = deployment.patience() + limit_s

        def left_s() -> float:
            return max(0.0, until_s - deployment.patience())

        if not deployment.wait(lambda: not deployment.missing() and injection.holds(), left_s()):
            return False
        deployment.log.look()
        commits, logged = deployment.commits(), deployment.log.batches

        def goes_on() -> bool:
            return deployment.commits() >= commits + NEW_BATCHES and deployment.log.batches > logged

        return deployment.wait(goes_on, left_s()) and deployment.wait(
            lambda: not deployment.missing() and injection.holds(), left_s()
        )

    def _lack(self) -> str:
        return self.deployment.missing()


def measure(
    *,
    minutes: float = MINUTES,
    seed: int = 1,
    kinds: Sequence[FaultKind] = FAULTS,
    most: int | None = None,
    directory: Path | None = None,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The numbers of `homeostat bench chaos`. With a directory, all files are kept there."""
    before = machine()
    with _home(directory) as home, SmallDisk(home / "log") as disk:
        deployment = Deployment(home, disk)
        course = Course(deployment, seed, tell)
        with deployment.proxy, _terminated_as_interrupted():
            try:
                ended = _take_course(course, kinds, minutes, most)
                code, leftovers = _end(course)
            finally:
                deployment.kill()
        actions, differences = deployment.log.actions, _differences(deployment)
        return {
            "seed": seed,
            "ended": ended,
            **summary(course.trials, actions, differences, leftovers=leftovers, cut_off=course.cut_off),
            "not_injected": course.injection_errors,
            "exit_code": code,
            "full_disk": disk.how,
            "setup": _setup_json(minutes),
            "machine": {
                "before": before,
                "after": machine(),
                "processor_share": round(deployment.patience.mean_share, 2),
            },
        }


def kinds_named(names: Sequence[str]) -> tuple[FaultKind, ...]:
    """The kinds of fault with these names, or all if there is no name."""
    by_name = {kind.name: kind for kind in FAULTS}
    for name in names:
        if name not in by_name:
            raise ConfigError(f"unknown fault {name!r}", where="--only", fix=nearest(name, list(by_name)))
    return tuple(by_name[name] for name in names) or FAULTS


@contextmanager
def _terminated_as_interrupted() -> Iterator[None]:
    """Treat SIGTERM, which a service manager sends, as an interrupt: the benchmark then prints its results so far."""
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _take_course(course: Course, kinds: Sequence[FaultKind], minutes: float, most: int | None) -> str:
    """Inject faults, and return why that ended. The results up to then count."""
    what = f"{len(kinds)} kinds of fault for {minutes:g} minutes"
    try:
        course.tell(f"seed {course.seed}: {what}; the first one is injected when Spark is up")
        course.begin()
        _strike_on(course, kinds, minutes, most)
    except KeyboardInterrupt:
        course.tell("interrupted: no more faults; the application is being stopped")
        return INTERRUPTED
    except HomeostatError as error:
        if not course.trials:
            raise
        course.tell(f"{error}")
        return f"{error}"
    return TIME_IS_UP


def _strike_on(course: Course, kinds: Sequence[FaultKind], minutes: float, most: int | None) -> None:
    deployment = course.deployment
    until_s = deployment.clock() + minutes * 60.0
    for kind in draw(kinds, course.chance):
        if deployment.clock() > until_s or len(course.trials) == most:
            return
        course.strike(kind)
        deployment.hold(course.chance.uniform(0.0, CALM_S))


def _end(course: Course) -> tuple[int | None, list[str] | None]:
    """The exit code of the command, and the processes that are left. Another interrupt skips both."""
    try:
        return course.deployment.stop(), _leftovers(course.deployment)
    except KeyboardInterrupt:
        course.tell("interrupted again: the application is being killed")
        return None, None


def _leftovers(deployment: Deployment) -> list[str]:
    """Processes that are still there a while after the command has ended."""
    deployment.wait(lambda: not deployment.family().processes, GONE_LIMIT_S)
    return [describe(process) for process in deployment.family().processes]


def _differences(deployment: Deployment) -> RowDifferences:
    """The differences in the whole ledger, which is read again. The ledger also contains a batch that the sink has
    received and that was not committed."""
    deployment.handed_out.look()
    rows = max(committed_rows(deployment.checkpoint), recorded_rows(deployment.ledger, deployment.checkpoint))
    ledger = RowLedger(deployment.ledger)
    newest = last_batch(deployment.ledger)
    ledger.read(deployment.handed_out.ends, -1 if newest is None else newest)
    return ledger.differences(rows)


@contextmanager
def _home(directory: Path | None) -> Iterator[Path]:
    if directory is not None:
        directory.mkdir(parents=True, exist_ok=True)
        if any(directory.iterdir()):
            raise ConfigError("this directory is not empty", where=str(directory), fix="name one that is new or empty")
        yield directory.resolve()
        return
    with TemporaryDirectory(prefix="homeostat-chaos-", ignore_cleanup_errors=True) as path:
        yield Path(path)


def _setup_json(minutes: float) -> dict[str, Any]:
    return {
        "minutes": minutes,
        "executors": setup.EXECUTORS,
        "workers": setup.WORKERS,
        "trigger_s": setup.TRIGGER_S,
        "wait_ms_a_row": setup.WAIT_MS,
        "new_batches": NEW_BATCHES,
    }


def _outcome(trial: Trial) -> str:
    return f"recovered after {trial.recover_s:.0f} s" if trial.survived else f"NOT SURVIVED: {trial.problem}"
