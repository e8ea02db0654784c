"""The score of diagnoses on recorded runs of real Spark."""

from __future__ import annotations

import pytest

from homeostat.lab.bench.diagnosis_corpus import score_run
from homeostat.lab.corpus.labels import read_labels
from homeostat.policies import registry
from support.paths import ROOT

CORPUS = ROOT / "tests" / "recorded" / "corpus"
LABELS = {label.run: label for label in read_labels(CORPUS)}


@pytest.mark.parametrize(
    ("run", "cause"),
    [
        ("writing-slow-sink-1", "sink-bound"),
        ("writing-slow-checkpoint-1", "checkpoint-bound"),
        ("files-many-directories-2", "source-bound"),
        ("tight-shuffle-large-rows-1", "spilling"),
        ("memory-garbage-1", "gc-bound"),
        ("service-poison-row-1", "poison-row"),
    ],
)
def test_a_fault_of_a_real_run_is_named(run: str, cause: str) -> None:
    score = score_run(CORPUS, LABELS[run], registry.build("provisioning"))
    assert score.right == [cause]
    assert score.missed == []


@pytest.mark.parametrize("run", ["service-clean-1", "keyed-clean-1", "memory-clean-1"])
def test_nothing_is_named_in_a_clean_run(run: str) -> None:
    score = score_run(CORPUS, LABELS[run], registry.build("provisioning"))
    assert (score.right, score.missed, score.wrong) == ([], [], [])
