"""Drivers and executors that are killed, managers that fail, hang or end: recovered, and every row counts once."""

from __future__ import annotations

import importlib
import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat import settings_file
from homeostat.core.errors import StoreError
from homeostat.core.records import Record
from homeostat.lab.experiment import Moment, Trial
from homeostat.lab.ledger import check, committed_rows, recorded_rows
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import NAME, WordCount, pipeline_of, specification, write_app
from homeostat.runtime.launch import KNOBS, STARTED, Launch, read_json
from homeostat.runtime.loop_thread import Loop, LoopKeeper
from homeostat.runtime.manager import Manager
from homeostat.runtime.query_manager import manager
from homeostat.runtime.supervisor import Supervisor
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.application import Application
from homeostat.spark.cluster.embedded import EmbeddedCluster
from homeostat.store.opening import open_store
from homeostat.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
LiveExecutors = Callable[[], list[str]]

PROFILE = Profile(WorkloadSpec("constant", rate_per_s=300.0), keys=50)
STATE = f"state_partitions.{NAME}"
LIMIT_S = 900.0
# Wants, as soon as it has seen a batch, an executor more and other state partitions: one live step and one restart.
WANTING = """
from homeostat.core.configuration import EXECUTORS, STATE_PARTITIONS, Knob, Patch
from homeostat.core.findings import Diagnosis, Prediction, Proposal, Symptom
from homeostat.core.policy_definition import Policy

class Wanting:
    name = "wanting"
    values = {Knob(EXECUTORS, "app"): 3, Knob(STATE_PARTITIONS, "wordcount"): 6}

    def detect(self, view):
        if any(view.configuration.values.get(knob) != value for knob, value in self.values.items()):
            yield Symptom("wanting")

    def diagnose(self, view, symptoms):
        return [Diagnosis("wanting", symptoms=(symptom,)) for symptom in symptoms]

    def resolve(self, view, diagnoses):
        prediction = Prediction(0.1, (), "all is well")
        return [Proposal("change", (each,), Patch(self.values), prediction=prediction) for each in diagnoses]

def policy():
    part = Wanting()
    return Policy("wanting", (part,), (part,), (part,), guards=())
"""
MOODY = '''
import threading

class EndedError(BaseException):
    """Nothing that anybody catches."""

class Moody:
    name = "moody"
    mood = "content"
    hanging, wake = threading.Event(), threading.Event()

    def detect(self, view):
        if Moody.mood == "raises":
            raise ValueError("not in the mood")
        if Moody.mood == "exits":
            raise SystemExit("had enough")
        if Moody.mood == "ends":
            Moody.mood = "content"
            raise EndedError
        if Moody.mood == "hangs":
            Moody.mood = "content"
            Moody.hanging.set()
            Moody.wake.wait()
        return []
'''


def differences(spec: WordCount, directory: Path) -> list[str]:
    checkpoint = directory / "checkpoints" / NAME
    rows = max(committed_rows(checkpoint), recorded_rows(spec.ledger, checkpoint))
    assert rows > 0
    return check(spec.ledger, Profile.from_json(spec.profile), rows)


class Regulated:
    """`homeostat run` with the policy that wants a change, on the cluster that all tests share."""

    def __init__(self, home: Path, master: str) -> None:
        self.home, self.directory, self.log = home, home / "kept", home / "log.sqlite"
        self.spec = specification(PROFILE, home / "ledger", wait_ms=1.0, executors=2, state_partitions=4)
        (home / "wanting.py").write_text(WANTING)
        launch = Launch(
            app=str(write_app(home / "app.py", self.spec)),
            master=master,
            directory=str(self.directory),
            flags={"mode": "regulate", "policy": "wanting:policy", "store": str(self.log)},
            room=6,
        )
        self.messages: list[str] = []
        self.killed: list[int] = []
        self.supervisor = Supervisor(launch, workers=1, cores=1, say=self.messages.append, log=home / "driver.log")

    def records(self, *kinds: str) -> list[Record]:
        try:
            store = SqliteStore(self.log, read_only=True)
        except StoreError:
            return []  # nobody has written anything yet
        try:
            return store.records(f"kept/{NAME}", kinds=kinds)
        finally:
            store.close()

    def batches_since(self, at_s: float) -> int:
        return sum(record.at_s > at_s for record in self.records("batch"))

    @property
    def unanswered(self) -> set[str]:
        """The actions without a receipt."""
        actions = {action.id for action in self.records("action")}
        return actions - {receipt.because[0] for receipt in self.records("receipt")}

    def kill_driver(self) -> None:
        self.killed.append(self.supervisor.driver_pid)
        os.kill(self.supervisor.driver_pid, signal.SIGKILL)

    @property
    def up(self) -> dict[str, Any] | None:
        """What the driver that runs now says of itself."""
        start = read_json(self.directory / STARTED)
        return start if start and start["process"] == self.supervisor.driver_pid not in self.killed else None

    @property
    def knobs(self) -> Any:
        return read_json(self.directory / KNOBS)

    def differences(self) -> list[str]:
        return differences(self.spec, self.directory)

    def play(self, *moments: Callable[[], bool]) -> None:
        """Each waits for what it needs, does something then and says that it has; then the run is stopped."""
        left = list(moments)
        limit_s = time.monotonic() + LIMIT_S

        def each_moment() -> None:
            assert time.monotonic() < limit_s, f"{self.messages} {(self.home / 'driver.log').read_text()}"
            if left and left[0]():
                left.pop(0)
            if not left:
                self.supervisor.stop("played")

        self.supervisor.run(each_moment)


@pytest.fixture
def regulated(cluster: EmbeddedCluster, tmp_path: Path) -> Regulated:
    return Regulated(tmp_path, cluster.master_url)


def applications(cluster: EmbeddedCluster) -> list[int]:
    """The executors of each application called `app` that the master knows."""
    return [app["cores"] for app in cluster.state()["activeapps"] if app["name"] == "app"]


def killed_during_an_action(regulated: Regulated) -> Callable[[], bool]:
    def moment() -> bool:
        begun = regulated.up is not None and bool(regulated.records("action"))
        under_way = begun and not regulated.records("receipt")
        if under_way:
            regulated.kill_driver()
        return under_way

    return moment


def killed_as_soon_as_it_is_back(regulated: Regulated) -> Callable[[], bool]:
    def moment() -> bool:
        back = regulated.up is not None
        if back:
            regulated.kill_driver()
        return back

    return moment


def killed_at_rest(regulated: Regulated) -> Callable[[], bool]:
    def moment() -> bool:
        receipts = regulated.records("receipt")
        at_rest = bool(receipts) and regulated.up is not None and regulated.batches_since(receipts[-1].at_s) >= 2
        if at_rest:
            regulated.kill_driver()
        return at_rest

    return moment


def settled(regulated: Regulated, cluster: EmbeddedCluster) -> Callable[[], bool]:
    def moment() -> bool:
        about, receipts = regulated.up, regulated.records("receipt")
        since_s = max([about["started_s"] if about else 0.0, *(receipt.at_s for receipt in receipts)])
        if about is None or not receipts or regulated.batches_since(since_s) < 2:
            return False
        if regulated.unanswered or regulated.knobs["executors"] != {NAME: 3}:
            return False  # the action's time limit passed while the driver was down: it is decided anew
        assert applications(cluster) == [3]
        return True

    return moment


def assert_recovered(regulated: Regulated) -> None:
    assert len(regulated.messages) == regulated.supervisor.restarts == len(regulated.killed)
    actions = [action.id for action in regulated.records("action")]
    receipts = {receipt.because[0]: receipt for receipt in regulated.records("receipt")}
    assert not regulated.unanswered
    assert receipts[actions[-1]].body["applied"], receipts[actions[-1]].text
    assert regulated.knobs["executors"] == {NAME: 3}
    assert regulated.knobs["values"][STATE] == 6
    assert regulated.differences() == []


@pytest.mark.soak
def test_a_driver_killed_during_an_action_goes_on_with_it(regulated: Regulated, cluster: EmbeddedCluster) -> None:
    regulated.play(killed_during_an_action(regulated), settled(regulated, cluster))
    assert_recovered(regulated)


@pytest.mark.soak
def test_a_driver_killed_again_and_again_keeps_what_it_had(regulated: Regulated, cluster: EmbeddedCluster) -> None:
    moments = [killed_during_an_action, killed_as_soon_as_it_is_back, killed_at_rest, killed_as_soon_as_it_is_back]
    regulated.play(*(moment(regulated) for moment in moments), settled(regulated, cluster))
    assert_recovered(regulated)


@pytest.fixture
def moody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """A user's own detector, in a module beside the application."""
    (tmp_path / "moody_detector.py").write_text(MOODY)
    monkeypatch.syspath_prepend(str(tmp_path))
    module = importlib.import_module("moody_detector")
    yield module.Moody
    module.Moody.wake.set()
    del sys.modules["moody_detector"]


def test_a_manager_may_fail_hang_or_end_and_the_query_goes_on(
    spark: SparkSession, moody: Any, tmp_path: Path, wait_until: WaitUntil
) -> None:
    spec = specification(PROFILE, tmp_path / "ledger", wait_ms=1.0, trigger_s=1.0)
    flags = {"store": str(tmp_path / "log.sqlite"), "plugins": {"detectors": ["moody_detector:Moody"]}}
    config = settings_file.load(None, flags=flags)
    application = Application([pipeline_of(spec)], tmp_path / "kept")
    run = application.run_name(NAME)
    messages: list[str] = []

    def managers() -> Sequence[Manager]:
        store = open_store(config.store)
        return [manager(pipeline, config, application, store, messages.append) for pipeline in application.pipelines]

    def failures() -> list[str]:
        return [record.text for record in log.records(run, kinds=["failure"])]

    application.open(spark)
    keeper = LoopKeeper(lambda: Loop(managers, messages.append, 0.2), messages.append, silent_s=3.0)
    try:
        application.start()
        running = application.queries[NAME].query
        assert running is not None
        keeper.start()
        wait_until(lambda: (tmp_path / "log.sqlite").exists(), "there is a log")
        log = open_store(config.store)

        def batches() -> int:
            return len(log.records(run, kinds=["batch"]))

        def goes_on() -> None:
            batch_count = batches()
            wait_until(lambda: batches() >= batch_count + 2, "batches are seen")
            assert str(running.runId) == str(application.queries[NAME].query.runId)  # type: ignore[union-attr]

        goes_on()
        moody.mood = "raises"
        wait_until(lambda: any("ValueError: not in the mood" in text for text in failures()), "it is logged")
        goes_on()
        moody.mood = "exits"
        wait_until(lambda: any("SystemExit: had enough" in text for text in failures()), "it is logged")
        goes_on()
        first = keeper.loop
        moody.mood = "ends"
        wait_until(lambda: not first.thread.is_alive(), "the thread has ended")
        keeper.check()
        assert any(line.startswith("EndedError: ") for line in messages)
        assert "the manager has ended; a new one takes over" in messages
        goes_on()

        second = keeper.loop
        assert second is not first
        moody.mood = "hangs"
        wait_until(moody.hanging.is_set, "the manager hangs")

        def replaced() -> bool:
            keeper.check()
            return keeper.loop is not second

        wait_until(replaced, "it is noticed")
        assert any("the manager has been silent for" in line for line in messages)
        goes_on()
        written = len(log.records(run))
        moody.wake.set()
        wait_until(lambda: not second.thread.is_alive(), "the old one wakes up and ends")
        goes_on()
        ids = [record.id for record in log.records(run)]
        assert len(ids) == len(set(ids)) > written
    finally:
        keeper.stop()
        application.stop(session=False)
    assert differences(spec, application.directory) == []


@pytest.mark.soak
def test_a_sink_that_hangs_is_reported_and_nothing_is_lost(spark: SparkSession, tmp_path: Path) -> None:
    hang = tmp_path / "hang"
    spec = specification(PROFILE, tmp_path / "ledger", wait_ms=1.0, hang_file=str(hang))
    trial = Trial(spark, tmp_path / "kept", spec, mode="observe")

    def stuck(trial: Trial) -> list[Record]:
        return [record for record in trial.records("symptom") if record.body.get("symptom") == "stuck-batch"]

    def let_go(trial: Trial) -> None:
        if stuck(trial):
            hang.unlink(missing_ok=True)

    def recovered(trial: Trial) -> bool:
        return bool(stuck(trial)) and len([r for r in trial.records("batch") if r.at_s > stuck(trial)[0].at_s]) >= 3

    result = trial.run(400.0, [Moment(10.0, lambda _: hang.touch())], until=recovered, each=let_go)
    (symptom,) = stuck(trial)
    assert "has been running for" in symptom.text
    assert "external-bound" in result.causes()
    assert any(record.text == "measurements arrive again" for record in result.of("symptom"))
    assert result.differences == ()
