"""The world outside the file, as pure checks need it: tools, validators, files, models."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Literal

from msgspec import Struct, field

ToolKind = Literal["builtin", "function", "cascade", "declarative"]


class ToolFacts(Struct, frozen=True):
    """A tool that a phase may list."""

    kind: ToolKind
    hides_builtin: bool = False
    """It was registered under the name of a built-in, which is thereby out of reach."""
    needs: str = ""
    """Why calls of it are refused as things are ("trust: the folder is not trusted"), a missing sandbox aside; see
    ``LintEnvironment.needs``."""
    text: str | None = None
    """The text of the file that defines it (``.tool.json``, cascade), if there is one."""
    description: str = ""
    """Its own description."""
    parameters: tuple[str, ...] = ()
    """Names of its arguments; those that may be left out end in ``?``."""
    file: str = ""
    """The defining file, if it belongs to the workspace."""
    line: int = 0
    needs_sandbox: bool = False
    """It runs commands, or code of a model."""


class ValidatorFacts(Struct, frozen=True):
    """A validator that a phase may name."""

    kind: ToolKind
    description: str = ""
    text: str | None = None
    """The text of the cascade, if it is one."""
    hides: str = ""
    """The file of a cascade of the same name, which is not asked."""
    file: str = ""
    """The defining file, if it belongs to the workspace."""
    line: int = 0
    parameters: tuple[str, ...] = ()
    """Names of its arguments; those that may be left out end in ``?``."""
    example: str = ""
    """An input of the run that it reads, as JSON."""


class StrategyFacts(Struct, frozen=True):
    """The effect of a strategy spec on the fields of a phase."""

    void: tuple[str, ...] = ()
    """The fields of the phase that the strategy makes void."""
    reads: frozenset[str] = frozenset()
    """The fields of the phase that its parts read themselves."""
    fits: bool = False
    """Whether it brings a token budget of its own."""


def _unknown(_model: str) -> bool | None:
    return None


class LintEnvironment(Struct, frozen=True):
    """The environment of one file. A missing part is unknown, and not judged: no tools, no files, no models."""

    tools: Mapping[str, ToolFacts] | None = None
    """All tools, built-in ones too. None: unknown, so that no name is called unknown."""
    validators: Mapping[str, ValidatorFacts] | None = None
    """All validators but those of the file itself. None: unknown."""
    read: Callable[[str], str | None] | None = None
    """The text of a file named relative to the cascade, then to the workspace; None if it is missing."""
    native_tools: Callable[[str], bool | None] = _unknown
    """Whether a model (without its ``::effort``) supports native tool calls; None: unknown."""
    price_known: Callable[[str], bool | None] = _unknown
    """Whether the price of a model is known; None: cannot say."""
    bad_strategy: Callable[[str], tuple[str, int] | None] | None = None
    """Describes the fault of a strategy spec, and its column from 1; None for a good one. Without this function no spec
    is checked.
    """
    bad_folder: Callable[[str], str] | None = None
    """Why a folder, named relative to the cascade, then to the workspace, cannot be searched; empty if it can."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """For ``tool: python:…``, ``sql:…``, ``shell:…``: scheme, or the whole name -> why it is refused as things are."""
    absent: Callable[[str], str] = lambda name: ""
    """For ``tool: python:module.function``: why the module is missing; empty if it may exist."""
    unusable: Callable[[str], str] = lambda name: ""
    """Why a file that is there does not offer the tool or validator of this name; empty if there is no such file."""
    strategy_facts: Callable[[str], StrategyFacts] = lambda spec: StrategyFacts()
    """How a strategy spec treats the fields of a phase; empty if it cannot be read."""
    cached_from: Callable[[str], int | None] = _unknown
    """Tokens from which a model's provider caches what ``cache_control`` marks; 0: it caches by itself, or not at all;
    None: unknown.
    """
    allow: Collection[str] = ()
    """Errors of a pipeline that a person lets pass as warnings."""
    servers: Collection[str] = ()
    """The MCP servers of the settings."""
    no_sandbox: Callable[[], str] = lambda: ""
    """Why there is no sandbox here ("a sandbox: bwrap is not installed"); empty if there is one. To find out, a command
    is run in one: asked only about what needs it."""

    def needs(self, name: str) -> str:
        """Returns why calls of a tool are refused as things are; empty if it can be called, or is not known."""
        tool = self.tool(name)
        if tool is None:
            return ""
        return tool.needs or (self.no_sandbox() if tool.needs_sandbox else "")

    def tool(self, name: str) -> ToolFacts | None:
        """Facts about a tool."""
        return (self.tools or {}).get(name)

    def validator(self, name: str) -> ValidatorFacts | None:
        """Facts about a validator."""
        return (self.validators or {}).get(name)
