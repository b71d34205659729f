"""Judges mutants in forks of one pytest process: a pytest plugin that ``bench.mutants`` starts in a copy of the tree.

Starting pytest and importing the program takes longer than most tests. Here both happen once. For each mutant the
process forks; the fork exchanges the code of the changed function and runs the tests of the mutant until one fails. The
changed module is written to the copy too, for the processes that tests start. What is made while a module is imported
(constants, classes, defaults) is not made again in a fork: such a mutant, and one of a function that is called
meanwhile, is left to a process of its own.
"""

from __future__ import annotations

import ast
import gc
import inspect
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import pytest

from workbench.models import library

APART = 3
"""The exit code of a fork that cannot judge a mutant."""
PLAN, VERDICTS = "MUTANTS_PLAN", "MUTANTS_VERDICTS"
"""Variables that name the file of what is asked, and the file that takes a line for each mutant."""


def pytest_runtestloop(session: pytest.Session) -> bool:
    """Judge each mutant instead of running the tests that were collected."""
    by_name: dict[str, list[pytest.Item]] = {}
    for item in session.items:
        by_name.setdefault(_name(item), []).append(item)
    parent = os.getppid()
    plan = json.loads(Path(os.environ[PLAN]).read_text("utf-8"))
    library.imported()  # In each fork it would take seconds.
    gc.freeze()  # Forks share what is there, as long as nothing counts it.
    with Path(os.environ[VERDICTS]).open("a", encoding="utf-8") as told:
        for asked in plan["mutants"]:
            if os.getppid() != parent:
                break  # Nobody waits for the rest.
            items = [item for name in asked["tests"] for item in by_name.get(name, ())]
            began = time.monotonic()
            word, by = _judged(session, asked, items, plan["limit"], plan["memory"])
            verdict = {"at": asked["at"], "word": word, "by": by, "seconds": time.monotonic() - began}
            told.write(json.dumps(verdict) + "\n")
            told.flush()
    return True


def _judged(
    session: pytest.Session, asked: Mapping[str, Any], items: Sequence[pytest.Item], limit: float, memory: int
) -> tuple[str, str]:
    file = Path(asked["path"]).resolve()
    source = file.read_bytes()
    changed = source[: asked["start"]] + asked["after"].encode() + source[asked["end"] :]
    exchange = exchanged(source, changed, str(file))
    if exchange is None or not items:
        return "apart", ""
    _write(file, changed)
    word, by = _forked(session, exchange, items, limit, memory)
    _write(file, source)
    if word == "killed" and by:
        again = _forked(session, None, [item for item in items if _name(item) == by], limit, memory)
        word = word if again[0] == "survived" else "unsure"
    return word, by


def _forked(
    session: pytest.Session, exchange: Exchange | None, items: Sequence[pytest.Item], limit: float, memory: int
) -> tuple[str, str]:
    """How tests end in a fork, and the first that failed."""
    failed = Path(os.environ[VERDICTS]).with_suffix(".failed")
    failed.write_text("", "utf-8")
    child = os.fork()
    if child == 0:
        _run(session, exchange, items, failed)
    word = watched(child, lambda: _ended(child), limit, memory)
    end_family(child)
    with suppress(ChildProcessError):
        os.waitpid(child, 0)
    return word, failed.read_text("utf-8")


def _name(item: pytest.Item) -> str:
    """A test without its parameters."""
    return item.nodeid.partition("[")[0]


def _ended(child: int) -> int | None:
    pid, status = os.waitpid(child, os.WNOHANG)
    return os.waitstatus_to_exitcode(status) if pid else None


def _write(file: Path, text: bytes) -> None:
    """Write a module with a time of its own: bytecode is taken for that of another text of the same second and size."""
    file.write_bytes(text)
    _write_times.append(time.time() - 10_000_000 + 10 * len(_write_times))
    os.utime(file, (_write_times[-1], _write_times[-1]))


_write_times: list[float] = []


def _run(session: pytest.Session, exchange: Exchange | None, items: Sequence[pytest.Item], failed: Path) -> None:
    """In the fork: run the tests until one fails. The exit code says whether one did."""
    code, modules = 1, list(sys.modules.values())
    try:
        os.setsid()
        quiet = os.open(os.devnull, os.O_WRONLY)
        for stream in (1, 2):
            os.dup2(quiet, stream)
        if exchange is not None and not _exchange(exchange, modules):
            code = APART
            return
        for item, following in zip(items, (*items[1:], None), strict=True):
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
            if session.testsfailed:
                failed.write_text(_name(item), "utf-8")
                break
        code = 1 if session.testsfailed else 0
    finally:
        os._exit(code)


# -- code --------------------------------------------------------------------------------------------------------------


Exchange = tuple[CodeType, CodeType]
"""The code of a function before and after."""


def _exchange(codes: Exchange, modules: Sequence[object]) -> bool:
    """Give the functions of a code another one; False if the module is imported, and no function is found."""
    functions = live(codes[0])
    for function in functions:
        function.__code__ = codes[1]
    return bool(functions) or all(getattr(one, "__file__", None) != codes[0].co_filename for one in modules)


def exchanged(source: bytes, changed: bytes, file: str) -> Exchange | None:
    """The code of the one function that differs, before and after; None if more than that differs."""
    before, after = compile(source, file, "exec", dont_inherit=True), compile(changed, file, "exec", dont_inherit=True)
    if _shape(before, functions=False) != _shape(after, functions=False):
        return None
    pairs = zip(_functions(before), _functions(after), strict=True)
    found = [pair for pair in pairs if _shape(pair[0]) != _shape(pair[1])]
    if len(found) != 1 or found[0][0].co_qualname in called_at_import(source):
        return None
    return found[0]


def called_at_import(source: bytes) -> set[str]:
    """The functions of a module that are called while it is imported: by a statement outside all functions, or by one
    of these functions."""
    tree = ast.parse(source)
    bodies = {one.name: one for one in tree.body if isinstance(one, ast.FunctionDef)}
    waiting: list[ast.AST] = [tree]
    found = set[str]()
    while waiting:
        for node in ast.iter_child_nodes(waiting.pop()):
            if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
                waiting.append(node)
            called = node.func.id if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) else ""
            if called in bodies and called not in found:
                found.add(called)
                waiting.append(bodies[called])
    return found


def live(code: CodeType) -> list[FunctionType]:
    """The functions of this process that were made of a code."""
    key = (code.co_filename, code.co_qualname, code.co_firstlineno)
    gc.unfreeze()
    return [
        one
        for one in gc.get_objects()
        if type(one) is FunctionType
        and (one.__code__.co_filename, one.__code__.co_qualname, one.__code__.co_firstlineno) == key
    ]


def _is_function(code: CodeType) -> bool:
    return bool(code.co_flags & inspect.CO_NEWLOCALS) and (code.co_name == "<lambda>" or code.co_name[0] != "<")


def _functions(code: CodeType) -> Iterator[CodeType]:
    """The outermost functions of a module, those of its classes included."""
    for value in code.co_consts:
        if isinstance(value, CodeType):
            if _is_function(value):
                yield value
            else:
                yield from _functions(value)


def _shape(code: CodeType, functions: bool = True) -> object:
    """What a code does, without its lines; ``functions``: and what those inside it do."""
    values = tuple(
        (_shape(value, functions) if functions or not _is_function(value) else value.co_name)
        if isinstance(value, CodeType)
        else (type(value).__name__, repr(value))
        for value in code.co_consts
    )
    return (code.co_name, code.co_code, code.co_names, code.co_varnames, code.co_freevars, values)


# -- processes ---------------------------------------------------------------------------------------------------------


def watched(leader: int, poll: Callable[[], int | None], limit: float, memory: int) -> str:
    """Wait for a process: ``survived``, ``killed`` (by a test), ``apart`` (it cannot judge), ``hung`` or ``grew``."""
    began = looked = time.monotonic()
    while (code := poll()) is None:
        now = time.monotonic()
        if now - began > limit:
            return "hung"
        if now - looked > 0.5:
            looked = now
            if sum(_family(leader).values()) > memory:
                return "grew"
        time.sleep(0.02)
    return {0: "survived", APART: "apart"}.get(code, "killed")


def end_family(leader: int) -> None:
    """End a process and all that it started."""
    for member in _family(leader):
        with suppress(ProcessLookupError):
            os.kill(member, signal.SIGKILL)


def _family(leader: int) -> dict[int, int]:
    """The processes of a session and their children, with the bytes that each holds; without ``/proc`` the leader."""
    parents: dict[int, tuple[int, int, int]] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):  # It has ended meanwhile.
            fields = stat.read_text("utf-8", "replace").rpartition(")")[2].split()
            parents[int(stat.parent.name)] = (int(fields[1]), int(fields[3]), int(fields[21]) * resource.getpagesize())
    members = {leader} | {pid for pid, (_, session, _) in parents.items() if session == leader}
    while more := {pid for pid, (parent, _, _) in parents.items() if parent in members} - members:
        members |= more
    return {pid: parents[pid][2] if pid in parents else 0 for pid in members}
