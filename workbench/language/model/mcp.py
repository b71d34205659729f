"""Servers of the Model Context Protocol, whose tools phases may call."""

import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar, Self

from pydantic import BeforeValidator, Field, Tag, model_validator
from pydantic_core import PydanticCustomError

from workbench.language.model.base import BY_TYPE, LIST, Duration, Model, Names, Scalars, Text, own

JOINT = "__"
"""Between the name of a server and that of its tool: `files__read_text_file`."""
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9-]|_(?!_))*\Z")
_LONGEST = 30
"""Characters of a server's name: providers allow 64 in the name of a tool."""
_VARIABLE = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*)\}")
_WEB = re.compile(r"https?://[^/\s]\S*\Z", re.IGNORECASE)

Command = Annotated[Text | Annotated[Names, Tag(LIST)], BY_TYPE]


def _address(value: Any) -> Any:
    if isinstance(value, str) and not _WEB.match(value):
        raise PydanticCustomError("url", "the address must begin with http:// or https:// and name a server")
    return value


class McpServer(Model):
    """A server: a program that is started, or an address. A text alone is one of the two."""

    SHORT: ClassVar[str] = "command"

    command: Annotated[Command | None, own("Program that speaks MCP over stdin and stdout, with its arguments.")] = None
    args: Annotated[Names, own("Further arguments of the program.")] = ()
    env: Annotated[Scalars, own("Variables of the program; `${NAME}` is one of this process.")] = Field(
        default_factory=dict
    )
    cwd: Annotated[str | None, own("Folder in which it runs; the workspace if not written.")] = None
    url: Annotated[
        Annotated[str, BeforeValidator(_address)] | None, own("Address of a server that speaks streamable HTTP.")
    ] = None
    headers: Annotated[Scalars, own("Headers of its requests; `${NAME}` is a variable of this process.")] = Field(
        default_factory=dict
    )
    tools: Annotated[Names, own("Tools that may be offered; all if not written.")] = ()
    timeout: Annotated[Duration, own("Time limit of one call.")] = 60.0
    start_timeout: Annotated[Duration, own("Time until it must have listed its tools.")] = 30.0

    @model_validator(mode="before")
    @classmethod
    def _is_address(cls, data: Any) -> Any:
        return {"url": data} if isinstance(data, str) and _WEB.match(data) else data

    @model_validator(mode="after")
    def _one_way(self) -> Self:
        if bool(self.url) == bool(self.command):
            raise PydanticCustomError("mcp_server", "an MCP server needs either 'command' or 'url'")
        if self.command and not self.argv:
            raise PydanticCustomError("mcp_server", "the command cannot be read: a quote is not closed")
        return self

    @property
    def argv(self) -> tuple[str, ...]:
        """The program and its arguments; empty for an address."""
        if isinstance(self.command, str):
            try:
                return (*shlex.split(self.command), *self.args)
            except ValueError:
                return ()
        return (*(self.command or ()), *self.args)

    @property
    def variables(self) -> tuple[str, ...]:
        """The environment variables that it names."""
        texts = (self.url or "", *self.env.values(), *self.headers.values())
        return tuple(dict.fromkeys(name for text in texts for name in _VARIABLE.findall(text)))


Servers = Annotated[dict[str, McpServer], own("Servers of the Model Context Protocol by name; tools are NAME__TOOL.")]


def filled(text: str, variables: Mapping[str, str]) -> str:
    """A text with its ``${NAME}`` replaced. Raises LookupError with the name of a variable that is not set."""

    def value(match: re.Match[str]) -> str:
        if match[1] not in variables:
            raise LookupError(match[1])
        return variables[match[1]]

    return _VARIABLE.sub(value, text)


def bad_server_name(name: str) -> str:
    """Returns why a server cannot have this name; empty if it can."""
    if len(name) > _LONGEST:
        return f"its name has more than {_LONGEST} characters"
    return "" if _NAME.match(name) else "a name has letters, digits, '-' and single '_', and begins with neither"


def server_of(tool: str) -> str:
    """The server in the form of a tool's name; empty if the name has another form."""
    server, joint, rest = tool.partition(JOINT)
    return server if joint and rest else ""


def servers_named(tools: tuple[str, ...]) -> Iterator[str]:
    """The servers that the names of tools would belong to, each once."""
    yield from dict.fromkeys(filter(None, map(server_of, tools)))
