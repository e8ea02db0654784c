"""The tables of a log and the SQL queries, in the SQL of SQLite. `postgres_connection` translates the rest."""

from __future__ import annotations

from homeostat.core.records import ACTION, APPLIED_PATH, OUTCOME, RECEIPT

APPLICATION_ID = 0x486F6D65  # "Home", so that another program's database is not taken for a log
# The tables of version 1; `migrations` says what came later.
# Each index ends in the row number, which SQLite adds, so that every list is read in its order, never sorted.
SCHEMA = """
CREATE TABLE runs (
  run INTEGER PRIMARY KEY,
  name TEXT NOT NULL UNIQUE
);
CREATE TABLE records (
  number INTEGER PRIMARY KEY,
  run INTEGER NOT NULL,
  id TEXT NOT NULL,
  kind TEXT NOT NULL,
  at_s REAL NOT NULL,
  component TEXT NOT NULL,
  text TEXT NOT NULL,
  because TEXT NOT NULL,
  body TEXT NOT NULL,
  action TEXT,
  UNIQUE (run, id)
);
CREATE INDEX records_by_time ON records (run, at_s);
CREATE INDEX records_by_kind ON records (run, kind, at_s);
CREATE INDEX records_by_component ON records (run, component, at_s);
CREATE INDEX records_by_component_and_kind ON records (run, component, kind, at_s);
CREATE INDEX records_by_action ON records (run, action, kind) WHERE action IS NOT NULL;
CREATE TABLE counts (
  run INTEGER NOT NULL,
  kind TEXT NOT NULL,
  records INTEGER NOT NULL,
  first_s REAL NOT NULL,
  last_s REAL NOT NULL,
  PRIMARY KEY (run, kind)
) WITHOUT ROWID;
CREATE TABLE links (
  run INTEGER NOT NULL,
  parent TEXT NOT NULL,
  child TEXT NOT NULL,
  PRIMARY KEY (run, parent, child)
) WITHOUT ROWID;
CREATE INDEX links_by_child ON links (run, child);
CREATE TABLE state (
  run INTEGER NOT NULL,
  key TEXT NOT NULL,
  value TEXT NOT NULL,
  PRIMARY KEY (run, key)
) WITHOUT ROWID;
"""

# Free pages can be given back to the disk. For a log that has tables it takes effect with the next VACUUM.
GIVES_SPACE_BACK = "PRAGMA auto_vacuum = INCREMENTAL"
# Large enough for any log, and a number that every database takes.
NO_LIMIT = 2**62
COLUMNS = "id, kind, at_s, text, component, because, body"

# UNION instead of UNION ALL drops what was reached before, so that even a cycle comes to an end.
CHAIN = f"""
WITH RECURSIVE
  upward(known) AS (
    SELECT CAST(:id AS TEXT)
    UNION
    SELECT links.parent FROM upward JOIN links ON links.run = :run AND links.child = upward.known
  ),
  downward(known) AS (
    SELECT CAST(:id AS TEXT)
    UNION
    SELECT links.child FROM downward JOIN links ON links.run = :run AND links.parent = downward.known
  )
SELECT {COLUMNS}
FROM (SELECT known FROM upward UNION SELECT known FROM downward) AS linked
CROSS JOIN records ON run = :run AND id = linked.known
WHERE EXISTS (SELECT 1 FROM records WHERE run = :run AND id = :id)
ORDER BY at_s, number
"""

_ANSWER = "SELECT 1 FROM records AS answer WHERE answer.run = records.run AND answer.action = records.id"
# SQLite raises an error for a body that is not JSON, and looks at the cases one after the other.
_APPLIED = f"CASE WHEN json_valid(answer.body) THEN json_type(answer.body, '{APPLIED_PATH}') = 'true' END"
_ACTIONS = f"SELECT {COLUMNS} FROM records WHERE run = :run AND kind = '{ACTION}'"
OPEN_INTENTS = f"""
{_ACTIONS} AND NOT EXISTS ({_ANSWER} AND answer.kind = '{RECEIPT}')
ORDER BY at_s, number
"""
UNJUDGED = f"""
{_ACTIONS}
AND EXISTS ({_ANSWER} AND answer.kind = '{RECEIPT}' AND {_APPLIED})
AND NOT EXISTS ({_ANSWER} AND answer.kind = '{OUTCOME}')
ORDER BY at_s, number
"""
# The same without a look into the receipts, and what the receipts say.
ANSWERED_UNJUDGED = f"""
{_ACTIONS}
AND EXISTS ({_ANSWER} AND answer.kind = '{RECEIPT}')
AND NOT EXISTS ({_ANSWER} AND answer.kind = '{OUTCOME}')
ORDER BY at_s, number
"""
RECEIPTS = f"""
SELECT action, body FROM records
WHERE run = (SELECT run FROM runs WHERE name = :run) AND kind = '{RECEIPT}' AND action IS NOT NULL
"""

# The newest record of all stays: its number is never used again, so that a reader who follows the log misses none.
DELETE_OLDEST = """
DELETE FROM records WHERE number IN (
  SELECT number FROM records
  WHERE run = (SELECT run FROM runs WHERE name = :run) AND kind = :kind AND at_s <= :until_s
  AND number < (SELECT max(number) FROM records)
  ORDER BY at_s, number LIMIT :limit
)
RETURNING run, id
"""
OLDEST = """
SELECT run, id, at_s, number FROM records
WHERE run = (SELECT run FROM runs WHERE name = :run) AND kind = :kind AND at_s >= :since_s AND at_s <= :until_s
AND (at_s, number) > (:since_s, :since_number) AND number < (SELECT max(number) FROM records)
ORDER BY at_s, number LIMIT :limit
"""
# Whether a record is linked to one of another kind than these: as what came of it, or as what it answers.
HAS_OTHER_KIND = """
WITH RECURSIVE downward(known) AS (
  SELECT CAST(:id AS TEXT)
  UNION
  SELECT links.child FROM downward JOIN links ON links.run = :run AND links.parent = downward.known
)
SELECT 1 FROM (
  SELECT known FROM downward UNION ALL SELECT parent FROM links WHERE run = :run AND child = :id
) AS linked
CROSS JOIN records ON run = :run AND id = linked.known
WHERE kind NOT IN ({kinds}) LIMIT 1
"""
DELETE_RECORD = "DELETE FROM records WHERE run = :run AND id = :id"
DELETE_LINKS = "DELETE FROM links WHERE run = :run AND (child = :id OR parent = :id)"
_THE_RUN = "(SELECT run FROM runs WHERE name = :run)"
DELETE_RUN = (
    *(f"DELETE FROM {table} WHERE run = {_THE_RUN}" for table in ("records", "links", "counts", "state")),
    "DELETE FROM runs WHERE name = :run",
)
