"""The rows of each table, one class per table, fields named and ordered as the columns of ``ddl.py``."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, ClassVar, Self

from msgspec import Struct
from msgspec.structs import replace

SCHEMA_VERSION = 1
"""Of the meaning of ``messages`` columns."""


class TableRow(Struct, kw_only=True, array_like=True):
    """A row of a table, encoded as the array of its values. Nothing assigns to a field of one: ``changed`` gives
    another row. A frozen class would say so by itself, at four times the cost of making a row of sixty fields, of which
    an index makes tens of thousands."""

    table: ClassVar[str]
    key_columns: ClassVar[tuple[str, ...]]
    """The columns in which two versions of one row are equal."""
    version_column: ClassVar[str] = "row_version"
    """The highest wins."""
    _key_of: ClassVar[Callable[[Any], tuple[object, ...]]]

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        cls._key_of = attrgetter("table", *cls.key_columns)

    @property
    def version(self) -> object:
        """Of two rows with one key, the higher version is the row."""
        return getattr(self, self.version_column)

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for versions of the same row."""
        return type(self)._key_of(self)

    @classmethod
    def columns(cls) -> tuple[str, ...]:
        """The names of the table's columns, in order."""
        return cls.__struct_fields__

    def changed(self, **values: Any) -> Self:
        """This row with other values by column."""
        return replace(self, **values)


class MessageRow(TableRow, kw_only=True):
    """A row of ``unified_logs``: a message, or a step of the run's life. Seconds are milliseconds here."""

    table = "messages"
    key_columns = ("session_id", "seq", "message_id")
    timestamp: str
    session_id: str
    trace_id: str
    parent_id: str | None = None
    parent_session_id: str | None = None
    parent_message_id: str | None = None
    node_type: str
    role: str = ""
    depth: int = 0
    sounding_index: int | None = None
    is_winner: bool | None = None
    reforge_step: int | None = None
    attempt_number: int | None = None
    turn_number: int | None = None
    mutation_type: str | None = None
    mutation_applied: str | None = None
    mutation_template: str | None = None
    cascade_id: str = ""
    cascade_file: str = ""
    cascade_hash: str = ""
    phase_name: str = ""
    phase_hash: str = ""
    model: str = ""
    request_id: str = ""
    provider: str = ""
    request_hash: str = ""
    response_hash: str = ""
    duration_ms: float | None = None
    tokens_in: int | None = None
    tokens_out: int | None = None
    total_tokens: int | None = None
    cost: float | None = None
    spent: float | None = None
    recorded_cost: float | None = None
    content_json: str = ""
    tool_calls_json: str = ""
    images_json: str = ""
    has_images: bool = False
    has_base64: bool = False
    metadata_json: str = ""
    content_hash: str = ""
    context_parts: tuple[int, ...] = ()
    estimated_tokens: int | None = None
    is_callout: bool = False
    callout_name: str | None = None
    semantic_actor: str = "framework"
    semantic_purpose: str = "lifecycle"
    message_id: str
    run_id: str
    seq: int
    branch: str = ""
    visit: int = 0
    body_hash: str = ""
    model_requested: str = ""
    cost_grade: str = ""
    token_grade: str = ""
    call: int = 0
    tokens_cached: int | None = None
    tokens_written: int | None = None
    tokens_reasoning: int | None = None
    tags: tuple[str, ...] = ()
    note: str = ""
    score: float | None = None
    thumb: str = ""
    schema_version: int = SCHEMA_VERSION
    row_version: int


class CardRow(TableRow, kw_only=True):
    """A context card: what selection knows of a message."""

    table = "context_cards"
    key_columns = ("session_id", "content_hash")
    version_column = "generated_at"
    session_id: str
    content_hash: str
    summary: str = ""
    keywords: tuple[str, ...] = ()
    embedding: tuple[float, ...] = ()
    embedding_model: str = ""
    estimated_tokens: int = 0
    role: str = ""
    phase_name: str = ""
    turn_number: int | None = None
    is_anchor: bool = False
    is_callout: bool = False
    callout_name: str | None = None
    generated_at: str
    generator_model: str = ""
    message_timestamp: str


class ContextRow(TableRow, kw_only=True):
    """The changes in one call's context since the call before; the arrays run in parallel."""

    table = "contexts"
    key_columns = ("session_id", "branch", "phase_name", "visit", "attempt_number", "turn_number", "call", "strategy")
    session_id: str
    branch: str
    phase_name: str
    visit: int
    attempt_number: int
    turn_number: int
    call: int
    strategy: str
    request_hash: str
    entries: int
    positions: tuple[int, ...]
    source_hashes: tuple[str, ...]
    sent_hashes: tuple[str, ...]
    actions: tuple[str, ...]
    reasons: tuple[str, ...]
    rule_paths: tuple[str, ...]
    rule_lines: tuple[int, ...]
    tokens_full: tuple[int, ...]
    tokens_sent: tuple[int, ...]
    in_prefix: tuple[bool, ...]
    cached: int
    fresh: int
    written: int
    grade: str
    row_version: int


class BlobRow(TableRow, kw_only=True):
    """A body by hash: message, tools, request head, response, cascade, phase."""

    table = "blobs"
    key_columns = ("hash",)
    version_column = "added_at"
    hash: str
    kind: str
    size: int
    body: str
    added_at: str


class RunRow(TableRow, kw_only=True):
    """One run, as far as it has come."""

    table = "runs"
    key_columns = ("run_id",)
    run_id: str
    session_id: str
    parent_run_id: str
    parent_session_id: str
    parent_kind: str
    cascade_id: str
    cascade_file: str
    cascade_hash: str
    strategy: str
    status: str
    failed_check: str
    reason: str
    started: str | None
    finished: str | None
    seconds: float | None
    paused_seconds: float
    visits: int
    calls: int
    recorded_calls: int
    tools: int
    tokens_in: int
    tokens_out: int | None
    cost: float | None
    predicted_cost: float
    unknown_costs: int
    spent: float | None
    recorded_cost: float
    inside_runs: int
    inside_calls: int
    inside_tokens_in: int
    inside_tokens_out: int | None
    inside_cost: float | None
    inside_predicted_cost: float
    model: str
    input: str
    output: str
    imported: bool
    journal_rows: int
    tags: tuple[str, ...] = ()
    note: str = ""
    score: float | None = None
    thumb: str = ""
    row_version: int


class EventRow(TableRow, kw_only=True):
    """One record of a journal; bodies are left to ``blobs``."""

    table = "events"
    key_columns = ("run_id", "seq")
    run_id: str
    seq: int
    timestamp: str
    kind: str
    branch: str
    phase_name: str
    visit: int
    attempt_number: int
    turn_number: int
    call: int
    data_json: str
    row_version: int


class EvalRow(TableRow, kw_only=True):
    """One judgement: of a candidate by an evaluator, of an answer by a check."""

    table = "evals"
    key_columns = ("session_id", "eval_id")
    session_id: str
    eval_id: str
    run_id: str
    seq: int
    timestamp: str
    phase_name: str
    branch: str
    visit: int
    sounding_index: int | None
    rater: str
    score: float | None
    preferred: bool | None
    verdict: str
    notes: str
    row_version: int


class AnnotationRow(TableRow, kw_only=True):
    """One record of what people say of a run or of a call, also one that no longer holds."""

    table = "annotations"
    key_columns = ("run_id", "annotation_id")
    run_id: str
    annotation_id: str
    session_id: str
    timestamp: str
    kind: str
    tag: str = ""
    note: str = ""
    score: float | None = None
    thumb: str = ""
    holds: bool
    branch: str
    phase_name: str
    visit: int
    attempt_number: int
    turn_number: int
    call: int
    row_version: int


class PartRow(TableRow, kw_only=True):
    """Messages that follow each other in contexts: as sent, and as the history has them."""

    table = "context_parts"
    key_columns = ("id",)
    version_column = "added_at"
    id: int
    bodies: tuple[str, ...]
    contents: tuple[str, ...]
    added_at: str


class LineRow(TableRow, kw_only=True):
    """One record of a journal as it stands in its file. On a server alone."""

    table = "journal_lines"
    key_columns = ("run_id", "seq")
    run_id: str
    seq: int
    segment: str
    line: str
    row_version: int


class FileRow(TableRow, kw_only=True):
    """A file beside the records of a run: a long body, an image, annotations. On a server only."""

    table = "journal_files"
    key_columns = ("run_id", "name")
    run_id: str
    name: str
    data: str
    """Base64."""
    row_version: int


class OriginRow(TableRow, kw_only=True):
    """The user and machine of a run, and its line in a list of runs. On a server only."""

    table = "origins"
    key_columns = ("run_id",)
    run_id: str
    session_id: str
    parent_run_id: str
    depth: int
    user: str
    machine: str
    workspace: str
    started: str
    shipped_at: str
    summary: str
    """JSON."""
    row_version: int


ROW_TYPES: tuple[type[TableRow], ...] = (
    *(PartRow, BlobRow, MessageRow, CardRow, ContextRow),
    *(RunRow, EventRow, EvalRow, AnnotationRow),
    *(FileRow, LineRow, OriginRow),
)
"""In the order in which they are sent: what others refer to comes first."""
