"""The errors of a managed query, as sentences for its user."""

from __future__ import annotations

from homeostat.checkpoint.metadata import Checkpoint
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.spark_errors import first_line

# Parts of Spark's error messages for a checkpoint that belongs to another query.
_OTHER_QUERY = (
    "sources in the checkpoint offsets",
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
)


class QueryError(HomeostatError):
    """A command to a query failed. The message says what the query does now."""


def start_error(query: str, checkpoint: Checkpoint, error: Exception) -> ConfigError:
    """Why the first start of a query failed. Only its user can fix that."""
    where = f"query {query}"
    if any(sign in str(error) for sign in _OTHER_QUERY):
        return ConfigError(
            f"the checkpoint {checkpoint.location} belongs to another query",
            where=where,
            fix="give each query its own checkpoint, or delete this one to start from the beginning",
        )
    if not isinstance(error, ConfigError) and checkpoint.batches().begun >= 0:
        return ConfigError(
            f"cannot continue from the checkpoint {checkpoint.location}: {first_line(error)}",
            where=where,
            fix="if the checkpoint belongs to another query, give this one its own",
        )
    return ConfigError(f"cannot start: {first_line(error)}", where=where)
