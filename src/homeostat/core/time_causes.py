"""The causes that make a batch take longer than necessary, found by how long it would take without each of them.

The other causes are in `core/causes.py`.
"""

from __future__ import annotations

from homeostat.core.actions import RETUNE, SWITCH_ON
from homeostat.core.cause_registry import Cause, declare, declared_causes

SINK_BOUND = declare(
    Cause(
        "sink-bound",
        "{where} waits for its sink",
        title="The sink takes much of the batch",
        advice="make the sink faster: write from the executors instead of the driver, write larger batches, commit "
        "less often (a longer trigger), or give the system behind it more capacity; more executors would not help",
        fault=True,
        alerts=True,
        culprit="the sink",
    )
)
DRIVER_BOUND = declare(
    Cause(
        "driver-bound",
        "the driver plans, schedules or collects for {where} while the executors wait",
        title="The driver takes much of the batch",
        advice="make the plan smaller (fewer columns, joins and unions; no plan that grows with every batch), collect "
        "less to the driver, use a longer trigger, or give the driver more cores; more executors would not help",
        fault=True,
        mended_by=(RETUNE,),
        alerts=True,
        culprit="the driver",
    )
)
SOURCE_BOUND = declare(
    Cause(
        "source-bound",
        "{where} waits for its source to say what is new",
        title="The source takes much of the batch",
        advice="make listing or offset requests faster: for files use fewer directories, cleanSource or a larger "
        "fileNameOnly cache; for Kafka check the brokers; more executors would not help",
        fault=True,
        mended_by=(RETUNE,),
        alerts=True,
        culprit="the source",
    )
)
CHECKPOINT_BOUND = declare(
    Cause(
        "checkpoint-bound",
        "{where} waits for its checkpoint to be written",
        title="The checkpoint takes much of the batch",
        advice="put the checkpoint on faster storage, use a longer trigger, or set asyncProgressTrackingEnabled=true "
        "where the query has no state and its sink is Kafka; more executors would not help",
        fault=True,
        mended_by=(SWITCH_ON, RETUNE),
        alerts=True,
        culprit="writing the checkpoint",
    )
)
STATE_STORE_BOUND = declare(
    Cause(
        "state-store-bound",
        "the tasks of {where} wait for the state store",
        title="The state store takes much of the tasks' time",
        advice="set spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled=true, use faster storage for "
        "the checkpoint, or fewer state partitions",
        fault=True,
        mended_by=(SWITCH_ON,),
        workers_help=True,
        alerts=True,
        culprit="the state store",
    )
)
GC_BOUND = declare(
    Cause(
        "gc-bound",
        "the executors of {where} spend their time on garbage collection",
        title="Executors spend their time on garbage collection",
        advice="give each executor more memory (spark.executor.memory), fewer cores, or more and smaller partitions",
        fault=True,
        alerts=True,
        culprit="garbage collection",
        unusual=True,
    )
)
SPILLING = declare(
    Cause(
        "spilling",
        "the tasks of {where} do not fit into memory and spill to disk",
        title="Tasks spill to disk",
        advice="use more partitions (spark.sql.shuffle.partitions), more memory per executor, or fewer cores each",
        fault=True,
        mended_by=(RETUNE,),
        alerts=True,
        culprit="spilling to disk",
        unusual=True,
    )
)
HOST_CONTENTION = declare(
    Cause(
        "host-contention",
        "other processes take the CPU from the tasks of {where}",
        title="Other processes take the CPU",
        advice="move the other processes or the executors to other hosts; reduce the cores per executor if the "
        "hosts have fewer cores than their workers offer",
        fault=True,
        alerts=True,
        culprit="waiting for a CPU that others use",
    )
)
SHUFFLE_BOUND = declare(
    Cause(
        "shuffle-bound",
        "the tasks of {where} wait for shuffle blocks of other executors",
        title="Tasks wait for shuffled data",
        advice="shuffle less (aggregate or filter before, broadcast the small side of a join), or check the network "
        "and the disks of the executors",
        fault=True,
        alerts=True,
        culprit="the shuffle",
    )
)
TINY_TASKS = declare(
    Cause(
        "tiny-tasks",
        "the tasks of {where} are so small that starting them takes longer than their work",
        title="Too many tiny tasks",
        advice="use fewer partitions (spark.sql.shuffle.partitions, or minPartitions of the source)",
        mended_by=(RETUNE,),
        alert_after_patience=True,
        alerts=True,
        culprit="starting tiny tasks",
    )
)
TOO_FEW_PARTITIONS = declare(
    Cause(
        "too-few-partitions",
        "{where} has fewer tasks than there are slots, and they take long",
        title="Too few partitions for the executors",
        advice="use more partitions (spark.sql.shuffle.partitions with `homeostat state rescale` for a query with "
        "state, minPartitions for Kafka): more executors would not help",
        mended_by=(RETUNE,),
        alert_after_patience=True,
        alerts=True,
        culprit="having too few tasks",
    )
)
SMALL_FILES = declare(
    Cause(
        "small-files",
        "{where} reads or writes many small files",
        title="Many small files",
        advice="write fewer and larger files upstream, raise maxFilesPerTrigger, or coalesce before the sink",
        alert_after_patience=True,
        alerts=True,
        culprit="opening small files",
    )
)
FAILING_TASKS = declare(
    Cause(
        "failing-tasks",
        "tasks of {where} fail and are tried again",
        title="Tasks fail and are tried again",
        advice="check the reason for the failures and the executors' logs",
        fault=True,
        alerts=True,
        culprit="repeating failed tasks",
    )
)
POISON_ROW = declare(
    Cause(
        "poison-row",
        "the same partition of {where} fails each time it is tried",
        title="A row makes its task fail each time",
        advice="handle the row in your code (try_ functions, a filter, a dead-letter table): the query stops after "
        "spark.task.maxFailures attempts",
        fault=True,
        alerts=True,
        culprit="repeating a task that fails each time",
    )
)
DYING_EXECUTORS = declare(
    Cause(
        "dying-executors",
        "executors of {where} keep dying",
        title="Executors keep dying",
        advice="check why they were lost: if they ran out of memory, raise spark.executor.memoryOverhead; if a "
        "host is at fault, exclude it",
        fault=True,
        alerts=True,
        culprit="repeating the tasks of lost executors",
    )
)
STALLED_WATERMARK = declare(
    Cause(
        "stalled-watermark",
        "the watermark of {where} does not move although rows arrive",
        title="The watermark does not move",
        advice="check the event times of all inputs: with several inputs the slowest decides "
        "(spark.sql.streaming.multipleWatermarkPolicy), and an idle input holds back all others",
        state_risk=True,
        alerts=True,
    )
)
RISING_COST = declare(
    Cause(
        "rising-cost",
        "a row costs {where} more and more time",
        title="A row costs more and more time",
        advice="look for something that grows over time: state, a broadcast or cached table, a list in your code",
        alert_after_patience=True,
        alerts=True,
        culprit="the growing cost per row",
    )
)
SLOW_HOST = declare(
    Cause(
        "slow-host",
        "all executors of {where} on one host are slower than the others",
        title="Slow host",
        advice="exclude the host, and check it for other load, throttling or failing hardware",
        fault=True,
        alerts=True,
        culprit="the slow pace of a host",
    )
)
COSTLY_KEYS = declare(
    Cause(
        "costly-keys",
        "the rows of some keys of {where} cost more than others",
        title="The rows of some keys cost more than others",
        advice="find out what is special about these keys; more partitions would separate them from each other",
        fault=True,
        alert_after_patience=True,
        alerts=True,
        culprit="costly rows",
    )
)
SKEWED_JOIN = declare(
    Cause(
        "skewed-join",
        "a few keys of the join {where} match most of the rows",
        title="A few keys of a join match most of the rows",
        advice="salt the hot keys on both sides, filter out keys that never match (nulls), or broadcast the small side",
        fault=True,
        alerts=True,
        culprit="the most frequent keys of the join",
        unusual=True,
    )
)
TIME_CAUSES = frozenset(cause.name for cause in declared_causes())
