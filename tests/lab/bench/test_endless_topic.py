"""The topic of `homeostat bench overhead --kafka`."""

from __future__ import annotations

import pytest

from homeostat.lab.bench import endless_topic
from homeostat.lab.bench.endless_topic import EndlessTopic
from homeostat.lab.kafka.topics import Topics
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec

PROFILE = Profile(WorkloadSpec(rate_per_s=1.0))


def test_it_has_rows_ahead_of_the_reader_and_each_once(
    topics: Topics, topic_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(endless_topic, "ROWS_AHEAD", 100)
    monkeypatch.setattr(endless_topic, "NAME", topic_name)
    topics.create(topic_name, 2)
    topic = EndlessTopic(topics.servers, 2, PROFILE)
    for read_rows, rows in ((0, 100), (0, 100), (30, 130)):
        topic.fill(read_rows)
        assert sum(topics.ends(topic_name).values()) == rows
    words = sorted(row.value.decode() for row in topics.rows(topic_name) if row.value is not None)
    assert words == sorted(PROFILE.words(0, 130).tolist())
