"""The settings of homeostat.toml and of a scenario's [settings]. docs/reference/settings.md lists them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import Field, ValidationInfo, field_validator, model_validator

from homeostat.core.objective import GivesWay
from homeostat.strict.toml_reading import ContradictionError, Document, Duration, PositiveDuration, Share, Table

STATSFORECAST = "statsforecast"

Factor = Annotated[float, Field(gt=1)]


class GuardSettings(Table):
    """What the loop may do at most, and how fast."""

    largest_change: Factor = Field(
        default=5.0, description="no knob but tasks and spreads grows by more than this factor in one step"
    )
    largest_shrink: Factor = Field(
        default=2.0, description="no knob but tasks and spreads shrinks by more than this factor in one step"
    )
    cooldown: Duration = Field(default=60.0, description="least time between two actions on one query")
    cooldown_shrink: Duration = Field(default=300.0, description="least time between an action and a shrinking one")
    confirm: Duration = Field(
        default=300.0,
        description="how long something must be wanted smaller before it is; what is not wanted for so long yet holds "
        "up what is, for as long again at most",
    )

    @model_validator(mode="after")
    def _shrinking_waits(self) -> GuardSettings:
        if self.cooldown_shrink < self.cooldown:
            raise ContradictionError(
                "shrinking would cool down for less time than growing",
                "cooldown_shrink",
                fix="make cooldown_shrink at least cooldown",
            )
        return self


class LoopSettings(Table):
    """The cycle of the default flavour."""

    cadence: Duration = Field(default=0.0, description="least time between two cycles; 0: one for each observation")
    settle: PositiveDuration = Field(default=120.0, description="time an action is given before it is judged for good")
    window: PositiveDuration = Field(
        default=600.0, description="how far back detectors look, never to before the last action"
    )
    act_above: Share = Field(default=0.6, description="probability from which a diagnosis is acted upon")
    patience: Duration = Field(
        default=300.0, description="how long evidence is gathered before the cheapest reversible action is tried"
    )
    catch_up: PositiveDuration = Field(default=600.0, description="in how long a backlog shall be worked off")


class PlanningSettings(Table):
    """What the models are asked, and how far they are relied upon."""

    confidence: Annotated[Share, Field(ge=0.5, lt=1)] = Field(
        default=0.9, description="how sure a plan must be that the objective will hold"
    )
    horizon: PositiveDuration = Field(default=1800.0, description="for how long it shall hold")
    largest_error: Annotated[float, Field(gt=0)] = Field(
        default=0.5,
        description="mean error of predictions, in ln, above which the paper's step by the pressure is taken instead",
    )
    ahead: bool = Field(
        default=True, description="whether to act ahead of a rise of the load, where its forecast is worth it"
    )
    gives_way: GivesWay = Field(
        default="latency",
        description="what is given up where latency, throughput and the cost limit cannot be held together; of the "
        "throughput only what it asks for beyond what arrives",
    )


class SensitivitySettings(Table):
    """How sure the default flavour's detectors must be."""

    slack: Annotated[float, Field(ge=0)] = Field(default=0.1, description="subtracted from each whitened residual")
    shrink_slack: Annotated[float, Field(ge=0)] = Field(default=0.5, description="the same before shrinking")
    alarm: Annotated[float, Field(gt=0)] = Field(
        default=10.0, description="cumulated sum that counts as a rise of the load"
    )
    shrink_alarm: Annotated[float, Field(gt=0)] = Field(default=13.0, description="cumulated sum that counts as a fall")
    floor: Annotated[float, Field(gt=0)] = Field(default=0.05, description="the smallest noise that is believed")
    outlier: Annotated[float, Field(gt=0)] = Field(default=4.0, description="robust deviations from the peers")
    ratio: Factor = Field(default=1.5, description="times the peers, at least, for an instance to be apart from them")


class PaperSettings(Table):
    """The paper's thresholds, for the `paper` flavours and `alert`."""

    cadence: PositiveDuration = Field(default=60.0, description="time between two cycles")
    settle: PositiveDuration = Field(
        default=180.0, description="time after an action in which nothing is judged or done"
    )
    window: PositiveDuration = Field(default=120.0, description="how far back measurements are averaged")
    fence: bool = Field(default=True, description="whether a step grows at most fivefold")
    noise_filter: Share = Field(default=0.02, description="back-pressure below this share is noise")
    rate_skew: Factor = Field(default=1.5, description="largest over smallest processing rate that counts as skew")
    queue_skew: Factor = Field(default=20.0, description="largest over smallest queue that counts as skew")
    shrink_factor: Annotated[float, Field(gt=0, lt=1)] = Field(default=0.8, description="what a scale-down leaves")
    idle_pending: Duration = Field(default=0.7, description="pending work per instance that counts as none")
    blacklist_ratio: Share = Field(default=0.5, description="share of invocations without benefit that blacklists")

    @model_validator(mode="after")
    def _window_within_settling(self) -> PaperSettings:
        if self.window > self.settle:
            raise ContradictionError(
                "the window reaches back to before the last action", "window", fix="make window at most settle"
            )
        return self


class PluginSettings(Table):
    """A user's own parts, each named by its dotted path: `package.module:name`."""

    detectors: list[str] = Field(default_factory=list, description="added to the policy's detectors")
    diagnosers: list[str] = Field(default_factory=list, description="added to the policy's diagnosers")
    resolvers: list[str] = Field(default_factory=list, description="added to the policy's resolvers")
    forecasters: list[str] = Field(
        default_factory=list, description="added to the candidates of every forecast; `statsforecast` is one, too"
    )
    proposers: list[str] = Field(
        default_factory=list, description="schedulers that are asked for configurations in every plan"
    )

    @field_validator("detectors", "diagnosers", "resolvers", "forecasters", "proposers")
    @classmethod
    def _dotted(cls, paths: list[str], info: ValidationInfo) -> list[str]:
        for path in paths:
            module, colon, name = path.partition(":")
            known = info.field_name == "forecasters" and path == STATSFORECAST
            if not (known or (colon and module and name)):
                raise ValueError(f"'{path}' is not a dotted path; write package.module:name")
        return paths


class Settings(Table):
    guards: GuardSettings = GuardSettings()
    loop: LoopSettings = LoopSettings()
    planning: PlanningSettings = PlanningSettings()
    sensitivity: SensitivitySettings = SensitivitySettings()
    paper: PaperSettings = PaperSettings()
    plugins: PluginSettings = PluginSettings()


def read(settings: Mapping[str, Any], where: str = "settings") -> Settings:
    """Settings from plain tables, or a ConfigError that names the key and the nearest valid one."""
    return Document(where, settings).read(Settings)
