"""The time that the latest batches lost to each cause, batch by batch.

`recoverable` has the causes that a single batch shows. This module adds the causes that show only in several batches:
slow workers and hosts, costly partitions, tasks that wait longer, and rows whose cost rises.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from homeostat.core.causes import EXTERNAL, SLOW_INSTANCE
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.observation import Array, Observation
from homeostat.core.stats import filled, median, quantile
from homeostat.core.time_causes import (
    CHECKPOINT_BOUND,
    COSTLY_KEYS,
    DRIVER_BOUND,
    HOST_CONTENTION,
    RISING_COST,
    SLOW_HOST,
    SMALL_FILES,
    SPILLING,
    STATE_STORE_BOUND,
    TINY_TASKS,
)
from homeostat.core.view import View
from homeostat.core.worker_pace import NOTICED, peers_ratio
from homeostat.models.batch_parts import StagePart
from homeostat.models.host_use import cpu_is_taken
from homeostat.models.loss_series import LEAST_SHARE, USUAL_QUANTILE, LossSeries, series_of, times_of
from homeostat.models.pace import paces
from homeostat.models.recoverable import (
    UNEVEN_ROWS,
    BatchLosses,
    Change,
    batch_losses,
    gains,
    reads_small_files,
    starting_s,
    with_even_rows,
)
from homeostat.models.rising_cost import LONGEST_SPAN, rise_of_costs
from homeostat.models.task_times import task_costs

# The losses of this many batches are compared: more give a more certain result, fewer a more recent one. A choice.
RECENT_BATCHES = 6
# The rows of a partition are costly if they take this many times as long as those of other partitions. A choice.
COSTLY = 1.5
# The usual times are measured on at most and at least this many digests. Choices.
_USUAL_OVER, _LEAST_USUAL = 1000, 5
# The fewest batches that show the usual wait of a task. Few are enough: if a problem begins just after the start of the
# application, tasks wait many times as long. A choice.
_LEAST_USUAL_WAITS = 3
# The ordinary variation of waits is measured below the usual wait (the quantile 0.2), where no problem shows: by the
# distance to this lower quantile. For normal values, the quantile 0.8 lies this many times as far above. Statistics.
_LOW_QUANTILE, _SPREAD_ABOVE = 0.05, 2.1
# The host is busy if planning and the offset log both take this many times as long as usual, and one has not risen more
# than this many times as much as the other. Choices.
_SLOWED, _ALIKE = 1.5, 3.0
# Causes that make a task wait and whose time is measured.
_MEASURED_WAITS = (SPILLING, STATE_STORE_BOUND)
Batches = Sequence[tuple[Observation, BatchLosses]]
StageChange = Callable[[Observation, StagePart], Array]


def time_losses(view: View) -> tuple[LossSeries, ...]:
    """Return one series for each cause that the latest batches lost time to; none for an engine without batches."""
    return view.once("time losses", _time_losses)


def _time_losses(view: View) -> tuple[LossSeries, ...]:
    if not view.micro_batch:
        return ()
    pairs = _measured(view.window.observations)
    recent = pairs[-RECENT_BATCHES:]
    if not recent:
        return ()
    since_s = recent[-LEAST_OBSERVATIONS:][0][0].at_s
    past = _measured(view.earlier) if view.earlier else pairs
    earlier = [(observation, losses) for observation, losses in past if observation.at_s < since_s]
    all_before = [losses for _, losses in earlier]
    keys = dict.fromkeys(key for _, losses in recent for key in losses.losses)
    batches = [losses for _, losses in recent]
    times = times_of(batches)
    of_interval = _of_interval(view, batches)
    series = []
    for key in keys:
        # A cause that is already named had enough batches. Some may have left the window since.
        stands = key in view.standing_since_s
        before, least = (_before_it_stood(view, earlier, *key), 1) if stands else (all_before, _LEAST_USUAL)
        beside_tasks = of_interval if key[1] == "" else None
        each = _with_fitted_starts(view, recent[-1][1], series_of(*key, batches, before, least, times, beside_tasks))
        series.append(each)
    rises = list(_by_rise(view, recent))
    waits = _by_wait(view, recent, frozenset(each.component for each in rises))
    by_task = [*_by_pace(recent, earlier), *waits, *rises]
    return (*_with_contention(recent, series), *by_task)


def _with_fitted_starts(view: View, latest: BatchLosses, series: LossSeries) -> LossSeries:
    """The series with the start of a task fitted to batches of different sizes, because one batch does not show how
    long a start takes."""
    if series.cause != TINY_TASKS or not bool((series.share >= LEAST_SHARE).any()):
        return series
    fitted_s = task_costs(view).get(series.component, 0.0)
    stage = next((stage for stage in latest.parts.stages if stage.name == series.component), None)
    if stage is None or not fitted_s > 0:
        return series
    around_s = sum(median(stage.cost(name)) for name in ("deserialise_s", "serialise_s", "delay_s"))
    part = min(1.0, (fitted_s + around_s) / starting_s(stage))
    return replace(series, lost_s=part * series.lost_s, usual_s=part * series.usual_s)


def _of_interval(view: View, batches: Sequence[BatchLosses]) -> Array:
    arrivals = view.flow("arrival_per_s", last=LEAST_OBSERVATIONS)
    return np.array([each.parts.of_interval(median(arrivals[np.isfinite(arrivals)])) for each in batches])


def _measured(observations: Sequence[Observation]) -> Batches:
    return [(o, losses) for o in observations if (losses := batch_losses(o)) is not None]


def _before_it_stood(view: View, earlier: Batches, cause: str, component: str) -> list[BatchLosses]:
    """The batches before the cause can have begun, because the losses since then are not usual."""
    since_s = _began_s(view, cause, component)
    return [losses for observation, losses in earlier if observation.at_s < since_s]


def _began_s(view: View, cause: str, component: str) -> float:
    """The latest time at which the cause can have begun: it was named some batches later. Infinity if not named."""
    named_s = view.standing_since_s.get((cause, component))
    if named_s is None:
        return math.inf
    at_s = view.numbers.flow("at_s", len(view.history))
    agreeing = int(np.searchsorted(at_s, named_s, side="right")) - (LEAST_OBSERVATIONS + 1)
    return float(at_s[max(0, agreeing)]) if len(at_s) else named_s


def _by_pace(recent: Batches, earlier: Batches) -> Iterator[LossSeries]:
    pace = paces([observation for observation, _ in recent])
    by_host = _on_slow_hosts(recent[-1][0], pace.workers)
    by_itself = {id: ratio for id, ratio in pace.workers.items() if ratio >= NOTICED and id not in by_host}
    for cause, workers in ((SLOW_INSTANCE, by_itself), (SLOW_HOST, by_host)):
        if workers:
            series = _replayed(cause, "", recent, partial(_at_the_pace_of_peers, workers=workers))
            yield replace(series, workers=tuple(sorted(workers)), guessed=not all(pace.distinguishable.values()))
    for name, ratios in pace.partitions.items():
        costly = np.where(filled(ratios, 1.0) >= COSTLY, ratios, 1.0)
        if (costly > 1.0).any():
            series = _replayed(COSTLY_KEYS, name, recent, partial(_at_the_usual_cost, component=name, times=costly))
            instances = tuple(int(i) for i in np.flatnonzero(costly > 1.0))
            usual_s = 0.0 if _were_ordinary(earlier, recent[-1][0], name, instances) else math.nan
            yield replace(series, usual_s=usual_s, instances=instances, guessed=not pace.distinguishable[name])


def _were_ordinary(earlier: Batches, now: Observation, name: str, instances: tuple[int, ...]) -> bool:
    """Whether these partitions were not costly in the oldest known batches with the same number of partitions."""
    size = now.tasks[name].instances
    alike = [o for o, _ in earlier if o.workers.ids and name in o.tasks and o.tasks[name].instances == size]
    if len(alike) < _LEAST_USUAL:
        return False
    ratios = paces(alike[:RECENT_BATCHES]).partitions.get(name)
    if ratios is None:
        return True  # all tasks of the component took about as long for each row
    before = ratios[list(instances)]
    return bool((before[np.isfinite(before)] < COSTLY).all() and np.isfinite(before).any())


def _replayed(cause: str, component: str, recent: Batches, change: StageChange) -> LossSeries:
    """The time that each batch would save with this change, alone or after rows are even, whichever is more."""
    lost_s = []
    for observation, losses in recent:
        changes: dict[str, Change] = {cause: partial(change, observation), UNEVEN_ROWS: with_even_rows}
        gained = [gains(stage, changes).get(cause) for stage in losses.parts.stages]
        lost_s.append(sum(gain.most_s for gain in gained if gain is not None))
    return LossSeries(cause, component, np.array(lost_s), *times_of([losses for _, losses in recent]))


def _at_the_pace_of_peers(observation: Observation, stage: StagePart, workers: Mapping[str, float]) -> Array:
    ids = observation.workers.ids
    pace = [workers.get(ids[w], 1.0) if 0 <= w < len(ids) else 1.0 for w in stage.worker.tolist()]
    return np.asarray(stage.task_s / np.array(pace))


def _at_the_usual_cost(observation: Observation, stage: StagePart, component: str, times: Array) -> Array:
    if stage.name != component or len(stage.task_s) != len(times):
        return stage.task_s
    return np.asarray(stage.task_s / times)


def _on_slow_hosts(observation: Observation, workers: Mapping[str, float]) -> dict[str, float]:
    """How many times slower than other hosts each worker on a slow host is. Hosts with one worker are left out.

    Hosts are compared with each other: if one of two is slow, half of the workers are slow, so the typical pace of
    workers shows nothing.
    """
    by_host: dict[str, list[str]] = {}
    for id, host in zip(observation.workers.ids, observation.workers.hosts, strict=True):
        if id in workers:
            by_host.setdefault(host, []).append(id)
    typical = np.array([median(np.array([workers[id] for id in ids])) for ids in by_host.values()])
    slow: dict[str, float] = {}
    for ids, pace, ratio in zip(by_host.values(), typical.tolist(), peers_ratio(typical).tolist(), strict=True):
        paces_there = {id: workers[id] * ratio / pace for id in ids}
        if len(ids) > 1 and min(paces_there.values()) >= NOTICED:
            slow |= paces_there
    return slow


def _by_wait(view: View, recent: Batches, rising: frozenset[str]) -> Iterator[LossSeries]:
    """Tasks that wait longer for each row than they used to: the CPU is taken, or something outside is slow.

    Components whose rows cost more and more are left out, because that cannot be distinguished from waiting.
    """
    names = [name for name in recent[-1][0].tasks if name not in rising]
    waits = {name: each for name in names if (each := _excess_wait(view, name)) is not None}
    excess = {name: each.excess_s for name, each in waits.items()}
    if not excess or _longest_s(recent[-1][1], excess) < LEAST_SHARE * recent[-1][1].parts.period_s:
        return
    hosts = [host for observation, _ in recent for host in observation.hosts if math.isfinite(host.others)]
    cpu_taken = cpu_is_taken([(observation, losses.parts) for observation, losses in recent])
    sources = {c.name for c in view.topology if c.kind == "source"} if reads_small_files(recent[-1][0]) else set()
    by_files = {name: wait_s for name, wait_s in excess.items() if name in sources and not cpu_taken}
    others = {name: wait_s for name, wait_s in excess.items() if name not in by_files}
    for name in by_files:
        yield _with_usual(_waiting(SMALL_FILES, name, recent, by_files), waits, by_files)
    if others:
        series = _waiting(HOST_CONTENTION if cpu_taken else EXTERNAL, "", recent, others)
        yield _with_usual(replace(series, guessed=not hosts), waits, others)


@dataclass(frozen=True, slots=True)
class _Wait:
    """How much longer tasks wait for each row than they used to, and the ordinary variation of that."""

    excess_s: float
    varying_s: float


def _excess_wait(view: View, name: str) -> _Wait | None:
    has_tasks = np.isfinite(view.numbers.part(name, "instances", _USUAL_OVER))
    waits = view.numbers.part(name, "row_wait_s", _USUAL_OVER)[has_tasks]
    at_s = view.numbers.flow("at_s", _USUAL_OVER)[has_tasks]
    began_s = min(_began_s(view, *key) for key in ((EXTERNAL, ""), (HOST_CONTENTION, ""), (SMALL_FILES, name)))
    earlier, latest = waits[:-LEAST_OBSERVATIONS], waits[-LEAST_OBSERVATIONS:]
    earlier = earlier[at_s[:-LEAST_OBSERVATIONS] < began_s]
    usual, now_s = np.sort(earlier[np.isfinite(earlier)]), median(latest[np.isfinite(latest)])
    if len(usual) < _LEAST_USUAL_WAITS or not now_s > (usual_s := quantile(usual, USUAL_QUANTILE)):
        return None
    varying_s = _SPREAD_ABOVE * (usual_s - quantile(usual, _LOW_QUANTILE))
    return _Wait(now_s - usual_s, varying_s)


def _with_usual(series: LossSeries, waits: Mapping[str, _Wait], names: Mapping[str, float]) -> LossSeries:
    """The series with the loss that batches usually have because waits vary."""
    varying_s, excess_s = (sum(getattr(waits[name], each) for name in names) for each in ("varying_s", "excess_s"))
    varying = min(1.0, varying_s / excess_s)
    return replace(series, usual_s=varying * median(series.lost_s[-LEAST_OBSERVATIONS:]))


def _longest_s(losses: BatchLosses, excess: Mapping[str, float]) -> float:
    """The longest time that waiting tasks can add to a batch: the longest wait in each round of tasks."""
    return sum(
        excess.get(stage.name, 0.0)
        * float(np.nanmax(stage.rows, initial=0.0))
        * math.ceil(len(stage.rows) / stage.slots)
        for stage in losses.parts.stages
    )


def _waiting(cause: str, component: str, recent: Batches, excess: Mapping[str, float]) -> LossSeries:
    series = _replayed(cause, component, recent, partial(_without_excess, excess=excess))
    explained_s = np.array([_explained_s(losses, tuple(excess)) for _, losses in recent])
    return replace(series, lost_s=np.maximum(0.0, series.lost_s - explained_s))


def _explained_s(losses: BatchLosses, components: Sequence[str]) -> float:
    """The time in which these components waited for a measured reason. A task's time includes the time to write shuffle
    blocks, but not the time to wait for them."""
    measured_s = sum(losses.seconds(cause, name) for cause in _MEASURED_WAITS for name in components)
    writing = [(stage, stage.cost("shuffle_write_s")) for stage in losses.parts.stages if stage.name in components]
    written_s = [stage.seconds - stage.replay_s(np.maximum(stage.task_s - each, 0.0)) for stage, each in writing]
    return measured_s + sum(written_s)


def _without_excess(observation: Observation, stage: StagePart, excess: Mapping[str, float]) -> Array:
    waited_s = excess.get(stage.name, 0.0) * filled(stage.rows, 0.0)
    return np.asarray(stage.task_s - np.minimum(waited_s, stage.task_s))


def _with_contention(recent: Batches, series: Sequence[LossSeries]) -> list[LossSeries]:
    """If the load of the hosts is not reported, the driver shows it: both planning and the offset log are slower.

    Planning mostly computes and the offset log mostly writes to storage, so another cause would slow only one of them.
    """
    own = [each for each in series if each.cause in (DRIVER_BOUND, CHECKPOINT_BOUND)]
    known_hosts = any(math.isfinite(host.others) for observation, _ in recent for host in observation.hosts)
    rises = [median(each.lost_s[-LEAST_OBSERVATIONS:]) / each.usual_s if each.usual_s > 0 else math.nan for each in own]
    risen = [each for each, rise in zip(own, rises, strict=True) if rise >= _SLOWED]
    if known_hosts or len(risen) < 2 or max(rises) > _ALIKE * min(rises):
        return list(series)
    excess_s = np.asarray(sum(np.maximum(each.lost_s - each.usual_s, 0.0) for each in risen))
    usual = [replace(each, lost_s=np.minimum(each.lost_s, each.usual_s)) for each in risen]
    contention = replace(risen[0], cause=HOST_CONTENTION, lost_s=excess_s, usual_s=0.0, guessed=True)
    return [*(each for each in series if not any(each is one for one in risen)), *usual, contention]


def _by_rise(view: View, recent: Batches) -> Iterator[LossSeries]:
    """Components whose rows cost more and more."""
    latest = recent[-1][0]
    rows = sum(flow.rows for flow in latest.flows)
    sizes = view.numbers.flow("rows", LONGEST_SPAN)
    for name in latest.tasks:
        ratio = rise_of_costs(view.numbers.part(name, "row_s", LONGEST_SPAN), sizes, rows)
        if ratio > 1.0:
            change = partial(_at_the_usual_cost, component=name, times=np.full(latest.tasks[name].instances, ratio))
            yield _replayed(RISING_COST, name, recent, change)
