"""The stops at which a run may be paused. The engine awaits the gate at every stop; the gate returns at once, later, or
with an edit.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Protocol

from msgspec import Struct, field

from workbench.context.assembly import Assembly
from workbench.context.edits import AddMessage, ChangeMessage, DropMessage, EditError, MessageEdit, MoveMessage, edited
from workbench.context.invariants import RULES, check_calls
from workbench.context.message import Message
from workbench.context.place import Place
from workbench.engine.edits import Edit, SetAnswer, SetArguments, SetModel, SetResult, SetState, SkipTool, name_of
from workbench.language.model.parameters import refused

if TYPE_CHECKING:
    from workbench.context.cache import Forecast
    from workbench.context.edits import Draft


class StopKind(StrEnum):
    """The stops, in the order a run meets them."""

    BEFORE_PHASE = "before_phase"
    BEFORE_CALL = "before_call"
    AFTER_CALL = "after_call"
    BEFORE_TOOL = "before_tool"
    AFTER_TOOL = "after_tool"
    AFTER_CHECK = "after_check"
    AFTER_PHASE = "after_phase"
    AFTER_ROUTE = "after_route"
    """The edge out of a phase is chosen, and not travelled yet. Of a decomposition: a task has ended."""
    BEFORE_CANDIDATES = "before_candidates"
    AFTER_EVALUATION = "after_evaluation"
    RUN_END = "run_end"
    HOOK = "hook"
    """The stop of a hook that pauses the run."""


class ClientWait(Struct, frozen=True):
    """A client that waits for the answer to its request."""

    since: float
    """Seconds of the monotonic clock."""
    limit: float | None = None
    """Seconds after which the client gives up; None if unknown."""


class Stop(Struct, frozen=True):
    """One moment at which a run can be held."""

    kind: StopKind
    place: Place
    depth: int = 0
    """0 in the run itself, 1 in a child cascade, and so on."""
    assembly: Assembly | None = None
    """At ``before_call``: the request about to be sent."""
    draft: Draft | None = None
    """At the stops of a call: the draft that edits of messages change. None beside the turns, where no history would
    keep an edit.
    """
    preview: Callable[[Sequence[Edit]], Assembly] | None = None
    """At ``before_call``: what would be sent after edits, worked out without making them. Raises EditError. May be
    called in any thread while the run is held here."""
    tool: str = ""
    state: dict[str, Any] = field(default_factory=dict)
    problems: int = 0
    """Broken invariants of the assembly."""
    answered_by: str = "live"
    """At ``before_call`` of a run that replays another: ``recorded``, ``changed`` (recorded, but the request has
    changed), ``pinned`` (the recorded answer is kept for any request) or ``live``. At ``before_tool`` of a resumed run:
    ``maybe`` if the tool may have run already.
    """
    index: int = 0
    """At a tool's stops: the number of the call in its turn, from 1. After a check: the number of the check among those
    of its conversation; after an evaluation: the step of reforge, 0 for the soundings."""
    arguments: str = ""
    """At ``before_tool``: JSON text."""
    answer: Message | None = None
    """At ``after_call``: what the model said."""
    result: str = ""
    """At ``after_tool``: what the model will see."""
    is_error: bool = False
    """At ``after_tool``: whether that is an error."""
    edited: bool = False
    """The same stop again, after an edit: what it shows has changed."""
    heard: bool = False
    """The same stop again, after feedback of a person."""
    paused: str = ""
    """Why a hook holds the run here."""
    taken: tuple[str, ...] = ()
    """At ``after_route``: the phase that follows, none at an end; of a task those that get its result."""
    considered: tuple[str, ...] = ()
    """At ``after_route``: the targets of all edges out of the phase."""
    outcome: str = ""
    """At ``after_route``: what the phase came to."""
    node: str = ""
    """Of a pipeline and a decomposition, where one step is one node: the kind of the node; else empty."""
    begins: bool = False
    """Whether a node begins here: before its first call, or, where it asks no model, before all of it."""
    is_task: bool = False
    """Whether the node is of a decomposition, whose tasks run side by side on one level."""
    forecast: Forecast | None = None
    """At ``before_call``: what of the request a provider can take from its cache."""
    tools: tuple[str, ...] = ()
    """At ``after_call`` of an attached program, whose tools run outside: those that the answer calls."""
    answerable: bool = False
    """At ``before_call``: whether a person may answer instead of the model."""
    client: ClientWait | None = None
    """Of a program that is watched: how long it waits for the answer."""

    @property
    def level(self) -> int:
        """How deep it is: nested cascades, and candidates within them. A set of candidates is one step."""
        branch = self.place.branch
        return self.depth + (branch.count("/") + 1 if branch and not self.is_task else 0)


class Decision(Struct, frozen=True):
    """The decision of a gate, with which the run continues."""

    send_anyway: bool = False
    """Send a request although it breaks an invariant."""
    edits: tuple[Edit, ...] = ()
    """Edits to make here. The run then comes to the same stop again, so that what they did can be seen."""
    held: bool = False
    """Whether the run was paused here. Paused time does not count as the run's own."""


_GO_ON = Decision()


class RunStopped(Exception):
    """Raised by a gate or a port to end the run with status ``stopped``; it can be resumed."""

    output = ""
    """The output of the run, if it has one although a question was left unanswered."""


class Gate(Protocol):
    """Decides whether the run goes on."""

    async def __call__(self, stop: Stop, /) -> Decision:
        """Return to go on. Raises RunStopped to end the run here."""
        ...


async def open_gate(stop: Stop) -> Decision:
    """The gate of headless runs: never pauses. Raises RunStopped if a hook pauses, because no person could continue."""
    if stop.paused:
        raise RunStopped(stop.paused)
    return _GO_ON


EDITS_AT: dict[StopKind, tuple[type[Edit], ...]] = {
    StopKind.BEFORE_PHASE: (SetState,),
    StopKind.BEFORE_CALL: (ChangeMessage, DropMessage, AddMessage, MoveMessage, SetModel, SetState),
    StopKind.AFTER_CALL: (SetAnswer, SetState),
    StopKind.BEFORE_TOOL: (SetArguments, SkipTool, SetState),
    StopKind.AFTER_TOOL: (SetResult, SetState),
    StopKind.AFTER_CHECK: (SetState,),
    StopKind.AFTER_PHASE: (SetState,),
    StopKind.BEFORE_CANDIDATES: (SetState,),
    StopKind.AFTER_EVALUATION: (SetState,),
}
"""The edits that each stop allows; other stops allow none."""


class EditFault(RunStopped):
    """An edit that cannot be made at the stop. The run stops there and can be resumed."""


def check_edit(edit: Edit, stop: Stop) -> None:
    """Raises EditError, in words and with the place, if the edit is not possible at this stop."""
    where = f"{stop.place.words} ({str(stop.kind).replace('_', ' ')})"
    by_hand = isinstance(edit, SetAnswer) and stop.answerable
    if not isinstance(edit, EDITS_AT.get(stop.kind, ())) and not by_hand:
        fitting = [str(kind).replace("_", " ") for kind, allowed in EDITS_AT.items() if type(edit) in allowed]
        raise EditError(f"{where}: '{name_of(edit)}' can be edited at {' or '.join(fitting)} only")
    if isinstance(edit, SetArguments):
        try:
            given = json.loads(edit.arguments)
        except (ValueError, RecursionError) as fault:
            raise EditError(f"{where}: the arguments are not valid JSON: {fault}") from fault
        if not isinstance(given, dict):
            raise EditError(f"{where}: the arguments are not a JSON object")
    if isinstance(edit, SetAnswer):
        if edit.message.role != "assistant":
            raise EditError(f"{where}: an answer is an assistant's message, not one of role '{edit.message.role}'")
        if not (edit.message.text.strip() or edit.message.tool_calls):
            raise EditError(f"{where}: the answer would be blank")
        if broken := check_calls(edit.message):
            raise EditError(f"{where}: {broken[0].message} ({rule_words(broken[0].invariant)})")
    if isinstance(edit, SetModel):
        for reason in filter(None, (refused(name, value) for name, value in edit.parameters.items())):
            raise EditError(f"{where}: {reason}")
    if isinstance(edit, SetState) and not edit.key:
        raise EditError(f"{where}: a state value needs a name")


def rule_words(invariant: int) -> str:
    """A rule of a valid request with its number: what providers refuse otherwise."""
    return f"rule {invariant}: {RULES[invariant]}"


def newly_broken(before: Assembly | None, after: Assembly) -> str:
    """The first rule of a valid request that ``after`` breaks and ``before`` did not, in words; empty for none."""
    known = {(one.invariant, one.message) for one in before.problems} if before is not None else set()
    for one in after.problems:
        if (one.invariant, one.message) not in known:
            message = f"message {one.entry + 1}: " if one.entry >= 0 else ""
            return f"{message}{one.message} ({rule_words(one.invariant)})"
    return ""


def check_edits(edits: Sequence[Edit], stop: Stop) -> None:
    """Raises EditError if an edit cannot be made after those before it, or if all of them together break a rule of a
    valid request, so that a wrong number does not end a run that a person has paused.
    """
    draft = stop.draft
    for edit in edits:
        check_edit(edit, stop)
        if stop.kind not in (StopKind.BEFORE_CALL, StopKind.AFTER_CALL) or isinstance(edit, SetState):
            continue
        if draft is None:
            raise EditError(f"{stop.place.words}: a call beside the turns cannot be edited")
        if isinstance(edit, MessageEdit):
            draft = edited(draft, edit, stop.place)
    if stop.preview is None or not any(isinstance(edit, MessageEdit) for edit in edits):
        return
    if broken := newly_broken(stop.assembly, stop.preview(edits)):
        raise EditError(f"{stop.place.words}: the request would not be valid: {broken}")


def checked(edits: Sequence[Edit], stop: Stop) -> None:
    """Raises EditFault if one of them is not possible at the stop."""
    for edit in edits:
        try:
            check_edit(edit, stop)
        except EditError as fault:
            raise EditFault(str(fault)) from fault
