"""Draws runs, predictions, plans and forecasts. matplotlib is imported only when a picture is drawn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from math import isfinite
from pathlib import Path
from textwrap import fill
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import EXECUTORS, PARALLELISM, Knob
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.core.observation import Array

if TYPE_CHECKING:
    from homeostat.log_views.timeline import Timeline
    from homeostat.models.application_model import ApplicationModel, Predicted
    from homeostat.models.forecast import Forecast, Series
    from homeostat.models.plan_choice import Plan
    from homeostat.sim.simulation import RunResult

FORMATS = (".png", ".svg")
# The palette of Okabe and Ito, which colour-blind readers can tell apart.
# Vermilion is kept for trouble.
LOAD, TAKEN, ACTION = "#999999", "#0072B2", "#CC79A7"
LINES = ("#009E73", "#E69F00", "#56B4E9", "#0072B2", "#000000")
UNHEALTHY = "#D55E00"
WIDEST_LABEL = 16
WIDEST_VERDICT = 48
HISTORY_SHOWN = 4.0  # horizons


def check_format(path: Path) -> None:
    if path.suffix.lower() not in FORMATS:
        raise ConfigError(f"cannot draw a {path.suffix or 'nameless'} file", where=str(path), fix="use .png or .svg")


def check(path: Path) -> None:
    """Fail early if the picture could not be drawn."""
    check_format(path)
    try:
        import matplotlib  # noqa: F401 (only to see whether it is installed)
    except ImportError:
        raise HomeostatError("drawing a picture requires matplotlib", fix="pip install 'homeostat[plot]'") from None


def compare(results: Sequence[RunResult], path: Path, title: str = "") -> None:
    """One row of panels per run: load and throughput on the left, instances on the right."""
    with styled_figure(path, (11, 1.0 + 2.1 * len(results)), title) as figure:
        panels = figure.subplots(len(results), 2, sharex=True, sharey="col", squeeze=False)
        for result, (left_panel, right_panel) in zip(results, panels, strict=True):
            _draw_rates(left_panel, result)
            _draw_instances(right_panel, result)
        for panel in panels[-1]:
            panel.set_ylim(bottom=0)  # last, because it ends autoscaling for the whole column
            panel.set_xlabel("minutes")
            panel.set_xlim(0, max(result.duration_s for result in results) / 60)
        _legends(figure, *panels[0])


@contextmanager
def styled_figure(path: Path, inches: tuple[float, float], title: str) -> Iterator[Any]:
    """A figure in the common style; it is saved at the end of the block."""
    check(path)
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    style: Any = {
        "font.size": 9,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 9.5,
        "axes.titlelocation": "left",
        "svg.hashsalt": "homeostat",
        "svg.fonttype": "none",
    }
    with rc_context(style):
        figure = Figure(figsize=inches, layout="constrained")
        FigureCanvasAgg(figure)
        yield figure
        if title:
            figure.suptitle(title, fontsize=11, fontweight="bold")
        _save(figure, path)


def timelines(runs: Sequence[Timeline], path: Path, title: str = "") -> None:
    """One column per run: load and rate, backlog, and executors, with marks for changes and actions."""
    with styled_figure(path, (max(9.0, 5.0 * len(runs)), 7.0), title) as figure:
        panels = figure.subplots(3, len(runs), sharex=True, sharey="row", squeeze=False)
        for number, run in enumerate(runs):
            _draw_run(run, *panels[:, number])
        for row, label in zip(panels, ("rows/s", "rows waiting", "executors"), strict=True):
            row[0].set_ylabel(label)
            row[0].set_ylim(bottom=0)
            row[0].yaxis.set_major_formatter("{x:,.0f}")
        panels[2][0].yaxis.get_major_locator().set_params(integer=True)
        for panel in panels[2]:
            panel.set_xlabel("seconds")
            panel.set_xlim(0, max(run.duration_s for run in runs))
        _timeline_legend(figure, panels[0][0])


def _draw_run(run: Timeline, rates: Any, backlog: Any, executors: Any) -> None:
    seconds = [point.at_s for point in run.points]
    load = [*run.load, (run.duration_s, run.load[-1][1])]
    rates.step([at for at, _ in load], [r for _, r in load], where="post", color=LOAD, linewidth=1.6, label="load")
    rates.plot(seconds, [p.rate_per_s for p in run.points], color=TAKEN, linewidth=1.1, label="rate")
    backlog.plot(seconds, [p.pending_rows for p in run.points], color=LINES[2], linewidth=1.3)
    executors.step(seconds, [p.executors for p in run.points], where="pre", color=LINES[0], linewidth=1.5)
    for point in run.points:
        if point.behind:
            backlog.axvspan(point.at_s - point.span_s, point.at_s, color=UNHEALTHY, alpha=0.12, linewidth=0)
    rates.set_title(f"{run.title}: behind for {run.behind_s:.0f} s, {run.executor_seconds:,.0f} executor-seconds")
    for panel in (rates, backlog, executors):
        for change in run.changes:
            panel.axvline(change.at_s, color=LOAD, linewidth=0.8, linestyle=":")
    _label_changes(rates, run)
    for action in run.actions:
        executors.axvline(action.at_s, color=ACTION, linewidth=0.8, alpha=0.7)
        executors.annotate(
            action.kind,
            (action.at_s, 0.0),
            xycoords=executors.get_xaxis_transform(),
            xytext=(2, 3),
            textcoords="offset points",
            rotation=90,
            fontsize=8,
            color=ACTION,
        )


def _label_changes(panel: Any, run: Timeline) -> None:
    """Label each change beside its line, at the bottom of the panel."""
    for change in run.changes:
        panel.annotate(
            fill(change.text.partition(":")[0], WIDEST_LABEL),
            (change.at_s, 0.0),
            xycoords=panel.get_xaxis_transform(),
            xytext=(3, 4),
            textcoords="offset points",
            fontsize=8,
            color="#555555",
        )


def _timeline_legend(figure: Any, rates: Any) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        *rates.get_legend_handles_labels()[0],
        Line2D([], [], color=LINES[2], label="backlog"),
        Patch(color=UNHEALTHY, alpha=0.12, label="behind"),
        Line2D([], [], color=LINES[0], label="executors"),
        Line2D([], [], color=LOAD, linewidth=0.8, linestyle=":", label="load or fault changes"),
        Line2D([], [], color=ACTION, linewidth=0.8, label="action"),
    ]
    figure.legend(handles=handles, loc="outside lower center", frameon=False, ncols=len(handles))


def predictions(model: ApplicationModel, at: Predicted, path: Path) -> None:
    """Predictions for each number of executors at this rate. For a dataflow, the utilisation of each component."""
    if at.batch_s is None:
        _draw_utilisation(at, path)
        return
    from homeostat.core.configuration import EXECUTORS_KNOB, TRIGGER_S
    from homeostat.core.configuration import Patch as Change

    here = int(at.configuration.get(EXECUTORS_KNOB, 1))
    counts = sorted({*range(1, 2 * here + 1, max(1, here // 6)), here})
    predictions = [model.predict(at.configuration.patched(Change({EXECUTORS_KNOB: n})), at.rate_per_s) for n in counts]
    with styled_figure(path, (9, 3.6), f"{at.rate_per_s:,.0f} rows/s") as figure:
        left_panel, right_panel = figure.subplots(1, 2)
        batches = [each.batch_s for each in predictions if each.batch_s is not None]
        left_panel.fill_between(counts, [b.low for b in batches], [b.high for b in batches], color=TAKEN, alpha=0.2)
        left_panel.plot(counts, [b.middle for b in batches], color=TAKEN, label="batch (p10 to p90)")
        for knob, value in at.configuration.values.items():
            if knob.kind == TRIGGER_S and value > 0:
                left_panel.axhline(value, color=LOAD, linestyle=":", label="trigger")
        left_panel.set_ylabel("seconds")
        rates = [each.saturation_per_s for each in predictions]
        right_panel.fill_between(counts, [r.low for r in rates], [r.high for r in rates], color=LINES[0], alpha=0.2)
        right_panel.plot(counts, [r.middle for r in rates], color=LINES[0], label="largest rate (p10 to p90)")
        right_panel.axhline(at.rate_per_s, color=LOAD, linestyle=":", label="load")
        right_panel.set_ylabel("rows/s")
        for panel in (left_panel, right_panel):
            panel.axvline(here, color=ACTION, linewidth=0.8)
            panel.set_xlabel("executors")
            panel.set_ylim(bottom=0)
            panel.legend(frameon=False)


def _draw_utilisation(at: Predicted, path: Path) -> None:
    names, shares = list(at.utilisation), [100 * share for share in at.utilisation.values()]
    with styled_figure(path, (7, 1.2 + 0.4 * len(names)), f"{at.rate_per_s:,.0f} rows/s") as figure:
        panel = figure.subplots()
        colours = [UNHEALTHY if share > 100 else TAKEN for share in shares]
        panel.barh(names[::-1], shares[::-1], color=colours[::-1])
        panel.axvline(100, color=LOAD, linestyle=":")
        panel.set_xlabel("utilisation in %")


def plan(result: Plan, most: int, latency_p95_s: float | None, path: Path) -> None:
    """The first candidate configurations: largest rate, latency, and why each was chosen or not."""
    from homeostat.log_views.questions import changes, first_candidates

    candidates = first_candidates(result, most)[::-1]
    colours = [ACTION if each is result.best else TAKEN for each in candidates]
    late_s = [each.predicted.latency_s.get("p95", float("nan")) for each in candidates]
    batches = any(isfinite(each) for each in late_s)
    title = f"For {result.rate_per_s:,.0f} rows/s over {result.goal.horizon_s / 60:.0f} min"
    with styled_figure(path, (12, 1.4 + 0.3 * len(candidates)), title) as figure:
        panels = figure.subplots(1, 1 + batches, sharey=True, squeeze=False)[0]
        rates = [each.predicted.saturation_per_s for each in candidates]
        places = range(len(candidates))
        ends = [[rate.middle - rate.low for rate in rates], [rate.high - rate.middle for rate in rates]]
        panels[0].barh(places, [rate.middle for rate in rates], color=colours, xerr=ends, ecolor=LOAD)
        panels[0].axvline(result.rate_per_s, color=LOAD, linestyle=":")
        panels[0].set_xlabel("largest rate in rows/s (p10 to p90)")
        panels[0].set_yticks(places, [f"{changes(result, each)}: cost {each.cost:g}" for each in candidates])
        if batches:
            panels[1].barh(places, [each if isfinite(each) else 0.0 for each in late_s], color=colours)
            panels[1].set_xlabel("p95 latency in s (no bar: unbounded)")
        if batches and latency_p95_s is not None:
            panels[1].axvline(latency_p95_s, color=LOAD, linestyle=":")
        verdicts = panels[-1].twinx()
        verdicts.set_ylim(panels[-1].get_ylim())
        verdicts.tick_params(length=0)
        verdicts.set_yticks(places, [fill(each.lost or "chosen", WIDEST_VERDICT) for each in candidates], fontsize=8)


def _draw_rates(panel: Any, result: RunResult) -> None:
    minutes = [sample.at_s / 60 for sample in result.truth]
    scale, unit = _scale(max((sample.arrival_per_s for sample in result.truth), default=1.0))
    panel.plot(minutes, [s.arrival_per_s / scale for s in result.truth], color=LOAD, linewidth=1.6, label="load")
    panel.plot(minutes, [s.taken_per_s / scale for s in result.truth], color=TAKEN, linewidth=1.1, label="throughput")
    for start_s, end_s in _unhealthy_stretches(result):
        panel.axvspan(start_s / 60, end_s / 60, color=UNHEALTHY, alpha=0.12, linewidth=0)
    panel.set_ylabel(f"{unit}rows/s")
    values = result.as_json()
    end = "healthy at the end" if values["converged"] else "NOT healthy at the end"
    panel.set_title(f"{result.policy}: {end}, unhealthy for {values['slo_violation_s']:,.0f} s")


def _draw_instances(panel: Any, result: RunResult) -> None:
    minutes = [sample.at_s / 60 for sample in result.truth]
    for number, knob in enumerate(_knobs(result)):
        label = knob.scope if knob.kind == PARALLELISM else knob.kind
        present = [sample.values.get(knob, float("nan")) for sample in result.truth]
        panel.step(minutes, present, where="post", color=LINES[number % len(LINES)], linewidth=1.5, label=label)
        needed_counts = [sample.needed.get(knob, float("nan")) for sample in result.truth]
        panel.step(minutes, needed_counts, where="post", color=LINES[number % len(LINES)], linewidth=0.8, linestyle=":")
    for step in result.trajectory:
        panel.axvline(step.time_s / 60, color=ACTION, linewidth=0.7, alpha=0.6)
        panel.plot(
            [step.time_s / 60], [1.0], marker="v", color=ACTION, transform=panel.get_xaxis_transform(), clip_on=False
        )
    panel.set_ylabel("instances")
    values = result.as_json()
    actions = f"{values['steps']} action{'' if values['steps'] == 1 else 's'}"
    oracle = values["oracle_instance_seconds"]
    cost = f", {values['instance_seconds'] / oracle:.2f} × the oracle's instance-seconds" if oracle else ""
    panel.set_title(f"{actions} ({values['needless_actions']} needless){cost}")


def _legends(figure: Any, left_panel: Any, right_panel: Any) -> None:
    """Legends below the panels, where they cover nothing."""
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        *left_panel.get_legend_handles_labels()[0],
        Patch(color=UNHEALTHY, alpha=0.12, label="unhealthy"),
        *right_panel.get_legend_handles_labels()[0],
        Line2D([], [], color="black", linewidth=0.8, linestyle=":", label="needed"),
        Line2D([], [], color=ACTION, marker="v", linewidth=0.7, label="action"),
    ]
    figure.legend(handles=handles, loc="outside lower center", frameon=False, ncols=min(len(handles), 8))


def _knobs(result: RunResult) -> list[Knob]:
    """The knobs that cost something: instances of each component, or the executors."""
    if not result.truth:
        return []
    paid_knobs = [knob for knob in result.truth[0].values if knob in result.cost_knobs]
    return sorted(knob for knob in paid_knobs if knob.kind in (PARALLELISM, EXECUTORS))


def _unhealthy_stretches(result: RunResult) -> list[tuple[float, float]]:
    stretches: list[tuple[float, float]] = []
    for sample in result.truth:
        if sample.healthy:
            continue
        start_s = sample.at_s - sample.span_s
        if stretches and start_s <= stretches[-1][1] + 1e-6:
            stretches[-1] = (stretches[-1][0], sample.at_s)
        else:
            stretches.append((start_s, sample.at_s))
    return stretches


def _scale(largest: float) -> tuple[float, str]:
    if largest >= 1e6:
        return 1e6, "million "
    return (1e3, "thousand ") if largest >= 1e4 else (1.0, "")


def _save(figure: Any, path: Path) -> None:
    metadata = {"Date": None} if path.suffix.lower() == ".svg" else None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=120, metadata=metadata)
    except OSError as error:
        raise HomeostatError(
            f"cannot write the picture: {(error.strerror or str(error)).lower()}",
            where=str(path),
            fix="choose another file",
        ) from None


def forecast(prediction: Forecast, history: Series, actual: Array, path: Path, title: str = "") -> None:
    """The history, the forecast with its interval, and the actual load if it is known."""
    from numpy import arange

    ahead_s = prediction.horizon_s
    unit_s, unit = (
        (86_400.0, "days") if ahead_s > 2 * 86_400 else (3600.0, "hours") if ahead_s > 7200 else (60.0, "min")
    )
    scale, name = _scale(float(max(history.values.max(initial=0.0), prediction.values.max(initial=0.0))))
    recent = history.values[-round(HISTORY_SHOWN * ahead_s / prediction.step_s) :]
    coming = (arange(len(prediction.values)) + 0.5) * prediction.step_s / unit_s
    with styled_figure(path, (9, 3.6), title) as figure:
        panel = figure.subplots()
        past = (arange(len(recent)) - len(recent) + 0.5) * prediction.step_s / unit_s
        panel.plot(past, recent / scale, color=LOAD, linewidth=1.2, label="load")
        if len(actual):
            panel.plot(coming[: len(actual)], actual / scale, color=LOAD, linewidth=1.2)
        panel.plot(
            coming, prediction.column(0.5) / scale, color=TAKEN, linewidth=1.5, label=f"forecast: {prediction.champion}"
        )
        low, high = prediction.values[:, 0] / scale, prediction.values[:, -1] / scale
        panel.fill_between(
            coming, low, high, color=TAKEN, alpha=0.18, linewidth=0, label=f"{prediction.nominal:.0%} interval"
        )
        panel.axvline(0.0, color=ACTION, linewidth=0.8)
        panel.set_ylim(bottom=0)
        panel.set_ylabel(f"{name}rows/s")
        panel.set_xlabel(f"{unit} after the forecast was made")
        panel.set_title(prediction.reason)
        figure.legend(loc="outside lower center", frameon=False, ncols=3)
