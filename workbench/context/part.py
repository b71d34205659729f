"""The interface of a part of a strategy. A part decides what enters a phase, what survives to a turn, or what fits the
budget."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from functools import cache
from typing import ClassVar, Final, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct, field
from msgspec.structs import fields

from workbench.context.assembly import Action, Item, MessagePart, Reason, Rule
from workbench.context.history import History
from workbench.context.message import Message
from workbench.context.scope import Arrival, PhaseScope
from workbench.language.model.cascade import Cascade, Phase
from workbench.language.problem import Path, path_text


class Role(StrEnum):
    """The question that a part answers."""

    ENTERS = "enters"
    """Which messages enter the phase: at most one part of a strategy."""
    SURVIVES = "survives"
    """Layers of ``survives``: any number of parts; if two decide about one message, the later one wins."""
    FITS = "fits"
    """Which messages fit the token budget: at most one part of a strategy."""


OWN: Final = "prompt"
"""Origin of the part of a message that is the message itself."""


class MessageDecision(NamedTuple):
    """The decision about one message, with its reason. ``sent`` is None when the message is dropped."""

    sent: Message | None
    action: Action
    reason: Reason
    rule: Rule
    parts: tuple[MessagePart, ...] = ()
    """The parts from which a strategy composed the message; empty for all other messages."""


WHOLE: Final = MessageDecision(None, Action.KEPT, Reason("result"), Rule())
"""The verdict that overrules the parts before it: the message goes out as if no part had touched it."""


class EnteredMessages(Struct, frozen=True):
    """The messages that a part brings into a phase, in wire order, with its notes."""

    rows: tuple[tuple[Item, MessageDecision], ...] = ()
    notes: tuple[str, ...] = ()


class PhaseInFile(Struct, frozen=True):
    """A phase and its place in the file. Parts read their fields from it."""

    cascade: Cascade
    phase: Phase
    base: Path
    """Path of the phase."""
    arrival: Arrival = Arrival()
    """How a walk got to it."""


class Part(Struct, frozen=True, kw_only=True, eq=False):
    """One part of a strategy: a value whose fields are the parameters of its spec, ``mask(after=3)``."""

    NAME: ClassVar[str]
    ROLE: ClassVar[Role]
    READS: ClassVar[str] = ""
    """The field of a phase that the part reads itself, so that a strategy with it does not make the field void."""

    written: Mapping[str, Path] = field(default_factory=dict)
    """Places in the file: a path for each written parameter, ``*`` for the block. Empty for a part read from a spec."""

    def __eq__(self, other: object) -> bool:
        """Compares the parameters; the places in the file do not count."""
        return isinstance(other, Part) and self.NAME == other.NAME and self._values == other._values

    def __ne__(self, other: object) -> bool:
        return not self == other  # A struct's own would compare identities.

    def __hash__(self) -> int:
        return hash((self.NAME, self._values))

    @property
    def _values(self) -> tuple[object, ...]:
        return tuple(getattr(self, name) for name in self.parameters())

    @classmethod
    @cache
    def parameters(cls) -> Mapping[str, object]:
        """Names of the parameters with their defaults, in the order of the spec."""
        return {f.name: f.default for f in fields(cls) if f.name != "written"}

    def impossible(self) -> str:
        """Returns why these parameters contradict each other; empty if they do not."""
        return ""

    def rule(self, parameter: str, scope: PhaseScope) -> Rule:
        """The rule behind a parameter: its place in the file, else that of its block, else the spec itself."""
        path = self.written.get(parameter) or self.written.get("*")
        return scope.rule_at(path) if path else Rule(str(self))

    def beyond(self, other: Part) -> str:
        """What this part sets and another one of its kind leaves at the default: ``mask(window=16)``; empty for
        nothing."""
        lost = [
            f"{name}={_value_text(getattr(self, name))}"
            for name, default in self.parameters().items()
            if getattr(self, name) != default == getattr(other, name)
        ]
        return f"{self.NAME}({','.join(lost)})" if lost else ""

    def __str__(self) -> str:
        """The spec: the first parameter, and those that differ from their defaults."""
        said = []
        for position, (name, default) in enumerate(self.parameters().items()):
            value = getattr(self, name)
            if position == 0 or value != default:
                said.append(f"{name}={_value_text(value)}")
        return f"{self.NAME}({','.join(said)})" if said else self.NAME


class EnteringPart(Protocol):
    """A part that answers what enters."""

    def enter(self, scope: PhaseScope, count: Callable[[Message], int]) -> EnteredMessages:
        """The messages that precede the visit's own; system ones are moved to the front by the assembler.

        ``count`` gives the tokens of a message.
        """
        ...


@runtime_checkable
class TaskPart(Protocol):
    """A part that enters and has a say on how the task itself is sent."""

    def task(self, scope: PhaseScope, message: Message, count: Callable[[Message], int]) -> MessageDecision:
        """The verdict on the message that opens the visit."""
        ...


class DecisionInput(Struct, frozen=True):
    """The input of a part that decides about a visit's own messages."""

    scope: PhaseScope
    history: History
    count: Callable[[Message], int]
    """Tokens of a message."""
    fixed_tokens: int
    """Tokens of what precedes the visit's own messages, tools and overhead included."""


class Survivor(Protocol):
    """Decides, turn by turn, what happens to the visit's own messages. Told of each message once, in order."""

    def added(self, index: int) -> None:
        """The message at this index of the history has just joined it."""
        ...

    def update(self, turn: int, attempt: int) -> Iterable[tuple[int, MessageDecision]]:
        """Verdicts that are new or changed since the last update, seen from this turn of the visit.

        The result of all updates together depends on the history and the turn alone, not on how often it was asked.
        """
        ...


class SurvivingPart(Protocol):
    """A part that answers what survives."""

    def start(self, ground: DecisionInput) -> Survivor:
        """Begin with an empty history."""
        ...


def require(part: Part, **least: int) -> None:
    """Check parameters against the least value each may have. Raises ValueError."""
    for name, minimum in least.items():
        value = getattr(part, name)
        if value is not None and value < minimum:
            raise ValueError(f"{part.NAME}: {name} must be at least {minimum}, got {value}")


def block_paths(block: Path, named: Mapping[str, str], written: Iterable[str]) -> dict[str, Path]:
    """``written`` of a part read from a block: paths of the fields that stand there, by parameter, and the block's."""
    there = set(written)
    paths: dict[str, Path] = {"*": block}
    paths |= {parameter: (*block, name) for parameter, name in named.items() if name in there}
    return paths


def where(path: Path, base: Path) -> str:
    """A path as shown beside an entry, without the phase that it belongs to."""
    return path_text(path[len(base) :] if path[: len(base)] == base else path)


def _value_text(value: object) -> str:
    if value is None:
        return "none"
    return str(value).lower() if isinstance(value, bool) else str(value)
