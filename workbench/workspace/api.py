"""Runs a cascade from a program: the engine behind the commands, with hooks and subscribers of the program's own."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from workbench.context.place import Place
from workbench.engine.definition import Outcome
from workbench.engine.journal.event import Event
from workbench.engine.lifecycle import EventBus
from workbench.store.index.queries import Queries
from workbench.store.index.table import ResultTable
from workbench.tools.hook_registry import hooks_of
from workbench.workspace.input_file import CannotOpen
from workbench.workspace.model_choice import choose_model
from workbench.workspace.people import NoHuman, PreparedAnswers
from workbench.workspace.project import Project
from workbench.workspace.run_builder import RunAttachments, Start, new_options, run_new
from workbench.workspace.sql_queries import open_index
from workbench.workspace.system import SystemIds

# Asks the stored runs from a program: the functions of the SQL tables, each over the workspace of a folder.

Folder = str | Path | None
"""Folder of the workspace; None is the current one."""


@contextmanager
def index_of(folder: Folder = None) -> Iterator[Queries]:
    """The tables over the store of a workspace, brought up to date: for several questions in a row.

    Raises StoreError when they cannot be opened or brought up to date.
    """
    project = Project.at(None if folder is None else Path(folder).resolve())
    with open_index(project.store) as index:
        index.catch_up()
        yield index


def query_unified(
    where: str = "1",
    params: Mapping[str, Any] | None = None,
    columns: str = "*",
    limit: int | None = None,
    *,
    folder: Folder = None,
) -> ResultTable:
    """Rows of ``unified_logs``. ``where`` is SQL (ClickHouse dialect); values go in as ``{name:Type}`` and ``params``.

    ORDER BY and LIMIT may follow the condition. Raises BadSql for what is not a reading query, DatabaseError with the
    engine's words.
    """
    with index_of(folder) as index:
        return index.query_unified(where, params, columns, limit)


def get_session_messages(session_id: str, *, bodies: bool = False, folder: Folder = None) -> ResultTable:
    """All rows of a session in order; ``bodies``: with whole requests, responses and definitions."""
    with index_of(folder) as index:
        return index.get_session_messages(session_id, bodies=bodies)


def get_cascade_costs(cascade_id: str, *, folder: Folder = None) -> ResultTable:
    """Per phase: calls, tokens, the sum of known costs in US dollars, and how many calls have no known cost."""
    with index_of(folder) as index:
        return index.get_cascade_costs(cascade_id)


def get_soundings_analysis(session_id: str, phase: str, *, folder: Folder = None) -> ResultTable:
    """Per candidate of a phase: winner or not, mutation, model, calls, tokens, cost, last answer and scores."""
    with index_of(folder) as index:
        return index.get_soundings_analysis(session_id, phase)


def get_context(session_id: str, place: str | Place, *, folder: Folder = None) -> ResultTable:
    """Returns the changes in the context of one call. ``place`` names it as ``workbench context --at`` does:
    ``phase:turn`` (latest visit, last attempt), ``phase#2:turn``, or ``phase/visit/attempt/turn/call``, each counted
    from 1; of a candidate with ``s0/`` before it. Raises ValueError for a call that is not there."""
    with index_of(folder) as index:
        return index.get_context(session_id, index.place_named(session_id, place) if isinstance(place, str) else place)


def get_request(message_id: str, *, folder: Folder = None) -> str:
    """The whole request of an answer, as JSON text. Raises StoreError if there is none."""
    with index_of(folder) as index:
        return index.get_request(message_id)


def list_runs(*, folder: Folder = None) -> ResultTable:
    """All runs, newest first."""
    with index_of(folder) as index:
        return index.list_runs()


def search_text(words: Sequence[str] | str, limit: int = 200, *, folder: Folder = None) -> ResultTable:
    """Messages that hold every one of some words or phrases, in any letter case, newest first."""
    with index_of(folder) as index:
        return index.search_text([words] if isinstance(words, str) else words, limit)


class Result(Struct, frozen=True):
    """How a run ended, and where it is stored."""

    status: str
    """success, failed, blocked or stopped."""
    output: str
    state: Mapping[str, Any]
    reason: str
    session_id: str
    run_id: str


def run_cascade(
    file: str | Path,
    input: Mapping[str, Any] | None = None,
    *,
    session_id: str = "",
    model: str = "",
    hooks: object = None,
    bus: EventBus | None = None,
    answers: Mapping[str, Any] | Sequence[Any] | None = None,
    folder: str | Path | None = None,
) -> Result:
    """Run a cascade to its end, with a journal in the workspace ``folder`` (the current one if not given).

    ``hooks`` is a mapping of functions by name (``on_phase_start``), or an object with such methods; ``bus`` gets the
    events of the run and of those that it starts; ``answers`` are those of ``--answers``. Raises CannotOpen for a file
    that cannot be run, SessionTaken for the ``session_id`` of a stored run, ValueError for an unknown hook. Inside an
    event loop, await ``run_cascade_async``.
    """
    work = run_cascade_async(
        file, input, session_id=session_id, model=model, hooks=hooks, bus=bus, answers=answers, folder=folder
    )
    return asyncio.run(work)


async def run_cascade_async(
    file: str | Path,
    input: Mapping[str, Any] | None = None,
    *,
    session_id: str = "",
    model: str = "",
    hooks: object = None,
    bus: EventBus | None = None,
    answers: Mapping[str, Any] | Sequence[Any] | None = None,
    folder: str | Path | None = None,
) -> Result:
    """As ``run_cascade``, on the running loop."""
    given_hooks = () if hooks is None else hooks_of(hooks)
    path = Path(file).resolve()
    project = Project.at(None if folder is None else Path(folder).resolve())
    opened = project.open(path)
    if opened.definition is None:
        raise CannotOpen("\n".join(str(problem) for problem in opened.errors))
    project.store.require_new(session_id)
    choice = choose_model(project, opened.definition.cascade, path, model)
    options = new_options(project, opened.definition.cascade.cascade_id, choice, session_id)
    start = Start(opened.definition, path, dict(input or {}), choice, options)
    run_id = SystemIds().run_id()
    prepared = None if answers is None else PreparedAnswers(answers, NoHuman())
    observe: Callable[[Event], None] = (lambda event: None) if bus is None else bus.observer()
    attached = RunAttachments(human=prepared or NoHuman(), observe=observe, observe_child=observe, hooks=given_hooks)
    if prepared is not None:
        attached = replace(attached, audibles=prepared, remarks=prepared.remarks)
    outcome: Outcome = await run_new(project, start, attached, run_id=run_id)
    return Result(outcome.status, outcome.output, outcome.state, outcome.reason, options.session_id, run_id)
