"""The Tools port: finds a tool by name, checks arguments and trust, runs it, and makes every outcome a result."""

from __future__ import annotations

import asyncio
import difflib
import json
import math
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.contracts import ToolResult, ToolSpec
from workbench.engine.engine_tools import ENGINE_SPECS, OBSERVE
from workbench.extras import install_line, is_installed
from workbench.language.graph import COMMAND
from workbench.language.json_schema import is_type, mismatch
from workbench.language.lint.environment import ToolFacts, ToolKind, ValidatorFacts
from workbench.language.model.cascade import SCHEMES
from workbench.language.problem import Problem
from workbench.tools.addresses import NetworkReach
from workbench.tools.browser.tools import NOT_ALLOWED, BrowserTools, Owner, browser_tools, owner
from workbench.tools.builtin import builtin_tools
from workbench.tools.builtin.data import DataTools, cannot_run
from workbench.tools.builtin.shell import ShellTools
from workbench.tools.calling import call_function
from workbench.tools.declared.tools import DeclaredTools
from workbench.tools.hook_registry import HookRegistration
from workbench.tools.hook_registry import registered as registered_hooks
from workbench.tools.mcp_servers import McpServers
from workbench.tools.paths import Workspace
from workbench.tools.python_files import PythonFolder
from workbench.tools.python_tools import UNTRUSTED, announce_tools, load_tools
from workbench.tools.registry import Kind, Registry, Tool, add_registered
from workbench.tools.results import error_of, result_of
from workbench.tools.sandbox import Sandbox
from workbench.tools.schema import shown_type
from workbench.tools.schemes import FUNCTION_NOT_ALLOWED, Schemes
from workbench.tools.validators import EXAMPLE_INPUTS, FunctionValidators, validator_tools

if TYPE_CHECKING:
    from jsonschema.exceptions import ValidationError

# Checks the arguments of a tool call against the tool's schema and says what is wrong in words a model can act on.

_INTEGER = re.compile(r"[+-]?\d{1,18}")
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?")
_BOOLEANS = {"true": True, "false": False}
_SHOWN = 60
"""Characters of a wrong value that an error repeats."""


class ArgumentError(ValueError):
    """Arguments that do not fit the tool."""


def checked(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments, in the order of the schema, with text read as the number, boolean, list or object that is wanted.

    Nothing else is guessed: ``"5"`` becomes 5 and ``5.0`` becomes 5 where an integer is wanted, ``"five"`` is an error.
    Defaults are not filled in. Raises ArgumentError naming all missing and unknown arguments, or the first wrong value.
    """
    properties: Mapping[str, Any] = schema.get("properties", {})
    problems = _missing(arguments, schema) + _unknown(arguments, schema)
    if problems:
        raise ArgumentError(f"{'; '.join(problems)}. {_expected(schema)}")
    ordered = [name for name in properties if name in arguments]
    ordered += [name for name in arguments if name not in properties]
    taken = {name: _coerced(arguments[name], properties.get(name, {})) for name in ordered}
    if (error := mismatch(schema, taken)) is not None:
        raise ArgumentError(_wrong(error, schema))
    return taken


def _missing(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    return [f"'{name}' is missing" for name in schema.get("required", ()) if name not in arguments]


def _unknown(arguments: Mapping[str, Any], schema: Mapping[str, Any]) -> list[str]:
    if schema.get("additionalProperties", True) is not False:
        return []
    known = list(schema.get("properties", {}))
    problems = []
    for name in arguments:
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            problems.append(f"'{_cut(name)}' is not known" + (f" (did you mean '{near[0]}'?)" if near else ""))
    return problems


def _expected(schema: Mapping[str, Any]) -> str:
    """One sentence that lists the parameters."""
    required = set(schema.get("required", ()))
    words = [
        f"{name} ({shown_type(part)}{'' if name in required else ', optional'})"
        for name, part in schema.get("properties", {}).items()
    ]
    return f"Expected: {', '.join(words)}." if words else "Expected: no arguments."


def _wrong(error: ValidationError, schema: Mapping[str, Any]) -> str:
    path = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path).lstrip(".")
    value = _cut(json.dumps(error.instance, ensure_ascii=False, default=str))
    where = f"'{path}'" if path else "the arguments"
    if error.validator == "type":
        return f"{where} must be {shown_type({'type': error.validator_value})}, got {value}"
    if error.validator == "enum":
        options = json.dumps(error.validator_value, ensure_ascii=False)
        return f"{where} must be one of {options[1:-1]}; got {value}"
    if error.validator == "anyOf":
        return f"{where} must be {shown_type({'anyOf': error.validator_value})}, got {value}"
    if error.validator == "required":
        return f"{where}: {error.message}. {_expected(schema)}"
    return f"{where}: {error.message}"


def _coerced(value: Any, schema: Mapping[str, Any]) -> Any:
    """The value, converted to the schema's type if that is unambiguous."""
    wanted = _types(schema)
    if _fits(value, wanted):
        return value
    if isinstance(value, float) and "integer" in wanted and value.is_integer():
        return int(value)
    if isinstance(value, (int, float)) and not isinstance(value, bool) and wanted == {"string"}:
        return json.dumps(value)
    return _read(value.strip(), wanted, value) if isinstance(value, str) else value


def _types(schema: Mapping[str, Any]) -> set[str]:
    """The JSON types a schema names; empty when it takes anything."""
    if "anyOf" in schema:
        options = [_types(option) for option in schema["anyOf"]]
        return set().union(*options) if all(options) else set()
    kind = schema.get("type")
    return {kind} if isinstance(kind, str) else set(kind or ())


def _fits(value: Any, wanted: set[str]) -> bool:
    return not wanted or any(is_type(value, kind) for kind in wanted)


def _read(text: str, wanted: set[str], value: Any) -> Any:
    if "integer" in wanted and _INTEGER.fullmatch(text):
        return int(text)
    if "number" in wanted and _NUMBER.fullmatch(text) and math.isfinite(float(text)):
        return float(text)
    if "boolean" in wanted and text.lower() in _BOOLEANS:
        return _BOOLEANS[text.lower()]
    if "null" in wanted and text.lower() in ("null", "none"):
        return None
    if (text[:1] == "[" and "array" in wanted) or (text[:1] == "{" and "object" in wanted):
        try:
            return json.loads(text, parse_constant=_refuse)
        except (ValueError, RecursionError):
            return value
    return value


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is not JSON")


def _cut(text: str) -> str:
    return text if len(text) <= _SHOWN else text[:_SHOWN] + "…"


TIMEOUT_S = 120.0
"""Of a tool that names no limit of its own, where the setting ``tool_timeout`` is not passed on."""

MAX_DEPTH = 5
"""Of tools that call tools."""

_depth: ContextVar[int] = ContextVar("depth", default=0)
_FOR_TRUST = frozenset({UNTRUSTED, NOT_ALLOWED, FUNCTION_NOT_ALLOWED})
_KINDS: Mapping[Kind, ToolKind] = {
    Kind.BUILTIN: "builtin",
    Kind.PYTHON: "function",
    Kind.REGISTERED: "function",
    Kind.DECLARED: "declarative",
}


class Toolbox:
    """The tools of one workspace."""

    def __init__(
        self,
        workspace: Workspace,
        sandbox: Sandbox,
        registry: Registry,
        schemes: Schemes,
        browser: BrowserTools | None = None,
        servers: McpServers | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """``registry`` holds the built-in tools; what is added later may hide them. ``timeout_s``: of a tool that names
        no limit of its own."""
        self._timeout_s = timeout_s
        self._browser = browser or BrowserTools()
        self._builtin = frozenset(registry.names()) | frozenset(ENGINE_SPECS)
        self.workspace = workspace
        self.sandbox = sandbox
        self.registry = registry
        self.schemes = schemes
        self.servers = servers or McpServers(workspace, {}, lambda name, server: False, {})
        self.validators = FunctionValidators(registry, DataTools(sandbox, workspace.also))

    @classmethod
    def of(
        cls,
        workspace: Workspace,
        sandbox: Sandbox,
        python: Sequence[PythonFolder] = (),
        *,
        trusted: bool = False,
        beside: Path | None = None,
        tool_files: Mapping[str, str] | None = None,
        browser: bool = False,
        artefacts: Path | None = None,
        redact: Callable[[str], str] = lambda text: text,
        reach: NetworkReach = NetworkReach(),
        allowed: Callable[[str], bool] = lambda name: False,
        servers: McpServers | None = None,
        timeout_s: float = TIMEOUT_S,
        commands: bool = False,
    ) -> Toolbox:
        """Built-in tools and validators, what the running program registered, the Python tools of ``tools/`` folders,
        and declared tools (texts of ``.tool.json`` files by path). The last two run only where the workspace is
        trusted; elsewhere they are announced and refused.

        ``artefacts``: where browser sessions leave what they did, without what ``redact`` takes out.
        ``browser``: whether a person has allowed that pages are opened; ``reach``: which hosts they and the requests
        of tools may be on; ``allowed``: which functions a cascade may
        name in place (``python:module.function``) besides those of the ``tools/`` folders.
        ``timeout_s``: of a tool that names no limit of its own.
        ``commands``: whether a person has trusted the folder, so that the commands of its pipelines run.
        ``beside`` is the folder of the cascade, where files of ``sql:`` and ``shell:`` are looked up first.
        """
        registry = Registry()
        registry.add_later(builtin_tools(workspace, sandbox))
        registry.add_later(validator_tools(ShellTools(sandbox)))
        schemes = Schemes(
            workspace, sandbox, beside=beside, python=python, trusted=trusted, allowed=allowed, commands=commands
        )
        pages = BrowserTools(artefacts, redact, reach)
        registry.add_later(browser_tools(pages, "" if browser else NOT_ALLOWED))
        box = cls(workspace, sandbox, registry, schemes, pages, servers, timeout_s)
        add_registered(registry)
        for folder in python:
            (load_tools if trusted else announce_tools)(folder, registry)
        if tool_files:
            declared = DeclaredTools(workspace, sandbox, box.call_inner, reach)
            declared.register(registry, tool_files, "" if trusted else UNTRUSTED)
        return box

    @property
    def problems(self) -> Sequence[Problem]:
        """The faults of the tools themselves: files that do not import, names that hide others."""
        return tuple(self.registry.problems)

    @property
    def hooks(self) -> Sequence[HookRegistration]:
        """The hooks that the running program and the workspace's Python files registered."""
        return (*registered_hooks(), *self.registry.hooks)

    @property
    def refused_hooks(self) -> Sequence[str]:
        """Why hooks of the workspace are not asked."""
        return tuple(self.registry.refused_hooks)

    def names(self) -> Sequence[str]:
        return self.registry.names()

    def spec(self, name: str) -> ToolSpec | None:
        """None when there is no such tool. A name with a scheme (``sql:top.sql``) is looked up at the call."""
        if ":" in name:
            scheme = name.partition(":")[0]
            return (
                ToolSpec(name, "", (), {"type": "object"}, side_effects=scheme not in ("sql", "manager"))
                if scheme in SCHEMES or name in (COMMAND, OBSERVE)
                else None
            )
        tool = self.registry.get(name)
        return tool.spec if tool else None

    def maybe_ran(self, place: Place, index: int) -> bool:
        """Never: live tools know of no earlier run."""
        return False

    def recorded(self, place: Place, index: int) -> bool:
        """Never: these tools run."""
        return False

    async def call(self, name: str, arguments: Mapping[str, Any], place: Place, index: int) -> ToolResult:
        """Run a tool. Whatever goes wrong is a result with its flag set; ``duration_s`` is of the monotonic clock."""
        return await self.call_for("", name, arguments, place)

    async def call_for(self, run_id: str, name: str, arguments: Mapping[str, Any], place: Place) -> ToolResult:
        """The same for a run that this toolbox's run has started: it has a browser of its own."""
        started = time.monotonic()
        token = owner.set(Owner(run_id, place.branch))
        try:
            result = await self._run(name, arguments)
        except Exception as fault:  # noqa: BLE001 - a tool may raise anything: the model is told
            result = error_of(fault)
        finally:
            owner.reset(token)
        return replace(result, duration_s=time.monotonic() - started)

    async def settled(self, branch: str, winner: str) -> None:
        await self.settled_for("", branch, winner)

    async def settled_for(self, run_id: str, branch: str, winner: str) -> None:
        """The same for a run that this toolbox's run has started."""
        if self.holds(run_id):
            await self._browser.settle(run_id, branch, winner)

    async def call_inner(self, name: str, arguments: Mapping[str, Any]) -> ToolResult:
        """The same for a tool that a declared tool calls, whose file was allowed; calls that lead too deep are errors
        as well."""
        depth = _depth.get()
        token = _depth.set(depth + 1)
        try:
            if depth >= MAX_DEPTH:
                raise RecursionError(f"tools call each other more than {MAX_DEPTH} deep")
            return await self._run(name, arguments, by_file=True)
        except Exception as fault:  # noqa: BLE001 - as in call
            return error_of(fault)
        finally:
            _depth.reset(token)

    async def _run(self, name: str, arguments: Mapping[str, Any], *, by_file: bool = False) -> ToolResult:
        tool = self.registry.get(name) if ":" not in name else self.schemes.tool(name, by_file=by_file)
        if tool is None:
            raise LookupError(f"no tool is called '{name}'")
        if tool.refusal:
            refused = error_of(PermissionError(f"{name} may not run: {tool.refusal}"))
            return replace(refused, needs_trust=tool.refusal in _FOR_TRUST)
        taken = checked(arguments, tool.spec.schema)
        value = await call_function(tool.function, taken, tool.timeout_s or self._timeout_s, tool.users)
        return result_of(value, self.workspace)

    def holds(self, run_id: str) -> bool:
        """Returns whether tools have left something running for a nested run."""
        return self._browser.holds(run_id)

    def of_child(self, run_id: str) -> ChildTools:
        """The same tools for a run that this one starts."""
        return ChildTools(self, run_id)

    async def aclose(self, run_id: str | None = None) -> None:
        """End what tools have left running: all of it, or what a run has that was started by this one."""
        await self._browser.aclose(run_id)
        if run_id is None:
            await self.servers.aclose()

    def facts(self) -> dict[str, ToolFacts]:
        """Returns the facts that a check needs of every tool that can be listed, those of the engine included."""
        facts = {
            name: ToolFacts("builtin", description=spec.description, parameters=_parameters(spec))
            for name, spec in ENGINE_SPECS.items()
        }
        absent, browser = cannot_run(), is_installed("browser")
        for tool in self.registry:
            hides = tool.kind is not Kind.BUILTIN and tool.name in self._builtin
            needs = _needs(tool, browser) or (absent.get(tool.name, "") if tool.kind is Kind.BUILTIN else "")
            spec, own = tool.spec, tool.kind is not Kind.BUILTIN
            facts[tool.name] = ToolFacts(
                _KINDS[tool.kind],
                hides,
                needs,
                tool.text or None,
                spec.description,
                _parameters(spec),
                tool.file if own else "",
                tool.line if own else 0,
                tool.needs_sandbox,
            )
        return facts

    def validator_facts(self) -> dict[str, ValidatorFacts]:
        """The same for the function validators."""
        return {
            name: ValidatorFacts(
                _KINDS[tool.kind],
                self.validators.describe(name) or "",
                file=tool.file if tool.kind is not Kind.BUILTIN else "",
                line=tool.line if tool.kind is not Kind.BUILTIN else 0,
                parameters=_parameters(tool.spec),
                example=EXAMPLE_INPUTS.get(name, "") if tool.kind is Kind.BUILTIN else "",
            )
            for name in self.validators.names()
            if (tool := self.registry.get(name))
        }

    def refused_schemes(self, no_sandbox: Callable[[], str]) -> Mapping[str, str]:
        """Scheme of ``tool:``, or a whole ``python:`` name, to why it would be refused as things are, for checks.
        ``no_sandbox`` says why there is no sandbox."""
        return _Refused(self.schemes, {"shell": no_sandbox})

    async def no_sandbox(self) -> str:
        """Returns why there is no sandbox, in the words of checks; empty if there is one."""
        probe = await self.sandbox.probe()
        return "" if probe.usable else f"a sandbox: {probe}"


class _Refused(Mapping[str, str]):
    """Why tools named in place would be refused: by scheme, and for each Python function by its name."""

    def __init__(self, schemes: Schemes, by_scheme: Mapping[str, Callable[[], str]]) -> None:
        self._schemes = schemes
        self._by_scheme = by_scheme

    def __getitem__(self, name: str) -> str:
        if not name.startswith("python:"):
            return self._by_scheme[name]()
        refusal = self._schemes.refusal(name)
        return f"trust: {refusal}" if refusal else ""

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_scheme)

    def __len__(self) -> int:
        return len(self._by_scheme)


class ChildTools:
    """A toolbox as a nested run sees it: the same tools, and a browser of its own."""

    def __init__(self, toolbox: Toolbox, run_id: str) -> None:
        self._toolbox = toolbox
        self._run_id = run_id
        self._leaving: asyncio.Task[None] | None = None

    def names(self) -> Sequence[str]:
        return self._toolbox.names()

    def spec(self, name: str) -> ToolSpec | None:
        return self._toolbox.spec(name)

    def maybe_ran(self, place: Place, index: int) -> bool:
        return self._toolbox.maybe_ran(place, index)

    def recorded(self, place: Place, index: int) -> bool:
        return self._toolbox.recorded(place, index)

    async def call(self, name: str, arguments: Mapping[str, Any], place: Place, index: int) -> ToolResult:
        return await self._toolbox.call_for(self._run_id, name, arguments, place)

    async def settled(self, branch: str, winner: str) -> None:
        await self._toolbox.settled_for(self._run_id, branch, winner)

    def of_child(self, run_id: str) -> ChildTools:
        """For a run that the nested run starts."""
        return self._toolbox.of_child(run_id)

    def leave(self) -> None:
        """The nested run is over: what it left running is ended, at the latest with the run around it."""
        if self._toolbox.holds(self._run_id):
            self._leaving = asyncio.ensure_future(self._toolbox.aclose(self._run_id))


def _needs(tool: Tool, browser: bool) -> str:
    """Returns what a tool lacks, a sandbox aside; ``browser``: whether the extra of the tools that can be refused is
    installed."""
    if not tool.refusal:
        return ""
    return f"trust: {tool.refusal}" if browser else f"the browser extra: {install_line('browser')}"


def _parameters(spec: ToolSpec) -> tuple[str, ...]:
    return tuple(one.name + ("" if one.required else "?") for one in spec.parameters)
