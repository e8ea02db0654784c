"""Examples from runs whose causes are known."""

from __future__ import annotations

from homeostat.core.time_causes import SINK_BOUND
from homeostat.lab.bench.diagnosis_cases import draw_case
from homeostat.lab.corpus.labels import read_labels
from homeostat.lab.evidence_learning.examples import recorded_examples, simulated_examples
from homeostat.policies import registry
from support.paths import ROOT

CORPUS = ROOT / "tests" / "recorded" / "corpus"


def test_a_simulated_slow_sink_gives_right_examples_of_its_cause() -> None:
    examples = list(simulated_examples(draw_case(5, ("slow-sink",)), registry.build("provisioning")))
    sink = [each for each in examples if each.cause == SINK_BOUND]
    assert len(sink) >= 3
    assert all(each.right for each in sink)
    assert {each.run for each in examples} == {"slow-sink-5"}


def test_a_recorded_run_gives_right_examples_only_while_its_fault_acts() -> None:
    policy = registry.build("provisioning")
    label = next(each for each in read_labels(CORPUS) if any(f.cause == SINK_BOUND and f.is_case for f in each.faults))
    examples = [each for each in recorded_examples(CORPUS, policy, only={label.run}) if each.cause == SINK_BOUND]
    assert any(each.right for each in examples)
