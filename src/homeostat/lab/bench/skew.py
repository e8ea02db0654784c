"""Measures throughput with uneven keys: regulated, unregulated, and with an ideal even spread."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import SPREAD
from homeostat.core.loop_state import Mode
from homeostat.core.records import BatchContent, Record
from homeostat.lab.bench.ground import machine
from homeostat.lab.bench.trial_log import action_kinds, batches_after, settled_since_s
from homeostat.lab.experiment import Trial, TrialResult
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import specification
from homeostat.policies import registry
from homeostat.sim.routing import heaviest_key
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Scenario, WorkloadSpec
from homeostat.sim.simulation import build_engine, simulate
from homeostat.sim.truth import TruthSample
from homeostat.spark.cluster.session import build_session, spark_conf
from homeostat.store.in_memory import MemoryStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ENGINES = ("simulator", "spark")
EXPONENTS = (0.0, 0.5, 1.0, 1.5, 2.0)
HOT = 0.5
SLOTS = 8
KEYS = 200
ROWS, WAIT_MS, TRIGGER_S = 16_000, 1.0, 2.0
# More than any setup can process, so that every batch is full and throughput is its rows divided by its seconds.
LOAD_PER_S = 2.0 * SLOTS * 1000.0 / WAIT_MS
TURNS = 4
SIMULATED_S, TURN_S = 900.0, 180.0
SETTLED = 5
LONGEST_S = 240.0
UNTOUCHED = 12
# Faster than for a real application, so that a run takes minutes.
SETTINGS: Mapping[str, Mapping[str, object]] = {
    "guards": {"cooldown": "5 s", "cooldown_shrink": "1 h", "confirm": "1 h"},
    "loop": {"settle": "20 s", "window": "1 min", "patience": "20 s", "catch_up": "1 h"},
}

Tell = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class Case:
    """Words by Zipf's law, and one more word with the share `hot`. With `turns`, other words become frequent later."""

    name: str
    zipf: float = 0.0
    hot: float = 0.0
    turns: bool = False

    @property
    def largest_key(self) -> float:
        return self.hot or heaviest_key(ComponentSpec("count", keys=KEYS, zipf=self.zipf))


def cases(exponents: Sequence[float]) -> list[Case]:
    by_law = [Case(f"zipf {exponent:g}", exponent) for exponent in exponents]
    return [*by_law, Case(f"hot {HOT:.0%}", hot=HOT)]


def in_turn(case: Case) -> Case:
    return replace(case, name=f"{case.name}, other keys in turn", turns=True)


def measure(*, engines: Sequence[str], exponents: Sequence[float], tell: Tell) -> dict[str, Any]:
    """The numbers of `homeostat bench skew`."""
    figures: dict[str, Any] = {}
    if "simulator" in engines:
        ideal_per_s = _unregulated_per_s(scenario_of(Case("even"), even=True))
        both = [*cases(exponents), *map(in_turn, cases(exponents))]
        figures["simulator"] = {case.name: _simulate(case, ideal_per_s) for case in both}
    if "spark" in engines:
        fixed_cases = cases(exponents)
        figures["spark"] = _on_spark([*fixed_cases, in_turn(fixed_cases[-1])], tell)
    return figures | {
        "setup": {"slots": SLOTS, "keys": KEYS, "rows_a_batch": ROWS, "wait_ms_a_row": WAIT_MS, "settings": SETTINGS},
        "machine": machine(),
    }


def comparison_json(case: Case, without: float, regulated: float, ideal: float, **rest: Any) -> dict[str, Any]:
    return {
        "largest_key": round(case.largest_key, 3),
        "without_per_s": without,
        "with_per_s": regulated,
        "ideal_per_s": ideal,
        "gain": regulated / without,
        "share_of_ideal": regulated / ideal,
        **rest,
    }


# In the simulator


def _simulate(case: Case, ideal_per_s: float) -> dict[str, Any]:
    scenario, store = scenario_of(case), MemoryStore()
    result = simulate(scenario, registry.build("provisioning", scenario.settings), store=store, run="skew")
    with_per_s, actions = _taken_per_s(result.truth), action_kinds(store.records("skew"))
    return comparison_json(case, _unregulated_per_s(scenario), with_per_s, ideal_per_s, actions=actions)


def scenario_of(case: Case, *, even: bool = False) -> Scenario:
    """One counting stage with as many slots as partitions. With `even`, rows are spread evenly regardless of their
    keys.
    """
    fault = FaultSpec("hot-key", component="count", share=case.hot)
    return Scenario(
        "skew",
        case.name,
        MicrobatchSpec(
            trigger_s=TRIGGER_S, rows_per_trigger=ROWS, executors=SLOTS, max_executors=SLOTS, locality_wait_s=0.0
        ),
        SIMULATED_S,
        (
            ComponentSpec("lines", "source", parallelism=SLOTS, rate_per_s=1e6),
            ComponentSpec(
                "count",
                inputs=("lines",),
                parallelism=SLOTS,
                rate_per_s=1000.0 / WAIT_MS,
                keyed=not even,
                keys=KEYS,
                zipf=case.zipf,
                turn_s=TURN_S if case.turns else math.inf,
                stateful=True,
            ),
        ),
        WorkloadSpec("constant", LOAD_PER_S),
        faults=(fault,) if case.hot and not even else (),
        settings=SETTINGS,
    )


def _unregulated_per_s(scenario: Scenario) -> float:
    engine = build_engine(scenario)
    engine.wait(scenario.duration_s)
    return _taken_per_s(engine.truth)


def _taken_per_s(truth: Sequence[TruthSample]) -> float:
    """Rows per second in the last third of the run."""
    late = [sample for sample in truth if sample.at_s > 2.0 / 3.0 * SIMULATED_S]
    return sum(sample.taken_per_s * sample.span_s for sample in late) / sum(sample.span_s for sample in late)


# On Spark


def _on_spark(selection: Sequence[Case], tell: Tell) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    with _session() as (spark, directory):
        tell("an ideal even spread")
        ideal = _run(spark, directory / "ideal", Case("even"), "observe", ideal=True)
        for number, case in enumerate(selection):
            tell(f"{case.name}: without the resolver")
            unregulated_run = _run(spark, directory / f"{number}-without", case, "observe")
            tell(f"{case.name}: with the resolver")
            regulated_run = _run(spark, directory / f"{number}-with", case, "regulate")
            figures[case.name] = comparison_json(
                case,
                unregulated_run.per_s,
                regulated_run.per_s,
                ideal.per_s,
                actions=regulated_run.result.actions,
                verdicts=regulated_run.result.verdicts,
                spread=regulated_run.spread,
                differences=[*unregulated_run.result.differences, *regulated_run.result.differences],
            )
    return figures


@dataclass(frozen=True, slots=True)
class Run:
    result: TrialResult

    @property
    def per_s(self) -> float:
        return median(_per_s(batch) for batch in batches_after(self.result.records, -math.inf)[-SETTLED:])

    @property
    def spread(self) -> int:
        return int(next((value for knob, value in self.result.final.values.items() if knob.kind == SPREAD), 1))


def _run(spark: SparkSession, directory: Path, case: Case, mode: Mode, *, ideal: bool = False) -> Run:
    turn_rows = round(LOAD_PER_S * LONGEST_S / TURNS / 8) if case.turns else 0
    profile = Profile(
        WorkloadSpec("constant", LOAD_PER_S),
        keys=KEYS,
        zipf=case.zipf,
        hot=((0, case.hot),) if case.hot else (),
        turn_rows=turn_rows,
    )
    spec = specification(
        profile,
        directory / "ledger",
        wait_ms=WAIT_MS,
        own_state=not ideal,
        trigger_s=TRIGGER_S,
        executors=1,
        source_partitions=SLOTS,
        state_partitions=SLOTS,
        rows_per_trigger=ROWS,
    )
    trial = Trial(spark, directory / "application", spec, mode=mode, settings=SETTINGS)
    return Run(trial.run(LONGEST_S, until=lambda now: has_settled(now.records(), full=ROWS)))


def has_settled(records: Sequence[Record], *, full: int) -> bool:
    """Whether every action is judged and full batches followed, or many full batches ran without an action."""
    since_s = settled_since_s(records)
    if since_s is None:
        return False
    full_batches = [batch for batch in batches_after(records, since_s) if batch.rows >= full]
    return len(full_batches) >= (UNTOUCHED if since_s == -math.inf else SETTLED + 1)


def _per_s(batch: BatchContent) -> float:
    return batch.rows / batch.seconds if batch.seconds > 0 and batch.rows >= 0 else 0.0


@contextmanager
def _session() -> Iterator[tuple[SparkSession, Path]]:
    """A local session with many slots: tasks that only wait need no cores."""
    with TemporaryDirectory(prefix="homeostat-bench-") as path:
        directory = Path(path)
        conf = spark_conf(master=f"local[{SLOTS}]", app_name="bench-skew", executors=1, directory=directory / "session")
        spark = build_session(conf)
        try:
            yield spark, directory
        finally:
            spark.stop()
