"""The names that a pipeline gives to steps of its query through its context."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class DeclaredSteps:
    """Each tuple is in the order of the calls in the pipeline's function; Spark's plan has the steps in the same order.

    `repartitions` are the names of steps with a number of partitions of their own (`ctx.parallelism`), `spreads` of
    keyed operators (`ctx.spread`), `rebalances` of sources whose rows can be redistributed (`ctx.rebalanced`), and
    `watches` of rows whose largest keys are sketched (`ctx.watched`).
    """

    repartitions: tuple[str, ...] = ()
    spreads: tuple[str, ...] = ()
    rebalances: tuple[str, ...] = ()
    watches: tuple[str, ...] = ()

    def with_repartition(self, name: str) -> DeclaredSteps:
        return replace(self, repartitions=(*self.repartitions, name))

    def with_spread(self, name: str, instances: int) -> DeclaredSteps:
        """A spread over several instances adds a stage, which repartitions its rows."""
        steps = replace(self, spreads=(*self.spreads, name))
        return steps.with_repartition(combine_name(name)) if instances > 1 else steps

    def with_rebalance(self, name: str, instances: int) -> DeclaredSteps:
        steps = replace(self, rebalances=(*self.rebalances, name))
        return steps.with_repartition(name) if instances > 1 else steps

    def with_watch(self, name: str) -> DeclaredSteps:
        return replace(self, watches=(*self.watches, name))


NO_STEPS = DeclaredSteps()


def combine_name(spread: str) -> str:
    """The name of the stage that combines rows before they reach the state of a spread operator."""
    return f"{spread}-combine"
