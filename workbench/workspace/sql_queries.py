"""Queries in SQL from the app: over the one index of this process, from worker threads, with limits; the queries that
were run, and those that are kept by name."""

from __future__ import annotations

import json
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct, convert, to_builtins
from msgspec.structs import replace

from workbench.files import read_plain, write_whole
from workbench.store.faults import StoreBusy, StoreError
from workbench.store.index.catalogue import TABLES
from workbench.store.index.table import Column, as_csv, as_json, write_parquet
from workbench.store.sqltext import SqlFault, fault_of

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.store.index.index import Index  # 0.1 s, which the first frame of the app does without
    from workbench.store.index.queries import Cancel
    from workbench.store.index.table import ResultTable
    from workbench.store.server.server_index import ServerIndex
    from workbench.store.store import Store
    from workbench.store.team_server import TeamServer
    from workbench.workspace.folders import Folders

# Keeps the database over the journals up to date while the app is open, in a thread of its own and after its start.

START_AFTER = 6.0
"""Seconds after what the app shows first was made: chDB takes 0.2 to 0.8 s of CPU and 300 MB to load, which the first
frames should not feel. On a busy machine a long run is still being read so long after the start."""
MOST_DELAY = 60.0
"""Seconds that it also waits while a run goes on: loading chDB stops all threads twice for 50 ms, and a key that is
pressed while an answer streams in took 0.2 s then. A run may be paused for hours."""
BUSY_PAUSE = 0.2
"""Seconds between two looks whether it still does."""


class Indexing:
    """Owns the index unless another process does. A context manager; ``notice`` says why it cannot."""

    def __init__(self, store: Callable[[], Store], after: float = START_AFTER) -> None:
        """``store`` is called in the thread: neither it nor what it imports delays the first frame. ``after``: seconds
        from ``begin`` on."""
        self.notice = ""
        self._store = store
        self._after = after
        self._busy: Callable[[], bool] = lambda: False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="indexing", daemon=True)

    def __enter__(self) -> Indexing:
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop.set()
        if self._thread.ident is not None:
            self._thread.join(10.0)

    def begin(self, busy: Callable[[], bool] = lambda: False) -> None:
        """To be called once, when what the app shows first is made. ``busy``: whether a run goes on, which is asked in
        the thread."""
        self._busy = busy
        self._thread.start()

    def _run(self) -> None:
        if self._stop.wait(self._after):
            return
        until = time.monotonic() + MOST_DELAY
        while self._busy() and time.monotonic() < until:
            if self._stop.wait(BUSY_PAUSE):
                return
        shared = ExitStack()
        try:
            index = shared.enter_context(shared_index(self._store(), owned_index))
        except (StoreError, ImportError) as fault:
            self.notice = f"runs are not indexed here: {fault}"
            return
        self.notice = index.notice
        try:
            self._stop.wait()
        finally:
            shared.close()


MOST_ROWS = 10_000
"""Rows of a result that are shown; how many there are is counted."""
PATIENCE = 3.0
"""Seconds that a query waits for the index to catch up with the journals; then it runs over the rows that exist."""
_COUNTABLE = re.compile(r"\s*(?:/\*.*?\*/|--[^\n]*\n|\s)*(?:SELECT|WITH)\b", re.IGNORECASE | re.DOTALL)


def open_index(store: Store) -> Index | ServerIndex:
    """Returns the index that answers questions in SQL about a store: its own database, a copy of it where another
    process owns it, or the team's server. Raises StoreError."""
    from workbench.store.index.index import Index  # 0.1 s, which the first frame of the app does without

    try:
        return owned_index(store)
    except StoreBusy:
        return Index(store, copied=True)


def owned_index(store: Store) -> Index | ServerIndex:
    """Returns the database of a store as its owner, or the team's server. Raises StoreBusy where another process owns
    the database, and StoreError."""
    from workbench.store.index.index import Index  # 0.1 s, which the first frame of the app does without

    return Index(store) if store.server is None else server_index(store, store.server)


def server_index(store: Store, server: TeamServer) -> ServerIndex:
    """The team's server as the index of a store, to which its runs are shipped. Raises StoreError."""
    from workbench.store.server.server_index import ServerIndex  # pandas and SQL: 0.1 s; most stores have no server

    return ServerIndex(store, server)


class _SharedIndex(Struct):
    index: Index | ServerIndex
    users: int = 0


_open: dict[Path, _SharedIndex] = {}
_lock = threading.Lock()


@contextmanager
def shared_index(
    store: Store, opened: Callable[[Store], Index | ServerIndex] = open_index
) -> Iterator[Index | ServerIndex]:
    """The index over a store, opened once in this process however many use it; the last one closes it.

    Raises what ``opened`` raises.
    """
    with _lock:
        shared = _open.get(store.root)
        if shared is None:
            shared = _open[store.root] = _SharedIndex(opened(store))
        shared.users += 1
    try:
        yield shared.index
    finally:
        with _lock:
            shared.users -= 1
            if not shared.users:
                del _open[store.root]
                shared.index.close()


def index_notes(index: Index | ServerIndex) -> list[str]:
    """Returns remarks for a reader of answers: that the index is only read, stands still, or lacks
    runs or parts of them."""
    progress = index.progress
    notes = [index.notice] if index.notice else []
    if progress.fault:
        notes.append(f"the index stands still: {progress.fault}")
    for run_id, reason in sorted(progress.refused.items()):
        notes.append(f"run {run_id} is not in the tables: {' '.join(reason.split())[:200]}")
    for run_id, number in sorted(progress.lacking.items()):
        lack = "1 record of it is" if number == 1 else f"{number:,} records of it are"
        notes.append(f"run {run_id} is damaged: {lack} not in the tables, nor in what they sum up")
    return notes


class TimedAnswer(Struct, frozen=True):
    """The answer to a query, with its time."""

    sql: str
    table: ResultTable
    seconds: float
    notes: tuple[str, ...] = ()


class TableInfo(Struct, frozen=True):
    """A table or view, with the types of its columns."""

    name: str
    columns: tuple[Column, ...]


def query_fault(index: Index | ServerIndex, sql: str, error: StoreError) -> SqlFault:
    """Why an index refused a query: the place, the reason, and what an unknown table or column may mean."""
    fault = fault_of(sql, error)
    if not fault.unknown:
        return fault
    try:
        tables = [(table.name, table.columns) for table in _tables_of(index)]
    except StoreError:
        return fault
    from workbench.workspace.sql_completion import suggested  # The language: lists of runs do without.

    hint = suggested(fault, sql, tables)
    return replace(fault, message=f"{fault.message}: {hint}") if hint else fault


def _tables_of(index: Index | ServerIndex) -> tuple[TableInfo, ...]:
    found = []
    for (name,) in index.sql("SHOW TABLES").rows:
        rows = index.sql(f"DESCRIBE {name}").rows
        found.append(TableInfo(str(name), tuple(Column(str(row[0]), str(row[1])) for row in rows)))
    order = {name: at for at, name in enumerate(TABLES)}
    return tuple(sorted(found, key=lambda table: (order.get(table.name, len(order)), table.name)))


class SqlQueries:
    """Queries one store; the index is opened by the first query. Every method may be called from any thread."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._index: Index | ServerIndex | None = None
        self._stack = ExitStack()
        self._change = threading.Condition()
        self._users = 0
        self._closed = False

    @contextmanager
    def _used(self) -> Iterator[Index | ServerIndex]:
        """The index while a query runs: it is not closed under it. Raises StoreError."""
        with self._change:
            if self._closed:
                raise StoreError("the SQL console is closed")
            if self._index is None:
                self._index = self._stack.enter_context(shared_index(self.store))
            self._users += 1
        try:
            yield self._index
        finally:
            with self._change:
                self._users -= 1
                self._change.notify_all()

    def close(self) -> None:
        """Let the index go when no query runs any more; cancel them before. May be called twice."""
        with self._change:
            self._closed = True
            self._change.wait_for(lambda: not self._users)
            self._stack.close()

    def tables(self) -> tuple[TableInfo, ...]:
        """All tables and views. Raises StoreError."""
        with self._used() as index:
            return _tables_of(index)

    def fault(self, sql: str, error: StoreError) -> SqlFault:
        """Describes why a query was refused, as ``query_fault`` does."""
        try:
            with self._used() as index:
                return query_fault(index, sql, error)
        except StoreError:
            return fault_of(sql, error)

    def ask(self, sql: str, cancel: Cancel, limit: int = MOST_ROWS) -> TimedAnswer:
        """Run one statement. Raises BadSql, DatabaseError, StoreError."""
        with self._used() as index:
            behind: list[str] = []
            try:
                index.catch_up(PATIENCE)
            except StoreError as fault:
                waiting = index.progress.waiting
                behind.append(f"{fault}; {waiting:,} records wait" if waiting else str(fault))
            began = time.monotonic()
            table = index.sql(sql, limit, cancel=cancel)
            notes = dict.fromkeys((*behind, *index_notes(index)))
            return TimedAnswer(sql, table, time.monotonic() - began, tuple(notes))

    def count(self, sql: str, cancel: Cancel) -> int | None:
        """The number of rows of a SELECT; None for other statements. Raises as ``ask``."""
        if not _COUNTABLE.match(sql):
            return None
        inner = sql.strip().rstrip(";")
        with self._used() as index:
            return int(index.sql(f"SELECT count() FROM (\n{inner}\n)", cancel=cancel).one())

    def places(self, row: Mapping[str, Any]) -> Mapping[str, tuple[Place, ...]]:
        """By run id, the places that a row of a result may be of, as ``Queries.places_of_row`` finds them. Raises
        StoreError."""
        found: dict[str, tuple[Place, ...]] = {}
        with self._used() as index:
            with suppress(StoreError):
                index.catch_up(PATIENCE)
            for run_id, place in index.places_of_row(row):
                found[run_id] = (*found.get(run_id, ()), place)
        return found

    def save(self, answer: TimedAnswer, file: Path) -> int:
        """Write a result as the name ends (.csv, .json, .parquet); the number of rows. Raises StoreError.

        CSV and JSON hold the rows that are shown; Parquet is queried anew, with the types of the columns.
        """
        ending = file.suffix.lower()
        if ending == ".parquet":
            with self._used() as index:
                return write_parquet(index.arrow(answer.sql, MOST_ROWS), file)
        form = {".csv": as_csv, ".json": as_json}.get(ending)
        if form is None:
            raise StoreError(f"{file.name}: the name must end in .csv, .json or .parquet")
        try:
            write_whole(file, (form(answer.table).rstrip("\n") + "\n").encode("utf-8", "backslashreplace"))
        except OSError as fault:
            raise StoreError(f"{file}: cannot be written: {fault.strerror}") from fault
        return len(answer.table)


class StatementOutcome(Struct, frozen=True, omit_defaults=True):
    """When a statement was last run, and what came of it."""

    at: str
    """In UTC, as ISO 8601."""
    rows: int = 0
    cut: bool = False
    """Whether there are more rows than were shown."""
    seconds: float = 0.0
    fault: str = ""
    """Why it gave no rows; empty if it did."""


class StatementHistory:
    """Statements that were run, the newest last, what came of each, and the one that was written and not run; kept in
    files of the user's."""

    LONGEST = 200

    def __init__(self, file: Path) -> None:
        self._file = file
        self._draft = file.with_suffix(".draft")
        self.statements: list[str] = []
        self.outcomes: dict[str, StatementOutcome] = {}
        """By statement; those of older versions have none."""
        self.problem = ""
        """Why it is not kept, if so."""
        try:
            lines = file.read_text("utf-8").splitlines()
        except FileNotFoundError:
            lines = []
        except (OSError, UnicodeDecodeError) as fault:
            self.problem, lines = f"{file}: cannot be read: {fault}", []
        for line in lines:
            try:
                said = json.loads(line)
                if isinstance(said, dict):
                    statement = str(said.pop("sql"))
                    self.outcomes[statement] = convert(said, StatementOutcome)
                else:
                    statement = str(said)
                self.statements.append(statement)
            except (ValueError, KeyError):
                self.problem = f"{file}: holds a line that is not JSON"

    @property
    def draft(self) -> str:
        """The statement that was written last and not run; empty for none."""
        try:
            return self._draft.read_text("utf-8")
        except (OSError, UnicodeDecodeError):
            return ""

    def keep_draft(self, statement: str) -> None:
        """Keep what is written and was not run; one that was run, or nothing, leaves no draft."""
        try:
            if not statement.strip() or statement.strip() in self.statements:
                self._draft.unlink(missing_ok=True)
                return
            self._draft.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._draft, statement.encode("utf-8"), 0o600)
        except OSError as fault:
            self.problem = f"{self._draft}: cannot be written: {fault.strerror}"

    def add(self, statement: str) -> None:
        """Keep a statement; one that was run before moves to the end."""
        others = [old for old in self.statements if old != statement]
        self.statements = [*others[-self.LONGEST + 1 :], statement]
        self.outcomes.pop(statement, None)
        self._write()

    def ended(self, statement: str, outcome: StatementOutcome) -> None:
        """Keep what came of a statement."""
        if statement in self.statements:
            self.outcomes[statement] = outcome
            self._write()

    def _write(self) -> None:
        lines: list[Any] = []
        for one in self.statements:
            outcome = self.outcomes.get(one)
            lines.append(one if outcome is None else {"sql": one, **to_builtins(outcome)})
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            write_whole(self._file, "".join(json.dumps(line) + "\n" for line in lines).encode("utf-8"), 0o600)
        except OSError as fault:
            self.problem = f"{self._file}: cannot be written: {fault.strerror}"


_NAME = re.compile(r"[^\W_][\w .()-]{0,79}")


class SavedQueries:
    """Queries that the user keeps by name, each a file that ends in ``.sql`` in a folder of the user's."""

    LARGEST = 100_000
    """Bytes of a file that is read."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @classmethod
    def of(cls, folders: Folders) -> SavedQueries:
        """Those of a user: in ``queries`` of the config folder."""
        return cls(folders.config / "queries")

    def all(self) -> dict[str, str]:
        """The queries by name; files that cannot be read are left out."""
        found: dict[str, str] = {}
        try:
            files = sorted(self.folder.glob("*.sql"))
        except OSError:
            return found
        for file in files:
            with suppress(OSError):
                found[file.stem] = read_plain(file, self.LARGEST).decode("utf-8", "replace").strip()
        return found

    def file_of(self, name: str) -> Path:
        """The file of a saved query. Raises StoreError for an invalid name."""
        if not _NAME.fullmatch(name) or name != name.strip():
            raise StoreError("a name has up to 80 letters, digits, spaces, and the characters _ - . ( )")
        return self.folder / f"{name}.sql"

    def keep(self, name: str, sql: str) -> Path:
        """Write a query under a name, over one that has it already; the file. Raises StoreError."""
        file = self.file_of(name)
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(file, (sql.strip() + "\n").encode("utf-8", "backslashreplace"))
        except OSError as fault:
            raise StoreError(f"{file}: cannot be written: {fault.strerror}") from fault
        return file

    def drop(self, name: str) -> None:
        """Delete the file of a query. Raises StoreError."""
        file = self.file_of(name)
        try:
            file.unlink(missing_ok=True)
        except OSError as fault:
            raise StoreError(f"{file}: cannot be deleted: {fault.strerror}") from fault


EXAMPLES: tuple[tuple[str, str], ...] = (
    (
        "cost and tokens by phase",
        "SELECT phase_name, countIf(NOT recorded) AS calls, sum(tokens_in) AS tokens_in,\n"
        "       sum(tokens_out) AS tokens_out, sum(spent) AS spent\n"
        "FROM all_data\nWHERE response_hash != ''\n"
        "GROUP BY phase_name\nORDER BY tokens_in DESC",
    ),
    (
        "the newest runs",
        # As lists show a run: with the runs inside it, as `spent` is.
        "SELECT session_id, cascade_id, status, runs.calls + inside_calls AS calls,\n"
        "       runs.tokens_in + inside_tokens_in AS tokens_in,\n"
        "       coalesce(runs.tokens_out + inside_tokens_out, runs.tokens_out,\n"
        "                nullIf(inside_tokens_out, 0)) AS tokens_out,\n"
        "       spent, started\n"
        "FROM runs\nORDER BY started DESC\nLIMIT 50",
    ),
    (
        "what masking saved, by call",
        "SELECT session_id, phase_name, turn_number, max(coalesce(recorded_tokens_in, tokens_in)) AS sent,\n"
        "       max(tokens_masked) AS saved, branch, visit, attempt_number, call\n"
        "FROM all_data\nWHERE node_type = 'context_selection' OR response_hash != ''\n"
        "GROUP BY ALL\nHAVING saved > 0\nORDER BY saved DESC\nLIMIT 100",
    ),
    (
        "tools by how much they return",
        "SELECT JSONExtractString(metadata_json, 'tool') AS tool, count() AS calls,\n"
        "       round(avg(lengthUTF8(JSONExtractString(content_json)))) AS characters\n"
        "FROM all_data\nWHERE node_type = 'tool_result'\n"
        "GROUP BY tool\nORDER BY characters DESC",
    ),
    (
        "who won, and why",
        # A candidate that wins a round stands in the next one again, and `sounding_index` begins anew in each.
        "SELECT session_id, phase_name, branch, score, preferred, rater, verdict, notes\n"
        "FROM all_evals\nWHERE verdict NOT IN ('valid', 'invalid')\nORDER BY session_id, seq, branch",
    ),
)
"""Title and statement."""
