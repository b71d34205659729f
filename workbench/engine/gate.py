"""Where a run may be held. The engine awaits the gate at every stop; it returns at once, later, or with an edit."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from workbench.context.assembly import Assembly
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.dataclass import dataclass

if TYPE_CHECKING:
    from workbench.context.edits import Draft
    from workbench.engine.edits import Edit


class StopKind(StrEnum):
    """The stops, in the order a run meets them."""

    BEFORE_PHASE = "before_phase"
    BEFORE_CALL = "before_call"
    AFTER_CALL = "after_call"
    BEFORE_TOOL = "before_tool"
    AFTER_TOOL = "after_tool"
    AFTER_CHECK = "after_check"
    AFTER_PHASE = "after_phase"
    BEFORE_CANDIDATES = "before_candidates"
    AFTER_EVALUATION = "after_evaluation"
    RUN_END = "run_end"
    HOOK = "hook"
    """Where a hook pauses the run, whatever it does there."""


@dataclass(frozen=True)
class Stop:
    """One moment at which a run can be held."""

    kind: StopKind
    place: Place
    depth: int = 0
    """0 in the run itself, 1 in a child cascade, and so on."""
    assembly: Assembly | None = None
    """At ``before_call``: what is about to be sent."""
    draft: Draft | None = None
    """At the stops of a call: what edits of messages change. None beside the turns, where nothing keeps an edit."""
    tool: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    problems: int = 0
    """Broken invariants of the assembly."""
    answered_by: str = "live"
    """At ``before_call`` of a run that replays another: ``recorded``, ``changed`` (recorded, but the request is no
    longer the same), ``pinned`` (its recorded answer is kept, whatever the request) or ``live``. At ``before_tool`` of
    a resumed run: ``maybe`` where the tool may have run already."""
    index: int = 0
    """At a tool's stops: the number of the call in its turn, from 1."""
    arguments: str = ""
    """At ``before_tool``: JSON text."""
    answer: Message | None = None
    """At ``after_call``: what the model said."""
    result: str = ""
    """At ``after_tool``: what the model will see."""
    edited: bool = False
    """The same stop again, after an edit: what it shows has changed."""
    heard: bool = False
    """The same stop again, after feedback of a person."""
    paused: str = ""
    """Why a hook holds the run here."""

    @property
    def level(self) -> int:
        """How deep it is: nested cascades, and candidates within them. A set of candidates is one step."""
        branch = self.place.branch
        return self.depth + (branch.count("/") + 1 if branch else 0)


@dataclass(frozen=True, slots=True)
class Decision:
    """What a gate says when the run may go on."""

    send_anyway: bool = False
    """Send a request although it breaks an invariant."""
    edits: tuple[Edit, ...] = ()
    """Edits to make here. The run then comes to the same stop again, so that what they did can be seen."""


_GO_ON = Decision()


class RunStopped(Exception):
    """Raised by a gate or a port to end the run with status ``stopped``; it can be resumed."""


class Gate(Protocol):
    """Decides whether the run goes on."""

    async def __call__(self, stop: Stop, /) -> Decision:
        """Return to go on. Raises RunStopped to end the run here."""
        ...


async def open_gate(stop: Stop) -> Decision:
    """The gate of headless runs: never holds. Raises RunStopped where a hook pauses, for nobody could go on."""
    if stop.paused:
        raise RunStopped(stop.paused)
    return _GO_ON
