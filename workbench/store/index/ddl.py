"""Tables, views and the dictionary of bodies, as statements."""

from __future__ import annotations

from workbench.store.index.tables import INDEX_ROWS

SETTINGS = "SETTINGS fsync_after_insert=1, fsync_part_directory=1, min_bytes_for_wide_part=64000000"
"""Parts of less than 64 MB are one file each: a file or two for each of some 70 columns, written and synced with each
batch, are a third of the work of an insert into ``messages``."""

INGESTED = """
CREATE TABLE IF NOT EXISTS {name} (
  run_id String, segment String, bytes UInt64, seq UInt32, crc String, records UInt32, changed Int64, refused String,
  annotated UInt64, unread UInt32, row_version UInt64
) ENGINE=ReplacingMergeTree(row_version) ORDER BY run_id"""

TABLES: dict[str, str] = {row.table: row.create_statement() for row in INDEX_ROWS} | {"ingested": INGESTED}
"""By name; rebuilt together."""

SCHEMA_MIGRATIONS = """
CREATE TABLE IF NOT EXISTS schema_migrations (
  version UInt32, name String, checksum String DEFAULT '', applied_at DateTime64(6,'UTC') DEFAULT now64(6)
) ENGINE=ReplacingMergeTree(applied_at) ORDER BY version"""


def dictionaries(database: str, credentials: str = "") -> tuple[str, ...]:
    """Statements that make the dictionaries of a database. ``credentials``: who reads the tables, as SQL.

    Both are known by a hash of what they hold and never change, so those of the last questions may be kept. This also
    keeps a question within its limit of memory: the engine counts nothing of what it takes after a direct look-up.
    They look up bodies and lists of messages by reference: to store them with each call would take n² for n calls."""
    return (
        f"""CREATE OR REPLACE DICTIONARY bodies (hash String, body String) PRIMARY KEY hash
SOURCE(CLICKHOUSE({credentials}TABLE 'blobs' DB '{database}')) LAYOUT(COMPLEX_KEY_CACHE(SIZE_IN_CELLS 1024))
LIFETIME(MIN 60 MAX 120)""",
        f"""CREATE OR REPLACE DICTIONARY parts (id UInt64, bodies Array(String), contents Array(String)) PRIMARY KEY id
SOURCE(CLICKHOUSE({credentials}TABLE 'context_parts' DB '{database}')) LAYOUT(CACHE(SIZE_IN_CELLS 16384))
LIFETIME(MIN 60 MAX 120)""",
    )


def views(database: str) -> tuple[str, ...]:
    """Statements that make the views of a database."""

    def body(key: str, default: str = "") -> str:
        return f"dictGetOrDefault('{database}.bodies', 'body', tuple({key}), '{default}')"

    def sent(attribute: str) -> str:
        """The text sent with the call of a row, from the parts that its context shares with others."""
        return f"arrayFlatten(arrayMap(p -> dictGet('{database}.parts', '{attribute}', p), context_parts))"

    request = f"""if(request_hash = '', '', concat(
  '{{"model":', JSONExtractRaw({body("request_hash", "{}")} AS request_head, 'model'),
  ',"parameters":', JSONExtractRaw(request_head, 'parameters'),
  ',"messages":[', arrayStringConcat(arrayMap(h -> {body("h", "null")}, request_bodies), ','), ']',
  ',"tools":', {body("JSONExtractString(request_head, 'tools')", "[]")}, '}}'))"""
    unified_logs = f"""SELECT
  timestamp, timestamp_iso, session_id, trace_id, parent_id, parent_session_id, parent_message_id,
  node_type, role, depth, sounding_index, is_winner, reforge_step, attempt_number, turn_number,
  mutation_type, mutation_applied, mutation_template,
  cascade_id, cascade_file, {body("cascade_hash")} AS cascade_json, phase_name, {body("phase_hash")} AS phase_json,
  model, request_id, provider, duration_ms, tokens_in, tokens_out, total_tokens, cost, spent,
  recorded, recorded_tokens_in, recorded_tokens_out, recorded_cost,
  content_json, {request} AS full_request_json, {body("response_hash")} AS full_response_json, tool_calls_json,
  images_json, has_images, has_base64, metadata_json,
  content_hash, {sent("contents")} AS context_hashes, estimated_tokens, is_callout, callout_name, semantic_actor,
  semantic_purpose, full_history_size, context_size, tokens_saved, tokens_masked,
  message_id, run_id, seq, branch, visit, call, body_hash, cascade_hash, phase_hash, request_hash,
  {sent("bodies")} AS request_bodies,
  response_hash, model_requested, cost_grade, token_grade, tokens_cached, tokens_written, tokens_reasoning,
  tags, note, score, thumb, schema_version, row_version
FROM messages FINAL"""
    return (
        f"CREATE OR REPLACE VIEW unified_logs AS {unified_logs}",
        f"CREATE OR REPLACE VIEW all_data AS {unified_logs}",
        "CREATE OR REPLACE VIEW all_evals AS SELECT * FROM evals FINAL",
    )


DROP: tuple[str, ...] = (
    *(f"DROP VIEW IF EXISTS {view} SYNC" for view in ("unified_logs", "all_data", "all_evals")),
    *(f"DROP DICTIONARY IF EXISTS {name} SYNC" for name in ("bodies", "parts")),
    *(f"DROP TABLE IF EXISTS {table} SYNC" for table in TABLES),
)
"""Makes way for the tables of another version."""


def create_table(table: str, suffix: str = "") -> str:
    """The statement that makes a table, under its name with a suffix."""
    return f"{TABLES[table].format(name=table + suffix)} {SETTINGS}"
