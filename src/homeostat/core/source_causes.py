"""What can be wrong with a source. A person has to fix it. The query then continues from its checkpoint.

The other causes are in `core/causes.py`.
"""

from __future__ import annotations

from homeostat.core.cause_registry import Cause, declare

SOURCE_UNREACHABLE = declare(
    Cause(
        "source-unreachable",
        "the source of {where} does not answer",
        title="The source does not answer",
        advice="check that the brokers run, and that the driver and the executors can reach them; nothing is "
        "lost, because the query continues from its checkpoint",
        fault=True,
        alerts=True,
        culprit="waiting for the source",
    )
)
SOURCE_LEADERLESS = declare(
    Cause(
        "source-leaderless",
        "partitions of the source of {where} have no leader",
        title="Partitions of the source have no leader",
        advice="start the brokers that have these partitions; their rows wait until then",
        fault=True,
        alerts=True,
        culprit="waiting for partitions without a leader",
    )
)
SOURCE_GONE = declare(
    Cause(
        "source-gone",
        "a topic that {where} reads does not exist",
        title="A topic does not exist",
        advice="create the topic, or remove it from the subscription; if it was deleted and created again, "
        "start the query with a new checkpoint, because the offsets in the checkpoint belong to the old topic",
        fault=True,
        alerts=True,
        culprit="waiting for a topic that does not exist",
    )
)
ROWS_EXPIRED = declare(
    Cause(
        "rows-expired",
        "rows were deleted from the source of {where} before they were read",
        title="Rows were deleted before they were read",
        advice="keep rows for longer (retention.ms, retention.bytes of the topic); Spark stops the query here; "
        'with .option("failOnDataLoss", "false") it continues with the oldest rows that are left',
        harmless=True,
        alerts=True,
    )
)
RETENTION_NEAR = declare(
    Cause(
        "retention-near",
        "rows of the source of {where} will soon be deleted before they are read",
        title="Unread rows will soon be deleted",
        advice="keep rows for longer (retention.ms, retention.bytes of the topic) until the query has caught up, "
        "or raise the limits that slow it down",
        harmless=True,
        alerts=True,
    )
)
SOURCE_CAUSES = frozenset({SOURCE_UNREACHABLE, SOURCE_LEADERLESS, SOURCE_GONE, ROWS_EXPIRED, RETENTION_NEAR})
