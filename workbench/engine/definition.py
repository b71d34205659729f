"""The definition of a run: the cascade, its text, graph and included texts; and the options that it is pinned to."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict

from workbench.context.message import sha256
from workbench.language.graph import Graph
from workbench.language.lint.not_run import not_run
from workbench.language.load import load
from workbench.language.model.cascade import Cascade
from workbench.language.problem import Path, Problem, Severity, TextSpan
from workbench.language.read.source import Source


class Definition(Struct, frozen=True, dict=True):
    """A cascade that can run."""

    cascade: Cascade
    source: Source
    graph: Graph
    includes: Mapping[str, str] = field(default_factory=dict)
    """Texts of ``@file`` templates by their path as written; one that is missing is absent."""

    @classmethod
    def of(cls, text: str, file: str = "", includes: Mapping[str, str] | None = None) -> Definition:
        """Load a cascade's text. Raises DefinitionError with the first error when it cannot run."""
        loaded = load(text, file)
        if loaded.cascade is None or loaded.graph is None or not loaded.ok:
            raise DefinitionError(tuple(p for p in loaded.problems if p.severity is Severity.ERROR))
        return cls(loaded.cascade, loaded.source, loaded.graph, dict(includes or {}))

    @property
    def sha256(self) -> str:
        return sha256(self.source.text)

    def span(self, path: Path) -> TextSpan:
        """Position of a value in the file."""
        return self.source.span(path)

    def where(self, path: Path) -> str:
        """The place of a value as errors name it: file:line:column."""
        span = self.source.span(path)
        return f"{self.source.file}:{span.line}:{span.column}"

    def line(self, path: Path) -> int:
        """Line of a written value; 0 if the default applies. Read at every call of a run."""
        known = self._lines.get(path)
        if known is None:
            known = self._lines[path] = self.source.span(path).line if self.source.has(path) else 0
        return known

    @cached_property
    def not_run(self) -> tuple[Problem, ...]:
        """Requests of the file that no run fulfils."""
        return not_run(self.cascade, self.source)

    @cached_property
    def _lines(self) -> dict[Path, int]:
        return {}


class DefinitionError(Exception):
    """A cascade text that cannot run."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(str(problems[0]) if problems else "the file holds no cascade")
        self.problems = problems


class Options(Struct, frozen=True):
    """Settings that a run keeps beside its text: journaled in ``run_started``, from where a replay takes them."""

    session_id: str
    default_model: str
    keep_recent_images: int | None = None
    tries: int = 3
    """Tries of one model call before its fault is final."""
    backoff: float = 1.0
    """Seconds before the second try; doubled for the third."""
    rewrite_model: str = ""
    """Model that rewrites the prompts of candidates; the default model when empty."""
    embedding_model: str = ""
    """Model that embeds messages for ``selection.strategy: semantic``; likeness is lexical when empty."""
    card_model: str = ""
    """Model that sums up long messages for the menu of a selector; they are shortened when empty."""
    max_visits: int = 100
    max_depth: int = 5
    max_calls: int | None = None
    max_tokens: int | None = None
    """Input and output tokens of the run."""
    max_cost: float | None = None
    """US dollars."""
    max_seconds: float | None = None
    start: str = ""
    """Of a pipeline: the node that the run begins at; empty for its start."""
    done: bool = False
    """Of a pipeline: that node has ended already, so that the run begins with the way on from it."""
    context: Mapping[str, Any] = field(default_factory=dict)
    """Context of a pipeline at its start, if it continues from a checkpoint."""
    restarts: int = 0
    """Of a pipeline: how often ``loop_restart`` has begun it anew."""
    folder: str = ""
    """Folder of the workspace that commands and file tools begin in; empty for the workspace itself."""
    strategy: str = ""
    """A strategy spec that replaces what the file says, for all phases; empty for the file's own."""

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Options:
        return cls(**{key: value for key, value in body.items() if key in cls.__struct_fields__})


class Outcome(Struct, frozen=True):
    """How a run ended."""

    status: str
    """success, failed, blocked, stopped or diverged."""
    output: str = ""
    state: Mapping[str, Any] = field(default_factory=dict)
    reason: str = ""
    restart: str = ""
    """Of a pipeline that another began anew: the node at which it is to begin once more."""

    @property
    def words(self) -> str:
        """How it ended and why, after the name of the run: ``failed: no answer``, ``was stopped: by a person``."""
        return f"{self.status if self.status == 'failed' else f'was {self.status}'}: {self.reason}"


class Parent(Struct, frozen=True):
    """The run that this one came from."""

    run_id: str
    session_id: str
    kind: str
    """fork, rerun, replay, sub, async, spawn, tool, validator, ward, pipeline (a child graph), restart, or checkpoint
    (the run continues from a checkpoint).
    """
    depth: int = 0
    cascade_sha256: str = ""
    """Digest of the text that the other run ran, if this run starts from it (fork, rerun). If it differs from this
    run's own, the definition was changed in between.
    """
    at: str = ""
    """The stop that this run was forked at."""
    prompt_id: str = ""
    """The run's id inside its prompts, if it is not its own: a fork or replay takes that of its parent, else no request
    could equal the recorded one; a child's is made from its parent and its key.
    """
