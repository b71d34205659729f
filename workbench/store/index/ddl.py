"""Tables, views and the dictionary of bodies, as statements."""

from __future__ import annotations

SETTINGS = "SETTINGS fsync_after_insert=1, fsync_part_directory=1, min_bytes_for_wide_part=64000000"
"""Parts of less than 64 MB are one file each: a file or two for each of some 70 columns, written and synced with each
batch, are a third of the work of an insert into ``messages``."""

MESSAGES = """
CREATE TABLE IF NOT EXISTS {name} (
  timestamp DateTime64(6,'UTC'), session_id String, trace_id String, parent_id Nullable(String),
  parent_session_id Nullable(String), parent_message_id Nullable(String),
  timestamp_iso String ALIAS formatDateTime(timestamp,'%Y-%m-%dT%H:%i:%S.%fZ','UTC'),
  node_type LowCardinality(String), role LowCardinality(String), depth UInt8,
  sounding_index Nullable(Int16), is_winner Nullable(Bool), reforge_step Nullable(Int16),
  attempt_number Nullable(UInt16), turn_number Nullable(UInt16),
  mutation_type LowCardinality(Nullable(String)), mutation_applied Nullable(String), mutation_template Nullable(String),
  cascade_id LowCardinality(String), cascade_file String, cascade_hash String,
  phase_name LowCardinality(String), phase_hash String,
  model LowCardinality(String), request_id String, provider LowCardinality(String),
  request_hash String, response_hash String,
  duration_ms Nullable(Float64), tokens_in Nullable(UInt32), tokens_out Nullable(UInt32),
  total_tokens Nullable(UInt32), cost Nullable(Float64), spent Nullable(Float64),
  recorded_cost Nullable(Float64),
  content_json String CODEC(ZSTD(3)), tool_calls_json String CODEC(ZSTD(3)), images_json String,
  has_images Bool, has_base64 Bool, metadata_json String CODEC(ZSTD(3)),
  content_hash String, context_parts Array(UInt64) CODEC(ZSTD(3)), estimated_tokens Nullable(UInt32),
  is_callout Bool, callout_name Nullable(String),
  semantic_actor LowCardinality(String), semantic_purpose LowCardinality(String),
  full_history_size Int64 ALIAS JSONExtractInt(metadata_json,'full_history_size'),
  context_size Int64 ALIAS JSONExtractInt(metadata_json,'context_size'),
  tokens_saved Int64 ALIAS JSONExtractInt(metadata_json,'tokens_saved'),
  tokens_masked Int64 ALIAS JSONExtractInt(metadata_json,'tokens_masked'),
  message_id UUID, run_id String, seq UInt32, branch String, visit UInt16, body_hash String,
  model_requested LowCardinality(String), cost_grade LowCardinality(String), token_grade LowCardinality(String),
  call UInt16, tokens_cached Nullable(UInt32), tokens_written Nullable(UInt32), tokens_reasoning Nullable(UInt32),
  tags Array(String), note String, score Nullable(Float64), thumb LowCardinality(String),
  schema_version UInt16, row_version UInt64,
  INDEX ix_text content_json TYPE text(tokenizer='splitByNonAlpha'), INDEX ix_hash content_hash TYPE bloom_filter,
  INDEX ix_trace trace_id TYPE bloom_filter, INDEX ix_run run_id TYPE bloom_filter
) ENGINE=ReplacingMergeTree(row_version) PARTITION BY toYYYYMM(timestamp)
  ORDER BY (session_id, seq, message_id)"""

CONTEXT_CARDS = """
CREATE TABLE IF NOT EXISTS {name} (
  session_id String, content_hash String, summary String, keywords Array(String),
  embedding Array(Float32), embedding_model String, estimated_tokens UInt32, role String, phase_name String,
  turn_number Nullable(UInt32), is_anchor Bool DEFAULT false, is_callout Bool DEFAULT false,
  callout_name Nullable(String), generated_at DateTime64(6,'UTC') DEFAULT now64(6), generator_model String,
  message_timestamp DateTime64(6,'UTC'), INDEX keywords_idx keywords TYPE bloom_filter
) ENGINE=ReplacingMergeTree(generated_at) PARTITION BY toYYYYMM(message_timestamp)
  ORDER BY (session_id, content_hash)"""

CONTEXTS = """
CREATE TABLE IF NOT EXISTS {name} (
  session_id String, branch String, phase_name LowCardinality(String), visit UInt16, attempt_number UInt16,
  turn_number UInt16, call UInt16, strategy String, request_hash String,
  entries UInt32, positions Array(UInt32), source_hashes Array(String), sent_hashes Array(String),
  actions Array(LowCardinality(String)), reasons Array(String), rule_paths Array(String), rule_lines Array(UInt32),
  tokens_full Array(UInt32), tokens_sent Array(UInt32), in_prefix Array(Bool), cached UInt32, fresh UInt32,
  written UInt32, grade LowCardinality(String), row_version UInt64
) ENGINE=ReplacingMergeTree(row_version)
  ORDER BY (session_id, branch, phase_name, visit, attempt_number, turn_number, call, strategy)"""

CONTEXT_PARTS = """
CREATE TABLE IF NOT EXISTS {name} (
  id UInt64, bodies Array(String) CODEC(ZSTD(3)), contents Array(String) CODEC(ZSTD(3)), added_at DateTime64(6,'UTC')
) ENGINE=ReplacingMergeTree(added_at) ORDER BY id"""

BLOBS = """
CREATE TABLE IF NOT EXISTS {name} (
  hash String, kind LowCardinality(String), size UInt32, body String CODEC(ZSTD(6)), added_at DateTime64(6,'UTC')
) ENGINE=ReplacingMergeTree(added_at) ORDER BY hash"""

RUNS = """
CREATE TABLE IF NOT EXISTS {name} (
  run_id String, session_id String, parent_run_id String, parent_session_id String, parent_kind LowCardinality(String),
  cascade_id LowCardinality(String), cascade_file String, cascade_hash String, strategy String,
  status LowCardinality(String), failed_check String, reason String,
  started Nullable(DateTime64(6,'UTC')), finished Nullable(DateTime64(6,'UTC')),
  seconds Nullable(Float64), paused_seconds Float64,
  visits UInt32, calls UInt32, recorded_calls UInt32, tools UInt32,
  tokens_in UInt64, tokens_out Nullable(UInt64), cost Nullable(Float64), predicted_cost Float64, unknown_costs UInt32,
  spent Nullable(Float64), recorded_cost Float64,
  inside_runs UInt32, inside_calls UInt32, inside_tokens_in UInt64, inside_tokens_out Nullable(UInt64),
  inside_cost Nullable(Float64), inside_predicted_cost Float64, model String,
  input String CODEC(ZSTD(3)), output String CODEC(ZSTD(3)), imported Bool, journal_rows UInt32,
  tags Array(String), note String, score Nullable(Float64), thumb LowCardinality(String), row_version UInt64
) ENGINE=ReplacingMergeTree(row_version) ORDER BY run_id"""

EVENTS = """
CREATE TABLE IF NOT EXISTS {name} (
  run_id String, seq UInt32, timestamp DateTime64(6,'UTC'), kind LowCardinality(String), branch String,
  phase_name LowCardinality(String), visit UInt16, attempt_number UInt16, turn_number UInt16, call UInt16,
  data_json String CODEC(ZSTD(3)), row_version UInt64
) ENGINE=ReplacingMergeTree(row_version) ORDER BY (run_id, seq)"""

EVALS = """
CREATE TABLE IF NOT EXISTS {name} (
  session_id String, eval_id UUID, run_id String, seq UInt32, timestamp DateTime64(6,'UTC'),
  phase_name LowCardinality(String), branch String, visit UInt16, sounding_index Nullable(Int16),
  rater LowCardinality(String), score Nullable(Float64), preferred Nullable(Bool), verdict LowCardinality(String),
  notes String, row_version UInt64
) ENGINE=ReplacingMergeTree(row_version) ORDER BY (session_id, eval_id)"""

ANNOTATIONS = """
CREATE TABLE IF NOT EXISTS {name} (
  run_id String, annotation_id String, session_id String, timestamp DateTime64(6,'UTC'), kind LowCardinality(String),
  tag String, note String, score Nullable(Float64), thumb LowCardinality(String), holds Bool,
  branch String, phase_name LowCardinality(String), visit UInt16, attempt_number UInt16, turn_number UInt16,
  call UInt16, row_version UInt64
) ENGINE=ReplacingMergeTree(row_version) ORDER BY (run_id, annotation_id)"""

INGESTED = """
CREATE TABLE IF NOT EXISTS {name} (
  run_id String, segment String, bytes UInt64, seq UInt32, crc String, records UInt32, changed Int64, refused String,
  annotated UInt64, row_version UInt64
) ENGINE=ReplacingMergeTree(row_version) ORDER BY run_id"""

TABLES: dict[str, str] = {
    "messages": MESSAGES,
    "context_cards": CONTEXT_CARDS,
    "contexts": CONTEXTS,
    "blobs": BLOBS,
    "runs": RUNS,
    "events": EVENTS,
    "evals": EVALS,
    "annotations": ANNOTATIONS,
    "context_parts": CONTEXT_PARTS,
    "ingested": INGESTED,
}
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
  model, request_id, provider, duration_ms, tokens_in, tokens_out, total_tokens, cost, spent, recorded_cost,
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
