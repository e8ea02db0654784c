"""Every run of the recorded set can be read, and shows what its label promises."""

from __future__ import annotations

from collections import Counter

import pytest

from homeostat.lab.corpus.labels import Label, read_labels
from homeostat.lab.corpus.replayed_log import observations
from homeostat.lab.corpus.shrinking import kept_events
from support.paths import RECORDED

CORPUS = RECORDED / "corpus"
LABELS = read_labels(CORPUS)
MOST_BYTES = 20_000_000
LEAST_RUNS, LEAST_CAUSES, LEAST_JOBS = 60, 12, 7


def test_the_set_is_large_enough_and_small_enough() -> None:
    causes = Counter(fault.cause for label in LABELS for fault in label.cases)
    assert len(LABELS) >= LEAST_RUNS
    assert len(causes) >= LEAST_CAUSES
    assert len({label.job for label in LABELS}) >= LEAST_JOBS
    assert any(label.clean for label in LABELS)
    assert sum(file.stat().st_size for file in CORPUS.iterdir()) <= MOST_BYTES
    assert {label.log for label in LABELS} == {file.name for file in CORPUS.glob("*.zstd")}


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.run)
def test_a_run_shows_what_its_label_promises(label: Label) -> None:
    topology, observed = observations(CORPUS, label)
    with_rows = [each for each in observed if sum(flow.rows for flow in each.flows) > 0]
    assert len(with_rows) == label.batches
    assert all(flow.trigger_s == label.trigger_s for each in observed for flow in each.flows)
    numbers = {each.batch for each in with_rows}
    for fault in label.faults:
        assert {fault.at_batch, fault.until_batch} <= numbers
        assert not fault.component or fault.component in topology
        assert label.began_s - label.trigger_s <= fault.until_s <= label.ended_s
    for each in with_rows[3:]:
        assert each.tasks
        assert set(each.tasks) <= set(topology.names)
        assert 0 <= len(each.workers.ids) <= label.executors + 1


@pytest.mark.parametrize("label", LABELS, ids=lambda label: label.run)
def test_a_log_names_no_machine_and_no_path(label: Label) -> None:
    text = "\n".join(str(event) for event in kept_events(CORPUS / label.log))
    for word in ("/tmp", "/home", "/root", "/work", "/usr", "site-packages", "'User'"):
        assert word not in text
