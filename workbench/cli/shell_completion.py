"""Shell completion beside sessions and files: settings, their values, and phases and places of a run."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from workbench.cli.errors import Failure
from workbench.cli.options import find_run, stored_here
from workbench.resources import theme_folders
from workbench.views.keys import KEYS
from workbench.workspace.settings import TABLE

if TYPE_CHECKING:
    from workbench.store.summary import RunSummary
    from workbench.workspace.stored import StoredWorkspace

_MOST_CALLS = 500
"""Limit of calls of a run that is read for a completion: a longer one would take too long."""


class SettingName(click.ParamType[Any]):
    """A setting, or ``keys.`` and the id of a command."""

    name = "setting"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        if incomplete.startswith("keys."):
            return _fitting((f"keys.{key.id}" for key in KEYS), incomplete)
        allowed = (row for row in TABLE if row.workspace or not ctx.params.get("workspace"))
        return _fitting((row.name for row in allowed), incomplete)


class SettingValue(click.ParamType[Any]):
    """A value of the setting before it, if there are few."""

    name = "value"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        row = next((row for row in TABLE if row.name == ctx.params.get("name")), None)
        if row is None:
            return []
        if row.name == "theme":
            from workbench.themes import load_themes  # textual: 0.2 s

            return _fitting(load_themes(theme_folders(stored_here().folders.config)).by_name, incomplete)
        return _fitting(("true", "false") if row.type is bool else row.choices, incomplete)


class PhaseOfRun(click.ParamType[Any]):
    """A phase that ran in the run that the command names, or in the newest."""

    name = "phase"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        run = _run(stored_here(), ctx)
        return _fitting(run.phases if run is not None else (), incomplete)


class PlaceOfRun(click.ParamType[Any]):
    """``phase:turn`` of the calls of the run that the command names, or of the newest."""

    name = "place"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        project = stored_here()
        run = _run(project, ctx)
        if run is None or run.answers > _MOST_CALLS:
            return []
        places = (call.place for call in project.store.state(run.run_id).calls)
        return _fitting((f"{at.phase}:{at.turn}" for at in places if at.turn and not at.branch), incomplete)


def _run(project: StoredWorkspace, ctx: click.Context) -> RunSummary | None:
    """The run of the command line so far: behind an option without its value, its arguments are not read yet."""
    from workbench.store.faults import StoreError  # the first frame does without the store

    given = ctx.params.get("session") or ctx.params.get("sessions") or ctx.args
    try:
        run_id = find_run(project, given if isinstance(given, str) else next(iter(given), None))
        return project.store.summary(run_id)
    except (Failure, StoreError):
        return None  # The command itself says what is wrong with it.


def _fitting(words: Iterable[str], incomplete: str) -> list[CompletionItem]:
    """The values that begin with the typed text, each once."""
    return [CompletionItem(word) for word in dict.fromkeys(words) if word.startswith(incomplete)]
