"""Finds the problems of a ``.tool.json`` file, each at its line and column."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from pydantic import ValidationError

from workbench.language.clean import clean_line
from workbench.language.diagnose import diagnosed
from workbench.language.json_schema import bad_pattern
from workbench.language.lint.place import Places
from workbench.language.nearest import nearest
from workbench.language.problem import Path, Problem, Severity, texts_of
from workbench.language.read.text import read_source
from workbench.language.templates.names import names_used
from workbench.language.templates.template import condition_shift, condition_template
from workbench.tools.declared.definition import (
    NOT_RUN,
    CompositeTool,
    Declared,
    HttpTool,
    PythonTool,
    ShellTool,
)

_TYPES: dict[str, type[Declared]] = {
    "shell": ShellTool,
    "http": HttpTool,
    "python": PythonTool,
    "composite": CompositeTool,
}
_IGNORED = frozenset({"$schema", "cacheable", "version", "author", "tags", "examples"})
"""Keys that say something to people or other programs."""


def check_tool(text: str | bytes, file: str, known: Sequence[str] | None = None) -> tuple[Problem, ...]:
    """The problems of a tool's definition, in the order of the file. ``known`` are the tools that a chain may call;
    None leaves that unchecked."""
    source, problems = read_source(text, file)
    data = source.data
    if data is None:
        return tuple(problems)
    place = Places(source)

    def wrong(code: str, message: str, path: Path, hint: str = "", severity: Severity = Severity.ERROR) -> Problem:
        return Problem(severity, code, message, file, source.span(path), path, hint)

    if not isinstance(data, dict):
        return (*problems, wrong("L202", "a declared tool is a JSON object", ()))
    kind = data.get("type")
    if kind in NOT_RUN:
        return (*problems, place.report("L802", ("type",), type=kind, name=str(data.get("tool_id") or file)))
    if not isinstance(kind, str) or kind not in _TYPES:
        names = ", ".join((*_TYPES, *sorted(NOT_RUN)))
        if kind is None:
            return (*problems, wrong("L203", "'type' is missing", (), f"it is one of {names}"))
        near = nearest(str(kind), tuple(_TYPES))
        hint = f"did you mean '{near}'?" if near else ""
        told = f"'type' must be one of {names}; got '{clean_line(str(kind), 60)}'"
        return (*problems, wrong("L204", told, ("type",), hint))
    model = _TYPES[kind]
    for key in data:
        if key not in model.model_fields and key not in _IGNORED:
            near = nearest(str(key), tuple(model.model_fields))
            told = f"unknown key '{clean_line(str(key), 60)}' in a tool of type {kind}"
            hint = f"did you mean '{near}'?" if near else ""
            at = source.key_span((key,))
            problems.append(Problem(Severity.WARNING, "L201", told, file, at, (key,), hint, near or None))
    try:
        tool = model.model_validate(data)
    except ValidationError as fault:
        problems += diagnosed(fault, source)
        tool = None
    if (bad := bad_pattern(data.get("error_pattern"))) is not None:
        problems.append(place.report("L717", ("error_pattern",), field="error_pattern", problem=bad[0], hint=""))
    if isinstance(tool, CompositeTool) and known is not None:
        for index, step in enumerate(tool.steps):
            if ":" not in step.tool and step.tool not in known and step.tool != tool.tool_id:
                near = nearest(step.tool, tuple(known))
                told = f"tool '{clean_line(step.tool, 60)}' is not known; the chain fails there"
                hint = f"did you mean '{near}'?" if near else ""
                path: Path = ("steps", index, "tool")
                problems.append(
                    Problem(Severity.ERROR, "L511", told, file, source.span(path), path, hint, near or None)
                )
    problems += _templates(data, place)
    return tuple(sorted(problems, key=lambda problem: problem.span))


def _templates(data: dict[str, Any], place: Places) -> Iterator[Problem]:
    """L601, L602 and L603 of the texts that are rendered."""
    inputs = data.get("inputs_schema")
    names = {*(inputs if isinstance(inputs, dict) else ()), "input", "env", "steps"}
    for path, text in _rendered(data):
        condition = path[-1] == "condition"
        template = condition_template(text) if condition else text
        shift = condition_shift(text) if condition else 0
        found = names_used(template)
        if found.fault is not None:
            fault = found.fault
            span = place.source.inner_span(path, fault.line, fault.column - (shift if fault.line == 1 else 0))
            yield place.report("L601", path, span=span, problem=fault.message)
        told: set[str] = set()
        for use in found.uses:
            if use.guarded or use.root in names or use.root in told:
                continue
            told.add(use.root)
            column = use.column - (shift if use.line == 1 else 0)
            span = place.source.inner_span(path, use.line, column, len(use.root))
            near = nearest(use.root, tuple(names))
            yield place.report("L602", path, span=span, name=use.root, instead=near or None)


def _rendered(data: dict[str, Any]) -> Iterator[tuple[Path, str]]:
    for key in ("command", "url", "headers", "body"):
        yield from texts_of(data.get(key), (key,))
    steps = data.get("steps")
    for index, step in enumerate(steps if isinstance(steps, list) else ()):
        if isinstance(step, dict):
            for key in ("args", "condition"):
                yield from texts_of(step.get(key), ("steps", index, key))
