"""Measures how soon a backlog is gone, how well that is predicted, and whether batches keep to their budget."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from statistics import fmean, median
from typing import Any

from homeostat.core.configuration import EXECUTORS_KNOB, ROWS_PER_TRIGGER, TRIGGER_S, Configuration, Knob, Patch, Value
from homeostat.core.observation import Observation
from homeostat.lab.bench.admission_rules import AdmissionRule, ByModel, EndedBatch, PidRateEstimator, StaticLimit
from homeostat.lab.bench.catch_up_cases import (
    DISTURBANCES,
    Case,
    after_outage,
    disturbed,
    draw_case,
    fitted,
)
from homeostat.lab.bench.catch_up_cases import (
    TRIGGER_S as BUDGET_S,
)
from homeostat.lab.bench.intervals import median_interval, share
from homeostat.lab.bench.watched_engine import WatchedEngine
from homeostat.models.application_model import ApplicationModel
from homeostat.models.batch_model import RECENT
from homeostat.models.caught_up import Backlog, when_caught_up
from homeostat.models.model_fitting import batch_model
from homeostat.models.performance import rows_within
from homeostat.models.plan_choice import plan
from homeostat.models.planning_question import Goal, Steady

# Settings are tuned on smaller seeds only.
FIRST_SEED = 1000
# The query has caught up when no more rows wait at the end of a batch than arrive in one trigger, and a tenth more.
GONE = 1.1
# The targets.
MOST_RATIO, MOST_ERROR, IN_BUDGET, LEAST_SHARE, WARM_UP = 1.15, 0.1, 0.1, 0.95, 5
MODEL, PID, STATIC = "model", "spark-pid", "static"
RULES = (MODEL, PID, STATIC)
# The search tries these limits, as multiples of the rows that arrive in one trigger, and these triggers (0: at once).
_LIMITS = (1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 16.0, 64.0)
_TRIGGERS_S = (0.0, 5.0, 10.0, 20.0)
_ROWS, _TRIGGER = Knob(ROWS_PER_TRIGGER, "main"), Knob(TRIGGER_S, "main")
# More values than this are those of batches, not of runs. A choice.
_MOST_RUNS = 200
# A run of rules ends after this many batches at the latest.
_MOST_BATCHES = 60


@dataclass(slots=True)
class Clearing:
    """One outage. `took_s` is from its end to the end of the backlog, with the planner's choice and with the best fixed
    configuration. `errors` are those of the predicted times, relative to the time that was left."""

    seed: int
    outage_s: float
    within_s: float
    executors: int
    took_s: float
    best_s: float
    best: dict[str, Value]
    errors: list[float]

    @property
    def over_best(self) -> float:
        return self.took_s / self.best_s


@dataclass(slots=True)
class Admission:
    """One run under a rule: its full batches after the first five, and how long each took relative to the budget."""

    seed: int
    disturbance: str
    rule: str
    ratios: list[float] = field(default_factory=list)


def clear(seed: int) -> Clearing:
    """Plan as soon as there is a model after the outage; then search for a better plan with as many executors."""
    case = draw_case(seed)
    engine = after_outage(case)
    model = fitted(case, engine)
    assert model is not None, "there was one after the outage"
    choice = plan(model, arrivals=Steady(model.arrival_per_s, model.variation), goal=Goal(catch_up_s=case.within_s))
    chosen = choice.best.configuration
    foretold = Foretold(case, model)
    took_s = _play(case, engine, choice.patch, foretold.note)
    best_s, best = min(
        ((_play(case, after_outage(case), patch), patch) for patch in _fixed(case, chosen)), key=lambda one: one[0]
    )
    errors = foretold.errors(case.back_s + took_s)
    return Clearing(
        seed,
        case.outage_s,
        case.within_s,
        executors=int(chosen[EXECUTORS_KNOB]),
        took_s=took_s,
        best_s=min(best_s, took_s),
        best={str(knob): value for knob, value in best.values.items()},
        errors=errors,
    )


def _fixed(case: Case, chosen: Configuration) -> Iterator[Patch]:
    """As many executors as the planner chose, with every limit and trigger."""
    for limit in _LIMITS:
        for trigger_s in _TRIGGERS_S:
            rows = round(limit * case.rate_per_s * BUDGET_S)
            yield Patch({EXECUTORS_KNOB: chosen[EXECUTORS_KNOB], _ROWS: rows, _TRIGGER: trigger_s})


def _play(
    case: Case,
    engine: WatchedEngine,
    patch: Patch,
    note: Callable[[WatchedEngine, Observation], None] = lambda engine, batch: None,
) -> float:
    """Apply the patch now, and return how long after the outage the backlog was gone."""
    engine.change(patch)
    while (batch := engine.next_batch(case.scenario.duration_s)) is not None:
        if is_caught_up(case, batch):
            break
        note(engine, batch)
    engine.close()
    return math.inf if batch is None else batch.at_s - case.back_s


def pending_rows(batch: Observation) -> float:
    return sum(flow.pending_rows for flow in batch.flows)


def is_caught_up(case: Case, batch: Observation) -> bool:
    return pending_rows(batch) <= GONE * case.rate_per_s * BUDGET_S


@dataclass(slots=True)
class Foretold:
    """The predictions of when the query has caught up, as `homeostat status` would show them.

    They come from the newest model, which in the first batches of a configuration is still that of the previous one.
    A change that is under way is taken into account.
    """

    case: Case
    model: ApplicationModel
    times: list[tuple[float, float]] = field(default_factory=list)

    def note(self, engine: WatchedEngine, batch: Observation) -> None:
        view = engine.view
        self.model = fitted(self.case, engine) or self.model
        arrivals = [digest.arrival_per_s for digest in view.history[-RECENT:]]
        backlog = Backlog(batch.at_s, pending_rows(batch), fmean(arrivals))
        catch_up = when_caught_up(self.model, backlog, view.configuration, ordered=engine.ordered)
        if catch_up is not None:
            ordered = engine.ordered and engine.ordered[EXECUTORS_KNOB]
            chosen = next((each for each in catch_up.others if each.instances == ordered), catch_up.present)
            self.times.append((batch.at_s, chosen.at_s))

    def errors(self, gone_s: float) -> list[float]:
        """The errors of the predictions, relative to the time that was left."""
        return [abs(at_s - gone_s) / (gone_s - made_s) for made_s, at_s in self.times]


def admit(seed: int, disturbance: str, rule_name: str) -> Admission:
    """Let the rule set the limit after each batch. It begins with the limit that a careful user would have measured."""
    case = disturbed(draw_case(seed), disturbance)
    engine = after_outage(case)
    model = batch_model(engine.view)
    assert model is not None, "there was one after the outage"
    limit = max(1, round(rows_within(model, model.setup, BUDGET_S)))
    engine.change(Patch({_ROWS: limit}))
    rule, run = _rule(rule_name), Admission(seed, disturbance, rule_name)
    due_s = math.inf
    for number in range(_MOST_BATCHES):
        batch = engine.next_batch(case.scenario.duration_s)
        if batch is None or is_caught_up(case, batch):
            break
        seconds, began_s = batch.flows[0].seconds, batch.at_s - batch.flows[0].seconds
        if number >= WARM_UP:
            run.ratios.append(seconds / BUDGET_S)
        ended = EndedBatch(batch.at_s, batch.flows[0].rows, seconds, max(0.0, began_s - due_s))
        due_s = (math.floor(began_s / BUDGET_S) + 1) * BUDGET_S
        rows = rule.rows(ended, engine.view)
        if math.isfinite(rows) and round(rows) != limit:
            limit = max(1, round(rows))
            engine.change(Patch({_ROWS: limit}))
    engine.close()
    return run


def _rule(name: str) -> AdmissionRule:
    rules: dict[str, AdmissionRule] = {
        MODEL: ByModel(BUDGET_S),
        PID: PidRateEstimator(BUDGET_S),
        STATIC: StaticLimit(),
    }
    return rules[name]


def measure(
    *, seeds: int = 20, first_seed: int = FIRST_SEED, tell: Callable[[str], None] = lambda _: None
) -> dict[str, Any]:
    """The numbers of `homeostat bench catchup`."""
    numbers = range(first_seed, first_seed + seeds)
    runs = [(seed, disturbance, rule) for disturbance in DISTURBANCES for rule in RULES for seed in numbers]
    tell(
        f"{seeds} outages, each with {len(_LIMITS) * len(_TRIGGERS_S)} other configurations; {len(runs)} runs of rules"
    )
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        clearings = list(pool.map(clear, numbers))
        admissions = list(pool.map(admit, *zip(*runs, strict=True)))
    return {
        "seeds": seeds,
        "first_seed": first_seed,
        **clearing_json(clearings),
        "admission": admission_json(admissions),
    }


def clearing_json(clearings: Sequence[Clearing]) -> dict[str, Any]:
    ratios = [each.over_best for each in clearings]
    errors = [error for each in clearings for error in each.errors]
    firsts = [each.errors[0] for each in clearings if each.errors]
    return {
        "over_best": {**_spread(ratios), "accepted": median(ratios) <= MOST_RATIO},
        "within_objective": share(sum(each.took_s <= each.within_s for each in clearings), len(clearings)),
        "arrival_error": {**_spread(errors), "accepted": bool(errors) and median(errors) <= MOST_ERROR},
        "first_arrival_error": _spread(firsts),
        "outages": [{**asdict(each), "over_best": each.over_best} for each in clearings],
    }


def admission_json(runs: Sequence[Admission]) -> dict[str, Any]:
    """For each rule, over all runs and by disturbance. `late` are batches that took longer than the budget and a
    tenth."""
    return {
        rule: {
            "all": _rule_json([run for run in runs if run.rule == rule]),
            **{
                name: _rule_json([run for run in runs if run.rule == rule and run.disturbance == name])
                for name in dict.fromkeys(run.disturbance for run in runs)
            },
        }
        for rule in dict.fromkeys(run.rule for run in runs)
    }


def _rule_json(runs: Sequence[Admission]) -> dict[str, Any]:
    ratios = [ratio for run in runs for ratio in run.ratios]
    near = share(sum(abs(ratio - 1.0) <= IN_BUDGET for ratio in ratios), len(ratios))
    by_run = [
        sum(abs(ratio - 1.0) <= IN_BUDGET for ratio in run.ratios) / len(run.ratios) for run in runs if run.ratios
    ]
    return {
        "runs": len(runs),
        "in_budget": near,
        "in_budget_by_run": _spread(by_run),
        "late": share(sum(ratio > 1.0 + IN_BUDGET for ratio in ratios), len(ratios)),
        "over_budget": _spread(ratios),
        "accepted": (near["share"] or 0.0) >= LEAST_SHARE,
    }


def _spread(values: Sequence[float]) -> dict[str, Any]:
    """The median and the extremes. For values of runs, also the 95 % interval of the median: the batches of one run are
    not independent."""
    if not values:
        return {"median": None, "interval": None, "least": None, "most": None, "count": 0}
    middle = median_interval(values) if len(values) <= _MOST_RUNS else None
    return {
        "median": median(values),
        "interval": None if middle is None else [middle.low, middle.high],
        "least": min(values),
        "most": max(values),
        "count": len(values),
    }
