"""Whatever the engine, the operator and the plug-ins do, the loop keeps its promises, in many random episodes."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from homeostat.core.actions import REVERT
from homeostat.core.policy_definition import Policy
from homeostat.core.records import ActionContent, OutcomeContent, Record, with_content
from homeostat.core.trial import TAKEN_BACK
from homeostat.policies import registry
from support.episodes import Episode, Restless

LOOSE = {"guards": {"confirm": "10 s", "cooldown": "10 s", "cooldown_shrink": "10 s"}, "loop": {"settle": "30 s"}}


def restless_policy(seed: int) -> Policy:
    policy = registry.build("provisioning", LOOSE)
    part = Restless(random.Random(seed))
    return replace(
        policy,
        detectors=(*policy.detectors, part),
        diagnosers=(*policy.diagnosers, part),
        resolvers=(*policy.resolvers, part),
    )


def played(seed: int, steps: int = 60) -> Episode:
    episode = Episode(seed, restless_policy(seed), steps)
    episode.play()
    return episode


def check(episode: Episode) -> None:
    where = f"seed {episode.seed}"
    ids = [record.id for record in episode.records]
    assert len(ids) == len(set(ids)), where
    by_id = {record.id: record for record in episode.records}
    for action in episode.actions:
        assert action.id in by_id, where
        for knob, spec in episode.engine.capabilities.knobs.items():
            value = action.desired[knob]
            # An engine may run beyond its bounds by itself. Then an action may leave it there, or go back to it.
            own_values = {configuration[knob] for configuration in episode.own_configurations}
            allowed = spec.minimum <= value <= spec.maximum or value in own_values
            assert allowed, f"{where}: {action.id} sets {knob} to {value}"
    outcomes = [content for _, content in with_content(episode.records, OutcomeContent)]
    judged = Counter(outcome.action for outcome in outcomes)
    assert all(times == 1 for times in judged.values()), f"{where}: judged twice: {judged}"
    for record in reverts(episode):
        assert blamed(record, by_id), f"{where}: {record.id} takes back what did no harm"


def reverts(episode: Episode) -> list[Record]:
    actions = with_content(episode.records, ActionContent)
    return [record for record, action in actions if action.action_kind == REVERT]


def blamed(record: Record, by_id: dict[str, Record]) -> bool:
    """Whether a bad outcome stands behind a revert, of the action or of one part of a plan, or an order of a person."""
    sources = [by_id[id] for id in record.because if id in by_id]
    outcomes = [content for _, content in with_content(sources, OutcomeContent)]
    verdicts = {outcome.verdict for outcome in outcomes}
    verdicts |= {part.verdict for outcome in outcomes for part in outcome.parts}
    return bool(verdicts.intersection(TAKEN_BACK)) or not outcomes


@pytest.mark.parametrize("seed", range(12))
def test_the_loop_keeps_its_promises(seed: int) -> None:
    check(played(seed))


def test_the_same_episode_gives_the_same_log() -> None:
    assert played(3).records == played(3).records


@pytest.mark.soak
def test_the_loop_keeps_its_promises_over_a_thousand_actions() -> None:
    counts: Counter[str] = Counter()
    for seed in range(1_000, 1_600):
        episode = played(seed, steps=120)
        check(episode)
        counts["actions"] += len(episode.actions)
        counts["retirements"] += sum(bool(action.desired.retired) for action in episode.actions)
        counts["reverts"] += len(reverts(episode))
    assert counts["actions"] >= 1_000
    assert counts["retirements"] >= 100
    assert counts["reverts"] >= 100
