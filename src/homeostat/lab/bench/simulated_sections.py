"""What the page of results shows of the benches that need no Spark."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from homeostat.lab.bench.result_tables import Contest, Figures, Section, Table, against, by_name, facts, nested

OURS = "provisioning"
_PAPER = "provisioning.paper"


def _duel_tables(figures: Figures) -> Iterable[Table]:
    contenders = {
        (one["engine"], one["trace"], label): each
        for one in figures["rounds"]
        for label, each in one["contenders"].items()
    }
    yield by_name(
        ("engine", "trace", "policy"),
        contenders,
        {
            "violation s": "violation_s.median",
            "p95 lag s": "p95_lag_s.median",
            "p99 lag s": "p99_lag_s.median",
            "cost ÷ oracle": "cost_over_oracle.median",
            "actions": "actions.median",
            "needless": "needless.median",
            "worst pause s": "worst_pause_s.median",
        },
    )


def _duel_reached(figures: Figures) -> bool | None:
    verdicts = [one["ours"] for one in figures["rounds"] if one.get("ours")]
    if not verdicts:
        return None
    return all(each["wins"] and each["within_cost"] and not each["dominated_by"] for each in verdicts)


def _duel_contests(figures: Figures) -> Iterator[Contest]:
    for one in figures["rounds"]:
        if one.get("ours"):
            best, contenders = one["ours"]["best_other"], one["contenders"]
            less = {"violation s": "violation_s.median", "cost ÷ oracle": "cost_over_oracle.median"}
            where = f"duel, {one['trace']}, {one['engine']}"
            yield from against(where, best, contenders[OURS], contenders[best], less=less)


def _convergence_tables(figures: Figures) -> Iterable[Table]:
    runs = {(run["scenario"], run["policy"]): run for run in (*figures["E7"], *figures["E8"])}
    yield by_name(
        ("experiment", "policy"),
        runs,
        {"steps": "steps", "healthy at the end": "converged", "unhealthy s": "unhealthy_s"},
    )
    yield by_name(
        ("noise in E9", "policy"),
        nested(figures["E9"], "policies"),
        {
            "runs": "runs",
            "one step or none": "one_step_or_none",
            "most steps": "most_steps",
            "most above the optimum": "most_above_the_optimum",
            "runs above it": "runs_above_the_optimum",
            "runs below it": "below_the_optimum",
            "healthy at the end": "converged",
            "unhealthy s": "unhealthy_s",
        },
    )


def _convergence_contests(figures: Figures) -> Iterator[Contest]:
    less = {
        "most steps": "most_steps",
        "runs above the optimum": "runs_above_the_optimum",
        "runs below the optimum": "below_the_optimum",
        "unhealthy s": "unhealthy_s",
    }
    for noise, measured in figures["E9"].items():
        policies = measured["policies"]
        yield from against(f"convergence, E9, noise: {noise}", "ds2", policies[OURS], policies["ds2"], less=less)


def _preempt_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        ("load", "policy"),
        nested(figures["cases"], "policies"),
        {
            "seconds behind": "violation_s",
            "executor hours": "executor_hours",
            "actions": "actions",
            "ahead of a rise": "ahead",
        },
    )
    yield by_name(
        "load",
        figures["cases"],
        {"violations ÷ reacting": "violations_over_reactive", "cost ÷ reacting": "cost_over_reactive"},
    )


def _preempt_contests(figures: Figures) -> Iterator[Contest]:
    less = {"seconds behind": "violation_s", "executor hours": "executor_hours"}
    for name, case in figures["cases"].items():
        for other in case["policies"]:
            if other not in ("ahead", "oracle"):
                ours, theirs = case["policies"]["ahead"], case["policies"][other]
                yield from against(f"preempt, {name}", other, ours, theirs, less=less)


def _mixes_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        ("engine", "policy"),
        nested(figures["engines"], "all"),
        {
            "runs": "runs",
            "unhealthy s, median": "unhealthy_s.median",
            "÷ oracle, median": "over_oracle.median",
            "÷ oracle at worst": "over_oracle.worst",
            "plans": "plans",
            "wrong": "wrong",
            "false remedies": "false_remedies",
            "reverted": "reverted",
            "one plan and one correction": "one_plan_and_one_correction:share",
        },
    )


def _mixes_contests(figures: Figures) -> Iterator[Contest]:
    less = {"unhealthy s, median": "unhealthy_s.median", "wrong actions": "wrong", "false remedies": "false_remedies"}
    for engine, measured in figures["engines"].items():
        yield from against(f"mixes, {engine}", _PAPER, measured["all"][OURS], measured["all"][_PAPER], less=less)


def _catchup_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        "figure",
        {
            "time ÷ that of the best fixed configuration": figures["over_best"],
            "error of the predicted time of arrival": figures["arrival_error"],
            "error of the first prediction": figures["first_arrival_error"],
        },
        {"median": "median", "least": "least", "most": "most", "values": "count"},
    )
    yield by_name(
        ("rule of admission", "while catching up"),
        nested(figures["admission"]),
        {
            "runs": "runs",
            "within a tenth of the budget": "in_budget:share",
            "longer": "late:share",
            "longest ÷ budget": "over_budget.most",
        },
    )


def _catchup_reached(figures: Figures) -> bool:
    parts = (figures["over_best"], figures["arrival_error"], figures["admission"]["model"]["all"])
    return all(part["accepted"] for part in parts)


def _catchup_contests(figures: Figures) -> Iterator[Contest]:
    model = figures["admission"]["model"]["all"]
    for rule, cases in figures["admission"].items():
        if rule != "model":
            less = {"share of batches that take too long": "late.share"}
            more = {"share of batches in budget": "in_budget.share"}
            yield from against("catchup", rule, model, cases["all"], less=less, more=more)


def _diagnosis_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        "policy",
        figures["policies"],
        {
            "macro-F1": "macro_f1",
            "macro-F1 of the causes it can name": "macro_f1_of_claims",
            "calibration error": "calibration_error",
            "batches until right": "batches_until_right_median",
            "never named": "never_named",
            "runs with useless scaling": "vain_scaling_runs",
            "clean runs": "clean_runs",
            "of which with a diagnosis": "clean_runs_with_a_diagnosis",
        },
    )


def _diagnosis_contests(figures: Figures) -> Iterator[Contest]:
    less = {
        "calibration error": "calibration_error",
        "faults never named": "never_named",
        "runs with useless scaling": "vain_scaling_runs",
        "clean runs with a diagnosis": "clean_runs_with_a_diagnosis",
    }
    for other, theirs in figures["policies"].items():
        if other != OURS:
            ours = figures["policies"][OURS]
            more = {"macro-F1": "macro_f1", "macro-F1 of the causes that each can name": "macro_f1_of_claims"}
            yield from against("diagnosis", other, ours, theirs, less=less, more=more)


def _forecast_tables(figures: Figures) -> Iterable[Table]:
    names = figures["mean_mase"]
    ratios = {name: {"mase": mase, "ratio": figures["champion_over"].get(name)} for name, mase in names.items()}
    yield by_name("forecast", ratios, {"mean MASE": "mase", "champion ÷ this": "ratio"})
    labels = {
        "actual values within the interval": "mean_coverage:%",
        "which states": "nominal_coverage:%",
    }
    yield facts(figures, labels)


def _forecast_contests(figures: Figures) -> Iterator[Contest]:
    for name, ratio in figures["champion_over"].items():
        yield Contest("forecast", name, "mean MASE of the champion ÷ that of the other", ratio, 1.0)


def _control_tables(figures: Figures) -> Iterable[Table]:
    sizes = {
        f"{int(size):,}": {"p50": p50, "p99": figures["step_ms_p99"][size]}
        for size, p50 in figures["step_ms_p50"].items()
    }
    yield by_name("instances", sizes, {"step, p50 ms": "p50", "step, p99 ms": "p99"})
    labels = {
        "growth exponent (1 is linear)": "growth_exponent",
        "a simulated hour with the largest number, s": "sim_hour_s",
        "its range": "sim_hour_s_range",
    }
    yield facts(figures, labels)
    yield by_name("engine", {name: {"s": seconds} for name, seconds in figures["plan_s"].items()}, {"a plan, s": "s"})


def _noise_tables(figures: Figures) -> Iterable[Table]:
    yield by_name(
        "engine",
        figures["engines"],
        {
            "simulated days": "simulated_days",
            "needless actions": "needless_actions",
            "overloads": "overload_seeds",
            "found within 15 batches": "found_within_15:%",
            "interval": "found_within_15_interval:%",
            "batches until found, p50": "batches_until_found_p50",
            "p95": "batches_until_found_p95",
            "never found": "never_found",
        },
    )


def _synopses_tables(figures: Figures) -> Iterable[Table]:
    yield facts(figures, {"different keys": "keys", "parts that are merged": "parts"})
    columns = {"error": "error", "stated": "stated_error", "bytes": "bytes", "stated bytes": "stated_bytes"}
    named = {name.replace("_", " "): each for name, each in figures["synopses"].items()}
    yield by_name("synopsis", named, {**columns, "within": "within"})


SECTIONS = (
    Section(
        "duel",
        "Homeostat and the rules of other systems on recorded loads",
        "All policies get the same load, noise and faults. Figures are medians over the seeds.",
        _duel_tables,
        "against the best other policy on each trace, at most half of its violations at no higher cost, or no more "
        "violations at 15 % lower cost; at most 1.15 times the cost of the oracle; no other policy better in both",
        _duel_reached,
        _duel_contests,
    ),
    Section(
        "convergence",
        "Steps to the right size",
        "E7, E8, and E9 as runs of NEXMark-like queries from several sizes, beside our implementation of DS2.",
        _convergence_tables,
        "with every noise one step in at least 34 of 36 runs of E9, at most two, never more than one instance above "
        "the optimum, and all healthy at the end",
        lambda figures: all(each["policies"][OURS]["accepted"] for each in figures["E9"].values()),
        _convergence_contests,
    ),
    Section(
        "preempt",
        "Acting on a forecast",
        "A load with a daily rhythm and spikes, on executors that take a minute to start.",
        _preempt_tables,
        "at most half of the violations of reacting, at no more than 5 % higher cost",
        lambda figures: all(case["accepted"] for case in figures["cases"].values()),
        _preempt_contests,
    ),
    Section(
        "mixes",
        "Several problems at once",
        "Two or three problems begin at almost the same time. The oracle knows their causes.",
        _mixes_tables,
        "a median of at most 1.5 times the oracle's unhealthy time, never above 3 times, at most one plan and one "
        "correction in 90 % of the runs, and no false remedy",
        lambda figures: all(each["all"][OURS]["accepted"] for each in figures["engines"].values()),
        _mixes_contests,
    ),
    Section(
        "catchup",
        "Catching up after an outage",
        "What waits after an outage is processed.",
        _catchup_tables,
        "a median of at most 1.15 times the time of the best fixed configuration, a median error of the predicted time "
        "of at most 10 %, and 95 % of the batches within 10 % of their budget under the rule `model`",
        _catchup_reached,
        _catchup_contests,
    ),
    Section(
        "diagnosis",
        "Naming the right cause",
        "Runs with known faults. No action is taken.",
        _diagnosis_tables,
        contests=_diagnosis_contests,
    ),
    Section(
        "noise",
        "False alarms on noise",
        "Steady loads with noise need no action. Then the load rises to 1.2 times the capacity.",
        _noise_tables,
    ),
    Section(
        "forecast",
        "Forecasting recorded loads",
        "Each forecast uses earlier values only. MASE is the mean error relative to a seasonal naive forecast.",
        _forecast_tables,
        contests=_forecast_contests,
    ),
    Section(
        "synopses",
        "Error and memory of synopses",
        "Many different keys are fed in parts, which are then merged.",
        _synopses_tables,
        "error and memory within what each synopsis states",
        lambda figures: all(each["within"] for each in figures["synopses"].values()),
    ),
    Section(
        "control",
        "Time of one step of the loop",
        "Steps of the loop with a full window, for applications of several sizes.",
        _control_tables,
        "a plan within 1 s",
        lambda figures: bool(figures["plan_accepted"]),
    ),
    Section(
        "service",
        "Dashboard and log",
        "A large log is served in a separate process while the loop writes to it.",
        lambda figures: [
            facts(
                figures,
                {
                    "queries in the log": "queries",
                    "records in the log": "records",
                    "first answer of a new server, s": "first_view_s",
                    "list of queries, s": "list_s",
                    "page of a query, s": "query_s",
                    "charts of seven days, s": "charts_s",
                    "new records arrive after, s": "live_s",
                    "cycle time with ÷ without open dashboards": "cycle_ratio",
                },
            )
        ],
        "the first answer within 1 s, and a cycle time with open dashboards of at most 1.05 times that without",
        lambda figures: bool(figures["first_view_s"] <= 1.0 and figures["cycle_ratio"] <= 1.05),
    ),
    Section(
        "endurance",
        "Many days in one process",
        "One manager regulates many simulated queries for many days.",
        lambda figures: [
            facts(figures, {"days": "days", "queries": "queries", "worst cycle s": "worst_cycle_s"}),
            by_name(
                "size",
                {name: figures[name] for name in ("resident_mb", "server_mb", "store_mb", "blocks")},
                {
                    "after a day": "first",
                    "at the end": "last",
                    "growth per day": "growth_a_day",
                    "interval": "interval",
                    "within noise": "within_noise",
                },
            ),
        ],
    ),
)
