"""The capabilities of a workspace outside the sandbox, as a list that a person can read and that can be compared."""

from __future__ import annotations

import hashlib
import json
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from msgspec import Struct

from workbench.context.message import sha256
from workbench.language.clean import clean_line
from workbench.language.graph import COMMAND
from workbench.language.model.cascade import Cascade
from workbench.language.model.mcp import McpServer, servers_named
from workbench.tools.paths import is_regular
from workbench.tools.python_files import PythonFolder

_ENV_USE = re.compile(
    r"\benv(?:iron)?(?:\.|\[\s*['\"]|\.get\(\s*['\"])([A-Za-z_][A-Za-z0-9_]*)|\$\{?([A-Z_][A-Z0-9_]*)"
)
_BROWSER_TOOLS = re.compile(r"take_screenshot|(rabbitize|browser)_\w+")


class CapabilityKind(StrEnum):
    """The subject of a capability."""

    PYTHON = "python"
    """Python code runs in this process, with everything this user may do."""
    TOOL_FILE = "tool file"
    COMMAND = "command"
    """A command runs outside the sandbox."""
    PIPELINE = "pipeline command"
    """A command of a pipeline runs, in the sandbox."""
    NETWORK = "network"
    ENVIRONMENT = "environment"
    """A variable is read."""
    SANDBOX_NONE = "no sandbox"
    CASCADE = "cascade"
    """Another cascade file is run. Needs no trust of its own."""


class Capability(Struct, frozen=True):
    """One ability outside the sandbox. ``name`` is for people; ``digest`` pins the content if it has any."""

    kind: CapabilityKind
    name: str
    digest: str = ""

    def __str__(self) -> str:
        return f"{self.kind}: {self.name}"

    def __lt__(self, other: Capability) -> bool:
        return (self.kind, self.name, self.digest) < (other.kind, other.name, other.digest)

    @property
    def key(self) -> str:
        """The key in the trust record: equal only for the same thing with the same content."""
        return "\t".join((self.kind, self.name, self.digest))


def function_named(target: str, elsewhere: Path | None = None) -> Capability:
    """A Python function that a cascade names in place (``python:module.function``). What is allowed to the cascades of
    the workspace is not allowed to those of a folder ``elsewhere``."""
    return Capability(CapabilityKind.PYTHON, target if elsewhere is None else f"{target}, in cascades of {elsewhere}")


def mcp_capabilities(
    name: str, server: McpServer, root: Path | None, elsewhere: Path | None = None
) -> tuple[Capability, ...]:
    """Returns the capabilities of an MCP server: to run a program outside the sandbox, or to be sent the words of a
    model; and the variables that it is given. Files of the workspace ``root`` that its command names count with their
    content. ``elsewhere`` as in ``function_named``."""
    where = "" if elsewhere is None else f", in cascades of {elsewhere}"
    digest = sha256(json.dumps([server.model_dump(mode="json"), *_files(server.argv, root)], sort_keys=True))
    kind = CapabilityKind.NETWORK if server.url else CapabilityKind.COMMAND
    what = server.url or shlex.join(server.argv)
    variables = (Capability(CapabilityKind.ENVIRONMENT, variable) for variable in server.variables)
    return (Capability(kind, f"MCP server '{name}': {what}{where}", digest), *variables)


def _files(argv: Sequence[str], root: Path | None) -> Iterator[str]:
    """Yields the digests of the files below ``root`` that the arguments of a command name."""
    for argument in argv if root is not None else ():
        file = root / argument if root is not None else Path(argument)
        try:
            if is_regular(file) and file.resolve().is_relative_to(root or file):
                yield hashlib.sha256(file.read_bytes()).hexdigest()
        except (OSError, ValueError):
            continue


BROWSER = Capability(CapabilityKind.NETWORK, "a browser opens pages")


class Manifest(Struct, frozen=True):
    """All capabilities of a workspace, sorted, each once."""

    capabilities: tuple[Capability, ...] = ()

    @property
    def needs_trust(self) -> bool:
        """False only if nothing could act outside the sandbox: then no question is needed."""
        return any(capability.kind is not CapabilityKind.CASCADE for capability in self.capabilities)

    @property
    def sha256(self) -> str:
        return sha256("\n".join(capability.key for capability in self.capabilities))


def manifest(
    *,
    python: Iterable[PythonFolder] = (),
    tool_files: Mapping[str, str] | None = None,
    cascades: Iterable[Cascade] = (),
    environment: Iterable[str] = (),
    servers: Mapping[str, McpServer] | None = None,
    root: Path | None = None,
    sandbox_none: bool = False,
    elsewhere: Path | None = None,
) -> Manifest:
    """List what the given parts of a workspace could do.

    ``tool_files`` are the texts of ``.tool.json`` files by path, ``environment`` names the variables of ``.env``,
    ``servers`` are the MCP servers of the settings, which count where a cascade uses them; ``root`` is the workspace;
    ``elsewhere`` is the folder of the cascades where it lies outside the workspace. Prompts and other texts of a
    cascade are no part of it: editing them keeps trust.
    """
    found: set[Capability] = set()
    for folder in python:
        found |= {Capability(CapabilityKind.PYTHON, f"{folder.path}/{name}", h) for name, h in folder.hashes.items()}
    for path, text in (tool_files or {}).items():
        found |= set(_tool_file(path, text))
    for cascade in cascades:
        found |= set(_cascade(cascade, elsewhere))
        found |= {
            capability
            for name, server in _servers(cascade, servers or {})
            for capability in mcp_capabilities(name, server, root, elsewhere)
        }
    found |= {Capability(CapabilityKind.ENVIRONMENT, name) for name in environment}
    if sandbox_none:
        found.add(Capability(CapabilityKind.SANDBOX_NONE, "commands run without a sandbox"))
    return Manifest(tuple(sorted(found)))


def _tool_file(path: str, text: str) -> list[Capability]:
    """A declared tool, and what it reaches. One that cannot be read is still a capability."""
    digest = sha256(text)
    found = [Capability(CapabilityKind.TOOL_FILE, path, digest)]
    try:
        body: Any = json.loads(text)
    except (ValueError, RecursionError):
        return found
    if not isinstance(body, dict):
        return found
    if body.get("type") == "shell" and body.get("sandbox") is False:
        found.append(Capability(CapabilityKind.COMMAND, str(body.get("command", "")), digest))
    if body.get("type") == "http":
        url = str(body.get("url", ""))
        found.append(Capability(CapabilityKind.NETWORK, urlsplit(url).hostname or url))
    if body.get("type") == "python":
        found.append(Capability(CapabilityKind.PYTHON, str(body.get("import_path", "")), digest))
    names = {name for pair in _ENV_USE.findall(text) for name in pair if name}
    return found + [Capability(CapabilityKind.ENVIRONMENT, name) for name in names]


def _cascade(cascade: Cascade, elsewhere: Path | None) -> list[Capability]:
    found: list[Capability] = []
    for phase in cascade.phases:
        functions = [name for name in (phase.tool or "", *phase.tools) if name.startswith("python:")]
        found += [function_named(name, elsewhere) for name in functions]
        if phase.tool == COMMAND:
            command = str(phase.inputs.get("command", ""))
            found.append(Capability(CapabilityKind.PIPELINE, clean_line(command, 200), sha256(command)))
        browses = [name for name in phase.tools if _BROWSER_TOOLS.fullmatch(name)]
        if phase.browser is not None or browses:
            found.append(BROWSER)
        children = [ref for _, ref in phase.refs]
        found += [Capability(CapabilityKind.CASCADE, ref) for ref in children]
    return found


def _servers(cascade: Cascade, configured: Mapping[str, McpServer]) -> list[tuple[str, McpServer]]:
    """The MCP servers that a cascade defines, and those of the settings that its phases name."""
    used = [*cascade.mcp.items(), *(item for phase in cascade.phases for item in phase.mcp.items())]
    for phase in cascade.phases:
        defined = {**cascade.mcp, **phase.mcp}
        named = configured if phase.manifest else servers_named((*phase.tools, phase.tool or ""))
        used += [(name, configured[name]) for name in named if name in configured and name not in defined]
    return used
