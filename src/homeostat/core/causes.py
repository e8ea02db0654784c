"""What can be wrong with a streaming application: one entry for each cause.

A plug-in declares its own causes with `declare`. They are treated like the built-in ones.
"""

from __future__ import annotations

from homeostat.core.actions import (
    ADJUST_SKEW,
    ADMIT_MORE,
    GATHER,
    REPLACE,
    RETUNE,
    SCALE_DOWN,
    SCALE_SOURCE,
    SCALE_UP,
)
from homeostat.core.cause_registry import Cause, cause_of, declare, declared_causes
from homeostat.core.source_causes import SOURCE_CAUSES
from homeostat.core.time_causes import TIME_CAUSES

__all__ = ["SOURCE_CAUSES", "TIME_CAUSES", "Cause", "cause_of", "declare", "declared_causes"]

UNDER_PROVISIONED = declare(
    Cause(
        "under-provisioned",
        "{where} has too few instances for the load",
        title="Too few instances for the load",
        advice="raise the parallelism, or the limit that restricts it",
        mended_by=(SCALE_UP, RETUNE, SCALE_SOURCE),
        workers_help=True,
    )
)
OVER_PROVISIONED = declare(
    Cause(
        "over-provisioned",
        "{where} has more instances than the load needs",
        title="More instances than the load needs",
        advice="lower the parallelism to save resources",
        harmless=True,
        mended_by=(SCALE_DOWN, RETUNE),
    )
)
SLOW_INSTANCE = declare(
    Cause(
        "slow-instance",
        "a worker of {where} is slower than its peers",
        title="Slow instance",
        advice="restart it on another host, and check its host for other load, throttling or failing hardware",
        fault=True,
        mended_by=(REPLACE,),
    )
)
DATA_SKEW = declare(
    Cause(
        "data-skew",
        "a few keys of {where} get most of the rows",
        title="A few keys get most of the rows",
        advice="spread the hot keys (write the operator with hs.keyed, or salt and merge), or choose a key with more "
        "values",
        fault=True,
        mended_by=(ADJUST_SKEW,),
    )
)
HASH_IMBALANCE = declare(
    Cause(
        "hash-imbalance",
        "many keys of {where} fall on a few partitions",
        title="Many keys fall on a few partitions",
        advice="change the number of state partitions: `homeostat state rescale --preview` shows how the keys "
        "would be distributed",
        fault=True,
        mended_by=(ADJUST_SKEW,),
    )
)
SOURCE_SKEW = declare(
    Cause(
        "source-skew",
        "a few partitions of the source {where} get most of the rows",
        title="A few partitions of the source get most of the rows",
        advice="repartition behind the source (ctx.rebalanced(rows, …)), or write to the source more evenly",
        fault=True,
        mended_by=(ADJUST_SKEW,),
    )
)
NEEDLESS_SPREAD = declare(
    Cause(
        "needless-spread",
        "the rows of {where} are spread although no key is hot",
        title="Rows are spread although no key is hot",
        advice="set the spread to 1: merging the rows costs more than spreading them saves",
        harmless=True,
        mended_by=(GATHER,),
    )
)
SLO_UNMET = declare(
    Cause(
        "slo-unmet",
        "{where} does not meet its objective",
        title="The objective is not met",
        advice="raise the limit that prevents it (parallelism, rows per trigger, cost), or lower the objective",
        mended_by=(SCALE_UP, RETUNE, SCALE_SOURCE),
        workers_help=True,
        alert_after_patience=True,
        alerts=True,
    )
)
SOURCE_LIMITED = declare(
    Cause(
        "source-limited",
        "fewer rows arrive at {where} than the objective requires",
        title="Fewer rows arrive than the objective requires",
        advice="check what feeds the sources, or lower the objective: no action here can raise the rate",
        alerts=True,
    )
)
EXTERNAL = declare(
    Cause(
        "external-bound",
        "{where} waits for an external system: its sink, or a service that it calls",
        title="An external system holds the application back",
        advice="check the sink or service that it waits for; more instances would not help",
        fault=True,
        alerts=True,
        culprit="waiting for an external system",
    )
)
ADMISSION_LIMITED = declare(
    Cause(
        "admission-limited",
        "the limit on rows per trigger slows {where} down",
        title="The limit on rows per trigger is too low",
        advice="raise rows_per_trigger: the batches end well within the trigger interval",
        mended_by=(ADMIT_MORE, RETUNE),
    )
)
RISE_AHEAD = declare(
    Cause(
        "rise-ahead",
        "{where} will soon get more rows than it can process",
        title="More rows are forecast than can be processed",
        advice="add instances before the load rises",
        harmless=True,
        mended_by=(SCALE_UP,),
        workers_help=True,
    )
)
INCONCLUSIVE = declare(
    Cause(
        "inconclusive",
        "the measurements do not show what is wrong with {where}",
        title="The measurements do not show the cause",
        advice="check the metrics named here, then the component's own logs",
        alert_after_patience=True,
        alerts=True,
    )
)
UNBOUNDED_STATE = declare(
    Cause(
        "unbounded-state",
        "the state of {where} grows steadily and shows no sign of levelling off",
        title="The state grows steadily and shows no sign of levelling off",
        advice="give it a watermark, a time to live or a smaller key; if rows are meant to stay for longer than "
        "the query has run, wait",
        state_risk=True,
        alerts=True,
    )
)
MEMORY_PRESSURE = declare(
    Cause(
        "memory-pressure",
        "the state of {where} needs most of the memory that it may use",
        title="The state needs most of the memory that it may use",
        advice="give the executors more memory or add executors, keep less state, or limit what RocksDB may use: "
        "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage=true and "
        "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB=500 at the start of the application, because an "
        "executor reads them once",
        workers_help=True,
        alerts=True,
    )
)
SLOW_RECOVERY = declare(
    Cause(
        "slow-recovery",
        "a restart of {where} would replay changelogs for a long time",
        title="A restart would replay changelogs for a long time",
        advice="make snapshots more often (spark.sql.streaming.stateStore.minDeltasForSnapshot)",
        state_risk=True,
        alerts=True,
    )
)
LATE_SNAPSHOTS = declare(
    Cause(
        "late-snapshots",
        "snapshots of the state of {where} are not uploaded",
        title="Snapshots of the state are not uploaded",
        advice="check the executors' logs for failed uploads, and the checkpoint's storage; more maintenance threads "
        "(spark.sql.streaming.stateStore.numStateStoreMaintenanceThreads) help where there are many partitions",
        state_risk=True,
        alerts=True,
    )
)
DAMAGED_SNAPSHOTS = declare(
    Cause(
        "damaged-snapshots",
        "a damaged snapshot of the state of {where} was skipped",
        title="A damaged snapshot of the state was skipped",
        advice="check the checkpoint's storage and take a savepoint: the state was rebuilt from an older snapshot",
        state_risk=True,
        alerts=True,
    )
)
UNSCALABLE_STATE = declare(
    Cause(
        "unscalable-state",
        "the number of state partitions of {where} cannot be changed",
        title="The number of state partitions cannot be changed",
        advice="start with a new checkpoint and the RocksDB provider "
        "(spark.sql.streaming.stateStore.providerClass), whose state can be repartitioned",
        state_risk=True,
        alerts=True,
    )
)
DISK_NEARLY_FULL = declare(
    Cause(
        "disk-nearly-full",
        "a disk that {where} uses is nearly full",
        title="A disk is nearly full",
        advice="delete files that are not needed, or keep less in the log and the event logs (`[log]` and `[files]`)",
        harmless=True,
        alerts=True,
    )
)
MANY_SAVEPOINTS = declare(
    Cause(
        "many-savepoints",
        "{where} has many or large savepoints",
        title="Many or large savepoints",
        advice="list them with `homeostat state savepoints`, and delete the directories of those that are not needed",
        harmless=True,
        alerts=True,
    )
)
STATE_RISKS = frozenset(cause.name for cause in declared_causes() if cause.state_risk)
NO_MANAGER = declare(
    Cause(
        "no-manager",
        "{where} runs without a manager, because the manager failed too often",
        title="The manager failed too often",
        advice="look for errors in the output of the driver, and restart the application",
        fault=True,
        alerts=True,
    )
)
QUERY_STOPPED = declare(
    Cause(
        "query-stopped",
        "{where} failed too often and is not restarted",
        title="A query failed too often",
        advice="fix the reported error, and start the application again",
        fault=True,
        alerts=True,
    )
)
DRIVER_STOPPED = declare(
    Cause(
        "driver-stopped",
        "the driver of {where} died too often and is not restarted",
        title="The driver died too often",
        advice="look for errors in the logs in the directory of the application, and start it again",
        fault=True,
        alerts=True,
    )
)
