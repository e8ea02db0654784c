"""Commands that an operator gives to a running manager."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.runtime.diary import Diary
from homeostat.runtime.manager import Manager
from homeostat.sim.scenario import catalogue
from homeostat.sim.simulation import build_engine
from homeostat.store.sqlite import SqliteStore

Homeostat = Callable[..., Any]
RUN = "app/words"


@contextmanager
def managed(log: Path, scenario: Path) -> Iterator[None]:
    """A manager at work in another thread, as another process would have it. Its log says that it was heard of now."""
    stopping = threading.Event()
    ready = threading.Event()

    def work() -> None:
        store = SqliteStore(log)
        policy = Policy("nothing")
        diary = Diary(store, RUN, policy)
        manager = Manager(build_engine(catalogue.load(str(scenario))), policy, store, RUN, on_step=diary.note)
        manager.start()
        store.append(RUN, [Record("heard", "engine", time.time(), "heard of now")])
        ready.set()
        while not stopping.is_set():
            manager.advance(manager.engine.now_s + 1.0)
            stopping.wait(0.02)
        store.close()

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield
    finally:
        stopping.set()
        thread.join()


def test_a_person_pauses_and_resumes(homeostat: Homeostat, scenario: Path, tmp_path: Path) -> None:
    with managed(tmp_path / "homeostat.sqlite", scenario):
        answer = homeostat("pause", "--why", "a deployment", "--json").json
        assert (answer["run"], answer["done"], answer["order"]["why"]) == (RUN, True, "a deployment")
        assert [record["kind"] for record in answer["records"]] == ["operator"]
        result = homeostat("apply", "set", "parallelism.count=4")
        assert (result.code, "paused by" in result.err) == (1, True)
        assert homeostat("resume").code == 0
        assert "operator" in homeostat("log", "--kind", "operator").out


def test_knobs_are_set_by_hand_after_a_dry_run(homeostat: Homeostat, scenario: Path, tmp_path: Path) -> None:
    with managed(tmp_path / "homeostat.sqlite", scenario):
        dry = homeostat("apply", "set", "parallelism.count=4", "--dry-run")
        assert "parallelism.count 3 → 4" in dry.out
        assert homeostat("log", "--kind", "order", "--json").json == []
        assert homeostat("apply", "resolver", "scale-up", "--dry-run").out == f"would send to {RUN}: resolve scale-up\n"
        refused = homeostat("apply", "scale", "--executors", 6, "--dry-run")
        assert (refused.code, "executors.app cannot be set here" in refused.err) == (2, True)
        assert "parallelism.count" in refused.err
        answer = homeostat("apply", "set", "parallelism.count=4", "--json").json
        assert "by-hand: parallelism.count = 4" in [record["text"] for record in answer["records"]]
        result = homeostat("apply", "scale", "--executors", 6)
        assert (result.code, "executors.app cannot be set here" in result.err) == (1, True)


def test_a_dry_run_of_the_only_run_needs_no_name_and_no_manager(homeostat: Homeostat, tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "homeostat.sqlite")
    store.append(RUN, [Record("g-1", "engine", 1e9, "long ago")])
    store.save_state(RUN, "present", {"observed": {"executors.app": 4}})
    store.close()
    assert homeostat("apply", "scale", "--executors", 6, "--dry-run").out == (
        f"would send to {RUN}: apply\nexecutors.app 4 → 6\n"
    )
    answer = homeostat("apply", "scale", "--executors", 6, "--dry-run", "--json").json
    assert (answer["done"], answer["order"]["values"]) == (False, {"executors.app": 6})
    assert homeostat("log", "--kind", "order", "--json").json == []


def test_what_cannot_be_asked_is_reported(homeostat: Homeostat, scenario: Path, tmp_path: Path) -> None:
    assert homeostat("pause").code == 2
    with managed(tmp_path / "homeostat.sqlite", scenario):
        for words, what in [
            (("approve", "v-9"), "v-9 is not current advice"),
            (("revert",), "there is no action to revert"),
            (("apply", "resolver", "scale-up"), "there is no resolver 'scale-up'; available: none"),
            (("apply", "set", "parallelism.count=many"), "write KNOB=VALUE"),
            (("pause", "--run", "app/wrods"), "app/words"),
        ]:
            result = homeostat(*words)
            assert result.code in (1, 2)
            assert what in result.err


def test_an_order_to_nobody_is_not_taken_for_done(
    homeostat: Homeostat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeostat.cli.operator.ANSWER_LIMIT_S", 0.3)
    store = SqliteStore(tmp_path / "homeostat.sqlite")
    store.append(RUN, [Record("g-1", "engine", time.time(), "it ran")])
    store.append("app/old", [Record("g-1", "engine", 1e9, "long ago")])
    store.close()
    result = homeostat("pause")
    assert (result.code, "no manager answered" in result.err) == (1, True)
