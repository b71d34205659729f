"""MCP servers at work: one connection to each for a run, made when its tools are first wanted, ended with the run.

The official SDK (extra ``mcp``) speaks the protocol. A server is text and code of others: what it lists is checked,
what it says is bounded, and whatever it does wrong is a fault with its name.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import json
import logging
import os
import re
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urlsplit

import anyio
from msgspec import Struct
from msgspec.structs import replace
from pydantic import TypeAdapter

from workbench.context.message import canonical
from workbench.context.pictured import MAX_BYTES, sniff
from workbench.context.place import Place
from workbench.engine.contracts import Listing, ServerTool, ToolImage, ToolResult
from workbench.engine.servers import served_spec
from workbench.extras import missing
from workbench.language.clean import clean, clean_line
from workbench.language.json_schema import SchemaFault, mismatch
from workbench.language.model.mcp import JOINT, McpServer, bad_server_name, filled
from workbench.tools.addresses import NetworkReach, NotPublic
from workbench.tools.paths import Workspace
from workbench.tools.results import MAX_IMAGES, NOTHING, cut, error_of

if TYPE_CHECKING:
    from mcp import Client
    from mcp.types import CallToolResult

NOT_ALLOWED = "it is not allowed to start here yet; `workbench trust FILE` lists it and asks"
OUTSIDE = "mcp server"
"""``sandbox`` of its results: a server runs outside the sandbox, or elsewhere."""
CLOSING_S = 10.0
"""Seconds that a server gets to end; the SDK asks, then terminates, then kills within five."""
MAX_TOOLS = 500
MAX_PAGES = 50
MAX_DESCRIPTION = 8_000
MAX_SCHEMA = 50_000
"""Of one listing: tools, pages, characters of a description and of a schema as JSON."""
MAX_NAME = 64
"""Characters of a tool's name that providers take."""
MAX_LINE = 32 * 1024 * 1024
"""Bytes of one message of a program: images are in it, as base64."""
_GRACE_S = 2.0
"""Seconds that a program gets to end before it is made to."""
_TAIL = 400
"""Characters of what a server wrote to stderr that a fault repeats."""
_TOOL_NAME = re.compile(r"[A-Za-z0-9_./-]{1,128}\Z")


def _sdk() -> Any:
    """The official SDK, of the extra ``mcp``."""
    # It takes 800 ms of CPU to import, and most runs have no server.
    import mcp.client.stdio
    import mcp.client.streamable_http
    import mcp.shared.message

    return mcp


class ServerFault(Exception):
    """A server that cannot be used; the message says why, without its name."""


class NotAllowed(ServerFault):
    """A server that was not allowed to start."""


class _ResolvedServer(Struct, frozen=True):
    """A server with its variables filled in."""

    argv: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str
    url: str
    headers: Mapping[str, str]
    timeout: float
    start_timeout: float
    reach: NetworkReach

    async def admit(self, url: str) -> None:
        """Pass an address that is asked: the host that a person named, or one that every tool may reach. Raises
        ServerFault."""
        parts, own = urlsplit(url), urlsplit(self.url)
        port = parts.port or (443 if parts.scheme == "https" else 80)
        try:
            await self.reach.addresses(parts.hostname or "", port, named=parts.netloc == own.netloc)
        except NotPublic as fault:
            raise ServerFault(f"its address: {fault}") from None
        except (OSError, UnicodeError):
            return  # There is no such name: connecting says so.


class McpServers:
    """Implements ``Servers``: those of the settings, and those that cascades define."""

    def __init__(
        self,
        workspace: Workspace,
        configured: Mapping[str, McpServer],
        allowed: Callable[[str, McpServer], bool],
        variables: Mapping[str, str],
        reach: NetworkReach = NetworkReach(),
    ) -> None:
        """``allowed`` says whether a person has allowed that a server is started; ``variables`` are those of
        ``${NAME}``; ``reach`` says which hosts may be asked besides those that definitions name."""
        self._workspace = workspace
        self._configured = configured
        self._allowed = allowed
        self._variables = variables
        self._reach = reach
        self._connections: dict[tuple[str, str], _Connection] = {}

    def names(self) -> Sequence[str]:
        return sorted(self._configured)

    async def listing(self, server: str, definition: McpServer | None, place: Place) -> Listing:
        wanted = self._definition(server, definition)
        try:
            connection = await self._connected(server, wanted)
            return _chosen(connection.listing, wanted.tools)
        except ServerFault as fault:
            return Listing(fault=clean(str(fault)), needs_trust=isinstance(fault, NotAllowed))

    async def call(
        self, tool: ServerTool, definition: McpServer | None, arguments: Mapping[str, Any], place: Place, index: int
    ) -> ToolResult:
        started = time.monotonic()
        try:
            result = await self._called(tool, definition, arguments)
        except ServerFault as fault:
            result = cut(f"MCP server '{tool.server}': {clean(str(fault))}", 4000, is_error=True)
            result = replace(result, needs_trust=isinstance(fault, NotAllowed))
        except Exception as fault:  # noqa: BLE001 - the SDK raises what it likes: the model is told
            result = error_of(fault)
        return replace(result, duration_s=time.monotonic() - started, sandbox=OUTSIDE)

    async def aclose(self) -> None:
        """End all connections, and the programs behind them."""
        connections, self._connections = self._connections, {}
        await asyncio.gather(*(connection.close() for connection in connections.values()))

    def _definition(self, server: str, definition: McpServer | None) -> McpServer:
        return definition if definition is not None else self._configured[server]

    async def _called(self, tool: ServerTool, definition: McpServer | None, arguments: Mapping[str, Any]) -> ToolResult:
        connection = await self._connected(tool.server, self._definition(tool.server, definition))
        return _result(await connection.call(tool.name, dict(arguments)))

    async def _connected(self, server: str, wanted: McpServer) -> _Connection:
        """The connection, made now if there is none or it was lost. Raises ServerFault."""
        key = (server, canonical(wanted.model_dump(mode="json")))
        connection = self._connections.get(key)
        if connection is None or connection.lost:
            self._may_start(server, wanted)
            if connection is not None:
                await connection.close()
            connection = self._connections[key] = _Connection(server, self._settled(wanted))
        try:
            await connection.opened()
        except BaseException:
            # Another one may have been made by whoever came before.
            if self._connections.get(key) is connection:
                del self._connections[key]
            await connection.close()
            raise
        return connection

    def _may_start(self, server: str, wanted: McpServer) -> None:
        """Raises ServerFault."""
        if reason := missing("mcp"):
            raise ServerFault(reason)
        if reason := bad_server_name(server):
            raise ServerFault(reason)
        if not self._allowed(server, wanted):
            raise NotAllowed(NOT_ALLOWED)

    def _settled(self, wanted: McpServer) -> _ResolvedServer:
        try:
            env = {name: filled(value, self._variables) for name, value in wanted.env.items()}
            headers = {name: filled(value, self._variables) for name, value in wanted.headers.items()}
            url = filled(wanted.url or "", self._variables)
        except LookupError as fault:
            raise ServerFault(f"the variable {fault.args[0]} is not set") from None
        try:
            cwd = self._workspace.find(wanted.cwd) if wanted.cwd else self._workspace.root
        except ValueError as fault:
            raise ServerFault(f"its folder: {fault}") from None
        return _ResolvedServer(
            wanted.argv, env, str(cwd), url, headers, wanted.timeout, wanted.start_timeout, self._reach
        )


class _Connection:
    """One server, held by a task of its own: the SDK's scopes end in the task that began them."""

    def __init__(self, name: str, settled: _ResolvedServer) -> None:
        self.lost = False
        self.listing = Listing()
        self._name = name
        self._settled = settled
        self._client: Client | None = None
        self._errors: IO[str] = tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        self._nonsense = ""
        """The first thing that it said and that is not of the protocol."""
        self._status = 0
        """Of the last HTTP answer that refused or led elsewhere; 0 for none."""
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._schemas: dict[str, Mapping[str, Any]] = {}
        """Of results, by tool, where the server lists one."""
        self._closing = asyncio.Event()
        self._task = asyncio.ensure_future(self._held())

    async def opened(self) -> None:
        """Wait until the tools are known. Raises ServerFault."""
        await asyncio.shield(self._ready)

    async def call(self, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """Raises ServerFault when no answer came, and what the SDK raises for an answer that is none."""
        assert self._client is not None
        limit = self._settled.timeout
        try:
            async with asyncio.timeout(limit) as deadline:
                return await self._asked(self._client, tool, arguments)
        except TimeoutError:
            if not deadline.expired():
                raise
            raise ServerFault(f"no result of {tool} within {limit:g} s{self._said()}") from None
        except _sdk().MCPError as fault:
            if fault.error.code != _sdk().types.CONNECTION_CLOSED:
                raise ServerFault(f"{tool}: {fault.error.message}") from None
            self.lost = True
            raise ServerFault(f"the connection ended before {tool} gave a result{await self._last_words()}") from None
        except _transport_faults() as fault:
            self.lost = True
            raise ServerFault(f"the connection is lost: {_words(fault)}{await self._last_words()}") from None

    async def _asked(self, client: Client, tool: str, arguments: dict[str, Any]) -> CallToolResult:
        """The result of a tool, held against the schema that its server lists for it. Raises ServerFault.

        Not by the SDK's ``call_tool``: that looks for a server's patterns in a server's text for as long as it takes.
        """
        types = _sdk().types
        request = types.CallToolRequest(params=types.CallToolRequestParams(name=tool, arguments=arguments))
        kinds: TypeAdapter[Any] = TypeAdapter(types.CallToolResult | types.InputRequiredResult)
        result: CallToolResult = await client.session.send_request(request, kinds)
        if not isinstance(result, types.CallToolResult):
            raise ServerFault(f"{tool} asks for more input, and a run cannot give any")
        schema, value = self._schemas.get(tool), result.structured_content
        if schema is None or value is None or result.is_error:
            return result
        try:
            fault = await asyncio.to_thread(mismatch, schema, value)
        except (SchemaFault, RecursionError) as unusable:
            raise ServerFault(
                f"the result of {tool} cannot be held against the schema listed for it: {unusable}"
            ) from None
        if fault is not None:
            raise ServerFault(
                f"the result of {tool} does not fit the schema listed for it: {clean_line(fault.message, 300)}"
            )
        return result

    async def close(self) -> None:
        """End it, at the latest after ``CLOSING_S``."""
        self._closing.set()
        if not self._ready.done():
            self._task.cancel()
        _, pending = await asyncio.wait({self._task}, timeout=CLOSING_S)
        for task in pending:
            task.cancel()
        if self._ready.done() and not self._ready.cancelled():
            self._ready.exception()  # Read, so that asyncio does not log it.
        self._errors.close()

    async def _held(self) -> None:
        """Connect, list, and hold the connection until it is closed."""
        try:
            # Half a second to import, in which the loop goes on.
            await asyncio.to_thread(_sdk)
            await self._open()
        except asyncio.CancelledError:
            if not self._ready.done():
                self._ready.set_exception(ServerFault("it was stopped before it was ready"))
            raise
        except BaseException as fault:  # noqa: BLE001 - a server's faults arrive in groups, of any kind
            self.lost = True
            if not self._ready.done():
                self._ready.set_exception(ServerFault(f"{_words(fault)}{await self._last_words()}"))

    async def _open(self) -> None:
        logging.getLogger("mcp").addHandler(logging.NullHandler())
        logging.getLogger("mcp").propagate = False
        limit = self._settled.start_timeout
        deadline = asyncio.timeout(limit)
        try:
            async with deadline:
                if self._settled.url:
                    await self._settled.admit(self._settled.url)
                client = _sdk().Client(self._transport(), message_handler=self._heard, cache=None)
                await client.__aenter__()
                try:
                    self.listing = await _listed(self._name, client, self._schemas)
                except BaseException as fault:
                    await client.__aexit__(type(fault), fault, fault.__traceback__)
                    raise
        except TimeoutError:
            if not deadline.expired():
                raise
            raise ServerFault(f"it did not answer as an MCP server within {limit:g} s") from None
        try:
            self._client = client
            self._ready.set_result(None)
            await self._closing.wait()
        finally:
            await client.__aexit__(None, None, None)

    def _transport(self) -> Any:
        sdk = _sdk()
        settled = self._settled
        if settled.url:
            import httpx2  # as heavy as httpx; comes with the SDK, for servers by URL alone

            # The proxy and certificate variables of the environment are not the server's to use.
            client = httpx2.AsyncClient(
                headers={"Accept-Encoding": "identity", **settled.headers},
                timeout=settled.timeout,
                trust_env=False,
                event_hooks={"request": [self._asks], "response": [self._answered]},
            )
            return sdk.client.streamable_http.streamable_http_client(settled.url, http_client=client)
        return _program(settled, self._errors, self._wrong)

    async def _heard(self, message: object) -> None:
        """Takes a message that answers no request; text outside the protocol is kept for a fault."""
        if isinstance(message, Exception):
            found = re.search(r"input_value=(.*), input_type", str(message))
            self._wrong(found[1] if found else str(message))

    def _wrong(self, said: str) -> None:
        self._nonsense = self._nonsense or clean_line(said, 120)

    async def _asks(self, request: Any) -> None:
        """Each request, also one to which an answer led."""
        await self._settled.admit(str(request.url))

    async def _answered(self, response: Any) -> None:
        """The SDK does not tell which status a server refused with, and unpacks answers whatever they become."""
        if response.headers.get("content-encoding", "identity").strip().lower() not in ("", "identity"):
            raise ServerFault("its answer is packed, which was not asked for")
        if response.request.method == "POST" and response.status_code >= 300:
            self._status = response.status_code

    def _said(self) -> str:
        """Returns the server's lines that are not of the protocol, and its text on stderr."""
        parts = [f"; it said {self._nonsense}" if self._nonsense else ""]
        if self._status:
            parts.append(f"; it answered HTTP {self._status}")
        try:
            self._errors.seek(0, 2)
            self._errors.seek(max(0, self._errors.tell() - 4 * _TAIL))
            if tail := " ".join(self._errors.read().split()):
                parts.append(f"; its stderr ends: {clean(tail[-_TAIL:])}")
        except (OSError, ValueError):
            pass
        return "".join(parts)

    async def _last_words(self) -> str:
        """The same, for a program that has just ended: it may still be writing."""
        await asyncio.sleep(0.05)
        return self._said()


@asynccontextmanager
async def _program(settled: _ResolvedServer, errors: IO[str], wrong: Callable[[str], None]) -> AsyncIterator[Any]:
    """Start a server, as the transport of a client: the streams of messages from it and to it. ``wrong`` is told lines
    that are no message. Raises OSError if it cannot be started.

    The transport of the SDK (2.3) takes lines of any length, and loses what a server said before it ended when a
    request comes too late.
    """
    # A pipe of our own, which can be closed although something that the program started still holds its other end.
    own, its = os.pipe()
    source = asyncio.StreamReader(limit=MAX_LINE)
    output, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(source), os.fdopen(own, "rb", buffering=0)
    )
    try:
        process = await asyncio.create_subprocess_exec(
            *settled.argv,
            stdin=asyncio.subprocess.PIPE,
            stdout=its,
            stderr=errors,
            env=_sdk().client.stdio.get_default_environment() | dict(settled.env),
            cwd=settled.cwd,
            start_new_session=True,
        )
    except BaseException:
        output.close()
        raise
    finally:
        os.close(its)
    assert process.stdin is not None
    arrived, incoming = anyio.create_memory_object_stream[Any](0)
    outgoing, requests = anyio.create_memory_object_stream[Any](0)
    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(_listen, source, arrived, wrong)
            tasks.start_soon(_speak, process.stdin, requests)
            try:
                yield incoming, outgoing
            finally:
                incoming.close()
                outgoing.close()
                with anyio.CancelScope(shield=True):
                    await _ended(process)
                tasks.cancel_scope.cancel()
    finally:
        output.close()


async def _listen(source: asyncio.StreamReader, arrived: Any, wrong: Callable[[str], None]) -> None:
    """Hand on the messages of a server, until its last word: what it says when the client has gone is read as well, or
    it could not end."""
    types, message = _sdk().types, _sdk().shared.message.SessionMessage
    async with arrived:
        try:
            while line := await source.readline():
                try:
                    parsed = types.jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    wrong(repr(line.decode("utf-8", "replace").strip()))
                else:
                    await arrived.send(message(parsed))
        except ValueError:
            wrong(f"a line of more than {MAX_LINE:,} bytes")
        except anyio.BrokenResourceError:
            pass
    while await source.read(65_536):
        pass


async def _speak(target: asyncio.StreamWriter, requests: Any) -> None:
    """Hand on the messages to a server, until there are no more or it takes none; what it said is still read then."""
    try:
        async with requests:
            async for message in requests:
                target.write(message.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")
                await target.drain()
    except OSError:
        pass
    finally:
        target.close()


async def _ended(process: asyncio.subprocess.Process) -> None:
    """End a program that gets no more requests, and all that it started: by the end of its input, then by signals."""
    for number in (None, signal.SIGTERM, signal.SIGKILL):
        if number is not None:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, number)
        with anyio.move_on_after(_GRACE_S):
            await process.wait()
            return


def _transport_faults() -> tuple[type[Exception], ...]:
    """Returns the exceptions of a connection that is gone."""
    return (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, ConnectionError)


def _words(fault: BaseException) -> str:
    """The innermost reason of a fault: groups and wrappers have no text of their own."""
    while isinstance(fault, BaseExceptionGroup) and fault.exceptions:
        fault = fault.exceptions[0]
    if isinstance(fault, ServerFault):
        return str(fault)
    if isinstance(fault, FileNotFoundError):
        return f"there is no program '{fault.filename}'"
    text = str(fault).strip()
    if text == "Connection closed":
        return "it ended before it had answered"
    name = type(fault).__name__
    if name == "ValidationError":
        first = " ".join(text.splitlines()[:3])
        return f"its answer is not of the protocol: {first[:300]}"
    return f"{name}: {text[:500]}" if text else name


async def _listed(server: str, client: Client, schemas: dict[str, Mapping[str, Any]]) -> Listing:
    """All tools of a server, page by page, those out that cannot be offered; the schemas of their results are put
    into ``schemas``. Raises what the SDK raises."""
    found, refused, cursor = dict[str, ServerTool](), list[str](), None
    for _ in range(MAX_PAGES):
        page = await client.list_tools(cursor=cursor)
        for tool in page.tools:
            if len(found) >= MAX_TOOLS:
                refused.append(f"it lists more than {MAX_TOOLS} tools; the others are not offered")
                break
            reason, served = _checked(server, tool)
            if served is None:
                refused.append(reason)
            elif served.spec.name in found:
                refused.append(f"it lists two tools that would be called {served.spec.name}; one is not offered")
            else:
                found[served.spec.name] = served
                if tool.output_schema:
                    schemas[tool.name] = tool.output_schema
        cursor = page.next_cursor
        if not cursor or len(found) >= MAX_TOOLS:
            break
    else:
        refused.append(f"its list has more than {MAX_PAGES} pages; the rest is not read")
    return Listing(tuple(found[name] for name in sorted(found)), tuple(refused))


def _checked(server: str, tool: Any) -> tuple[str, ServerTool | None]:
    """A tool as it can be offered, or why it cannot."""
    said = clean_line(tool.name, 60)
    if not _TOOL_NAME.match(tool.name):
        return f"the tool '{said}' is not offered: its name has other characters than letters, digits and _-./", None
    name = f"{server}{JOINT}{re.sub('[./]', '_', tool.name)}"
    if len(name) > MAX_NAME:
        return f"the tool '{said}' is not offered: {name} has more than {MAX_NAME} characters", None
    schema = {"type": "object", **(tool.input_schema or {})}
    try:
        size = len(json.dumps(schema, allow_nan=False))
    except (ValueError, TypeError, RecursionError):
        size = MAX_SCHEMA + 1
    if size > MAX_SCHEMA or schema["type"] != "object":
        why = f"its schema is not an object of at most {MAX_SCHEMA:,} characters"
        return f"the tool '{said}' is not offered: {why}", None
    description = clean((tool.description or tool.title or "").strip())[:MAX_DESCRIPTION]
    hints = tool.annotations
    read_only = hints is not None and hints.read_only_hint is True
    spec = served_spec(name, description or tool.name, _cleaned(schema), side_effects=not read_only)
    return "", ServerTool(server, tool.name, spec)


def _cleaned(value: Any) -> Any:
    """A JSON value whose texts have no control characters."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    return {clean(key): _cleaned(item) for key, item in value.items()} if isinstance(value, dict) else value


def _chosen(listing: Listing, names: Sequence[str]) -> Listing:
    """The tools that a definition names; all of them if it names none."""
    if not names:
        return listing
    tools = tuple(tool for tool in listing.tools if tool.name in names or tool.spec.name in names)
    known = {name for tool in listing.tools for name in (tool.name, tool.spec.name)}
    missing = tuple(f"it has no tool '{clean_line(name, 60)}'" for name in names if name not in known)
    return Listing(tools, (*listing.refused, *missing))


def _result(answer: CallToolResult) -> ToolResult:
    """Returns the result of a tool, as a model sees it: texts, images by their content, and a word for all else."""
    texts, images = list[str](), list[ToolImage]()
    for block in answer.content:
        if block.type != "image":
            texts.append(_text(block))
        elif len(images) == MAX_IMAGES:
            texts.append(f"[image left out: only the first {MAX_IMAGES} are kept]")
        else:
            image, reason = _image(block.data)
            if image is not None:
                images.append(image)
            else:
                texts.append(f"[image left out: {reason}]")
    value = answer.structured_content
    text = "\n".join(texts)
    if not text and value is not None:
        text = json.dumps(value, indent=2, ensure_ascii=False)
    if not text:
        text = f"{len(images)} image(s)" if images else NOTHING
    return replace(cut(text, is_error=bool(answer.is_error), value=value), images=tuple(images))


def _text(block: Any) -> str:
    """A block of a result that is no image."""
    if block.type == "text":
        return str(block.text)
    if block.type == "resource_link":
        return f"[resource {clean_line(str(block.uri), 300)}: {clean_line(block.name, 100)}]"
    if block.type == "resource" and getattr(block.resource, "text", None) is not None:
        return f"[resource {clean_line(str(block.resource.uri), 300)}]\n{block.resource.text}"
    media = getattr(block, "mime_type", None) or getattr(getattr(block, "resource", None), "mime_type", None)
    return f"[{block.type} left out: {clean_line(str(media or 'data'), 60)}]"


def _image(data: str) -> tuple[ToolImage | None, str]:
    """The image that base64 text holds, or why it cannot be shown."""
    if len(data) > MAX_BYTES * 4 // 3 + 4:
        return None, f"it has more than {MAX_BYTES:,} bytes"
    try:
        decoded = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return None, "it is not base64"
    kind = sniff(decoded)
    if kind is None:
        return None, "it is not a PNG, JPEG, GIF or WebP image"
    return ToolImage(decoded, kind.media_type, kind.width, kind.height), ""
