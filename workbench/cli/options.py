"""Options that several commands share, so that they read and behave the same everywhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from workbench.cli.errors import Exit, Failure, reading
from workbench.cli.printer import talk
from workbench.durations import lifetime_of
from workbench.files import read_given
from workbench.store.branches import sessions_above
from workbench.workspace.settings import SANDBOXES
from workbench.workspace.stored import StoredWorkspace

if TYPE_CHECKING:
    from workbench.engine.journal.state import RunState
    from workbench.store.team_server import TeamServer
    from workbench.workspace.project import Project

Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

as_json = click.option("--json", is_flag=True, help="JSON on stdout instead of text.")
plain = click.option("--plain", is_flag=True, help="Words instead of colours and signs; nothing is cut.")
FORMATS = ("text", "json", "sarif", "junit", "github")


def together(*options: Decorator) -> Decorator:
    """Several options as one decorator; the help shows them in this order."""

    def decorated(function: Callable[..., Any]) -> Callable[..., Any]:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


def _pricing(*, several: bool) -> Decorator:
    told = "Cache rule of this provider; with a model, its prices too: anthropic/claude-sonnet-4.5."
    more = " Repeatable; 'recorded' is the run's own." if several else ""
    return together(
        click.option("--provider", multiple=several, metavar="NAME[/MODEL]", help=told + more),
        click.option(
            "--prices",
            "prices_file",
            metavar="FILE",
            help="YAML or JSON: model to input, output, cache_read, cache_write in US dollars per million tokens.",
        ),
        click.option(
            "--cache-ttl",
            type=Lifetime(),
            metavar="TIME",
            help="How long a cache keeps a prefix after its last use: 90s, 5m, 1h. Gaps are those of the record.",
        ),
    )


class Lifetime(click.ParamType[float]):
    """A time in seconds, minutes or hours: ``90s``, ``5m``, ``1h``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """The time in seconds."""
        if isinstance(value, float):
            return value
        try:
            return lifetime_of(str(value))
        except ValueError as fault:
            self.fail(str(fault), param, ctx)


pricing = _pricing(several=False)
"""The options that price a run otherwise than it was."""
pricing_by_several = _pricing(several=True)
"""The same, for several providers side by side."""

report_format = click.option(
    "--format",
    "form",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="sarif: for code scanning; junit: XML for CI servers; github: annotations of a workflow.",
)


class SessionName(click.ParamType[Any]):
    """A session id, a run id, or the beginning of one; completes to the stored ones."""

    name = "session"

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        runs = stored_here().store.runs()
        names = dict.fromkeys(run.session_id or run.run_id for run in runs)
        return [CompletionItem(name) for name in names if name.startswith(incomplete)]


class CascadeFile(click.ParamType[Any]):
    """A path; its shell completion is the shell's own for files."""

    name = "file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Path:
        return Path(value)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        return [CompletionItem(incomplete, type="file")]


class JsonObject(click.ParamType[Any]):
    """A JSON object, or ``@FILE`` that holds one."""

    name = "json|@file"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Mapping[str, Any]:
        if not isinstance(value, str):
            assert isinstance(value, Mapping)
            return value
        found = read_json(value)
        if not isinstance(found, dict):
            self.fail(f"{value[:60]!r} is not a JSON object", param, ctx)
        return found


def _is_file(value: str) -> bool:
    """Returns whether a text that cannot be a JSON object is the name of a file."""
    if value.lstrip()[:1] in ("{", "[", '"'):
        return False
    try:
        return Path(value).is_file()
    except (OSError, ValueError):  # Too long for a name, or with a NUL.
        return False


def read_json(value: str, option: str = "--input") -> Any:
    """The JSON of an option, or of a file: behind ``@``, or one that is there and is not JSON itself.

    Raises Failure with the place of the mistake."""
    text, file = value, ""
    named = value.removeprefix("@")
    if value.startswith("@") or _is_file(value):
        file = named
        with reading(file):
            text = read_given(Path(file))
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        line, column = (error.lineno, error.colno) if isinstance(error, json.JSONDecodeError) else (1, 1)
        reason = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
        reason = "nested too deep" if isinstance(error, RecursionError) else reason
        shown = file or option
        hint = "write a JSON object, or the name of a file that holds one" if not file else ""
        if not file and text.strip()[:1] not in ("{", "[", '"'):
            raise Failure(Exit.USAGE, f"{option}: {text[:200]!a} is neither a file nor JSON", hint=hint) from None
        raise Failure(
            Exit.USAGE, f"not valid JSON: {reason}", hint=hint, file=shown, line=line, column=column
        ) from None


def project_here(**flags: Any) -> Project:
    """The workspace of the current folder, with flags over its settings. Raises SettingsError."""
    from workbench.workspace.project import Project  # the language, the engine and the tools: 0.7 s

    return Project.at(flags={name: value for name, value in flags.items() if value is not None})


def stored_here() -> StoredWorkspace:
    """The settings and the stored runs of the current folder. Raises SettingsError."""
    return StoredWorkspace.at()


def team_server_of(project: StoredWorkspace) -> TeamServer:
    """The server that runs are shipped to. Raises Failure if the settings name none."""
    if project.team_server is None:
        hint = "WORKBENCH_USE_CLICKHOUSE_SERVER=true and WORKBENCH_CLICKHOUSE_HOST=HOST name it"
        raise Failure(Exit.USAGE, "there is no team's server in the settings", hint=hint)
    return project.team_server


session_argument = click.argument("session", type=SessionName(), required=False)
"""A stored run; left out, the newest."""


def find_run(project: StoredWorkspace, session: str | None) -> str:
    """The run id behind a name, or of the newest run without a parent. Of a name that a branch has in the tables, it
    is said on stderr.

    Raises UnknownRun, and Failure if there is no run at all.
    """
    if session:
        run_id = project.store.find(session)
        if any(sessions_above(session)) and (branch := project.store.branch_of_session(run_id, session)):
            talk(f"{session} is the candidate {branch} of this run")
        return run_id
    runs = project.store.runs()
    if not runs:
        raise Failure(Exit.USAGE, f"no runs in {project.store.root}", hint="workbench run FILE makes one")
    return next((run for run in runs if not run.depth), runs[0]).run_id


def read_run(project: StoredWorkspace, session: str | None, *, defined: bool = False) -> RunState:
    """The run behind a name, or the newest, as far as its journal holds it; what it lacks is said on stderr.

    Raises UnknownRun, and Failure where there is no run, or (``defined``) not the text of the cascade that it ran."""
    run_id = find_run(project, session)
    state = project.store.state(run_id)
    name = state.session_id or run_id
    if defined and not state.cascade_text:
        said = f"the journal of {name} does not hold the cascade that it ran"
        raise Failure(Exit.STORE, said, hint=state.fault or "no record of its start is there")
    if state.fault and state.status != "running":
        talk(f"{name} is damaged, and shown as far as it can be read: {state.fault}", "warning")
    return state


model_option = click.option("--model", "-m", help="Model of phases that name none, or 'offline'.")
base_url_option = click.option(
    "--base-url", metavar="URL", help="Server with an OpenAI-compatible API that answers all calls."
)
sandbox_option = click.option("--sandbox", type=click.Choice(SANDBOXES), help="Sandbox for shell and code tools.")
quiet_option = click.option("--quiet", "-q", is_flag=True, help="No progress on stderr.")
unscripted_option = click.option(
    "--unscripted",
    type=click.Choice(("fail", "ok")),
    help="A call without an offline reply: the run fails (default), or a placeholder answers.",
)


starting = together(
    click.option(
        "--input",
        "input_",
        type=JsonObject(),
        help="The input: a JSON object, or the FILE of one. Default: STEM.input.json.",
    ),
    model_option,
    base_url_option,
    click.option("--session", metavar="ID", help="Name of the new run."),
    sandbox_option,
)
"""The options of every command that starts a run."""
