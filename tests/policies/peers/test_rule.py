"""Whatever the rule of a peer: one proposal at most, no shrinking on missing metrics, no judging."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.findings import Prediction
from homeostat.core.memory import ActionKey, Context, MemoryEntry
from homeostat.core.observation import NAN, Observation
from homeostat.core.policy_definition import Policy
from homeostat.core.trial import Trial
from homeostat.policies.peers import (
    PEERS,
    DemeterSettings,
    FlinkSettings,
    demeter,
    flink,
)
from homeostat.policies.peers.rule import NoJudge, NoMemory
from support.one_thought import Columns, chain, only, proposed_values, think, think_batches


def build(name: str) -> Policy:
    return PEERS[name](peak_per_s=100.0) if name == "static" else PEERS[name]()


@pytest.mark.parametrize("name", sorted(PEERS))
def test_every_peer_proposes_executors_once_on_micro_batches(name: str) -> None:
    """Four stages' worth of work for 4 executors at twice what they can take."""
    overload = {n: {"run_s": [19.0] * 40} for n in ("source", "flatmap", "count")}
    trace = think_batches(build(name), seconds=20.0, rows=1000.0, tasks=overload, batches=150, pending_rows=1e4)
    proposal = only(trace)
    assert set(proposed_values(trace)) == {"executors.app"}
    assert proposed_values(trace)["executors.app"] > 4
    assert proposal.kind == "scale-up"
    assert proposal.prediction is not None
    assert set(proposal.prediction.touched) == {"source", "flatmap", "count"}
    assert proposal.prediction.gain == pytest.approx(math.log(proposed_values(trace)["executors.app"] / 4))
    assert proposal.because[0].symptoms


SHRINKING = [name for name in sorted(PEERS) if name != "heron"]


def idle(name: str) -> Mapping[str, Columns]:
    if name == "spark-dynamic-allocation":
        columns = {"rows": [500.0] * 2 + [0.0] * 8, "run_s": [0.5] * 2 + [0.0] * 8}
        return dict.fromkeys(("source", "flatmap", "count"), columns)
    return chain(10, 0.5, rows=100.0)


def impatient(name: str) -> Policy:
    if name == "flink":
        return flink(FlinkSettings(stabilisation_s=0.0, window_s=60.0, shrink_delay_s=120.0))
    if name == "demeter":
        return demeter(DemeterSettings(evaluation_s=60.0, step=1, least_share=0.01))
    return build(name)


@pytest.mark.parametrize("name", SHRINKING)
def test_every_peer_but_heron_shrinks_what_is_idle(name: str) -> None:
    proposal = only(think(impatient(name), idle(name), ticks=40))
    assert proposal.kind == "scale-down"
    assert proposal.prediction is not None
    assert proposal.prediction.gain < 0


@settings(max_examples=12, deadline=None)
@pytest.mark.parametrize("name", SHRINKING)
@given(
    column=st.sampled_from(["rows", "run_s", "rows_out", "pending_rows", "pressured_s"]),
    component=st.sampled_from(["source", "flatmap", "count"]),
    instances=st.sets(st.integers(0, 9), min_size=1),
    last=st.integers(1, 6),
)
def test_no_missing_metric_makes_a_peer_shrink(
    name: str, column: str, component: str, instances: set[int], last: int
) -> None:
    def damage(observation: Observation) -> Observation:
        if observation.batch < 40 - last:
            return observation
        sample = observation.tasks[component]
        values = getattr(sample, column).copy()
        values[list(instances)] = NAN
        return replace(observation, tasks={**observation.tasks, component: replace(sample, **{column: values})})

    trace = think(impatient(name), idle(name), ticks=40, damage=damage)
    assert trace.proposals == ()
    assert {d.cause for d in trace.diagnoses} == {"inconclusive"}


@pytest.mark.parametrize("name", sorted(PEERS))
def test_a_metric_that_is_not_there_at_all_is_said(name: str) -> None:
    def blind(observation: Observation) -> Observation:
        def without(sample: Any) -> Any:
            unknown = np.full(sample.instances, NAN)
            return replace(sample, rows=unknown, run_s=unknown, pending_rows=unknown, pressured_s=unknown)

        flow = replace(observation.flows[0], rows=NAN, arrival_per_s=NAN, pending_rows=NAN)
        return replace(observation, flows=(flow,), tasks={n: without(s) for n, s in observation.tasks.items()})

    trace = think(build(name), chain(2, 9.9), ticks=130, damage=blind)
    assert trace.proposals == ()
    if name != "spark-dynamic-allocation":  # it asks for no rate: what is not known to be idle has work
        assert {s.kind for s in trace.symptoms} == {"unknown"}


def test_nothing_is_judged_learned_or_blocked() -> None:
    trial = Trial("count", Prediction(0.5), (), (), False, elapsed_s=10.0, settle_s=60.0)
    assert NoJudge().judge(trial) is None
    outcome = NoJudge().judge(replace(trial, elapsed_s=60.0))
    assert outcome is not None
    assert outcome.verdict == "unclear"
    key = ActionKey("under-provisioned", "scale-up", "count")
    entry = MemoryEntry(key, "failed", 0.0)
    assert NoMemory().learn((), entry) == ()
    assert NoMemory().block_reason((entry,), key, Context(), 1.0, 60.0) == ""
