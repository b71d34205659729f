"""The embedded engine of one process: locked before it is imported, one handle per thread."""

from __future__ import annotations

import ctypes
import os
import re
import signal
import tempfile
import threading
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from workbench.store.faults import StoreError
from workbench.store.index.table import ResultTable
from workbench.store.index.values import ROWS, Value, json_rows, parameters
from workbench.store.journal.disk import make_root
from workbench.store.journal.lock import FileLock

# Signal handlers that native code must not take away, kept from any thread.

TAKEN = ("SIGTSTP", "SIGABRT", "SIGSEGV", "SIGILL", "SIGBUS", "SIGSYS", "SIGFPE", "SIGTRAP")
"""The signals that the import of the engine handles itself; turning its handlers off sets them to the default
instead of restoring them."""


@contextmanager
def handlers_kept() -> Iterator[None]:
    """Afterwards the signals mean what they meant before. ``signal.signal`` could not do it outside the main thread."""
    get, set_ = ctypes.pythonapi.PyOS_getsig, ctypes.pythonapi.PyOS_setsig
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.c_int]
    set_.restype, set_.argtypes = ctypes.c_void_p, [ctypes.c_int, ctypes.c_void_p]
    before = {number: get(number) for name in TAKEN if (number := getattr(signal, name, None)) is not None}
    try:
        yield
    finally:
        for number, handler in before.items():
            set_(number, handler)


NAME = "workbench"
"""Of the database."""

_BASE = "async_insert=0&date_time_input_format=best_effort&input_format_skip_unknown_fields=0"
_JSON = "output_format_json_quote_64bit_integers=0&output_format_json_quote_denormals=0"
WRITES = f"{_BASE}&{_JSON}&optimize_on_insert=0"
"""An insert does not look for replaced rows among its own: hardly one is left, and ``FINAL`` leaves it out."""
MOST_MEMORY, MOST_ANSWERED = 1_000_000_000, 500_000_000
"""Bytes that a question may take, and that its answer may have: ``context_hashes`` of all rows of a run grow with the
square of its calls."""
READS = f"{_BASE}&{_JSON}&final=1&max_memory_usage={MOST_MEMORY}&max_result_bytes={MOST_ANSWERED}"
"""Replaced rows never count: ``FINAL`` on every table, through joins and views."""
_TOO_LARGE = {
    241: f"the question needs more than {MOST_MEMORY / 1e9:g} GB of memory",
    396: f"the answer is larger than {MOST_ANSWERED / 1e6:g} MB",
}
"""By the engine's code. Writing has no limit of ours."""
_FEWER = (
    "ask for fewer rows (WHERE, LIMIT) or columns: "
    "context_hashes, request_bodies and full_request_json of each call hold its whole context"
)

_CODE = re.compile(r"Code: (\d+)(?:\.|, e\.displayText\(\) =) DB::Exception: ")
"""The second form is that of servers until 21."""
_NOISE = re.compile(
    r"(: )?In scope SELECT formatQuerySingleLine\(.*| \([A-Z_]+\) \(version [\d.]+\)\.|, e\.what\(\) = .*", re.DOTALL
)


class DatabaseError(StoreError):
    """The engine refused a statement. ``code`` is its own number, 0 when it gave none."""

    def __init__(self, message: str, code: int = 0) -> None:
        super().__init__(message)
        self.code = code

    @classmethod
    def of(cls, error: Exception) -> DatabaseError:
        """From what the engine raised, without its stack of prefixes."""
        text = str(error)
        codes = _CODE.findall(text)
        code = int(codes[-1]) if codes else 0
        if code in _TOO_LARGE:
            return cls(f"{_TOO_LARGE[code]}; {_FEWER}", code)
        message = _CODE.split(text)[-1] if codes else text
        return cls(_NOISE.sub("", message).strip(), code)


class Database(Protocol):
    """The interface of an engine for ingest and queries, embedded or not."""

    def query(self, sql: str, params: Mapping[str, Value] | None = None) -> ResultTable:
        """Answer one statement; values go through ``{name:Type}`` parameters. Raises DatabaseError."""
        ...

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows, each with a value for every column, as one batch. Raises DatabaseError."""
        ...

    def insert_encoded(self, table: str, columns: Sequence[str], rows: bytes) -> None:
        """The same with rows as ``json_rows`` gives them. Raises DatabaseError."""
        ...

    def command(self, sql: str) -> None:
        """Run a statement that has no answer. Raises DatabaseError."""
        ...

    def delete(self, table: str, where: str, params: Mapping[str, Value]) -> None:
        """Delete the rows of a table that a condition holds for. Raises DatabaseError."""
        ...


class Handle:
    """One connection to the embedded engine; belongs to the thread that uses it."""

    def __init__(self, connection: Any) -> None:
        self._connection = connection

    def query(self, sql: str, params: Mapping[str, Value] | None = None) -> ResultTable:
        data = self.raw(sql, "JSONCompact", params)
        try:
            return ResultTable.from_compact_json(data)
        except (ValueError, TypeError, KeyError) as error:
            raise DatabaseError("the answer has a form of its own (is there a FORMAT in the statement?)") from error

    def raw(self, sql: str, form: str, params: Mapping[str, Value] | None = None) -> bytes:
        """The answer in one of the engine's formats. Raises DatabaseError."""
        try:
            answer = self._connection.query(sql, form, params=parameters(params or {}))
        except RuntimeError as error:
            raise DatabaseError.of(error) from error
        return bytes(answer.bytes())

    def insert(self, table: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        if rows:
            self.insert_encoded(table, columns, json_rows(rows))

    def insert_encoded(self, table: str, columns: Sequence[str], rows: bytes) -> None:
        try:
            with self._connection.send_insert(f"INSERT INTO {table} ({', '.join(columns)})", ROWS) as inserter:
                inserter.append(rows)
                inserter.finish()
        except RuntimeError as error:
            raise DatabaseError.of(error) from error

    def command(self, sql: str) -> None:
        self.raw(sql, "TabSeparated")

    def delete(self, table: str, where: str, params: Mapping[str, Value]) -> None:
        self.query(f"DELETE FROM {table} WHERE {where}", params)

    def close(self) -> None:
        self._connection.close()


_LEAST_ROOM = 1 << 20
"""Bytes without which the engine is not opened: it would leave files that it cannot read again."""


class Engine:
    """The engine of this process and the lock that makes it the only one."""

    def __init__(self, root: Path) -> None:
        """``root`` is the store's folder. Raises StoreBusy, which names the owner, and StoreError with the cause."""
        self.root = root.resolve()
        if "?" in str(self.root):
            raise StoreError(f"no SQL here: the engine cannot open a folder with '?' in its path ({self.root})")
        try:
            make_root(self.root)
        except OSError as error:
            raise StoreError(f"cannot write to {self.root}: {error.strerror}") from error
        self._lock = FileLock(self.root / "owner.lock", "the index is open", "ask there (in the app: Q), or close it")
        self.left_by = self._lock.left_by
        """The process that had it open last and ended without closing it."""
        self._handles: list[Handle] = []
        self._local = threading.local()
        self._mutex = threading.Lock()
        self._closed = False
        try:
            self._connect = _engine()
            self._open()
        except BaseException:
            self.close()
            raise

    def _open(self) -> None:
        folder = self.root / "ch"
        try:
            with tempfile.TemporaryFile(dir=self.root) as probe:
                probe.write(bytes(_LEAST_ROOM))
        except OSError as error:
            raise StoreError(f"the index cannot be opened: {self.root} is not writable: {error.strerror}") from error
        with _quoted_stderr() as said:
            try:
                unqualified = self._connect(f"{folder}")
                try:
                    unqualified.query(f"CREATE DATABASE IF NOT EXISTS {NAME}")
                    self._keep(self._connect(f"{folder}?database={NAME}&{WRITES}"))
                finally:
                    unqualified.close()
            except RuntimeError as error:
                cause = said() or DatabaseError.of(error).args[0]
                raise StoreError(f"the index cannot be opened: {cause}; 'doctor --rebuild' makes it again") from error
        folder.chmod(0o700)

    def handle(self, settings: str = READS) -> Handle:
        """A new handle for the calling thread to keep; closed with the engine at the latest. Raises StoreError."""
        if self._closed:
            raise StoreError("the index is closed")
        try:
            return self._keep(self._connect(f"{self.root / 'ch'}?database={NAME}&{settings}"))
        except RuntimeError as error:
            raise DatabaseError.of(error) from error

    @contextmanager
    def borrowed(self, settings: str) -> Iterator[Handle]:
        """A handle for one statement with settings of its own; opening one costs well under a millisecond."""
        handle = self.handle(settings)
        try:
            yield handle
        finally:
            self.release(handle)

    def release(self, handle: Handle) -> None:
        """Close a handle before its engine."""
        with self._mutex:
            if handle in self._handles:
                self._handles.remove(handle)
        handle.close()

    @property
    def reader(self) -> Handle:
        """The calling thread's own handle for reading."""
        handle: Handle | None = getattr(self._local, "reader", None)
        if handle is None:
            handle = self._local.reader = self.handle()
        return handle

    def kill(self, mark: str) -> None:
        """End the running statement that holds this mark (see ``marked``), from whatever thread."""
        with self.borrowed(WRITES) as control:
            control.query(
                "KILL QUERY WHERE query LIKE concat('%', {mark:String}, '%') AND query NOT LIKE 'KILL%' ASYNC",
                {"mark": mark},
            )

    def close(self) -> None:
        """Close every handle and let another process own the index. May be called twice."""
        with self._mutex:
            self._closed = True
            handles, self._handles = self._handles, []
        for handle in handles:
            handle.close()
        self._lock.release()

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _keep(self, connection: Any) -> Handle:
        handle = Handle(connection)
        with self._mutex:
            self._handles.append(handle)
        return handle


def marked(sql: str) -> tuple[str, str]:
    """A statement with a comment by which it can be cancelled, and that comment."""
    mark = uuid.uuid4().hex
    return f"/* {mark} */ {sql}", mark


def _engine() -> Callable[[str], Any]:
    """Import the engine without its signal handlers."""
    try:
        with handlers_kept():
            chdb = import_module("chdb")
            import_module("chdb._chdb").set_signal_handlers_enabled(False)
    except ImportError as error:
        raise StoreError(f"SQL needs the package chdb, which cannot be imported: {error}") from error
    connect: Callable[[str], Any] = chdb.connect
    return connect


@contextmanager
def _quoted_stderr() -> Iterator[Callable[[], str]]:
    """Captures what native code prints to file descriptor 2 meanwhile, the only place that names some causes."""
    with tempfile.TemporaryFile() as file:
        saved = os.dup(2)
        os.dup2(file.fileno(), 2)

        def said() -> str:
            size = os.fstat(file.fileno()).st_size
            text = os.pread(file.fileno(), min(size, 20_000), 0).decode("utf-8", "replace")
            lines = [line.strip() for line in text.splitlines() if "Exception" in line or "rror" in line]
            return DatabaseError.of(Exception(lines[-1])).args[0][:500] if lines else ""

        try:
            yield said
        finally:
            with suppress(OSError):
                os.dup2(saved, 2)
            os.close(saved)
