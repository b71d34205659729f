"""The run that calls a tool, as the tool may know it: session, phase, state, outputs. Set around each call of a
tool."""

from __future__ import annotations

import copy
import json
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from msgspec import Struct

from workbench.context.place import Place
from workbench.engine.contracts import ToolResult
from workbench.engine.services import Services
from workbench.engine.world import World

MAX_STATE = 100_000
"""Bytes of a state that a program finds in its environment."""


class CurrentCall(Struct, frozen=True):
    """The run and the phase that call a tool or a validator."""

    session_id: str
    run_id: str
    cascade_id: str
    phase: str
    visit: int
    """From 1."""
    branch: str
    """Of the candidate; empty outside soundings."""
    _world: World
    folder: str = ""
    """Folder of the workspace that commands and file tools begin in; empty for the workspace itself."""

    @property
    def state(self) -> dict[str, Any]:
        """A copy of the state as it is now; the tool ``set_state`` and phases change the state itself."""
        return copy.deepcopy(self._world.state)

    @property
    def input(self) -> dict[str, Any]:
        """A copy of the input of the run."""
        return copy.deepcopy(dict(self._world.input))

    @property
    def outputs(self) -> dict[str, Any]:
        """A copy of the outputs of finished phases, by phase: text, or the object of a phase without a model."""
        return copy.deepcopy(self._world.outputs)

    def environment(self) -> dict[str, str]:
        """The same for a program: WORKBENCH_SESSION_ID, WORKBENCH_PHASE and WORKBENCH_STATE (JSON; left out beyond
        ``MAX_STATE``, which environments cannot hold).
        """
        state = json.dumps(self._world.state, ensure_ascii=False)
        found = {"WORKBENCH_SESSION_ID": self.session_id, "WORKBENCH_PHASE": self.phase}
        return found | ({"WORKBENCH_STATE": state} if len(state.encode()) <= MAX_STATE else {})


_current: ContextVar[CurrentCall | None] = ContextVar("current_call", default=None)


def environment() -> dict[str, str]:
    """Variables that tell a program started by a tool about the run; empty outside a run."""
    call = _current.get()
    return call.environment() if call is not None else {}


def working_folder() -> str:
    """The folder, as a file names it, that the tools of the calling run begin in; empty for the workspace itself."""
    call = _current.get()
    return call.folder if call is not None else ""


def current_call() -> CurrentCall:
    """The call that runs this tool or validator. Raises LookupError outside of one."""
    call = _current.get()
    if call is None:
        raise LookupError("no run calls a tool here: current_call() answers inside a tool or a validator")
    return call


_observed: ContextVar[Callable[[], Awaitable[ToolResult]] | None] = ContextVar("observed", default=None)


@contextmanager
def observing(look: Callable[[], Awaitable[ToolResult]]) -> Iterator[None]:
    """Make the child visible to the tool by which a manager observes it."""
    token = _observed.set(look)
    try:
        yield
    finally:
        _observed.reset(token)


async def observe() -> ToolResult:
    """Returns the observation that the manager that calls this gets. Raises LookupError outside of a manager."""
    look = _observed.get()
    if look is None:
        raise LookupError("no manager looks at a child here")
    return await look()


@contextmanager
def calling(services: Services, world: World, place: Place) -> Iterator[None]:
    """Tell the tool or validator called inside which visit calls it."""
    call = CurrentCall(
        services.options.session_id,
        services.journal.run_id,
        services.definition.cascade.cascade_id,
        place.phase,
        place.visit,
        place.branch,
        world,
        services.options.folder,
    )
    with _called_by(call):
        yield


@contextmanager
def judging(session_id: str, run_id: str, cascade_id: str, input: Mapping[str, Any]) -> Iterator[None]:
    """Tell the validator or function called inside which run's output it judges."""
    with _called_by(CurrentCall(session_id, run_id, cascade_id, "", 1, "", World(input))):
        yield


@contextmanager
def _called_by(call: CurrentCall) -> Iterator[None]:
    token = _current.set(call)
    try:
        yield
    finally:
        _current.reset(token)
