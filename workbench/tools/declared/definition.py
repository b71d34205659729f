"""Reads a ``.tool.json`` file into a definition, or into a problem with its place."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from workbench.engine.contracts import Parameter, ToolSpec
from workbench.language.diagnose import mistyped
from workbench.language.model.base import DeferredModel
from workbench.language.problem import Problem
from workbench.tools.registry import tool_problem
from workbench.tools.schema import object_schema, shown_type

NOT_RUN = frozenset({"gradio"})
"""Types that are known but not offered; checks say so."""
_OPTIONAL = re.compile(r"\b(optional|default)\b", re.IGNORECASE)


class _Common(DeferredModel):
    model_config = ConfigDict(frozen=True, extra="ignore")

    tool_id: Annotated[str, Field(min_length=1, pattern=r"^[\w.-]+$")]
    description: str = ""
    inputs_schema: dict[str, str | dict[str, Any]] = Field(default_factory=dict)
    timeout: Annotated[float, Field(gt=0, le=600)] = 30.0
    """Seconds."""
    output_transform: Literal["text", "json", "lines"] = "text"
    error_pattern: str = ""
    """A match in the output makes the result an error."""


class ShellTool(_Common):
    """Runs a command, in the sandbox unless the file says otherwise."""

    type: Literal["shell"]
    command: str
    working_dir: str = "."
    sandbox: bool = True


class HttpTool(_Common):
    """Makes one request."""

    type: Literal["http"]
    url: str
    method: str = "GET"
    headers: dict[str, str] = Field(default_factory=dict)
    body: Any = None
    response_jq: str = "."


class PythonTool(_Common):
    """Calls a function of an installed module or of ``tools/``."""

    type: Literal["python"]
    import_path: str


class Step(DeferredModel):
    """One step of a chain."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    tool: str
    args: dict[str, Any] = Field(default_factory=dict)
    condition: str = ""


class CompositeTool(_Common):
    """Calls other tools in order; later steps see ``steps[i].result``."""

    type: Literal["composite"]
    steps: Annotated[tuple[Step, ...], Field(min_length=1)]


Declared = ShellTool | HttpTool | PythonTool | CompositeTool
_ADAPTER: TypeAdapter[Declared] = TypeAdapter(
    Annotated[Declared, Field(discriminator="type")], config=ConfigDict(defer_build=True)
)


def read_declared(text: str, file: str) -> Declared | Problem | str:
    """The definition in a file's text; a Problem where it is wrong; the tool's name for a type that is not run."""
    try:
        body = json.loads(text)
    except json.JSONDecodeError as fault:
        return tool_problem(f"not valid JSON: {fault.msg}", file, fault.lineno, fault.colno)
    except RecursionError:
        return tool_problem("not valid JSON: nested too deeply", file)
    if not isinstance(body, dict):
        return tool_problem("a declared tool is a JSON object", file)
    if body.get("type") in NOT_RUN:
        return str(body.get("tool_id") or file)
    try:
        return _ADAPTER.validate_python(body)
    except ValidationError as fault:
        return _problem(fault, text, file)


def spec_of_declared(tool: Declared) -> ToolSpec:
    """Returns how a model sees it. An input is optional where its description says so, a default is given, or a
    template of the tool asks whether it is there."""
    properties: dict[str, Any] = {}
    parameters: list[Parameter] = []
    templates = tool.model_dump_json()
    for name, described in tool.inputs_schema.items():
        schema = dict(described) if isinstance(described, dict) else {"description": described}
        text = str(schema.get("description", ""))
        properties[name] = schema
        required = "default" not in schema and not _OPTIONAL.search(text) and not _asked(name, templates)
        parameters.append(Parameter(name, shown_type(schema), required, schema.get("default")))
    reads = isinstance(tool, HttpTool) and tool.method.upper() in ("GET", "HEAD")
    schema = object_schema(properties, parameters)
    return ToolSpec(tool.tool_id, tool.description, tuple(parameters), schema, side_effects=not reads)


def _asked(name: str, templates: str) -> bool:
    """Returns whether a template has a default or a condition for an input."""
    word = re.escape(name)
    return bool(
        re.search(rf"\bif\s+(not\s+)?{word}\b|\b{word}\s*(\|\s*default\b|[!=]=|is\s+(not\s+)?defined)", templates)
    )


def _problem(fault: ValidationError, text: str, file: str) -> Problem:
    first: Mapping[str, Any] = fault.errors()[0]
    path = [str(part) for part in first["loc"] if part not in ("shell", "http", "python", "composite")]
    key = path[0] if path else "type"
    found = re.search(rf'"{re.escape(key)}"\s*:', text)
    line = text.count("\n", 0, found.start()) + 1 if found else 1
    column = found.start() - text.rfind("\n", 0, found.start()) if found else 1
    message, hint = mistyped(fault.errors()[0], f"'{'.'.join(path) or key}'")
    return tool_problem(message + (f" ({hint})" if hint else ""), file, line, column)
