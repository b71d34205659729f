"""The data tools: a query or a program over the outputs of earlier phases. They run in the sandbox, or not at all.

What they see comes from the outputs of the run, never from a session kept elsewhere: so a run that is resumed, forked
or replayed sees the same tables.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import json
import os
import re
import shlex
import shutil
import stat
import sys
from collections.abc import Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from workbench.engine.contracts import ToolImage, ToolResult
from workbench.engine.current import CurrentCall, current_call
from workbench.engine.tables import data_of, shaped, table, tables_of
from workbench.extras import Extra, install_line, is_installed, missing
from workbench.json_text import as_text
from workbench.language.clean import clean_line
from workbench.language.model.base import seconds
from workbench.language.read.json import is_json
from workbench.language.tables import table_name
from workbench.tools.builtin.shell import outbox_images
from workbench.tools.results import bounded, cut
from workbench.tools.sandbox import FinishedCommand, Level, Limits, Sandbox
from workbench.tools.sandbox.limits import PATH
from workbench.tools.sandbox.scratch import SCRATCH

OWN_LADDER: tuple[Level, ...] = ("bwrap", "landlock")
"""Of SQL and Python, which need our own interpreter and its packages; a container does not have them."""
LIMITS = Limits(cpu_s=300, memory_bytes=4 << 30, processes=128, output_bytes=4_000_000, open_files=1024)
"""Address space is above what is used: query engine and numpy reserve much of it, more with each thread."""
ENVIRONMENT = {
    "MPLBACKEND": "Agg",
    "MPLCONFIGDIR": "/tmp",
    **dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"), "2"),
}
TIMEOUT_S = 300
MAX_ROWS = 10_000
MAX_ANSWER = 50_000_000
"""Bytes of an answer."""
MAX_PRINTED = 20_000
_HERE = Path(__file__).parent
_ANSWER = "answer.json"
_SESSION = "session.sh"

Format = Literal["csv", "json", "jsonl", "auto"]


class DataError(ValueError):
    """The code failed, or what it needs is not installed; the message is for a person and for a model."""


class ProgramResult(Struct, frozen=True):
    """The answer of a program."""

    answer: Mapping[str, Any]
    finished: FinishedCommand
    images: tuple[ToolImage, ...] = ()
    session: str = ""


class DataTools:
    """The data tools of one workspace. ``folders`` are folders outside it that programs may read."""

    def __init__(self, sandbox: Sandbox, folders: Sequence[Path] = ()) -> None:
        self.sandbox = sandbox
        self.folders = tuple(folders)

    # -- tools -------------------------------------------------------------------------------------------------------

    async def sql_data(
        self, query: str, limit: int = MAX_ROWS, materialize: bool = True, connection: str = ""
    ) -> ToolResult:
        """Run a SQL query (DuckDB dialect) over the results of earlier phases, which are the tables _PHASE.

        Args:
            query: One or more statements; the rows of the last one are the result. Files: read_csv('data/x.csv').
            limit: Most rows of the result.
            materialize: Later queries see every result, and every table that is made, whatever this says.
            connection: Named connections to databases are not available; leave it out.
        """
        if connection:
            raise DataError(
                f"the connection '{clean_line(connection, 60)}' is not available: queries run over earlier phases and "
                "files of the workspace; take 'connection' out and read a file, as in read_csv('data/x.csv')"
            )
        if absent := missing("data"):
            raise DataError(absent)
        made = await self._own("sql", query, current_call(), {}, limit=max(1, min(limit, MAX_ROWS)))
        return _result(made)

    async def python_data(self, code: str, timeout: int = TIMEOUT_S) -> ToolResult:
        """Run Python code that sets `result`; data.PHASE is an earlier phase's table as a pandas DataFrame.

        Args:
            code: Sees data, state, input, pd, np and json. A DataFrame, or a list of objects, becomes a table.
            timeout: Seconds, at most 300.
        """
        call = current_call()
        return _result(await self._own("python", code, call, _names(call), timeout_s=timeout))

    async def js_data(self, code: str, timeout: int = TIMEOUT_S) -> ToolResult:
        """Run JavaScript code that sets `result`; data.PHASE is an earlier phase's table as an array of objects.

        Args:
            code: Sees data, state and input. An array of objects becomes a table.
            timeout: Seconds, at most 300.
        """
        call = current_call()
        return _result(await self._program("javascript", code, call, _names(call), timeout))

    async def clojure_data(self, code: str, timeout: int = TIMEOUT_S) -> ToolResult:
        """Run Clojure code by Babashka; its last value is the result, (:phase-name data) an earlier phase's table.

        Args:
            code: Sees data, state and input with keyword keys. A vector of maps becomes a table.
            timeout: Seconds, at most 300.
        """
        call = current_call()
        return _result(await self._program("clojure", code, call, _names(call), timeout))

    async def bash_data(
        self,
        script: str,
        input_table: str = "",
        output_format: Format = "csv",
        timeout: str = "",
        env: dict[str, Any] | None = None,
        persist_session: bool = True,
    ) -> ToolResult:
        """Run a bash script over an earlier phase's table: CSV on standard input, the result on standard output.

        Args:
            script: Sees $SESSION_ID and $PHASE_NAME besides what it is given.
            input_table: Name of the table on standard input; the latest one if left out.
            output_format: csv, json, jsonl or auto.
            timeout: A duration like 30s or 5m.
            env: More variables.
            persist_session: Begin with the variables, functions and folder that the last script ended with.
        """
        call = current_call()
        limit_s = float(seconds(timeout)) if timeout else float(TIMEOUT_S)
        given = {"SESSION_ID": call.session_id, "PHASE_NAME": call.phase} | {k: str(v) for k, v in (env or {}).items()}
        outputs = call.outputs
        made = await self._bash(
            script,
            _csv_of(_input_rows(outputs, input_table)),
            given,
            min(limit_s, TIMEOUT_S),
            session=_last_session(outputs) if persist_session else "",
            keep=persist_session,
        )
        if made.finished.exit_code or made.finished.timed_out:
            raise DataError(_ended(made.finished, limit_s))
        value = _parsed(made.finished.stdout, output_format)
        body = table(value) if value == [] else shaped(value)
        if made.finished.stderr.strip():
            body["stderr"] = bounded(made.finished.stderr.strip(), MAX_PRINTED)
        if made.session:
            body["session"] = made.session
        return _of(body, made)

    # -- validators --------------------------------------------------------------------------------------------------

    async def judge(self, language: str, code: str, content: str, original: Mapping[str, Any]) -> Any:
        """Returns the answer of a validator's code for a text: an object with ``valid``, or any other value.

        Raises DataError when the code fails, and what the sandbox raises when there is none.
        """
        call = current_call()
        if language == "bash":
            lines = f"CONTENT={shlex.quote(content)}\nORIGINAL_INPUT={shlex.quote(json.dumps(original))}\n"
            made = await self._bash(f"export CONTENT ORIGINAL_INPUT\n{lines}{code}", "", {}, 60.0)
            if made.finished.exit_code or made.finished.timed_out:
                raise DataError(_ended(made.finished, 60.0))
            return made.finished.stdout.strip()
        names = {**_names(call), "content": content, "output": content, "original_input": dict(original)}
        if language == "sql":
            shown = {"_content": [{"content": content}]}
            made = await self._own("sql", code, call, {}, limit=1, more=shown)
            rows = made.answer.get("table") or []
            verdict = {"valid": False, "reason": "the query has no row"} | (rows[0] if rows else {})
            return verdict | {"valid": bool(verdict["valid"])}
        if language == "python":
            made = await self._own("python", code, call, names, timeout_s=60)
        else:
            made = await self._program(language, code, call, names, 60)
        return made.answer.get("value")

    # -- programs ----------------------------------------------------------------------------------------------------

    async def _own(
        self,
        kind: str,
        code: str,
        call: CurrentCall,
        names: Mapping[str, Any],
        *,
        timeout_s: float = TIMEOUT_S,
        limit: int = MAX_ROWS,
        more: Mapping[str, Any] | None = None,
    ) -> ProgramResult:
        """A query or a Python program, by our own interpreter."""
        sites = _sites()
        probe = await self.sandbox.probe(OWN_LADDER if self._walled else None)
        outputs = call.outputs
        job = {
            "kind": kind,
            "code": code,
            "data": data_of(outputs) if kind == "python" else {},
            "tables": {**tables_of(outputs), **(more or {})} if kind == "sql" else {},
            "names": names,
            "limit": limit,
            "files": probe.usable,
            "sites": [str(site) for site in sites],
        }
        program = _HERE / "data_child.py"
        return await self._run(
            [str(Path(sys.executable).resolve()), "-I", "-S", "-B", str(program)],
            job,
            timeout_s,
            readable=[Path(sys.base_prefix).resolve(), *sites, program],
            ladder=OWN_LADDER if self._walled else None,
            or_plain=kind == "sql",
            writable=kind != "sql",
        )

    @property
    def _walled(self) -> bool:
        """Whether the user has left the level of the sandbox to us, or insists on one of the walls."""
        return self.sandbox.ladder != ("none",)

    async def _program(
        self, language: str, code: str, call: CurrentCall, names: Mapping[str, Any], timeout_s: float
    ) -> ProgramResult:
        """A program in another language, by the interpreter that is installed."""
        interpreter, runner, wanted = _INTERPRETERS[language]
        probe = await self.sandbox.probe()
        if probe.level != "docker" and not shutil.which(interpreter, path=PATH):
            raise DataError(f"{wanted} is not installed here: {interpreter} is not in {PATH}")
        job = {
            "code": code,
            "data": data_of(call.outputs),
            "names": names,
        }
        program = _HERE / runner
        return await self._run([interpreter, str(program)], job, timeout_s, readable=[program])

    async def _run(
        self,
        argv: Sequence[str],
        job: Mapping[str, Any],
        timeout_s: float,
        *,
        readable: Sequence[Path] = (),
        ladder: Sequence[Level] | None = None,
        or_plain: bool = False,
        writable: bool = True,
    ) -> ProgramResult:
        if not 0 < timeout_s <= TIMEOUT_S:
            raise DataError(f"'timeout' is between 1 and {TIMEOUT_S} seconds")
        with SCRATCH.subfolder("given") as folder, SCRATCH.subfolder("outbox") as other:
            given, outbox = folder.resolve(), other.resolve()
            (given / "job.json").write_text(json.dumps(job), "utf-8")
            finished = await self.sandbox.run(
                [*argv, str(given)],
                timeout_s=timeout_s,
                env=ENVIRONMENT,
                writable=writable,
                readable=[*readable, given],
                folders=self.folders,
                outbox=outbox,
                limits=LIMITS,
                ladder=ladder,
                or_plain=or_plain,
            )
            answer = _read(outbox / _ANSWER)
            (outbox / _ANSWER).unlink(missing_ok=True)
            images, _ = outbox_images(outbox)
        if answer is None:
            raise DataError(_ended(finished, timeout_s))
        try:
            body = json.loads(answer)
        except (ValueError, RecursionError) as fault:
            raise DataError("the answer of the code is not JSON") from fault
        if not isinstance(body, dict):
            raise DataError("the answer of the code is not an object")
        if "error" in body:
            raise DataError(bounded(str(body["error"]), 4000))
        return ProgramResult(body, finished, tuple(images))

    async def _bash(
        self,
        script: str,
        stdin: str,
        env: Mapping[str, str],
        timeout_s: float,
        *,
        session: str = "",
        keep: bool = False,
    ) -> ProgramResult:
        with SCRATCH.subfolder("given") as folder, SCRATCH.subfolder("outbox") as other:
            given, outbox = folder.resolve(), other.resolve()
            before = [_KNOWN, session, _KEEPING] if keep else []
            (given / "before.sh").write_text("\n".join(before) + "\n", "utf-8")
            (given / "script.sh").write_text(f"{script}\n", "utf-8")
            finished = await self.sandbox.run(
                ["bash", "-c", _SCRIPT, "bash", str(given)],
                timeout_s=timeout_s,
                stdin=stdin.encode("utf-8", "replace"),
                env=env,
                readable=[given],
                folders=self.folders,
                outbox=outbox,
            )
            kept = _read(outbox / _SESSION) if keep else None
        return ProgramResult({}, finished, session=kept or "")


_INTERPRETERS: Mapping[str, tuple[str, str, str]] = {
    "javascript": ("node", "runner.js", "Node.js, which runs js_data,"),
    "clojure": ("bb", "runner.clj", "Babashka, which runs clojure_data,"),
}
"""By language: the program, our file that it runs, and what it is called."""

_SCRIPT = 'd="$1"; shift; . "$d/before.sh"; . "$d/script.sh"'
_KNOWN = r"""__known=" $(compgen -e | tr '\n' ' ') " """
"""The variables that no script has set."""
_KEEPING = r"""__keep() {
  { for v in $(compgen -e); do case "$__known" in *" $v "*) ;; *) declare -p "$v" ;; esac; done
    for f in $(compgen -A function); do [ "$f" = __keep ] || declare -f "$f"; done
    printf 'cd -- %q 2>/dev/null\n' "$PWD"; } > "$OUTBOX/session.sh"
}
trap __keep EXIT
"""
"""Code before a script, so that the next one can begin where it ended."""
_OWN_FILE = re.compile(r"\S*/script\.sh: (?=line \d)")


def cannot_run() -> dict[str, str]:
    """The tools that cannot run here, each with what they need and how to install it."""
    programs = {"js_data": ("Node.js", "javascript"), "clojure_data": ("Babashka", "clojure")}
    found = {
        tool: f"{name}: {_INTERPRETERS[language][0]} is not installed"
        for tool, (name, language) in programs.items()
        if not shutil.which(_INTERPRETERS[language][0], path=PATH)
    }
    extras: dict[str, Extra] = {"sql_data": "data", "create_chart": "charts"}
    needed = {tool: f"the {extra} extra: {install_line(extra)}" for tool, extra in extras.items() if missing(extra)}
    return found | needed


def _names(call: CurrentCall) -> dict[str, Any]:
    """Returns the names that describe the run to code, with their values."""
    return {"state": call.state, "input": call.input, "session_id": call.session_id, "phase": call.phase}


def _read(path: Path) -> str | None:
    """A file that a program left, never read through a link; None if there is none. Raises DataError when it is too
    large.
    """
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return None
    with os.fdopen(handle, "rb") as file:
        about = os.fstat(file.fileno())
        if not stat.S_ISREG(about.st_mode):
            return None
        if about.st_size > MAX_ANSWER:
            raise DataError(
                f"the result has {about.st_size:,} bytes; it may have {MAX_ANSWER:,}: aggregate or limit it"
            )
        return file.read(MAX_ANSWER).decode("utf-8", "replace")


@lru_cache
def _sites() -> tuple[Path, ...]:
    """The folders that hold the packages of data phases, found without importing them. Raises DataError."""
    found: dict[Path, None] = {}
    for name in ("pandas", "pyarrow", "duckdb"):
        spec = importlib.util.find_spec(name) if name != "duckdb" or is_installed("data") else None
        if spec is None or spec.origin is None:
            if name == "duckdb":  # Only queries need it, and they have asked for it.
                continue
            raise DataError(f"{name} is not installed: pip install {name}")
        found[Path(spec.origin).resolve().parent.parent] = None
    return tuple(found)


def _ended(finished: FinishedCommand, timeout_s: float) -> str:
    """Why a program gave no answer."""
    if finished.timed_out:
        return f"the code took longer than {timeout_s:g} s and was ended"
    said = bounded(_OWN_FILE.sub("", finished.stderr.strip() or finished.stdout.strip()), 2000)
    return f"the code ended with exit code {finished.exit_code}" + (f": {said}" if said else "")


def _result(made: ProgramResult) -> ToolResult:
    """The answer of a program as the output of its phase."""
    answer = made.answer
    if "table" in answer:
        body = table(answer["table"], answer.get("columns"))
        if answer.get("truncated"):
            body["truncated"] = True
        if answer.get("made"):
            body["tables"] = answer["made"]
        if answer.get("large"):
            body["not_kept"] = f"later phases do not see tables of more than {MAX_ROWS:,} rows: {answer['large']}"
    else:
        body = shaped(answer.get("value"))
    if made.finished.stdout.strip():
        body["stdout"] = bounded(made.finished.stdout.strip(), MAX_PRINTED)
    return _of(body, made)


def _of(body: dict[str, Any], made: ProgramResult) -> ToolResult:
    text = json.dumps(body, indent=2, ensure_ascii=False, allow_nan=False)
    return replace(cut(text, value=body, sandbox=made.finished.level), images=made.images)


def _input_rows(outputs: Mapping[str, Any], name: str) -> list[dict[str, Any]]:
    """The table that a script reads: the one of that name, else that of the latest phase which has one."""
    tables = tables_of(outputs)
    if name:
        if name not in tables:
            raise DataError(f"no table is called '{clean_line(name, 60)}'; there are: {', '.join(tables) or 'none'}")
        return tables[name]
    latest = next((phase for phase in reversed(list(outputs)) if table_name(phase) in tables), "")
    return tables.get(table_name(latest), [])


def _csv_of(rows: Sequence[Mapping[str, Any]]) -> str:
    columns = list(dict.fromkeys(key for row in rows for key in row))
    if not columns:
        return ""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        values = map(row.get, columns)
        writer.writerow([value if value is None else as_text(value) for value in values])
    return text.getvalue()


def _last_session(outputs: Mapping[str, Any]) -> str:
    """Returns the session of the latest bash phase that has one."""
    for output in reversed(list(outputs.values())):
        if isinstance(output, Mapping) and isinstance(session := output.get("session"), str):
            return session
    return ""


def _parsed(text: str, wanted: Format) -> Any:
    """Standard output as rows or JSON. Raises DataError."""
    text = text.strip()
    if not text:
        return []
    lines = [line for line in text.splitlines() if line.strip()]
    if wanted == "auto":
        wanted = "json" if text[0] in "[{" and is_json(text) else "jsonl" if text[0] == "{" else "csv"
    try:
        if wanted == "json":
            return json.loads(text)
        if wanted == "jsonl":
            return [json.loads(line) for line in lines]
        return _typed(list(csv.DictReader(lines, restkey="_more", restval="")))
    except (ValueError, RecursionError, csv.Error) as fault:
        raise DataError(f"standard output is not {wanted}: {fault}; it begins: {text[:200]}") from fault


def _typed(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Columns of numbers become numbers, empty cells null."""
    for name in list(dict.fromkeys(key for row in rows for key in row)):
        values = [row.get(name) for row in rows]
        for kind in (int, float):
            if made := _all(kind, values):
                values = made
                break
        for row, value in zip(rows, values, strict=True):
            row[name] = None if value == "" else value
    return rows


def _all(kind: type[int] | type[float], values: Sequence[Any]) -> list[Any]:
    """The values as numbers of one kind; empty if one of them is none."""
    try:
        return [kind(value) if value not in ("", None) else None for value in values]
    except (ValueError, TypeError):
        return []
