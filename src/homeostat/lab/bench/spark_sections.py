"""What the page of results shows of the benches that need Spark, or that have a part on Spark."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from homeostat.lab.bench.result_tables import Figures, Section, Table, by_name, facts, nested


def _sides(figures: Figures) -> dict[str, Figures]:
    return {side: figures[side] for side in ("simulator", "spark") if side in figures}


def _models_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        "side",
        _sides(figures),
        {
            "error of the batch duration": "median_batch_error:%",
            "relative to the fitted one": "median_ratio_error:%",
            "error of the throughput": "median_throughput_error:%",
            "error of the largest rate": "median_saturation_error:%",
            "batches between p10 and p90": "coverage:%",
        },
    )
    spark = figures.get("spark", {})
    if "catch_up" in spark:
        setups = {line["setup"]: line for line in spark["catch_up"]}
        columns = {"caught up after s": "caught_up_s", "predicted s": "predicted_s", "accepted": "accepted"}
        yield by_name("backlog", setups, columns)
    if "latency" in spark:
        labels = {
            "objective, p95 s": "objective_p95_s",
            "p95 s": "p95_s",
            "executors on average": "executors",
            "accepted": "accepted",
        }
        yield facts(spark["latency"], labels)


def _models_reached(figures: Figures) -> bool | None:
    sides = _sides(figures)
    accepted = [bool(side["accepted"]) for side in sides.values()]
    spark = sides.get("spark", {})
    accepted += [bool(line["accepted"]) for line in spark.get("catch_up", ())]
    accepted += [bool(spark["latency"]["accepted"])] if "latency" in spark else []
    return all(accepted) if accepted else None


def _skew_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        ("engine", "keys"),
        nested(_sides(figures)),
        {
            "share of the largest key": "largest_key:%",
            "without, rows/s": "without_per_s",
            "with, rows/s": "with_per_s",
            "even keys, rows/s": "ideal_per_s",
            "with ÷ without": "gain",
            "with ÷ even keys": "share_of_ideal",
        },
    )


def _overhead_tables(figures: Figures) -> Iterable[Table]:
    labels = {
        "throughput with ÷ without the manager": "throughput_ratio",
        "95 % interval": "throughput_ratio_interval",
        "source": "source",
    }
    yield facts(figures, labels)
    yield by_name(
        "tasks per batch",
        figures["driver_cpu_s_per_batch"],
        {
            "CPU s of the driver with": "with.cpu_s",
            "without": "without.cpu_s",
            "batch s with": "with.batch_s",
            "batch s without": "without.batch_s",
        },
    )


def _heal_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        "times slower",
        figures["slowed"],
        {
            "runs": "healed.of",
            "replaced within 5 batches": "healed_within_5:share",
            "replaced at all": "healed:share",
            "batches until replaced": "batches_until_replaced.median",
        },
    )
    labels = {
        "replacements of executors that were not slow": "false_replacements:share",
        "clean runs with a replacement": "clean_runs_with_a_replacement:share",
    }
    yield facts(figures, labels)


def _chaos_tables(figures: Figures) -> Iterable[Table]:
    labels = {
        "faults injected": "injected",
        "survived": "survived",
        "rows": "rows",
        "lost": "lost",
        "duplicated": "doubled",
        "misplaced": "misplaced",
        "unexpected actions": "unasked_actions:count",
        "processes left": "leftover_processes:count",
    }
    yield facts(figures, labels)
    columns = {
        "injected": "injected",
        "survived": "survived",
        "s to recover, median": "recover_s.median",
        "longest": "recover_s.max",
    }
    yield by_name("fault", figures["kinds"], columns)


def _twin_tables(figures: Figures) -> Iterable[Table]:
    if "median_error" in figures:
        labels = {
            "median error of the batch duration": "median_error:%",
            "batches between simulated p10 and p90": "coverage:%",
        }
        yield facts(figures, labels)
    experiments = figures.get("experiments", {})
    if experiments:
        rows = {
            name: {side: _course(each[side]) for side in ("spark", "simulator")} for name, each in experiments.items()
        }
        yield by_name("experiment", rows, {"on Spark": "spark", "in the simulator": "simulator"})


def _course(side: Mapping[str, object]) -> str:
    actions = side["actions"]
    names = ", ".join(str(action) for action in actions) if isinstance(actions, list) else ""
    return f"{names or 'nothing'}; {side['executors']} executors at the end"


def _state_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        "keys",
        {f"{int(size):,}": each for size, each in figures["keys"].items()},
        {
            "rescale, verified, s": "rescale.verified.pause_s",
            "not verified, s": "rescale.not_verified.pause_s",
            "restart from a snapshot, s": "restart_s.from_a_snapshot",
            "from a changelog, s": "restart_s.from_a_changelog",
        },
    )


SECTIONS = (
    Section(
        "models",
        "Predictions and measurements",
        "Configurations that the models were not fitted to. Errors are medians.",
        _models_tables,
        "an error of ratios and of the throughput of at most 10 %; on Spark also a predicted time to catch up within "
        "15 %, and a latency objective kept with fewer executors than a fixed number",
        _models_reached,
        on_spark=True,
    ),
    Section(
        "twin",
        "The simulator and real Spark",
        "The simulator is calibrated on real runs and compared with other real runs.",
        _twin_tables,
        "a median error of at most 15 %, 70 % to 90 % of the batches between p10 and p90, and the same actions and "
        "executors in E1 to E4",
        lambda figures: bool(figures["accepted"]),
        on_spark=True,
    ),
    Section(
        "heal",
        "Replacing slow executors",
        "Executors of a real application become slow, one at a time.",
        _heal_tables,
        on_spark=True,
    ),
    Section(
        "chaos",
        "Random faults",
        "Faults are injected into a real application under `homeostat run`.",
        _chaos_tables,
        "every fault survived, no row lost, duplicated or misplaced, no unexpected action, no process left",
        lambda figures: bool(figures["accepted"]),
        on_spark=True,
    ),
    Section(
        "overhead",
        "What the manager costs",
        "A CPU-bound job on Spark with and without the manager.",
        _overhead_tables,
        on_spark=True,
    ),
    Section(
        "skew",
        "Spreading hot keys",
        "Throughput with and without the spread, and with keys that are even.",
        _skew_tables,
        on_spark=True,
    ),
    Section(
        "state",
        "Changing the number of state partitions",
        "How long a query pauses, by the number of keys in its state.",
        _state_tables,
        on_spark=True,
    ),
)
