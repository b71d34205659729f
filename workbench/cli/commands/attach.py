"""``workbench attach``: a proxy that records the model calls of any program as a run, and answers them again."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import shutil
import signal
import sys
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import click
from msgspec.structs import replace

from workbench.attach.control import Debugging
from workbench.attach.otlp import can_read_protobuf
from workbench.attach.providers import BadAddress, addresses, elsewhere
from workbench.attach.recorded import RecordedAnswers
from workbench.attach.span_runs import CAPTURE, SpanRuns
from workbench.cli.app import Opening, start
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import CascadeFile, SessionName, as_json, project_here
from workbench.cli.printer import talk, write_json
from workbench.cli.running import SESSION_ID
from workbench.context.strategy import parse
from workbench.engine.contracts import Notice
from workbench.extras import not_installed
from workbench.views.run import totals_line, what_if_line
from workbench.workspace.attach_link import ServingProcess
from workbench.workspace.attach_serving import (
    LOOPBACK,
    SWITCH_SECONDS,
    CannotListen,
    Served,
    collecting,
    listen,
    serving,
    started,
)
from workbench.workspace.attached import AttachPlan
from workbench.workspace.attaching import (
    AttachedRun,
    AttachOptions,
    SessionEnd,
    attached_run,
    end_session,
    end_spans,
    recorded_spans,
    replies_beside,
)
from workbench.workspace.folders import Folders
from workbench.workspace.own_terminal import opener, opens_unasked
from workbench.workspace.program_output import attached_output
from workbench.workspace.project import Project, new_session_id

PORT = 8333
"""Where clients find the proxy that no command was given to; a command gets any free port."""
OTLP_PORT = 4318
"""Where exporters send OTLP over HTTP, unless a variable says otherwise (OpenTelemetry's specification)."""
NOTHING_CAME = "does the program read the variables?"


@click.command(short_help="Watch the model calls of any program, and replay them.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Default: {PORT}, or any free one for a command.")
@click.option("--session", metavar="NAME", help="Name of the run; a new one without it.")
@click.option("--bench", is_flag=True, help="Open the app on the traffic; the default on a terminal.")
@click.option("--headless", is_flag=True, help="Record only: the command keeps this terminal.")
@click.option("--terminal", is_flag=True, help="Run the command in its own terminal; the default inside tmux.")
@click.option("--pause", is_flag=True, help="With --bench: pause before the first request.")
@click.option("--upstream", "upstreams", multiple=True, metavar="NAME=URL", help="Address of a provider. Repeatable.")
@click.option("--offline", is_flag=True, help="The offline model answers; no provider is asked.")
@click.option(
    "--replies",
    type=CascadeFile(),
    help="Scripted replies of the offline model; so are those beside the program: agent.replies.yaml.",
)
@click.option("--replay", type=SessionName(), help="Answer from this session, strictly by request.")
@click.option("--reuse", type=SessionName(), help="Answer from this session; other requests go to the provider.")
@click.option("--strategy", metavar="SPEC", help="Send each request as this context strategy shapes it.")
@click.option("--what-if", metavar="SPEC", help="Price a context strategy beside what is sent.")
@click.option("--otlp", is_flag=True, help=f"Take spans (OTLP over HTTP, port {OTLP_PORT}) instead of requests.")
@click.option("--bind", metavar="ADDRESS", help="Listen on another address, with a token in the path.")
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    command: tuple[str, ...],
    port: int | None,
    session: str | None,
    bench: bool,
    headless: bool,
    terminal: bool,
    pause: bool,
    upstreams: tuple[str, ...],
    offline: bool,
    replies: Path | None,
    replay: str | None,
    reuse: str | None,
    strategy: str | None,
    what_if: str | None,
    otlp: bool,
    bind: str | None,
    json: bool,
) -> None:
    """Run COMMAND with the addresses of OpenAI, Anthropic, Gemini, OpenRouter and Ollama set to a proxy on this
    machine, and record its model calls as a run: what each call sent, what is new since the call before, what the
    provider could take from its cache, and the cost. Requests and answers pass unchanged. On a terminal the app opens
    on the run, and the command gets a pane of tmux or writes to a file; with --headless it keeps the terminal. Without
    a command the variables to set are printed, and clients are recorded until Ctrl+C.

    With --otlp the calls are those of the spans that the program's instrumentation exports: a run for each conversation
    or trace. Its requests go straight to the provider, so that nothing can be paused or answered.

    The exit code is the command's; 1 if a replay diverged.

    \b
    Examples:
      workbench attach -- python my_agent.py
      workbench attach --offline -- python examples/agent.py
      workbench attach --pause -- python my_agent.py
      workbench attach --headless -- my-coding-agent
      workbench attach --strategy 'mask(after=5)' -- python my_agent.py
      workbench attach --otlp -- python my_traced_agent.py
      workbench attach --replay python-1f3a -- python my_agent.py
      workbench attach --upstream openai=http://localhost:8000/v1
    """
    if sum((offline, replay is not None, reuse is not None)) > 1:
        raise Failure(Exit.USAGE, "--offline, --replay and --reuse exclude each other")
    if otlp:
        _without_proxy(offline, replies, replay, reuse, strategy, upstreams, pause)
    bench = _opens_app(command, bench=bench, headless=headless, terminal=terminal, pause=pause, json=json)
    if replies is not None and not offline:
        raise Failure(Exit.USAGE, "--replies are those of the offline model", hint="add --offline")
    if session and not SESSION_ID.fullmatch(session):
        raise Failure(Exit.USAGE, f"'{session}' cannot be the name of a run: letters, digits, '.', '_' and '-'")
    project = project_here()
    name = session or new_session_id(Path(command[0]).name if command else "agent")
    if offline and replies is None:
        replies = replies_beside(command, Path.cwd())
    chosen = parse(strategy) if strategy is not None else None
    other = parse(what_if) if what_if is not None else None
    options = AttachOptions(
        shlex.join(command), name, str(Path.cwd()), offline, replies, replay or "", reuse or "", chosen, other
    )
    usual = OTLP_PORT if otlp else PORT
    served = _listening(command, port if port is not None else 0 if command else usual, upstreams, bind)
    options = replace(options, elsewhere=elsewhere(served.where))
    if bench:
        ctx.exit(_with_bench(options, served, pause=pause, otlp=otlp, terminal=terminal))
    interrupts = signal.getsignal(signal.SIGINT)
    try:
        ctx.exit(_collect(project, options, served, json) if otlp else _record(project, options, served, json))
    finally:
        signal.signal(signal.SIGINT, interrupts)


def _opens_app(
    command: tuple[str, ...], *, bench: bool, headless: bool, terminal: bool, pause: bool, json: bool
) -> bool:
    """Whether the app opens: where it is asked for, and on a terminal by itself. Raises Failure for options that do not
    go together."""
    if headless and (bench or pause or terminal):
        raise Failure(Exit.USAGE, "--headless records without the app, which --bench, --pause and --terminal need")
    if terminal and not command:
        raise Failure(Exit.USAGE, "--terminal is for a command", hint="workbench attach --terminal -- COMMAND")
    by_itself = bool(command) and not headless and not json and sys.stdin.isatty() and sys.stdout.isatty()
    opens = bench or terminal or by_itself
    if pause and not opens:
        raise Failure(Exit.USAGE, "--pause needs the app, where you release a paused request", hint="add --bench")
    return opens


def _listening(command: tuple[str, ...], port: int, upstreams: Sequence[str], bind: str | None) -> Served:
    """A proxy that listens, with the addresses of the providers. Raises BadAddress, Failure."""
    where = addresses(os.environ, _given(upstreams))
    try:
        listener = listen(bind or LOOPBACK, port)
    except CannotListen as fault:
        raise Failure(Exit.USAGE, str(fault), hint="--port 0 takes a free one") from None
    return Served(listener, where, command, secrets.token_urlsafe(18) if bind else "")


def _record(project: Project, options: AttachOptions, served: Served, json: bool) -> int:
    """Record what clients send; the exit code. Raises RepliesError, CannotStart."""
    with attached_run(project, options, notify=_tell_saving) as run:
        control = Debugging(run.recorder, None) if options.strategy is not None else None
        sys.setswitchinterval(SWITCH_SECONDS)
        ended = asyncio.run(_serve(run.session, served, serving(run, served, control)))
        kept = end_session(run, ended)
    _tell_end(project, run, json)
    return ended.code or (0 if kept else Exit.FAILED)


def _without_proxy(*given: object) -> None:
    """Raises Failure where --otlp comes with what only the proxy can do."""
    names = ("--offline", "--replies", "--replay", "--reuse", "--strategy", "--upstream", "--pause")
    if wrong := next((name for name, value in zip(names, given, strict=True) if value), ""):
        raise Failure(Exit.USAGE, f"--otlp and {wrong} exclude each other: spans report calls that were already made")


def _collect(project: Project, options: AttachOptions, served: Served, json: bool) -> int:
    """Record what exporters send; the exit code. Raises CannotStart."""
    if not can_read_protobuf():
        talk(f"protobuf, which most exporters send, cannot be read: {not_installed('otel')}", "warning")
    with recorded_spans(project, options, notify=_tell_saving) as runs:
        ended = asyncio.run(_serve("spans", served, collecting(runs, served)))
        end_spans(runs, ended if served.command else SessionEnd())
    _tell_spans(project, runs, json)
    return ended.code


def _tell_spans(project: Project, runs: SpanRuns, json: bool) -> None:
    summaries = [project.store.summary(run_id) for run_id in runs.run_ids]
    if json:
        told = {"spans": runs.spans, "without_messages": runs.silent, "refused": runs.refused, "fault": runs.fault}
        about = [{"session": one.session_id, "run_id": one.run_id, "status": one.status} for one in summaries]
        write_json([{"runs": about, "calls": runs.calls, **told}])
        return
    if runs.fault:
        talk(f"the record ended early: {runs.fault}", "error")
    if runs.silent:
        count = "1 span" if runs.silent == 1 else f"{runs.silent} spans"
        talk(f"{count} of model calls had no messages: {CAPTURE}", "warning")
    if runs.refused:
        talk(runs.refusal_words, "warning")
    if not runs.calls and runs.refused and not runs.spans:
        return
    if not runs.calls:
        which = f"{runs.spans} spans arrived, none with a model call" if runs.spans else "no span arrived"
        talk(f"{which}; does the program export the content of its model calls?", "warning")
        return
    for one in summaries:
        talk(f"{one.session_id}: {totals_line(one) or 'no call was answered'}", "dim")
    for other in runs.others:
        would, sent = ((one.tokens, one.cost) for one in (other.other, other.sent))
        talk(f"what if {what_if_line(str(other.strategy), would, sent)}")
    talk(f"open it: workbench open {runs.sessions[0]}", "dim")


def _tell_saving(notice: Notice) -> None:
    talk(str(notice.data.get("message", "")), "error" if notice.kind == "unsaved" else "ok")


async def _serve(name: str, served: Served, listening: AbstractAsyncContextManager[Mapping[str, str]]) -> SessionEnd:
    """Serve while the command runs, or until a signal."""
    async with listening as variables:
        if served.command:
            return await _run(name, served.command, variables)
        return await _until_signal(name, variables)


async def _run(name: str, command: Sequence[str], variables: Mapping[str, str]) -> SessionEnd:
    """Run the command on this terminal. Ctrl+C is its own; a signal to end is handed on."""
    talk(f"recording {name}", "dim")
    loop, ended = asyncio.get_running_loop(), list[int]()
    signal.signal(signal.SIGINT, lambda *_: None)
    child = await started(command, variables)

    def end(number: int) -> None:
        ended.append(number)
        with suppress(ProcessLookupError):
            child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, int(number))
    code = await child.wait()
    _ignore_interrupts()
    return SessionEnd(code if code >= 0 else 128 - code, "a signal ended the command" if ended else "")


async def _until_signal(session: str, variables: Mapping[str, str]) -> SessionEnd:
    stop, loop, ended = asyncio.Event(), asyncio.get_running_loop(), list[int]()

    def end(number: int) -> None:
        ended.append(number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, int(number))
    signal.signal(signal.SIGINT, lambda number, _: loop.call_soon_threadsafe(end, number))
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    sys.stdout.flush()
    talk(f"recording {session}; set these variables where your program starts, Ctrl+C ends the recording", "dim")
    await stop.wait()
    _ignore_interrupts()
    return SessionEnd(0 if ended[0] == signal.SIGINT else 128 + ended[0])


def _ignore_interrupts() -> None:
    """From here on the record is closed, and the end told: another Ctrl+C would break that off. The handler before is
    none of the loop's, which would have to be removed first: for a moment Ctrl+C would be an exception."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _tell_end(project: Project, run: AttachedRun, json: bool) -> None:
    summary = project.store.summary(run.run_id)
    left = run.answers.unasked if isinstance(run.answers, RecordedAnswers) and run.answers.alone else 0
    if json:
        about = {"session": run.session, "run_id": run.run_id, "status": summary.status, "reason": summary.reason}
        write_json([{**about, "calls": run.recorder.calls, "not_asked": left, "fault": run.recorder.fault}])
        return
    if run.recorder.fault:
        talk(f"the record ended early: {run.recorder.fault}", "error")
    if not run.recorder.calls:
        why = f"workbench show {run.session} shows what was sent" if summary.warnings else NOTHING_CAME
        talk(f"no model call was recorded; {why}", "warning")
        return
    if summary.status == "diverged":
        talk(f"diverged: {summary.reason}", "error")
    elif left:
        talk(f"{left} recorded {'reply was' if left == 1 else 'replies were'} not asked for", "warning")
    if isinstance(run.answers, RecordedAnswers) and run.answers.drawn:
        kinds = ", ".join(sorted({one.kind for one in run.answers.drawn}))
        talk(f"not compared, as programs draw it anew at each start: {kinds}; warnings of the run say where", "dim")
    if totals := totals_line(summary):
        talk(totals, "dim")
    else:
        talk(f"{summary.reason or 'no call was answered'}; workbench show {run.session} says more", "warning")
    if (other := run.recorder.other) is not None:
        would, sent = ((one.tokens, one.cost) for one in (other.other, other.sent))
        talk(f"what if {what_if_line(str(other.strategy), would, sent)}")
    talk(f"open it: workbench open {run.session}", "dim")


def _with_bench(options: AttachOptions, served: Served, *, pause: bool, otlp: bool, terminal: bool) -> int:
    """Open the app on the session, which is recorded in its process; the app's exit code."""
    # The app needs the terminal: the command gets one of its own, or writes to a file and reads nothing.
    own = terminal or opens_unasked(os.environ, shutil.get_terminal_size().lines)
    if own and not opener(os.environ):
        raise Failure(Exit.USAGE, "no terminal can be opened here: there is neither tmux nor a desktop")
    output = attached_output(Folders.of(os.environ), options.session) if served.command and not own else None
    process = ServingProcess(served.listener, folder := Path.cwd())
    code = start(Opening(None, attach=AttachPlan(options, served, folder, output, pause, otlp, process)), {}, "attach")
    if output is not None and output.exists():
        talk(f"what the command printed: {output}", "dim")
    return code


def _given(upstreams: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in upstreams:
        name, sign, address = one.partition("=")
        if not sign:
            raise BadAddress(f"--upstream {one}: write NAME=URL, such as openai=http://localhost:8000/v1")
        found[name] = address
    return found
