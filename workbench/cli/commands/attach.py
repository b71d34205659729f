"""``workbench attach``: a proxy that records the model calls of any program as a run, and answers them again."""

from __future__ import annotations

import asyncio
import os
import secrets
import shlex
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import click
from aiohttp import web
from msgspec import Struct

from workbench.attach.providers import PROVIDERS, BadAddress, addresses, client_variables
from workbench.attach.proxy import Proxy
from workbench.attach.recorded import RecordedAnswers
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import CascadeFile, SessionName, as_json, project_here
from workbench.cli.printer import talk, write_json
from workbench.cli.running import SESSION_ID
from workbench.store.faults import UnknownRun
from workbench.views.run import totals_line
from workbench.workspace.attaching import AttachedRun, AttachOptions, attached_run
from workbench.workspace.offline_replies import RepliesError
from workbench.workspace.project import Project, new_session_id

PORT = 8333
"""Where clients find the proxy that no command was given to; a command gets any free port."""
LOOPBACK = "127.0.0.1"
STAND_IN = "workbench"
"""The key of clients that refuse to start without one, where no provider is asked."""
SWITCH_SECONDS = 0.001
"""How long the recorder may compute while a client waits: Python's own 5 ms would be added to every other call."""
OPEN_SECONDS = 30.0
"""How long the app waits for the recording to begin."""


@click.command(short_help="Watch the model calls of any program, and replay them.")
@click.argument("command", nargs=-1, type=click.UNPROCESSED, metavar="[-- COMMAND…]")
@click.option("--port", type=click.IntRange(0, 65535), help=f"Default: {PORT}, or any free one for a command.")
@click.option("--session", metavar="NAME", help="Name of the run; a new one without it.")
@click.option("--bench", is_flag=True, help="Open the app on the traffic; what the command prints goes to a file.")
@click.option("--upstream", "upstreams", multiple=True, metavar="NAME=URL", help="Where a provider is; again for more.")
@click.option("--offline", is_flag=True, help="The offline model answers; no provider is asked.")
@click.option("--replies", type=CascadeFile(), help="Scripted replies of the offline model, by context: agent#2.")
@click.option("--replay", type=SessionName(), help="Answer from this session, strictly by request.")
@click.option("--reuse", type=SessionName(), help="Answer from this session; other requests go to the provider.")
@click.option("--bind", metavar="ADDRESS", help="Listen on another address, with a token in the path.")
@as_json
@click.pass_context
def command(
    ctx: click.Context,
    command: tuple[str, ...],
    port: int | None,
    session: str | None,
    bench: bool,
    upstreams: tuple[str, ...],
    offline: bool,
    replies: Path | None,
    replay: str | None,
    reuse: str | None,
    bind: str | None,
    json: bool,
) -> None:
    """Run COMMAND with the addresses of OpenAI, Anthropic, Gemini, OpenRouter and Ollama set to a proxy on this
    machine, and record its model calls as a run: what each call sent, what is new since the call before, what the
    provider could take from its cache, and the cost. Requests and answers pass as they are. Without a command the
    variables to set are printed, and clients are recorded until Ctrl+C.

    The exit code is the command's; 1 where a replay has diverged.

    \b
    Examples:
      workbench attach -- python my_agent.py
      workbench attach --offline -- python examples/agent.py
      workbench attach --replay python-1f3a -- python my_agent.py
      workbench attach --upstream openai=http://localhost:8000/v1
    """
    if sum((offline, replay is not None, reuse is not None)) > 1:
        raise Failure(Exit.USAGE, "--offline, --replay and --reuse exclude each other")
    if replies is not None and not offline:
        raise Failure(Exit.USAGE, "--replies are those of the offline model", hint="add --offline")
    if session and not SESSION_ID.fullmatch(session):
        raise Failure(Exit.USAGE, f"'{session}' cannot be the name of a run: letters, digits, '.', '_' and '-'")
    project = project_here()
    name = session or new_session_id(Path(command[0]).name if command else "agent")
    if bench:
        words = [word for word in sys.argv[1:] if word != "--bench"]
        at = words.index("--") if "--" in words else len(words)
        extra = [] if session else ["--session", name]
        ctx.exit(_with_bench(project, name, [*words[:at], *extra, *words[at:]]))
    options = AttachOptions(shlex.join(command), name, offline, replies, replay or "", reuse or "")
    try:
        where = addresses(os.environ, _given(upstreams))
    except BadAddress as fault:
        raise Failure(Exit.USAGE, str(fault)) from None
    listener = _listen(bind or LOOPBACK, port if port is not None else 0 if command else PORT)
    try:
        with attached_run(project, options) as run:
            ended = asyncio.run(_serve(run, where, listener, command, secrets.token_urlsafe(18) if bind else ""))
            code = _finish(run, ended)
    except RepliesError as fault:
        raise Failure(Exit.USAGE, str(fault)) from None
    _tell_end(project, run, json)
    ctx.exit(code)


class _Ended(Struct, frozen=True):
    code: int
    """Of the command; 0 without one."""
    stopped: bool = False
    """By a signal."""


async def _serve(
    run: AttachedRun, where: Mapping[str, str], listener: socket.socket, command: Sequence[str], token: str
) -> _Ended:
    """Serve while the command runs, or until a signal."""
    sys.setswitchinterval(SWITCH_SECONDS)
    host, port = listener.getsockname()[:2]
    names = frozenset() if token else frozenset({f"{LOOPBACK}:{port}", f"localhost:{port}"})
    proxy = Proxy(where, run.recorder, run.answers, hosts=names, token=token)
    runner = web.AppRunner(proxy.application(), access_log=None, shutdown_timeout=2.0, handler_cancellation=True)
    await runner.setup()
    base = f"http://{host}:{port}" + (f"/{token}" if token else "")
    variables = client_variables(base)
    if run.answers is not None and run.answers.alone:
        keys = (key for one in PROVIDERS for key in one.keys)
        variables |= {key: STAND_IN for key in keys if not os.environ.get(key)}
    try:
        await web.SockSite(runner, listener).start()
        if command:
            return await _run(run, command, variables)
        return await _until_signal(run, variables)
    finally:
        await runner.cleanup()


async def _run(run: AttachedRun, command: Sequence[str], variables: Mapping[str, str]) -> _Ended:
    """Run the command on this terminal. Ctrl+C is its own; a signal to end is handed on."""
    talk(f"recording {run.session}", "dim")
    loop, ended = asyncio.get_running_loop(), list[int]()
    loop.add_signal_handler(signal.SIGINT, lambda: None)
    try:
        child = await asyncio.create_subprocess_exec(*command, env={**os.environ, **variables})
    except OSError as fault:
        raise Failure(Exit.USAGE, f"'{command[0]}' cannot be run: {fault.strerror}") from None

    def end(number: int) -> None:
        ended.append(number)
        with suppress(ProcessLookupError):
            child.send_signal(number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, int(number))
    code = await child.wait()
    return _Ended(code if code >= 0 else 128 - code, bool(ended))


async def _until_signal(run: AttachedRun, variables: Mapping[str, str]) -> _Ended:
    for name, value in variables.items():
        print(f"export {name}={shlex.quote(value)}")
    sys.stdout.flush()
    talk(f"recording {run.session}; set these variables where your program starts, Ctrl+C ends the recording", "dim")
    stop, loop, ended = asyncio.Event(), asyncio.get_running_loop(), list[int]()

    def end(number: int) -> None:
        ended.append(number)
        stop.set()

    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, end, int(number))
    await stop.wait()
    return _Ended(0 if ended[0] == signal.SIGINT else 128 + ended[0])


def _finish(run: AttachedRun, ended: _Ended) -> int:
    """Close the record with the status of the session; the exit code."""
    diverged = run.answers.diverged if isinstance(run.answers, RecordedAnswers) else ""
    if diverged:
        run.recorder.close("diverged", diverged)
        return ended.code or Exit.FAILED
    if ended.stopped:
        run.recorder.close("stopped", "a signal ended the command")
    elif ended.code:
        run.recorder.close("failed", f"the command ended with exit code {ended.code}")
    else:
        run.recorder.close("success")
    return ended.code


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
        talk("no model call came by; does the program read the variables that were set?", "warning")
        return
    if summary.status == "diverged":
        talk(f"diverged: {summary.reason}", "error")
    elif left:
        talk(f"{left} recorded {'reply was' if left == 1 else 'replies were'} not asked for", "warning")
    talk(totals_line(summary), "dim")
    talk(f"look at it: workbench open {run.session}", "dim")


def _with_bench(project: Project, session: str, words: list[str]) -> int:
    """Record in a process of its own, and open the app on the run; the app's exit code."""
    # The app needs the terminal: the command writes to a file, and reads nothing.
    from workbench.cli.app import Opening, start
    from workbench.workspace.folders import Folders

    folder = Folders.of(os.environ).state / "attach"
    folder.mkdir(parents=True, exist_ok=True)
    output = folder / f"{session}.log"
    with output.open("wb") as log:
        recording = subprocess.Popen(
            [sys.executable, "-m", "workbench", *words],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        run_id = _begun(project, session, recording)
        if not run_id:
            raise Failure(Exit.USAGE, f"the recording did not begin: {output.read_text('utf-8', 'replace')[-2000:]}")
        talk(f"what the command prints: {output}", "dim")
        return start(Opening(None, view=run_id), {}, "attach")
    finally:
        if recording.poll() is None:
            recording.terminate()
        recording.wait()


def _begun(project: Project, session: str, recording: subprocess.Popen[bytes]) -> str:
    """The id of the run, once it is there; empty where it does not come."""
    until = time.monotonic() + OPEN_SECONDS
    while time.monotonic() < until:
        with suppress(UnknownRun):
            return project.store.find(session)
        if recording.poll() is not None:
            with suppress(UnknownRun):
                return project.store.find(session)
            return ""
        time.sleep(0.05)
    return ""


def _given(upstreams: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for one in upstreams:
        name, sign, address = one.partition("=")
        if not sign:
            raise BadAddress(f"--upstream {one}: write NAME=URL, such as openai=http://localhost:8000/v1")
        found[name] = address
    return found


def _listen(address: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    bound = socket.socket(family, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((address, port))
        bound.listen(256)
    except OSError as fault:
        bound.close()
        reason = fault.strerror or str(fault)
        told = f"{address}:{port} cannot be used: {reason}"
        raise Failure(Exit.USAGE, told, hint="--port 0 takes a free one") from None
    return bound
