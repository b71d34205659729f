"""Tools of MCP servers: which ones a visit may call, where their descriptions come from, and how they run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from typing import Any

from workbench.context.place import Place
from workbench.engine import texts
from workbench.engine.contracts import Listing, NoServers, Parameter, ServerTool, ToolResult, ToolSpec
from workbench.engine.faults import TRUST, PhaseFailed
from workbench.engine.services import Services
from workbench.language.model.cascade import Phase
from workbench.language.model.mcp import JOINT, McpServer, server_of, servers_named

_TYPES = {"integer": "int", "number": "float", "boolean": "bool", "array": "list", "object": "dict"}
"""Words for the types of JSON Schema, as tools that are told as text have them."""
_INNER = 2_000
"""Characters shown of a parameter's structure, if tools are described as text."""


class ServedTools:
    """The tools of servers that one visit may call, by the name that the model sees."""

    def __init__(self, services: Services, phase: Phase) -> None:
        self._services = services
        self._phase = phase
        self._servers = services.ports.servers or NoServers()
        self._defined: dict[str, McpServer] = {**services.definition.cascade.mcp, **phase.mcp}
        self._tools: dict[str, ServerTool] = {}
        self.fault: PhaseFailed | None = None
        """Why the phase cannot run: a server that it needs is not there."""

    async def ask(self, place: Place) -> None:
        """Ask the servers that the phase names for their tools, all at once; all servers, if the Quartermaster
        chooses."""
        phase = self._phase
        listed = (*phase.tools, *((phase.tool,) if phase.tool else ()))
        wanted = [name for name in servers_named(listed) if self._known(name)]
        if phase.manifest:
            wanted = sorted({*self._defined, *self._servers.names()})
        asked = (self._servers.listing(server, self._defined.get(server), place) for server in wanted)
        # All have ended before one is told, so that none still starts when a recording has diverged.
        answers = await asyncio.gather(*asked, return_exceptions=True)
        for server, listing in zip(wanted, answers, strict=True):
            if isinstance(listing, BaseException):
                raise listing
            self._take(server, listing, place)

    def _known(self, server: str) -> bool:
        return server in self._defined or server in self._servers.names()

    def _take(self, server: str, listing: Listing, place: Place) -> None:
        services = self._services
        listing = redacted(services, listing)
        schemas = [texts.native_schema(tool.spec) for tool in listing.tools]
        services.journal.emit(
            "tools_listed",
            place,
            server=server,
            tools=services.journal.tools(schemas),
            names={tool.spec.name: tool.name for tool in listing.tools},
            read_only=[tool.spec.name for tool in listing.tools if not tool.spec.side_effects],
            refused=list(listing.refused),
            fault=listing.fault,
            needs_trust=listing.needs_trust,
        )
        for reason in listing.refused:
            services.warn("mcp", f"MCP server '{server}': {reason}", place=place)
        if listing.fault:
            reason = f"MCP server '{server}': {listing.fault}"
            check = TRUST if listing.needs_trust else "mcp"
            if self.fault is not None:  # Trust alone does not help where another server fails for another reason.
                reason, check = f"{self.fault.reason}; {reason}", check if check == self.fault.check else "mcp"
            self.fault = PhaseFailed(reason, check)
        self._tools |= {tool.spec.name: tool for tool in listing.tools}

    def specs(self, name: str) -> list[ToolSpec]:
        """The tools that an entry of ``tackle`` means: one by its name, or ``SERVER__*`` for all of a server."""
        if name == f"{server_of(name)}{JOINT}*":
            return [tool.spec for tool in self._tools.values() if tool.server == server_of(name)]
        tool = self._tools.get(name)
        return [tool.spec] if tool is not None else []

    def all(self) -> list[ToolSpec]:
        """All of them, for the Quartermaster."""
        return [tool.spec for tool in self._tools.values()]

    def __contains__(self, name: object) -> bool:
        return name in self._tools

    async def call(self, name: str, arguments: Mapping[str, Any], place: Place, index: int) -> ToolResult:
        """Run a tool of a server."""
        tool = self._tools[name]
        return await self._servers.call(tool, self._defined.get(tool.server), arguments, place, index)


def redacted(services: Services, listing: Listing) -> Listing:
    """Returns the server's description of itself, with secrets replaced."""
    redact = services.ports.redact

    def spec(tool: ToolSpec) -> ToolSpec:
        return served_spec(
            tool.name,
            redact(tool.description)[0],
            services.redacted_json(dict(tool.schema)),
            side_effects=tool.side_effects,
        )

    tools = tuple(ServerTool(tool.server, tool.name, spec(tool.spec)) for tool in listing.tools)
    refused = tuple(redact(reason)[0] for reason in listing.refused)
    return Listing(tools, refused, redact(listing.fault)[0], listing.needs_trust)


def served_spec(name: str, description: str, schema: Mapping[str, Any], *, side_effects: bool) -> ToolSpec:
    """A tool by its JSON Schema, whose properties are its parameters."""
    properties, required = schema.get("properties"), schema.get("required")
    named = properties.items() if isinstance(properties, Mapping) else ()
    needed = required if isinstance(required, list) else ()
    parameters = tuple(_parameter(str(key), value, key in needed) for key, value in named)
    return ToolSpec(name, description, parameters, schema, side_effects)


def _parameter(name: str, schema: Any, required: bool) -> Parameter:
    if not isinstance(schema, Mapping):
        return Parameter(name, "str", required)
    said = [str(schema["description"])] if "description" in schema else []
    inner = {key: schema[key] for key in ("enum", "anyOf", "items", "properties", "required") if key in schema}
    if inner:
        said.append(json.dumps(inner, ensure_ascii=False)[:_INNER])
    type_ = _TYPES.get(str(schema.get("type")), "str" if schema.get("type") == "string" else "any")
    return Parameter(name, type_, required, schema.get("default"), " ".join(said))


def recorded_listing(server: str, data: Mapping[str, Any], schemas: Sequence[Mapping[str, Any]]) -> Listing:
    """A listing as a ``tools_listed`` event has it; ``schemas`` is the body that it names."""
    names, read_only = data.get("names", {}), frozenset(data.get("read_only", ()))
    tools = []
    for schema in schemas:
        function = schema.get("function")
        name = str(function.get("name")) if isinstance(function, Mapping) else ""
        if not isinstance(function, Mapping) or name not in names:
            continue  # A damaged body: a call of the tool will say that it is not known.
        parameters = function.get("parameters")
        said = str(function.get("description", ""))
        schema = parameters if isinstance(parameters, Mapping) else {}
        spec = served_spec(name, said, schema, side_effects=name not in read_only)
        tools.append(ServerTool(server, names[name], spec))
    return Listing(tuple(tools), tuple(data.get("refused", ())), data.get("fault", ""), data.get("needs_trust", False))
