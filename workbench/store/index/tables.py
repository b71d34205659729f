"""The tables: one class for the rows of each, whose fields are its columns, with the types that they have there."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from types import UnionType
from typing import Annotated, Any, ClassVar, Self, Union, get_args, get_origin, get_type_hints

from msgspec import Struct
from msgspec.structs import replace

SCHEMA_VERSION = 1
"""Of the meaning of ``messages`` columns."""

Byte = Annotated[int, "UInt8"]
Small = Annotated[int, "UInt16"]
Count = Annotated[int, "UInt32"]
Large = Annotated[int, "UInt64"]
Index = Annotated[int, "Int16"]
Time = Annotated[str, "DateTime64(6,'UTC')"]
Uuid = Annotated[str, "UUID"]
Word = Annotated[str, "LowCardinality(String)"]
"""One of few."""
Long = Annotated[str, "String CODEC(ZSTD(3))"]
Body = Annotated[str, "String CODEC(ZSTD(6))"]
LongTexts = Annotated[tuple[str, ...], "Array(String) CODEC(ZSTD(3))"]
Parts = Annotated[tuple[int, ...], "Array(UInt64) CODEC(ZSTD(3))"]
Vector = Annotated[tuple[float, ...], "Array(Float32)"]
_PLAIN = {str: "String", float: "Float64", bool: "Bool"}


def _column_type(type_: Any) -> str:
    """The engine's name for the type of a field."""
    if get_origin(type_) is Annotated:
        return str(type_.__metadata__[0])
    if get_origin(type_) is tuple:
        return f"Array({_column_type(get_args(type_)[0])})"
    if get_origin(type_) in (Union, UnionType):
        inner = _column_type(get_args(type_)[0])
        # The engine wants NULL inside of what is stored by number.
        return "LowCardinality(Nullable(String))" if inner == "LowCardinality(String)" else f"Nullable({inner})"
    return _PLAIN[type_]


class TableRow(Struct, kw_only=True, array_like=True):
    """A row of a table, encoded as the array of its values. Nothing assigns to a field of one: ``changed`` gives
    another row. A frozen class would say so by itself, at four times the cost of making a row of sixty fields, of which
    an index makes tens of thousands."""

    table: ClassVar[str]
    key_columns: ClassVar[tuple[str, ...]]
    """The columns in which two versions of one row are equal."""
    version_column: ClassVar[str] = "row_version"
    """The highest wins."""
    partition: ClassVar[str] = ""
    """The expression by which rows are kept apart; empty for none."""
    beside: ClassVar[tuple[str, ...]] = ()
    """Computed columns and indices, as they are declared."""
    key_of: ClassVar[Callable[[Any], tuple[object, ...]]]
    """``key`` of a row, for those who ask for that of many: it is no function of Python's."""

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls.key_of = attrgetter("table", *cls.key_columns)

    @property
    def version(self) -> object:
        """Of two rows with one key, the higher version is the row."""
        return getattr(self, self.version_column)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for versions of the same row."""
        return type(self).key_of(self)

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the table's columns, in order."""
        return cls.__struct_fields__

    @classmethod
    def create_statement(cls) -> str:
        """The statement that makes the table. Its name is left open: ``{name}``."""
        types = get_type_hints(cls, include_extras=True)
        columns = [f"{name} {_column_type(types[name])}" for name in cls.columns()]
        declared = ",\n  ".join((*columns, *cls.beside))
        parts = f" PARTITION BY {cls.partition}" if cls.partition else ""
        return (
            f"CREATE TABLE IF NOT EXISTS {{name}} (\n  {declared}\n) ENGINE=ReplacingMergeTree({cls.version_column})"
            f"{parts} ORDER BY ({', '.join(cls.key_columns)})"
        )

    def changed(self, **values: Any) -> Self:
        """This row with other values by column."""
        return replace(self, **values)


class MessageRow(TableRow, kw_only=True):
    """A row of ``unified_logs``: a message, or a step of the run's life. Seconds are milliseconds here."""

    table = "messages"
    key_columns = ("session_id", "seq", "message_id")
    partition = "toYYYYMM(timestamp)"
    beside = (
        "timestamp_iso String ALIAS formatDateTime(timestamp,'%Y-%m-%dT%H:%i:%S.%fZ','UTC')",
        *(
            f"{name} Int64 ALIAS JSONExtractInt(metadata_json,'{name}')"
            for name in ("full_history_size", "context_size", "tokens_saved", "tokens_masked")
        ),
        "INDEX ix_text content_json TYPE text(tokenizer='splitByNonAlpha')",
        "INDEX ix_hash content_hash TYPE bloom_filter",
        "INDEX ix_trace trace_id TYPE bloom_filter",
        "INDEX ix_run run_id TYPE bloom_filter",
    )
    timestamp: Time
    session_id: str
    trace_id: str
    parent_id: str | None = None
    parent_session_id: str | None = None
    parent_message_id: str | None = None
    node_type: Word
    role: Word = ""
    depth: Byte = 0
    sounding_index: Index | None = None
    is_winner: bool | None = None
    reforge_step: Index | None = None
    attempt_number: Small | None = None
    turn_number: Small | None = None
    mutation_type: Word | None = None
    mutation_applied: str | None = None
    mutation_template: str | None = None
    cascade_id: Word = ""
    cascade_file: str = ""
    cascade_hash: str = ""
    phase_name: Word = ""
    phase_hash: str = ""
    model: Word = ""
    request_id: str = ""
    provider: Word = ""
    request_hash: str = ""
    response_hash: str = ""
    duration_ms: float | None = None
    tokens_in: Count | None = None
    tokens_out: Count | None = None
    total_tokens: Count | None = None
    cost: float | None = None
    spent: float | None = None
    recorded: bool = False
    recorded_tokens_in: Count | None = None
    recorded_tokens_out: Count | None = None
    recorded_cost: float | None = None
    content_json: Long = ""
    tool_calls_json: Long = ""
    images_json: str = ""
    has_images: bool = False
    has_base64: bool = False
    metadata_json: Long = ""
    content_hash: str = ""
    context_parts: Parts = ()
    estimated_tokens: Count | None = None
    is_callout: bool = False
    callout_name: str | None = None
    semantic_actor: Word = "framework"
    semantic_purpose: Word = "lifecycle"
    message_id: Uuid
    run_id: str
    seq: Count
    branch: str = ""
    visit: Small = 0
    body_hash: str = ""
    model_requested: Word = ""
    cost_grade: Word = ""
    token_grade: Word = ""
    call: Small = 0
    tokens_cached: Count | None = None
    tokens_written: Count | None = None
    tokens_reasoning: Count | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    score: float | None = None
    thumb: Word = ""
    schema_version: Small = SCHEMA_VERSION
    row_version: Large


class CardRow(TableRow, kw_only=True):
    """A context card: what selection knows of a message."""

    table = "context_cards"
    key_columns = ("session_id", "content_hash")
    version_column = "generated_at"
    partition = "toYYYYMM(message_timestamp)"
    beside = ("INDEX keywords_idx keywords TYPE bloom_filter",)
    session_id: str
    content_hash: str
    summary: str = ""
    keywords: tuple[str, ...] = ()
    embedding: Vector = ()
    embedding_model: str = ""
    estimated_tokens: Count = 0
    role: str = ""
    phase_name: str = ""
    turn_number: Count | None = None
    is_anchor: bool = False
    is_callout: bool = False
    callout_name: str | None = None
    generated_at: Time
    generator_model: str = ""
    message_timestamp: Time


class ContextRow(TableRow, kw_only=True):
    """The changes in one call's context since the call before; the arrays run in parallel."""

    table = "contexts"
    key_columns = ("session_id", "branch", "phase_name", "visit", "attempt_number", "turn_number", "call", "strategy")
    session_id: str
    branch: str
    phase_name: Word
    visit: Small
    attempt_number: Small
    turn_number: Small
    call: Small
    strategy: str
    request_hash: str
    entries: Count
    positions: tuple[Count, ...]
    source_hashes: tuple[str, ...]
    sent_hashes: tuple[str, ...]
    actions: tuple[Word, ...]
    reasons: tuple[str, ...]
    rule_paths: tuple[str, ...]
    rule_lines: tuple[Count, ...]
    tokens_full: tuple[Count, ...]
    tokens_sent: tuple[Count, ...]
    in_prefix: tuple[bool, ...]
    cached: Count
    fresh: Count
    written: Count
    grade: Word
    row_version: Large


class BlobRow(TableRow, kw_only=True):
    """A body by hash: message, tools, request head, response, cascade, phase."""

    table = "blobs"
    key_columns = ("hash",)
    version_column = "added_at"
    hash: str
    kind: Word
    size: Count
    body: Body
    added_at: Time


class RunRow(TableRow, kw_only=True):
    """One run, as far as it has come."""

    table = "runs"
    key_columns = ("run_id",)
    run_id: str
    session_id: str
    parent_run_id: str
    parent_session_id: str
    parent_kind: Word
    cascade_id: Word
    cascade_file: str
    cascade_hash: str
    strategy: str
    status: Word
    failed_check: str
    reason: str
    started: Time | None
    finished: Time | None
    seconds: float | None
    paused_seconds: float
    visits: Count
    calls: Count
    recorded_calls: Count
    tools: Count
    tokens_in: Large
    tokens_out: Large | None
    recorded_tokens_in: Large
    recorded_tokens_out: Large | None
    cost: float | None
    predicted_cost: float
    unknown_costs: Count
    spent: float | None
    recorded_cost: float
    inside_runs: Count
    inside_calls: Count
    inside_tokens_in: Large
    inside_tokens_out: Large | None
    inside_cost: float | None
    inside_predicted_cost: float
    model: str
    input: Long
    output: Long
    imported: bool
    journal_rows: Count
    tags: tuple[str, ...] = ()
    note: str = ""
    score: float | None = None
    thumb: Word = ""
    row_version: Large


class EventRow(TableRow, kw_only=True):
    """One record of a journal; bodies are left to ``blobs``."""

    table = "events"
    key_columns = ("run_id", "seq")
    run_id: str
    seq: Count
    timestamp: Time
    kind: Word
    branch: str
    phase_name: Word
    visit: Small
    attempt_number: Small
    turn_number: Small
    call: Small
    data_json: Long
    row_version: Large


class EvalRow(TableRow, kw_only=True):
    """One judgement: of a candidate by an evaluator, of an answer by a check."""

    table = "evals"
    key_columns = ("session_id", "eval_id")
    session_id: str
    eval_id: Uuid
    run_id: str
    seq: Count
    timestamp: Time
    phase_name: Word
    branch: str
    visit: Small
    sounding_index: Index | None
    rater: Word
    score: float | None
    preferred: bool | None
    verdict: Word
    notes: str
    row_version: Large


class AnnotationRow(TableRow, kw_only=True):
    """One record of what people say of a run or of a call, also one that no longer holds."""

    table = "annotations"
    key_columns = ("run_id", "annotation_id")
    run_id: str
    annotation_id: str
    session_id: str
    timestamp: Time
    kind: Word
    tag: str = ""
    note: str = ""
    score: float | None = None
    thumb: Word = ""
    holds: bool
    branch: str
    phase_name: Word
    visit: Small
    attempt_number: Small
    turn_number: Small
    call: Small
    row_version: Large


class PartRow(TableRow, kw_only=True):
    """Messages that follow each other in contexts: as sent, and as the history has them."""

    table = "context_parts"
    key_columns = ("id",)
    version_column = "added_at"
    id: Large
    bodies: LongTexts
    contents: LongTexts
    added_at: Time


class LineRow(TableRow, kw_only=True):
    """One record of a journal as it stands in its file. On a server alone."""

    table = "journal_lines"
    key_columns = ("run_id", "seq")
    run_id: str
    seq: Count
    segment: Word
    line: Body
    row_version: Large


class FileRow(TableRow, kw_only=True):
    """A file beside the records of a run: a long body, an image, annotations. On a server only."""

    table = "journal_files"
    key_columns = ("run_id", "name")
    run_id: str
    name: str
    data: Long
    """Base64."""
    row_version: Large


class OriginRow(TableRow, kw_only=True):
    """The user and machine of a run, and its line in a list of runs. On a server only."""

    table = "origins"
    key_columns = ("run_id",)
    run_id: str
    session_id: str
    parent_run_id: str
    depth: Small
    user: Word
    machine: Word
    workspace: str
    started: str
    shipped_at: Time
    summary: Long
    """JSON."""
    row_version: Large


INDEX_ROWS: tuple[type[TableRow], ...] = (
    *(PartRow, BlobRow, MessageRow, CardRow, ContextRow),
    *(RunRow, EventRow, EvalRow, AnnotationRow),
)
JOURNAL_ROWS: tuple[type[TableRow], ...] = (FileRow, LineRow, OriginRow)
"""On a server alone: from these all other tables can be made."""
ROW_TYPES = (*INDEX_ROWS, *JOURNAL_ROWS)
"""In the order in which they are sent: what others refer to comes first."""
