"""Python tools of a workspace: imported if the folder is trusted, else announced without running them."""

from __future__ import annotations

import ast
import importlib
import inspect
import traceback
import types
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, Optional, Union

from msgspec.structs import replace

from workbench.engine.contracts import ToolSpec
from workbench.language.problem import Problem
from workbench.tools.hook_registry import collecting as collecting_hooks
from workbench.tools.hook_registry import has_hooks
from workbench.tools.python_files import PythonFolder, make_importable
from workbench.tools.registry import Kind, Registration, Registry, Tool, collecting, tool_problem
from workbench.tools.schema import SchemaError, object_schema, parse_docstring, spec_from, spec_of

# What tools a Python file would offer, read from its syntax tree: nothing of the file runs.

_Function = ast.FunctionDef | ast.AsyncFunctionDef
_NAMES: dict[str, Any] = {
    "str": str,
    "int": int,
    "float": float,
    "bool": bool,
    "list": list,
    "dict": dict,
    "List": list,
    "Dict": dict,
    "Sequence": list,
    "Mapping": dict,
    "None": None,
}


def outline(source: bytes, path: str) -> tuple[list[tuple[str, ToolSpec, int]], Problem | None]:
    """The tools ``(name, spec, line)`` of a file, and the problem that kept it from being read.

    The rules are those of loading: calls of ``register_tackle`` with a literal name, else the public functions of a
    file that registers no hook.
    Types that only the running program could resolve count as anything.
    """
    try:
        tree = ast.parse(source, path)
    except (SyntaxError, ValueError, RecursionError) as fault:
        line, column = (fault.lineno or 1, fault.offset or 1) if isinstance(fault, SyntaxError) else (1, 1)
        reason = fault.msg if isinstance(fault, SyntaxError) else str(fault)
        return [], tool_problem(f"{path.rsplit('/', 1)[-1]} is not valid Python: {reason}", path, line, column)
    functions = {node.name: node for node in tree.body if isinstance(node, _Function)}
    registered = [call for node in ast.walk(tree) if (call := _registration(node))]
    if registered:
        return [(name, _spec(name, functions.get(target)), line) for name, target, line in registered], None
    if has_hooks(source):
        return [], None
    public = [node for node in functions.values() if not node.name.startswith("_")]
    return [(node.name, _spec(node.name, node), node.lineno) for node in public], None


def _registration(node: ast.AST) -> tuple[str, str, int] | None:
    """Name, function name and line of a ``register_tackle("name", function)``."""
    if not isinstance(node, ast.Call):
        return None
    called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    if called != "register_tackle" or not node.args or not isinstance(node.args[0], ast.Constant):
        return None
    target = node.args[1].id if len(node.args) > 1 and isinstance(node.args[1], ast.Name) else ""
    return str(node.args[0].value), target, node.lineno


def _spec(name: str, node: _Function | None) -> ToolSpec:
    docs = parse_docstring((ast.get_docstring(node) or "") if node else "")
    if node is not None:
        try:
            return spec_from(name, _signature(node), _hints(node), docs)
        except SchemaError:
            pass  # The loader reports it once the folder is trusted; until then any arguments are refused alike.
    return ToolSpec(name, docs.summary, (), object_schema({}, ()) | {"additionalProperties": True})


def _signature(node: _Function) -> inspect.Signature:
    arguments = node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(plain) - len(arguments.defaults))
    paired = [*zip(plain, defaults + list(arguments.defaults), strict=True)]
    paired += list(zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True))
    return inspect.Signature(
        [
            inspect.Parameter(argument.arg, inspect.Parameter.KEYWORD_ONLY, default=_value(default))
            for argument, default in paired
        ]
    )


def _value(node: ast.expr | None) -> Any:
    if node is None:
        return inspect.Parameter.empty
    try:
        return ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return None


def _hints(node: _Function) -> dict[str, Any]:
    arguments = [*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs]
    return {argument.arg: _hint(argument.annotation) for argument in arguments if argument.annotation}


def _hint(node: ast.expr | None) -> Any:
    """The type that an annotation means, where its words are the usual ones; Any otherwise."""
    if isinstance(node, ast.Constant):
        return types.NoneType if node.value is None else _quoted(node.value)
    if isinstance(node, ast.Name):
        return _NAMES.get(node.id, Any)
    if isinstance(node, ast.Attribute):
        return _NAMES.get(node.attr, Any)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return Union[_hint(node.left), _hint(node.right)]  # noqa: UP007 - the sides are known only here
    if isinstance(node, ast.Subscript):
        return _generic(node)
    return Any


def _quoted(text: object) -> Any:
    """Returns the meaning of an annotation in quotes."""
    try:
        return _hint(ast.parse(text, mode="eval").body) if isinstance(text, str) else Any
    except (SyntaxError, ValueError, RecursionError):
        return Any


def _generic(node: ast.Subscript) -> Any:
    word = node.value.attr if isinstance(node.value, ast.Attribute) else getattr(node.value, "id", "")
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    if word == "Literal":
        values = tuple(part.value for part in parts if isinstance(part, ast.Constant))
        return Literal.__getitem__(values) if values else Any
    hints = [_hint(part) for part in parts]
    if word == "Optional":
        return Optional[hints[0]]  # noqa: UP045
    if word == "Union":
        return Union.__getitem__(tuple(hints))
    if word == "Annotated":
        notes = [part.value for part in parts[1:] if isinstance(part, ast.Constant)]
        return Annotated.__class_getitem__((hints[0], *notes)) if notes else hints[0]  # type: ignore[attr-defined]
    kind = _NAMES.get(word)
    if kind is list:
        return types.GenericAlias(list, (hints[0],))
    return types.GenericAlias(dict, (str, hints[-1])) if kind is dict else Any


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
    """Replaces an untrusted function; never called."""
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
