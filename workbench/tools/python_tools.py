"""Python tools of a workspace: imported where the folder is trusted, announced without running anything where not."""

from __future__ import annotations

import importlib
import inspect
import traceback
import types
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from workbench.language.problem import Problem
from workbench.tools.hook_registry import collecting as collecting_hooks
from workbench.tools.hook_registry import has_hooks
from workbench.tools.python_files import PythonFolder, make_importable
from workbench.tools.python_outline import outline
from workbench.tools.registry import Kind, Registration, Registry, Tool, collecting, tool_problem
from workbench.tools.schema import SchemaError, spec_of

UNTRUSTED_HOOKS = "this folder is not trusted; a person can allow them with `workbench trust`"
UNTRUSTED = (
    "this folder is not trusted, so the tools it brings do not run; a person can allow them with `workbench trust`"
)


def load_tools(folder: PythonFolder, registry: Registry) -> None:
    """Import every file of a trusted folder and register its tools.

    A file's tools are the functions it gives to ``register_tackle``; if it gives none, and registers no hook, the
    public functions it defines. A file that does not import, or a function that cannot be described, is a problem of
    the registry with its place; the other files are loaded all the same.
    """
    make_importable(folder)
    for entry in folder.entries:
        _load_file(folder, entry, registry)


def announce_tools(folder: PythonFolder, registry: Registry, refusal: str = UNTRUSTED) -> None:
    """Register the tools of an untrusted folder as refused, from the text of its files alone."""
    for entry in folder.entries:
        path = str(folder.path / entry)
        if has_hooks(folder.files[entry]):
            registry.refused_hooks.append(f"the hooks of {entry} are not asked: {UNTRUSTED_HOOKS}")
        found, problem = outline(folder.files[entry], path)
        if problem is not None:
            registry.problems.append(problem)
        for name, spec, line in found:
            registry.add(Tool(name, spec, _never, Kind.PYTHON, path, line, refusal=refusal))


def _never() -> None:
    """Stands where an untrusted function would."""
    raise PermissionError(UNTRUSTED)


def _load_file(folder: PythonFolder, entry: str, registry: Registry) -> None:
    path = str(folder.path / entry)
    with collecting() as collected, collecting_hooks() as hooks:
        try:
            module = importlib.import_module(folder.module_name(entry))
        except SyntaxError as fault:
            message = f"{entry} is not valid Python: {fault.msg}"
            _is_not_loaded(
                tool_problem(message, path, fault.lineno or 1, fault.offset or 1), folder.files[entry], registry
            )
            return
        except (Exception, SystemExit) as fault:  # noqa: BLE001 - a user's file may raise anything: it is a problem
            message = f"{entry} cannot be imported: {type(fault).__name__}: {fault}"
            _is_not_loaded(tool_problem(message, path, _line_in(fault, path)), folder.files[entry], registry)
            return
    registry.hooks += hooks
    # A file that registers anything says itself what it offers.
    for registration in collected or ([] if hooks else _public(module, path)):
        _register(registration, path, registry)


def _is_not_loaded(problem: Problem, source: bytes, registry: Registry) -> None:
    """A file brings no tools; where it has hooks, every run says that they are not asked: they may be what holds it."""
    registry.problems.append(problem)
    if b"register_hook" in source:
        registry.refused_hooks.append(f"line {problem.span.line} of {problem.message}; its hooks are not asked")


def _register(registration: Registration, path: str, registry: Registry) -> None:
    try:
        spec = spec_of(registration.name, registration.function, side_effects=registration.side_effects)
    except SchemaError as fault:
        registry.problems.append(tool_problem(str(fault), registration.file or path, registration.line))
        return
    tool = Tool(registration.name, spec, registration.function, Kind.PYTHON)
    registry.add(replace(tool, file=registration.file or path, line=registration.line))


def _public(module: types.ModuleType, path: str) -> list[Registration]:
    """The functions that a module defines itself and does not hide behind an underscore, in the order written."""
    functions: list[tuple[str, Callable[..., object]]] = [
        (name, value)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    ]
    return [Registration(name, function, True, path, function.__code__.co_firstlineno) for name, function in functions]


def _line_in(fault: BaseException, path: str) -> int:
    """The last line of a file that an exception came through; 1 when it never did."""
    lines = [
        frame.lineno or 1 for frame in traceback.extract_tb(fault.__traceback__) if Path(frame.filename) == Path(path)
    ]
    return lines[-1] if lines else 1
