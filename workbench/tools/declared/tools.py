"""Offers and runs the declared tools of a workspace; where the folder is not trusted they are announced and refused."""

from __future__ import annotations

import contextlib
import json
import os
import re
import zlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import regex
from jinja2 import ChainableUndefined, TemplateError, Undefined, pass_context
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment
from msgspec import Struct
from msgspec.structs import replace

from workbench.engine.contracts import ToolResult
from workbench.engine.current import environment
from workbench.language.clean import clean_line
from workbench.language.problem import Problem
from workbench.language.templates.template import Renderer, condition_template, truth
from workbench.tools.addresses import NetworkReach, NotPublic
from workbench.tools.builtin.shell import reported
from workbench.tools.calling import call_function
from workbench.tools.declared.definition import (
    CompositeTool,
    Declared,
    HttpTool,
    PythonTool,
    ShellTool,
    read_declared,
    spec_of_declared,
)
from workbench.tools.paths import Workspace
from workbench.tools.registry import Kind, Registry, Tool
from workbench.tools.results import NOTHING, cut
from workbench.tools.sandbox import Sandbox

if TYPE_CHECKING:
    import httpx

# Puts values into a shell command so that no value can become part of the command. Each value travels in an
# environment variable; the command only names it, in the form that fits the quotes around it. What a shell reads from
# a variable it never parses as a command again.

_MARK = re.compile("\ue000(\\d+)\ue001")
_VARIABLE = "TOOL_VALUE_"
_VALUES = "_tool_values"


class CommandError(ValueError):
    """A command template that cannot be rendered, or that puts a value where it cannot be kept apart."""


class Command(Struct, frozen=True):
    """A command for ``sh -c`` and the variables that it names."""

    text: str
    env: Mapping[str, str]


def render_command(template: str, inputs: Mapping[str, Any]) -> Command:
    """Render a Jinja template over the inputs. Raises CommandError."""
    values: list[str] = []
    if any("\ue000" in json.dumps(value, ensure_ascii=False, default=str) for value in inputs.values()):
        raise CommandError("a value holds a character that is reserved here (U+E000)")
    try:
        marked = _ENVIRONMENT.from_string(template).render({**inputs, _VALUES: values})
    except TemplateError as fault:
        raise CommandError(f"the command's template: {fault}") from fault
    except (TypeError, ValueError, ArithmeticError, LookupError, RecursionError) as fault:
        raise CommandError(f"the command's template: {type(fault).__name__}: {fault}") from fault
    if any("\0" in value for value in values):
        raise CommandError("a value holds a NUL character")
    text = _with_variables(marked)
    return Command(text, {f"{_VARIABLE}{number}": value for number, value in enumerate(values)})


@pass_context
def _marked(context: Context, value: Any) -> str:
    """Keep what an expression gives, and leave a mark in its place."""
    values: list[str] = context[_VALUES]
    if isinstance(value, Undefined) or value is None:
        values.append("")
    else:
        values.append(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str))
    return f"\ue000{len(values) - 1}\ue001"


def _with_variables(marked: str) -> str:
    """Replace marks by variables: ``"$V"`` bare, ``${V}`` inside double quotes, ``'"$V"'`` inside single quotes.

    A bare value that is empty is no argument at all: commands leave options out that way.
    """
    parts: list[str] = []
    quotes, position = [""], 0
    while position < len(marked):
        mark = _MARK.match(marked, position)
        end = mark.end() if mark else _advance(marked, position, quotes)
        if mark:
            parts.append(_reference(f"{_VARIABLE}{mark[1]}", quotes[-1], marked[:position]))
        else:
            parts.append(marked[position:end])
        position = end
    return "".join(parts)


def _advance(text: str, position: int, quotes: list[str]) -> int:
    """Read one piece of shell text; ``quotes`` is the quote that is open, for each ``(…)`` that is open."""
    char, quote = text[position], quotes[-1]
    if char == "\\" and quote != "'":
        if text[position + 1 : position + 2] == "\ue000":
            raise CommandError("a value may not follow a backslash")
        return position + 2
    if quote != "'" and text.startswith("$(", position):
        quotes.append("")
        return position + 2
    if not quote and char == "(":
        quotes.append("")
    elif not quote and char == ")" and len(quotes) > 1:
        quotes.pop()
    elif char in "'\"" and quote in ("", char):
        quotes[-1] = "" if quote else char
    return position + 1


def _reference(name: str, quote: str, before: str) -> str:
    if before.count("((") > before.count("))"):
        raise CommandError("a value may not stand in shell arithmetic, where it would be evaluated")
    if quote == "'":
        return f"'\"${{{name}}}\"'"
    return f"${{{name}}}" if quote else f'${{{name}:+"${{{name}}}"}}'


_ENVIRONMENT = ImmutableSandboxedEnvironment(undefined=ChainableUndefined, autoescape=False, finalize=_marked)


# Makes the request of a declared HTTP tool: bounded, to the host that the file names, without following redirects.
# Where an input says the host, a model may say it: then it must be one that every tool may reach (``addresses.py``).

MAX_BYTES = 1_000_000
"""Of the answer's body."""
_PIECE = 65_536
_ANY_ZLIB = 47
"""Window bits by which zlib reads both of its forms, gzip and zlib, with their largest windows."""
_STEP = re.compile(r"\.?([A-Za-z_][\w-]*)|\[(-?\d+)\]|\.?\[\"([^\"]+)\"\]|\[\]")

Fill = Callable[[str], str]
"""Renders a template over the inputs."""


class RequestRefused(ValueError):
    """A request that the tool's file does not allow."""


class Reply(Struct, frozen=True):
    """The reply to a request."""

    status: int
    text: str
    truncated: bool = False

    @property
    def ok(self) -> bool:
        return 200 <= self.status < 300


async def request(tool: HttpTool, fill: Fill, reach: NetworkReach = NetworkReach()) -> Reply:
    """Send it. Raises RequestRefused when the address leaves the host of the template or may not be reached, or what
    httpx raises."""
    url = fill(tool.url)
    _same_host(tool.url, url)
    headers = {name: fill(value) for name, value in tool.headers.items()}
    targets = await _targets(url, headers, reach, named=not _any_host(tool.url))
    body = _body(tool.body, fill)
    more = {} if any(name.lower() == "accept-encoding" for name in headers) else {"Accept-Encoding": "gzip, deflate"}
    if body is not None and not any(name.lower() == "content-type" for name in headers):
        more["Content-Type"] = "application/json" if not isinstance(tool.body, str) else "text/plain; charset=utf-8"
    # Half as long to import as all other tools together, and most workspaces declare no request.
    import httpx

    # The proxy and certificate variables of the environment are not the tool's to use.
    async with httpx.AsyncClient(timeout=tool.timeout, follow_redirects=False, trust_env=False) as client:
        for target in targets:
            with contextlib.suppress(*([httpx.ConnectError] if target is not targets[-1] else [])):
                stream = client.stream(
                    tool.method.upper(),
                    target.url,
                    headers={**target.headers, **more},
                    content=body,
                    extensions={"sni_hostname": target.host},
                )
                async with stream as response:
                    return await _read(response)
    raise RequestRefused(f"'{url}' has no address")


async def _read(response: httpx.Response) -> Reply:
    """Unpacked here, no further than what is kept: a packed answer can be a million times as large as it looks."""
    unpack = _unpacking(response.headers.get("content-encoding", ""))
    data = bytearray()
    try:
        async for piece in response.aiter_raw(_PIECE):
            data += unpack(piece, MAX_BYTES + 1 - len(data)) if unpack is not None else piece
            if len(data) > MAX_BYTES:
                break
    except zlib.error as fault:
        raise RequestRefused(f"the answer cannot be unpacked: {fault}") from None
    cut = len(data) > MAX_BYTES
    text = bytes(data[:MAX_BYTES]).decode(response.encoding or "utf-8", "replace")
    return Reply(response.status_code, text, cut)


def _unpacking(encoding: str) -> Callable[[bytes, int], bytes] | None:
    """Returns the function that unpacks pieces of a body up to a number of bytes; None for one that is not packed.
    Raises RequestRefused."""
    name = encoding.strip().lower()
    if name in ("", "identity"):
        return None
    if name not in ("gzip", "x-gzip", "deflate"):
        raise RequestRefused(f"the answer is packed as '{clean_line(name, 40)}', which was not asked for")
    return zlib.decompressobj(_ANY_ZLIB).decompress


def pick(value: Any, path: str) -> Any:
    """The part of a JSON value that a simple path names: ``.``, ``.a.b``, ``.a[0]``, ``.a[].b``.

    Raises LookupError or ValueError when the path does not fit or is not understood.
    """
    text, position = path.strip().removeprefix("."), 0
    spread = False
    while position < len(text):
        step = _STEP.match(text, position)
        if step is None:
            raise ValueError(f"the path '{path}' is not understood at '{text[position:]}'")
        if step[0].endswith("[]"):
            value = [inner for outer in value for inner in outer] if spread else list(value)
            spread = True
        else:
            key: str | int = int(step[2]) if step[2] else step[1] or step[3]
            value = [_get(item, key) for item in value] if spread else _get(value, key)
        position = step.end()
    return value


def _get(value: Any, key: str | int) -> Any:
    if isinstance(value, list) and isinstance(key, int):
        return value[key]
    if isinstance(value, dict) and key in value:
        return value[key]
    raise LookupError(f"there is no {key!r} in the answer's {type(value).__name__}")


def _same_host(template: str, url: str) -> None:
    wanted, got = urlsplit(template), urlsplit(url)
    if got.scheme not in ("http", "https") or not got.hostname:
        raise RequestRefused(f"'{url}' is not an http address")
    if _any_host(template):
        return
    if (wanted.netloc, wanted.scheme) != (got.netloc, got.scheme):
        raise RequestRefused(f"'{url}' leaves the host {wanted.netloc}, which is all that this tool may reach")


def _any_host(template: str) -> bool:
    """The whole address is an input: a person has allowed the tool any host."""
    return template.lstrip().startswith("{")


class _Target(Struct, frozen=True):
    """A request to one address of a host."""

    url: str
    headers: dict[str, str]
    host: str


async def _targets(url: str, headers: dict[str, str], reach: NetworkReach, *, named: bool) -> list[_Target]:
    """The same request to each address that was looked at: looked up again, the name could mean another."""
    parts = urlsplit(url)
    try:
        port = parts.port or (443 if parts.scheme == "https" else 80)
        host = parts.hostname or ""
        addresses = await reach.addresses(host, port, named=named)
    except (NotPublic, ValueError) as fault:
        hint = "" if named else "; a tool's file may name such a host, an input may not"
        raise RequestRefused(f"{fault}{hint}") from fault
    if not any(name.lower() == "host" for name in headers):
        headers = {**headers, "Host": parts.netloc.rpartition("@")[2]}
    user = parts.netloc.rpartition("@")[0]
    found = []
    for address in addresses:
        inside = f"[{address}]" if ":" in address else address
        netloc = f"{user}@{inside}:{port}" if user else f"{inside}:{port}"
        found.append(_Target(parts._replace(netloc=netloc).geturl(), headers, host))
    return found


def _body(body: Any, fill: Fill) -> bytes | None:
    if body is None:
        return None
    if isinstance(body, str):
        return fill(body).encode("utf-8")
    return json.dumps(_filled(body, fill), ensure_ascii=False).encode("utf-8")


def _filled(value: Any, fill: Fill) -> Any:
    """The same structure with every text rendered."""
    if isinstance(value, str):
        return fill(value)
    if isinstance(value, Mapping):
        return {key: _filled(inner, fill) for key, inner in value.items()}
    return [_filled(inner, fill) for inner in value] if isinstance(value, list) else value


PATTERN_S = 2.0
"""Seconds that an ``error_pattern`` may take."""
_ENV = re.compile(r"\benv\.([A-Za-z_]\w*)")

Call = Callable[[str, Mapping[str, Any]], Awaitable[ToolResult]]
"""Runs another tool by name."""


class DeclaredTools(Struct, frozen=True):
    """Runs declared tools with what they may use of the workspace."""

    workspace: Workspace
    sandbox: Sandbox
    call: Call
    reach: NetworkReach = NetworkReach()

    def register(self, registry: Registry, files: Mapping[str, str], refusal: str) -> None:
        """Add the tools of ``.tool.json`` files (text by path); ``refusal`` says why they may not run, if so."""
        for path, text in files.items():
            found = read_declared(text, path)
            if isinstance(found, Problem):
                registry.problems.append(found)
            elif isinstance(found, str):
                registry.not_offered[found] = text
            else:
                registry.add(self._tool(found, path, text, refusal))

    def _tool(self, tool: Declared, path: str, text: str, refusal: str) -> Tool:
        async def run(**inputs: Any) -> ToolResult:
            return await self._run(tool, inputs, _environment(text))

        walled = isinstance(tool, ShellTool) and tool.sandbox
        spec = spec_of_declared(tool)
        limit = tool.timeout * (len(tool.steps) if isinstance(tool, CompositeTool) else 1) + 15
        return Tool(tool.tool_id, spec, run, Kind.DECLARED, path, 1, limit, walled, refusal, text)

    async def _run(self, tool: Declared, inputs: Mapping[str, Any], env: Mapping[str, str]) -> ToolResult:
        if isinstance(tool, ShellTool):
            result = await self._shell(tool, inputs)
        elif isinstance(tool, HttpTool):
            result = await _http(tool, {**inputs, "input": dict(inputs), "env": dict(env)}, self.reach)
        elif isinstance(tool, PythonTool):
            result = await self.call(f"python:{tool.import_path.replace(':', '.')}", inputs)
        else:
            result = await self._chain(tool, inputs)
        return await _judged(tool, result)

    async def _shell(self, tool: ShellTool, inputs: Mapping[str, Any]) -> ToolResult:
        command = render_command(tool.command, {**inputs, "input": dict(inputs)})
        finished = await self.sandbox.run(
            ["sh", "-c", command.text],
            cwd=self.workspace.find(tool.working_dir),
            timeout_s=tool.timeout,
            env={**environment(), **command.env},
            folders=self.workspace.also,
            ladder=None if tool.sandbox else ("none",),
        )
        if finished.ok:
            return _transformed(tool, finished.stdout.rstrip("\n"), finished.level)
        return replace(reported(finished, tool.timeout), is_error=True)

    async def _chain(self, tool: CompositeTool, inputs: Mapping[str, Any]) -> ToolResult:
        """The last step that ran gives the result; a step that fails ends the chain."""
        render = Renderer()
        steps: list[dict[str, Any]] = []
        result = ToolResult(NOTHING)
        for step in tool.steps:
            names = {**inputs, "input": dict(inputs), "steps": steps}
            if step.condition and not truth(render(condition_template(step.condition), names).text):
                steps.append({"tool": step.tool, "result": None, "skipped": True})
                continue
            arguments = {
                name: render(value, names).text if isinstance(value, str) else value
                for name, value in step.args.items()
            }
            result = await self.call(step.tool, arguments)
            if result.is_error:
                return ToolResult(f"step '{step.tool}' failed: {result.text}", True, sandbox=result.sandbox)
            value = result.value if result.value is not None else result.text
            steps.append({"tool": step.tool, "result": value, "skipped": False})
        return result


async def _http(tool: HttpTool, names: Mapping[str, Any], reach: NetworkReach) -> ToolResult:
    render = Renderer()
    reply = await request(tool, lambda template: render(template, names).text, reach)
    if not reply.ok:
        return cut(f"HTTP {reply.status}\n{reply.text}", 4000, is_error=True)
    short = "\n[the answer is longer than 1 MB and was cut]" if reply.truncated else ""
    if tool.response_jq.strip() in ("", "."):
        return _transformed(tool, reply.text + short, "in process")
    picked = pick(json.loads(reply.text), tool.response_jq)
    text = picked if isinstance(picked, str) else json.dumps(picked, indent=2, ensure_ascii=False)
    return cut(text or NOTHING, value=picked)


def _transformed(tool: Declared, text: str, level: str) -> ToolResult:
    """The output as text, as the JSON it is, or as a list of lines. Raises ValueError when it is no JSON."""
    value: Any = None
    if tool.output_transform == "json":
        value = json.loads(text)
        text = json.dumps(value, indent=2, ensure_ascii=False)
    elif tool.output_transform == "lines":
        value = text.splitlines()
    return cut(text if text.strip() else NOTHING, sandbox=level, value=value)


async def _judged(tool: Declared, result: ToolResult) -> ToolResult:
    """An error where the output matches ``error_pattern``. Raises ValueError or TimeoutError for a bad pattern."""
    if not tool.error_pattern or result.is_error:
        return result
    try:
        # In a thread that lets others work, where the expression takes long.
        matched = await call_function(
            lambda: regex.search(tool.error_pattern, result.text, timeout=PATTERN_S, concurrent=True), {}, 2 * PATTERN_S
        )
    except regex.error as fault:
        raise ValueError(f"'error_pattern' of {tool.tool_id} is not an expression: {fault}") from fault
    return replace(result, is_error=matched is not None)


def _environment(text: str) -> dict[str, str]:
    """The variables that a file names: the manifest lists them, so a person has allowed exactly these."""
    return {name: os.environ[name] for name in _ENV.findall(text) if name in os.environ}
