"""What tools a Python file would offer, read from its syntax tree: nothing of the file runs."""

from __future__ import annotations

import ast
import inspect
import types
from typing import Any, Literal, Optional, Union

from workbench.engine.ports import ToolSpec
from workbench.language.problem import Problem
from workbench.tools.docstrings import parse_docstring
from workbench.tools.hook_registry import has_hooks
from workbench.tools.registry import tool_problem
from workbench.tools.schema import SchemaError, object_schema, spec_from

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
        return None if node.value is None else Any
    if isinstance(node, ast.Name):
        return _NAMES.get(node.id, Any)
    if isinstance(node, ast.Attribute):
        return _NAMES.get(node.attr, Any)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return Union[_hint(node.left), _hint(node.right)]  # noqa: UP007 - the sides are known only here
    if isinstance(node, ast.Subscript):
        return _generic(node)
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
        return hints[0]
    kind = _NAMES.get(word)
    if kind is list:
        return types.GenericAlias(list, (hints[0],))
    return types.GenericAlias(dict, (str, hints[-1])) if kind is dict else Any
