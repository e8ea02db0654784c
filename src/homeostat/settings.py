"""The settings of homeostat.toml and of a scenario's [settings]. docs/reference/settings.md lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from homeostat.core.objective import GivesWay
from homeostat.strict.toml_reading import (
    ContradictionError,
    Document,
    Duration,
    PositiveDuration,
    PositiveError,
    PositiveRate,
    PositiveSize,
    Share,
    Table,
)

STATSFORECAST = "statsforecast"

_DAY_S = 86_400.0
Factor = Annotated[float, Field(gt=1)]


class ObjectiveSettings(Table):
    """The objective. If nothing is set, Homeostat follows the load: no backpressure, and no idle executors."""

    throughput: PositiveRate | None = Field(default=None, description="process at least this rate, or all that arrives")
    lag: PositiveDuration | None = Field(default=None, description="stay at most this far behind the source")
    catch_up: PositiveDuration | None = Field(
        default=None, description="when rows wait, catch up within this time; overrides `catch_up` of `[loop]`"
    )
    latency: PositiveDuration | None = Field(
        default=None, description="commit 95 % of the rows within this time after they arrive"
    )
    cost_limit: Annotated[float, Field(gt=0)] | None = Field(
        default=None, description="use at most this many instances"
    )
    model_error: PositiveError | None = Field(
        default=None,
        description="the models choose the sizes while the error of their predictions of time is at most this; "
        "overrides `largest_error` of `[planning]`",
    )


class GuardSettings(Table):
    """How much the loop may change, and how fast."""

    largest_change: Factor = Field(
        default=5.0, description="largest factor by which a knob grows in one step, except tasks and spreads"
    )
    largest_shrink: Factor = Field(
        default=2.0, description="largest factor by which a knob shrinks in one step, except tasks and spreads"
    )
    most_replaced: Share = Field(
        default=0.5,
        description="largest share of the workers that one action may replace; one is always allowed, all are never",
    )
    cooldown: Duration = Field(
        default=60.0,
        description="shortest time between two actions on one query, unless the second is for another cause",
    )
    cooldown_shrink: Duration = Field(default=300.0, description="shortest time between an action and one that shrinks")
    confirm: Duration = Field(
        default=300.0,
        description="how long a smaller size must be proposed before it is set; a knob that is not confirmed "
        "yet delays the confirmed ones, for at most the same time again",
    )

    @model_validator(mode="after")
    def _shrinking_waits(self) -> GuardSettings:
        if self.cooldown_shrink < self.cooldown:
            raise ContradictionError(
                "'cooldown_shrink' must not be shorter than 'cooldown'",
                "cooldown_shrink",
                fix="raise cooldown_shrink, or lower cooldown",
            )
        return self


class LoopSettings(Table):
    """The cycle of the default policies."""

    cadence: Duration = Field(default=0.0, description="shortest time between two cycles; 0: one per observation")
    settle: PositiveDuration = Field(
        default=120.0, description="time to settle after an action before its final verdict"
    )
    window: PositiveDuration = Field(
        default=600.0,
        description="how far back detectors look, but never before the last action. They see at least 20 batches",
    )
    act_above: Share = Field(default=0.6, description="never act on a diagnosis below this probability")
    patience: Duration = Field(
        default=300.0, description="how long to gather evidence before the cheapest reversible action is tried"
    )
    catch_up: PositiveDuration = Field(
        default=600.0, description="time in which a backlog should be processed, if the objective has no `catch_up`"
    )


class PlanningSettings(Table):
    """What the planner must achieve, and when its models are used."""

    confidence: Annotated[Share, Field(ge=0.5, lt=1)] = Field(
        default=0.9, description="required probability that a plan meets the objective"
    )
    horizon: PositiveDuration = Field(default=1800.0, description="for how long a plan must meet the objective")
    largest_error: Annotated[float, Field(gt=0)] = Field(
        default=0.5,
        description="mean error of predictions, in ln, above which the paper's step chooses sizes, not the model",
    )
    ahead: bool = Field(default=True, description="act before a forecast rise of the load, if the forecast is usable")
    violation_cost: Annotated[float, Field(ge=0)] = Field(
        default=0.0,
        description="cost of a second of falling behind, in seconds of all instances, for example 20. Headroom "
        "then covers the growth that the load may have before the next change; with 0, it covers the noise of "
        "the load",
    )
    gives_way: GivesWay = Field(
        default="latency",
        description="what to give up if latency, throughput and the cost limit cannot all be met; of the throughput, "
        "only what exceeds the arrivals",
    )


class SensitivitySettings(Table):
    """How certain the detectors of the default policies must be."""

    slack: Annotated[float, Field(ge=0)] = Field(
        default=0.1, description="CUSUM slack: subtracted from each whitened residual"
    )
    shrink_slack: Annotated[float, Field(ge=0)] = Field(default=0.5, description="the same, for shrinking")
    alarm: Annotated[float, Field(gt=0)] = Field(
        default=10.0, description="cumulative sum that counts as a rise of the load"
    )
    shrink_alarm: Annotated[float, Field(gt=0)] = Field(
        default=13.0, description="cumulative sum that counts as a fall"
    )
    floor: Annotated[float, Field(gt=0)] = Field(default=0.05, description="smallest noise that the detectors assume")
    outlier: Annotated[float, Field(gt=0)] = Field(
        default=4.0, description="robust deviations from its peers at which an instance is an outlier"
    )
    ratio: Factor = Field(default=1.5, description="smallest ratio to its peers at which an instance is an outlier")


class PaperSettings(Table):
    """The thresholds of the paper's policies and of `alert`."""

    cadence: PositiveDuration = Field(default=60.0, description="time between two cycles")
    settle: PositiveDuration = Field(
        default=180.0, description="time after an action in which nothing is judged or changed"
    )
    window: PositiveDuration = Field(
        default=120.0, description="length of the window over which measurements are averaged"
    )
    fence: bool = Field(default=True, description="limit the growth of a step to a factor of five")
    noise_filter: Share = Field(default=0.02, description="share of back-pressure below which it counts as noise")
    rate_skew: Factor = Field(
        default=1.5, description="ratio of the largest to the smallest processing rate from which there is skew"
    )
    queue_skew: Factor = Field(
        default=20.0, description="ratio of the largest to the smallest queue from which there is skew"
    )
    shrink_factor: Annotated[float, Field(gt=0, lt=1)] = Field(
        default=0.8, description="share of the instances that remains after a scale-down"
    )
    idle_pending: Duration = Field(default=0.7, description="pending work per instance up to which it counts as idle")
    blacklist_ratio: Share = Field(
        default=0.5, description="share of invocations without benefit above which an action is blacklisted"
    )

    @model_validator(mode="after")
    def _window_within_settling(self) -> PaperSettings:
        if self.window > self.settle:
            raise ContradictionError(
                "'window' must not be longer than 'settle'", "window", fix="lower window, or raise settle"
            )
        return self


class SpaceSettings(Table):
    """When a disk counts as nearly full, and savepoints as too many."""

    least_free: PositiveSize = Field(
        default=2_000_000_000, description="report a disk with less free space than this, or than 5 % of its size"
    )
    full_within: PositiveDuration = Field(
        default=86_400.0, description="report a disk that will be full within this time at the present rate"
    )
    most_savepoints: Annotated[int, Field(ge=1)] = Field(
        default=20, description="report a query with more savepoints than this"
    )
    savepoints: PositiveSize = Field(
        default=20_000_000_000,
        description="report a query whose savepoints hold more space than this; links to files of the checkpoint do "
        "not count",
    )


class LogSettings(Table):
    """How long the log keeps each kind of record. Batches are summarised before they are deleted."""

    detail: PositiveDuration = Field(default=3 * _DAY_S, description="how long every batch is kept")
    minutes: PositiveDuration = Field(default=30 * _DAY_S, description="how long the summary of each minute is kept")
    hours: PositiveDuration = Field(default=365 * _DAY_S, description="how long the summary of each hour is kept")
    findings: PositiveDuration = Field(
        default=90 * _DAY_S,
        description="how long symptoms, diagnoses, proposals, rejections and failures are kept if they led to "
        "no action or alert",
    )
    decisions: PositiveDuration = Field(
        default=730 * _DAY_S,
        description="how long actions, outcomes, alerts, advice and orders are kept, and the records that led to them",
    )
    largest: PositiveSize = Field(
        default=2_000_000_000, description="above this size, batches and findings are kept for a shorter time"
    )

    @model_validator(mode="after")
    def _coarser_stays_longer(self) -> LogSettings:
        for finer, coarser in (("detail", "minutes"), ("minutes", "hours"), ("findings", "decisions")):
            if getattr(self, coarser) < getattr(self, finer):
                raise ContradictionError(
                    f"'{coarser}' must not be shorter than '{finer}'", coarser, fix=f"raise {coarser}, or lower {finer}"
                )
        return self


class FileLimits(Table):
    """How much disk space the other files of an application may use."""

    event_logs: Annotated[PositiveSize, Field(ge=50_000_000)] = Field(
        default=512_000_000, description="Spark's event logs of this and earlier runs together; the oldest are deleted"
    )
    driver_log: Annotated[PositiveSize, Field(ge=1_000_000)] = Field(
        default=64_000_000, description="each log of the driver and the embedded cluster; the oldest part is deleted"
    )


class KafkaSettings(Table):
    """What other tools see of a query that reads Kafka."""

    publish_group: str = Field(
        default="",
        description="consumer group for which Homeostat commits the offsets that batches end at, so that other tools "
        "see the lag; `{query}` stands for the name of the query. The group must not have members. None by default",
    )


class PluginSettings(Table):
    """Your own parts, each named by its dotted path: `package.module:name`."""

    detectors: list[str] = Field(default_factory=list, description="added to the policy's detectors")
    diagnosers: list[str] = Field(default_factory=list, description="added to the policy's diagnosers")
    resolvers: list[str] = Field(default_factory=list, description="added to the policy's resolvers")
    forecasters: list[str] = Field(
        default_factory=list, description="added to the candidates of every forecast; `statsforecast` is also accepted"
    )
    proposers: list[str] = Field(
        default_factory=list, description="schedulers that propose configurations for every plan"
    )
    strengths: str = Field(
        default="", description="a table from `homeostat learn`, used instead of the one that ships with Homeostat"
    )

    @field_validator("detectors", "diagnosers", "resolvers", "forecasters", "proposers")
    @classmethod
    def _check_paths(cls, paths: list[str], info: ValidationInfo) -> list[str]:
        for path in paths:
            module, colon, name = path.partition(":")
            built_in = info.field_name == "forecasters" and path == STATSFORECAST
            if not (built_in or (colon and module and name)):
                raise ValueError(f"'{path}' is not a dotted path; write package.module:name")
        return paths


class Settings(Table):
    guards: GuardSettings = GuardSettings()
    loop: LoopSettings = LoopSettings()
    planning: PlanningSettings = PlanningSettings()
    sensitivity: SensitivitySettings = SensitivitySettings()
    paper: PaperSettings = PaperSettings()
    space: SpaceSettings = SpaceSettings()
    plugins: PluginSettings = PluginSettings()


def read(settings: Mapping[str, Any], where: str = "settings") -> Settings:
    """Settings from plain tables, or a ConfigError that names the key and the nearest valid one."""
    return Document(where, settings).read(Settings)
