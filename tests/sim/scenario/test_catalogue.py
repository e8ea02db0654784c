"""A scenario file is read as its documentation says, and refused at the line where it contradicts itself."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.errors import ConfigError
from homeostat.core.objective import Objective
from homeostat.sim.scenario import catalogue
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    Spike,
    WorkloadSpec,
)
from homeostat.strict.toml_reading import Share, Table

BASE = """\
title = "Words"
engine = "dataflow"
duration = "1 h"

[[component]]
name = "spout"
kind = "source"
rate = "10 k/s"

[[component]]
name = "splitter"
inputs = ["spout"]
parallelism = 3
rate = "1 k/s"

[[component]]
name = "counter"
inputs = ["splitter"]
rate = "5 k/s"
keyed = true

[workload]
kind = "constant"
rate = "2 k/s"
"""
MICROBATCH = BASE.replace('"dataflow"', '"microbatch"')


def loaded(text: str, folder: Path | str = ".") -> Scenario:
    return catalogue.loads(text, "words.toml", folder)


def refusal(text: str, folder: Path | str = ".") -> str:
    with pytest.raises(ConfigError) as refused:
        loaded(text, folder)
    return refused.value.line


def fault(**keys: object) -> str:
    values = {key: f'"{value}"' if isinstance(value, str) else value for key, value in keys.items()}
    return "\n[[fault]]\n" + "".join(f"{key} = {value}\n" for key, value in values.items())


def workload(text: str) -> str:
    return BASE[: BASE.index("[workload]")] + "[workload]\n" + text


def test_what_is_left_out_has_the_defaults_of_the_specification() -> None:
    assert loaded(BASE) == Scenario(
        name="words",
        title="Words",
        engine=DataflowSpec(),
        duration_s=3600,
        components=(
            ComponentSpec("spout", "source", rate_per_s=10_000),
            ComponentSpec("splitter", inputs=("spout",), parallelism=3, rate_per_s=1000),
            ComponentSpec("counter", inputs=("splitter",), rate_per_s=5000, keyed=True),
        ),
        workload=WorkloadSpec("constant", rate_per_s=2000),
    )
    assert loaded(MICROBATCH).engine == MicrobatchSpec()


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        (
            'kind = "steps"\nsteps = [{at = "0 s", rate = "1/s"}, {at = "1 min", rate = "0/s"}]',
            WorkloadSpec("steps", steps=((0.0, 1.0), (60.0, 0.0))),
        ),
        (
            'kind = "ramp"\nrate = "1/s"\nto = "2/s"\nstart = "1 min"\nend = "2 min"',
            WorkloadSpec("ramp", rate_per_s=1, to_per_s=2, start_s=60, end_s=120),
        ),
        (
            'kind = "sine"\nrate = "2/s"\namplitude = "1/s"\nperiod = "1 h"',
            WorkloadSpec("sine", rate_per_s=2, amplitude_per_s=1, period_s=3600),
        ),
        ('kind = "diurnal"\nnight = "1/s"\npeak = "5/s"', WorkloadSpec("diurnal", rate_per_s=1, to_per_s=5)),
        (
            'kind = "constant"\nrate = "1/s"\nspikes = [{at = "1 s", for = "2 s", factor = 3}]\nnoise = {sigma = 0.1}',
            WorkloadSpec("constant", rate_per_s=1, spikes=(Spike(1, 2, 3),), noise=Noise(0.1)),
        ),
    ],
)
def test_every_kind_of_load_has_its_own_keys(text: str, spec: WorkloadSpec) -> None:
    assert loaded(workload(text)).workload == spec


@pytest.mark.parametrize(
    ("text", "spec"),
    [
        (
            fault(kind="slow-instance", component="splitter", instance=2, factor=2.5, at="1 min", until="2 min"),
            FaultSpec("slow-instance", 60, 120, "splitter", 2, factor=2.5),
        ),
        (fault(kind="slow-host", host="host-3", factor=2.0), FaultSpec("slow-host", host="host-3", factor=2.0)),
        (
            fault(kind="hot-key", component="counter", share="20 %"),
            FaultSpec("hot-key", component="counter", share=0.2),
        ),
        (
            fault(kind="hash-imbalance", component="counter", stride=4),
            FaultSpec("hash-imbalance", component="counter", stride=4),
        ),
        (fault(kind="crash", component="splitter"), FaultSpec("crash", component="splitter")),
        (fault(kind="stuck-sink", until="1 min"), FaultSpec("stuck-sink", until_s=60)),
        (fault(kind="metric-gap", share=0.1), FaultSpec("metric-gap", share=0.1)),
        (fault(kind="garbage-metrics", component="spout"), FaultSpec("garbage-metrics", component="spout")),
    ],
)
def test_every_kind_of_fault_has_its_own_keys(text: str, spec: FaultSpec) -> None:
    assert loaded(BASE + text).faults == (spec,)


def test_objective_noise_settings_and_the_rest_arrive() -> None:
    scenario = loaded(
        'name = "w"\nseed = 9\npolicy = "throughput"\nservice_noise = {sigma = 0.1, phi = 0.5}\n'
        + BASE
        + '[objective]\nthroughput = "3 k/min"\nlag = "5 s"\nlatency = "2 s"\ncost_limit = 12\nmodel_error = 0.5\n'
        + 'catch_up = "5 min"\n'
        + '[settings.guards]\nlargest_change = 20\ncooldown = "3 min"\n'
    )
    assert (scenario.name, scenario.seed, scenario.policy) == ("w", 9, "throughput")
    assert scenario.service_noise == Noise(0.1, 0.5)
    assert scenario.objective == Objective(50, 5, 2, 12, math.log1p(0.5), 300)
    assert scenario.settings == {"guards": {"largest_change": 20, "cooldown": "3 min"}}


@pytest.mark.parametrize(
    ("text", "at", "reason"),
    [
        (BASE.replace('"1 h"', '"0 s"'), "duration", "'duration' must be above 0, not 0"),
        (BASE.replace('"1 h"', "3600"), "duration", "'duration' needs a unit, such as '180 s'"),
        (BASE + "[microbatch]\n", "[microbatch]", "[microbatch] contradicts engine = 'dataflow' (remove it, or"),
        (MICROBATCH + "[dataflow]\n", "[dataflow]", "[dataflow] contradicts engine = 'microbatch'"),
        (BASE + '[dataflow]\nstep = "3 s"\n', "[dataflow]", "'tick' (10 s) is not a multiple of 'step' (3 s)"),
        (BASE + "[dataflow]\ntrigger = 1\n", "trigger", "unknown key 'trigger' (valid: tick, step,"),
        (MICROBATCH + "[microbatch]\nexecutors = 101\n", "executors = 101", "'executors' is 101, but at most 100"),
        (BASE.replace('["splitter"]', '["spliter"]'), "spliter", "which does not exist (did you mean 'splitter'?)"),
        (BASE.replace('["splitter"]', '["counter"]'), '["counter"]', "which is not listed before it (list components"),
        (BASE.replace('["splitter"]', '["spout", "spout"]'), '"spout", ', "'counter' reads 'spout' twice"),
        (BASE.replace('inputs = ["splitter"]\n', ""), "[[component]]", "operator 'counter' has no inputs"),
        (BASE.replace('kind = "source"', 'kind = "operator"'), "[[component]]", "operator 'spout' has no inputs"),
        (
            BASE.replace('kind = "source"', 'kind = "source"\ninputs = []\nqueue = "9 s"'),
            "queue",
            "cannot have a queue",
        ),
        (
            BASE.replace('inputs = ["spout"]', 'kind = "source"\ninputs = ["spout"]'),
            "inputs",
            "source 'splitter' must",
        ),
        (BASE.replace('"counter"', '"splitter"'), 'name = "splitter"', "two components have the name 'splitter'"),
        (
            BASE.replace('"counter"', '"my counter"'),
            "my counter",
            "'my counter' is not a valid name (use letters",
        ),
        (BASE.replace('rate = "1 k/s"', 'rate = "-1 k/s"'), "-1 k/s", "'rate' must not be negative, but is '-1 k/s'"),
        (BASE.replace('rate = "1 k/s"', 'rate = "0/s"'), "0/s", "'rate' must be above 0, not 0"),
        (BASE.replace('rate = "1 k/s"\n', ""), "[[component]]", "'rate' is missing in 'component[1]'"),
        (BASE.replace("parallelism = 3", "parallelism = 3\nmaximum = 2"), "parallelism", "between 1 and 2, not 3"),
        (
            BASE.replace("parallelism = 3", "minimum = 3"),
            "[[component]]",
            "'parallelism' of 'splitter' must be between 3 and",
        ),
        (BASE.replace("parallelism = 3", "minimum = 3\nmaximum = 2"), "minimum", "'minimum' (3) is above 'maximum'"),
        (BASE.replace("parallelism = 3", "keys = 10"), "keys", "'keys' has no effect without keyed = true"),
        (BASE.replace("parallelism = 3", 'task = "1 s"'), "task", "'task' has no effect with engine = 'dataflow'"),
        (BASE.replace("parallelism = 3", 'queue = "1 ms"'), "queue", "'queue' of 'splitter' is shorter than a step"),
        (MICROBATCH.replace("parallelism = 3", 'queue = "9 s"'), "queue", "no effect with engine = 'microbatch'"),
        (
            MICROBATCH.replace("parallelism = 3", "parallelism = 3\nstateful = true").replace(
                "keyed = true", "keyed = true\nparallelism = 4\nstateful = true"
            ),
            "parallelism = 4",
            "stateful components have different 'parallelism' (3 and 4)",
        ),
        (BASE.replace('"constant"', '"constnt"'), "constnt", "not 'constnt' (did you mean 'constant'?)"),
        (BASE + 'amplitude = "1/s"\n', "amplitude", "'amplitude' does not belong to kind = 'constant' (valid: "),
        (BASE + "noise = {sigma = -0.1}\n", "noise", "'sigma' must be at least 0, not -0.1"),
        (BASE + "noise = {sigma = 0.1, phi = 1.0}\n", "noise", "'phi' must be below 1, not 1"),
        (BASE + 'spikes = [{at = "2 h", for = "1 s", factor = 2.0}]\n', "spikes", "spikes[0] begins at 2 h, but"),
        (workload('kind = "steps"\nsteps = []'), "steps = ", "'steps' must not be empty"),
        (workload('kind = "steps"\nsteps = [{at = "1 s", rate = "1/s"}]'), "at = ", "first step must be at '0 s'"),
        (
            workload('kind = "steps"\nsteps = [\n{at = "0 s", rate = "1/s"},\n{at = "0 s", rate = "2/s"}]'),
            '"2/s"',
            "steps must be sorted by time",
        ),
        (workload('kind = "ramp"\nrate = "1/s"\nto = "2/s"\nend = "1 min"\nstart = "1 min"'), "end", "after its 's"),
        (workload('kind = "diurnal"\nnight = "2/s"\npeak = "1/s"'), "peak", "'peak' must not be below 'night'"),
        (workload('rate = "1/s"'), "[workload]", "'kind' is missing in 'workload' (one of constant, steps, ramp,"),
        (workload('kind = "trace"\nfile = "none.csv"'), "file", "the trace file 'none.csv' does not exist"),
        (
            BASE + fault(kind="crash", component="conter"),
            "conter",
            "unknown component 'conter' (did you mean 'counter'",
        ),
        (BASE + fault(kind="crash"), "[[fault]]", "a crash fault needs 'component' (use one of spout, splitter, c"),
        (BASE + fault(kind="crash", component="splitter", instance=3), "instance", "starts with 3 (use 0 to 2)"),
        (BASE + fault(kind="crash", component="splitter", factor=3.0), "factor", "does not belong to kind = 'crash'"),
        (BASE + fault(kind="hot-key", component="splitter"), "component = ", "needs a keyed component, but 'spli"),
        (BASE + fault(kind="hot-key", component="counter", share=1.2), "share", "must be a share from 0 to 1"),
        (BASE + fault(kind="hot-key", component="counter", share="120 %"), "share", "must be a share from 0 to 1"),
        (BASE + fault(kind="stuck-sink", component="spout"), "component = ", "'spout' is not a sink: other components"),
        (BASE + fault(kind="slow-host", host="host-4"), "host", "unknown host 'host-4' (use host-0 to host-3)"),
        (BASE + fault(kind="slow-host", host="host-0", factor=0.5), "factor", "'factor' must be at least 1, not 0.5"),
        (BASE + fault(kind="stuck-sink", at="2 min", until="1 min"), "until", "'until' (1 min) is not after 'at' (2 m"),
        (BASE + fault(kind="stuck-sink", at="1 h"), "at = ", "the fault begins at 1 h, but the run ends at 1 h"),
        (MICROBATCH + fault(kind="crash", component="counter"), "component = ", "hits an executor, not a component"),
        (MICROBATCH + fault(kind="crash", instance=1), "instance", "the application has no instance 1: it starts"),
        (BASE + "[settings]\nguards = 3\n", "guards", "'guards' must be a table, not 3"),
        (BASE + '[objective]\nthroughput = "0/s"\n', "throughput", "'throughput' must be above 0"),
    ],
)
def test_a_contradiction_is_refused_at_its_line(text: str, at: str, reason: str, tmp_path: Path) -> None:
    line = refusal(text, tmp_path).split("\n")[0]
    number = int(line.split(":")[1])
    assert reason in line
    assert at in text.split("\n")[number - 1]


def test_several_contradictions_are_shown_together() -> None:
    text = BASE.replace('["spout"]', '["spot"]').replace("keyed = true", "zipf = 1.0") + fault(kind="crash")
    assert [line.split(": ")[1][:20] for line in refusal(text).split("\n")] == [
        "'splitter' reads 'sp",
        "'zipf' has no effect",
        "a crash fault needs ",
    ]


@pytest.mark.parametrize("missing", ["title", "engine", "duration"])
def test_what_must_be_given_is_asked_for(missing: str) -> None:
    text = re.sub(f"^{missing} = .*\n", "", BASE, flags=re.M)
    assert refusal(text) == f"words.toml:1: '{missing}' is missing (add it at the top of the file)"


def test_without_a_source_there_is_no_scenario() -> None:
    text = BASE.replace('kind = "source"', 'inputs = ["counter"]')
    assert "no component is a source" in refusal(text)


def test_a_trace_is_found_beside_the_scenario_and_its_repairs_are_noted(tmp_path: Path) -> None:
    (tmp_path / "load.csv").write_text("timestamp,value\n0,100\n10,200\n20,300\n40,400\n")
    text = workload('kind = "trace"\nfile = "load.csv"\nscale = 2.0\nspeedup = 2.0\nnoise = {sigma = 0.1}')
    (tmp_path / "mine.toml").write_text(text)
    scenario = catalogue.load(tmp_path / "mine.toml")
    assert scenario.name == "mine"
    assert scenario.workload.trace == ((0.0, 20.0), (5.0, 40.0), (10.0, 60.0), (20.0, 80.0))
    assert scenario.workload.noise == Noise(0.1)
    assert scenario.notes == (
        "load.csv: 1 gap of up to 20 s: interpolated",
        "load.csv: ends at 20 s, before the run does; its last value is used until then",
    )


def test_a_bad_trace_is_refused_with_the_line_of_the_trace(tmp_path: Path) -> None:
    (tmp_path / "load.csv").write_text("timestamp,value\n0,100\n10,-1\n")
    assert "load.csv:3: the value -1 is negative" in refusal(workload('kind = "trace"\nfile = "load.csv"'), tmp_path)


def test_the_settings_of_a_policy_keep_their_lines() -> None:
    class Guards(Table):
        largest_change: int
        share: Share = 0.5

    document = catalogue.open_document("E7")
    assert document.read(Guards, at=("settings", "guards")).largest_change == 20
    assert re.fullmatch(r"E7\.toml:\d+", document.where(("settings", "guards", "largest_change")))


@given(st.data())
@settings(max_examples=60)
def test_a_damaged_file_is_either_read_or_refused_and_never_crashes(data: st.DataObject) -> None:
    lines = (BASE + fault(kind="crash", component="counter") + "[settings.x]\ny = 1").split("\n")
    number = data.draw(st.integers(0, len(lines) - 1))
    line = lines[number]
    position = data.draw(st.integers(0, len(line)))
    other = data.draw(st.sampled_from(["", "x", '"', "[", "]", "-", "0", " = ", "1 s", "\n", lines[number // 2]]))
    lines[number] = line[:position] + other + line[position + data.draw(st.integers(0, 3)) :]
    where = "words.toml"
    try:
        loaded("\n".join(lines))
    except ConfigError as refused:
        where = refused.where
    assert where.startswith("words.toml")
