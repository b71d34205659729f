"""What a pure check must be told about the world outside the file: tools, validators, files, models."""

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
    """Why calls of it are refused as things are ("a sandbox: bwrap is not installed"); empty: it can be called."""
    text: str | None = None
    """The text of the file that defines it (``.tool.json``, cascade), where there is one."""
    description: str = ""
    """What it says of itself."""
    parameters: tuple[str, ...] = ()
    """Names of its arguments; those that may be left out end in ``?``."""
    file: str = ""
    """Where it is defined, if that is a file of the workspace."""
    line: int = 0


class ValidatorFacts(Struct, frozen=True):
    """A validator that a phase may name."""

    kind: ToolKind
    description: str = ""
    text: str | None = None
    """The text of the cascade that it is, where it is one."""
    hides: str = ""
    """The file of a cascade of the same name, which is not asked."""
    file: str = ""
    """Where it is defined, if that is a file of the workspace."""
    line: int = 0


class StrategyFacts(Struct, frozen=True):
    """What a strategy spec does with the fields of a phase."""

    void: tuple[str, ...] = ()
    """The fields of the phase that the strategy makes void."""
    reads: frozenset[str] = frozenset()
    """The fields of the phase that its parts read themselves."""
    fits: bool = False
    """Whether it brings a token budget of its own."""


def _unknown(_model: str) -> bool | None:
    return None


class LintEnvironment(Struct, frozen=True):
    """The world of one file. What is not given is not known, and not judged: no tools, no files, no models."""

    tools: Mapping[str, ToolFacts] | None = None
    """All tools, built-in ones too. None: not known, so that no name is called unknown."""
    validators: Mapping[str, ValidatorFacts] | None = None
    """All validators but those of the file itself. None: not known."""
    read: Callable[[str], str | None] | None = None
    """The text of a file named relative to the cascade, then to the workspace; None if there is none."""
    native_tools: Callable[[str], bool | None] = _unknown
    """Whether a model (without its ``::effort``) supports native tool calls; None: not known."""
    price_known: Callable[[str], bool | None] = _unknown
    """Whether a price for a model is known; None: cannot say."""
    bad_strategy: Callable[[str], tuple[str, int] | None] | None = None
    """What is wrong with a strategy spec, and at which column from 1; None for a good one. Without it none is read."""
    bad_folder: Callable[[str], str] | None = None
    """Why a folder, named relative to the cascade, then to the workspace, cannot be searched; empty if it can."""
    refused: Mapping[str, str] = field(default_factory=dict)
    """For ``tool: python:…``, ``sql:…``, ``shell:…``: scheme, or the whole name -> why it is refused as things are."""
    absent: Callable[[str], str] = lambda name: ""
    """For ``tool: python:module.function``: why there is no such module; empty where there may be."""
    broken: Callable[[str], str] = lambda name: ""
    """The file of a cascade of the tackle folders that is called so and has errors; empty if there is none."""
    strategy_facts: Callable[[str], StrategyFacts] = lambda spec: StrategyFacts()
    """What a strategy spec does with the fields of a phase; nothing for one that cannot be read."""
    cached_from: Callable[[str], int | None] = _unknown
    """From how many tokens a model's provider caches what ``cache_control`` marks; 0: it caches by itself, or not at
    all; None: not known."""
    allow: Collection[str] = ()
    """Errors of a pipeline that a person lets pass as warnings."""
    servers: Collection[str] = ()
    """The MCP servers of the settings."""

    def tool(self, name: str) -> ToolFacts | None:
        """What is known of a tool."""
        return (self.tools or {}).get(name)

    def validator(self, name: str) -> ValidatorFacts | None:
        """What is known of a validator."""
        return (self.validators or {}).get(name)
