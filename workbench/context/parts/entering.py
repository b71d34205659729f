"""Parts that decide what enters a phase: what its file selects, everything, or everything with injections first."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar, Self

from workbench.context.assembly import Rule
from workbench.context.injection import Injection
from workbench.context.message import Message
from workbench.context.part import EnteredMessages, Part, PhaseInFile, Role
from workbench.context.scope import PhaseScope


class Selective(Part, frozen=True):
    """The messages that ``context`` of the phase selects; nothing if it is not written."""

    NAME: ClassVar[str] = "selective"
    ROLE: ClassVar[Role] = Role.ENTERS

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """Reads the part if ``context`` is written, even empty."""
        return cls(written={"*": (*file.base, "context")}) if file.phase.context is not None else None

    def enter(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        """``[Original Input]`` and the sources, in array order."""
        rules = scope.phase.context
        if rules is None:
            return EnteredMessages()
        injection = Injection(scope)
        if rules.include_input:
            is_written = "include_input" in rules.model_fields_set
            injection.input(scope.rule("context", "include_input") if is_written else Rule())
        injection.sources(rules.from_, (*scope.base, "context", "from"), rules.exclude)
        return injection.entered()


class Inject(Part, frozen=True):
    """A snowball, with the sources of ``inject_from`` before it."""

    NAME: ClassVar[str] = "inject"
    ROLE: ClassVar[Role] = Role.ENTERS
    READS: ClassVar[str] = "inject_from"

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """Reads the part if ``inject_from`` is written."""
        return cls(written={"*": (*file.base, "inject_from")}) if file.phase.inject_from is not None else None

    def enter(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        """The injections, then every message of every finished visit."""
        injection = Injection(scope)
        injection.sources(scope.phase.inject_from or (), (*scope.base, "inject_from"))
        injection.snowball(self.rule("*", scope))
        return injection.entered()


class Snowball(Part, frozen=True):
    """Every message of every finished visit."""

    NAME: ClassVar[str] = "snowball"
    ROLE: ClassVar[Role] = Role.ENTERS

    @classmethod
    def from_file(cls, file: PhaseInFile) -> Self | None:
        """Reads the part if ``context_default`` asks for it."""
        return cls(written={"*": ("context_default",)}) if file.cascade.context_default == "snowball" else None

    def enter(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        """Everything in run order, system messages aside."""
        injection = Injection(scope)
        injection.snowball(self.rule("*", scope))
        return injection.entered()
