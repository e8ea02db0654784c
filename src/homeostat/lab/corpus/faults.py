"""The faults that are injected into recorded runs. Each works by the real mechanism; none is simulated."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from homeostat.core import causes, time_causes
from homeostat.lab.corpus import labels
from homeostat.lab.corpus.file_feed import FileFeed
from homeostat.lab.corpus.jobs import CONTROL, SECOND_CONTROL, Shape, Workplace
from homeostat.lab.corpus.service import Service
from homeostat.lab.corpus.storage import CHECKPOINT, STATE
from homeostat.lab.corpus.switches import Switches
from homeostat.lab.faults import SlowExecutor, executor_processes, kill_executor
from homeostat.lab.source_control import add_load_step, write_control

End = Callable[[], None]


@dataclass(frozen=True, slots=True)
class Scene:
    """The parts of a running query that a fault can change."""

    place: Workplace
    service: Service
    query: Any
    feed: FileFeed | None
    storage: Switches
    application: str

    def source_age_s(self, number: int = 0) -> float:
        """Seconds since the profile of a source began."""
        import json

        offset = self.query.lastProgress["sources"][number]["endOffset"]
        started_s = (json.loads(offset) if isinstance(offset, str) else offset)["started_s"]
        return time.time() - float(started_s)


Begin = Callable[[Scene, float], End]


def _nothing(scene: Scene, strength: float) -> End:
    return lambda: None


def _as_it_is(shape: Shape, strength: float) -> Shape:
    return shape


@dataclass(frozen=True, slots=True)
class FaultKind:
    """`begin` starts the fault and returns a function that ends it. A fault of configuration changes the `shape` of the
    job instead, and acts from the start. `component` is the component where it acts; "working" is the one where the job
    does its work."""

    name: str
    cause: str
    begin: Begin = _nothing
    shape: Callable[[Shape, float], Shape] = _as_it_is
    component: str = ""
    measure: str = labels.BATCH_TIME

    @property
    def from_start(self) -> bool:
        return self.begin is _nothing


def _switched(name: str) -> Begin:
    def begin(scene: Scene, strength: float) -> End:
        scene.place.switches.turn_on(name, strength)
        return lambda: scene.place.switches.turn_off(name)

    return begin


def _slow_storage(name: str) -> Begin:
    def begin(scene: Scene, seconds: float) -> End:
        scene.storage.turn_on(name, seconds)
        return lambda: scene.storage.turn_off(name)

    return begin


def _slow_service(scene: Scene, factor: float) -> End:
    scene.service.slowness = factor

    def end() -> None:
        scene.service.slowness = 1.0

    return end


def _slow_executor(scene: Scene, factor: float) -> End:
    running = sorted(executor_processes(scene.application), key=int)
    slow = SlowExecutor(running[scene.place.seed % len(running)], factor, scene.application)
    slow.start()
    return slow.stop


def _kill_again_and_again(scene: Scene, every_s: float) -> End:
    over = threading.Event()
    dice = random.Random(scene.place.seed)

    def kill() -> None:
        while not over.is_set():
            if running := sorted(executor_processes(scene.application), key=int):
                with suppress(LookupError, ProcessLookupError):
                    kill_executor(dice.choice(running), scene.application)
            over.wait(every_s)

    thread = threading.Thread(target=kill, name="corpus kills", daemon=True)
    thread.start()

    def end() -> None:
        over.set()
        thread.join()

    return end


def _burners(scene: Scene, count: float) -> End:
    processes = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(round(count))]

    def end() -> None:
        for process in processes:
            process.kill()
            process.wait()

    return end


def _load(control: str, number: int = 0) -> Begin:
    def begin(scene: Scene, factor: float) -> End:
        path = scene.place.directory / control
        add_load_step(path, scene.source_age_s(number), factor)
        return lambda: add_load_step(path, scene.source_age_s(number), 1.0)

    return begin


def _bound(scene: Scene, share: float) -> End:
    """Limit the rows per trigger to a share of those that arrive."""
    path, shape = scene.place.directory / CONTROL, scene.place.shape
    write_control(path, rows_per_trigger=max(1, round(share * shape.rate_per_s * shape.trigger_s)))
    return lambda: write_control(path, rows_per_trigger=0)


def _uneven_source(scene: Scene, share: float) -> End:
    path = scene.place.directory / CONTROL
    write_control(path, first_share=share)
    return lambda: write_control(path, first_share=0.0)


def _small_files(scene: Scene, rows: float) -> End:
    assert scene.feed is not None
    feed, usual = scene.feed, scene.feed.rows_per_file
    feed.rows_per_file = round(rows)

    def end() -> None:
        feed.rows_per_file = usual

    return end


def _many_directories(scene: Scene, count: float) -> End:
    assert scene.feed is not None
    empty = [Path(scene.feed.directory.parent) / f"old-{number}" for number in range(round(count))]
    for directory in empty:
        directory.mkdir()

    def end() -> None:
        for directory in empty:
            directory.rmdir()

    return end


def _shaped(**changes: Callable[[float], Any]) -> Callable[[Shape, float], Shape]:
    def change(shape: Shape, strength: float) -> Shape:
        return replace(shape, **{name: value(strength) for name, value in changes.items()})

    return change


def _more_load(shape: Shape, factor: float) -> Shape:
    return replace(shape, rate_per_s=shape.rate_per_s * factor)


WORKING = "working"
_SLOW, _SKEW = causes.SLOW_INSTANCE, causes.DATA_SKEW
FAULTS: Mapping[str, FaultKind] = {
    kind.name: kind
    for kind in (
        FaultKind("slow-sink", time_causes.SINK_BOUND, _switched("sink-bound")),
        FaultKind("large-plan", time_causes.DRIVER_BOUND, _switched("large-plan")),
        FaultKind("large-result", time_causes.DRIVER_BOUND, _switched("large-result")),
        FaultKind("planning", time_causes.DRIVER_BOUND, shape=_shaped(plan_columns=round)),
        FaultKind("slow-source", time_causes.SOURCE_BOUND, _switched("source-bound"), component="scan"),
        FaultKind("many-directories", time_causes.SOURCE_BOUND, _many_directories, component="scan"),
        FaultKind("slow-checkpoint", time_causes.CHECKPOINT_BOUND, _slow_storage(CHECKPOINT)),
        FaultKind("slow-state-store", time_causes.STATE_STORE_BOUND, _slow_storage(STATE), component=WORKING),
        FaultKind("slow-service", causes.EXTERNAL, _slow_service, component=WORKING),
        FaultKind("slow-executor", _SLOW, _slow_executor, component=WORKING),
        FaultKind("dying-executors", time_causes.DYING_EXECUTORS, _kill_again_and_again, measure=labels.LOSSES),
        FaultKind("burners", time_causes.HOST_CONTENTION, _burners, measure=labels.BATCH_TIME),
        FaultKind(
            "failing-tasks",
            time_causes.FAILING_TASKS,
            _switched("failing-tasks"),
            component=WORKING,
            measure=labels.FAILED_ATTEMPTS,
        ),
        FaultKind("poison-row", time_causes.POISON_ROW, _switched("poison-row"), component=WORKING),
        FaultKind("hot-key", _SKEW, _switched("data-skew"), component=WORKING),
        FaultKind("colliding-keys", causes.HASH_IMBALANCE, _switched("hash-imbalance"), component=WORKING),
        FaultKind("costly-keys", time_causes.COSTLY_KEYS, _switched("costly-keys"), component=WORKING),
        FaultKind("uneven-source", causes.SOURCE_SKEW, _uneven_source, component="scan"),
        FaultKind("rising-cost", time_causes.RISING_COST, _switched("rising-cost"), component=WORKING),
        FaultKind("more-load", causes.UNDER_PROVISIONED, _load(CONTROL), component=WORKING),
        FaultKind("less-load", causes.OVER_PROVISIONED, _load(CONTROL), component=WORKING, measure=labels.IDLE_SLOTS),
        FaultKind("small-bound", causes.ADMISSION_LIMITED, _bound, component="scan", measure=labels.BACKLOG),
        FaultKind("small-files-in", time_causes.SMALL_FILES, _small_files, component="scan"),
        FaultKind("small-files-out", time_causes.SMALL_FILES, shape=_shaped(files=round)),
        FaultKind("idle-input", time_causes.STALLED_WATERMARK, _load(SECOND_CONTROL, 1), measure=labels.STANDSTILL),
        FaultKind(
            "endless-keys",
            causes.UNBOUNDED_STATE,
            shape=_shaped(forever=bool),
            component=WORKING,
            measure=labels.STATE_GROWTH,
        ),
        FaultKind("many-partitions", time_causes.TINY_TASKS, shape=_shaped(partitions=round), component=WORKING),
        FaultKind(
            "one-partition",
            time_causes.TOO_FEW_PARTITIONS,
            shape=_shaped(partitions=round, source_partitions=round),
            component=WORKING,
        ),
        FaultKind("skewed-join", time_causes.SKEWED_JOIN, shape=_shaped(static_hot_rows=round), component=WORKING),
        FaultKind("large-rows", time_causes.SPILLING, shape=_shaped(rows_a_row=round), component=WORKING),
        FaultKind("garbage", time_causes.GC_BOUND, shape=_shaped(rows_a_row=round), component=WORKING),
    )
}
