"""Shared by ``run`` and ``resume``: a start from options, the run on the main thread with its signals, and its end."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextlib import suppress
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click
from msgspec import Struct, field
from msgspec.structs import replace

from workbench.analysis.advice import largest, remedy_of
from workbench.cli.errors import Exit, Failure
from workbench.cli.options import plain as with_plain
from workbench.cli.options import project_here, quiet_option, read_json, unscripted_option
from workbench.cli.printer import talk
from workbench.cli.progress import Progress, closing_line
from workbench.context.reasons import origin
from workbench.engine.gate import Decision, Gate, RunStopped, Stop, StopKind, open_gate
from workbench.engine.journal.redact import without_password
from workbench.engine.journal.unanswered import Unanswered
from workbench.engine.model_name import OFFLINE
from workbench.language.clean import clean
from workbench.models.prices import PriceTable
from workbench.store.faults import UnknownRun
from workbench.views.numbers import count
from workbench.views.run import totals_line
from workbench.views.words import ended_words
from workbench.workspace.input_file import default_input
from workbench.workspace.live_spans import finish_spans
from workbench.workspace.model_choice import ModelChoice, choose_model, chosen_for, goes_offline
from workbench.workspace.model_place import DOUBTED, model_words
from workbench.workspace.offline_replies import require_fitting
from workbench.workspace.people import BadAnswers, FirstChoice, NoHuman, PreparedAnswers, Terminal, example_answer
from workbench.workspace.run_builder import (
    RunAttachments,
    Start,
    from_checkpoint,
    new_options,
    resume,
    run_new,
    start_of,
)
from workbench.workspace.team import Shipping

if TYPE_CHECKING:
    from workbench.context.place import Place
    from workbench.engine.contracts import Human, Question
    from workbench.engine.definition import Definition, Options, Outcome
    from workbench.engine.journal.event import Event
    from workbench.workspace.opened_cascade import OpenedCascade
    from workbench.workspace.project import Project

Result = TypeVar("Result")
SESSION_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}")


class RunOptions(Struct, frozen=True):
    """How a run was asked for; empty texts leave the choice to the settings."""

    model: str = ""
    session: str = ""
    sandbox: str = ""
    until: str | None = None
    answers: str | None = None
    approve: bool = False
    """Take the first choice of every question that no prepared answer answers."""
    json: bool = False
    quiet: bool = False
    plain: bool = False
    allow: tuple[str, ...] = ()
    """Errors of a pipeline that count as warnings."""
    degrade: bool = False
    """Of ``resume``: go on without the conversations, as behind a checkpoint of another engine."""


def driving(function: Callable[..., None]) -> Callable[..., None]:
    """The last options of every command that drives a run, which is passed click's context. In place of these, and of
    the model, the server and the sandbox, it gets the workspace and how the run was asked for."""

    @wraps(function)
    def command(
        ctx: click.Context,
        *,
        model: str | None,
        base_url: str | None,
        sandbox: str | None,
        unscripted: str | None,
        answers: str | None,
        auto_approve: bool,
        json: bool,
        quiet: bool,
        plain: bool,
        **own: Any,
    ) -> None:
        project = project_here(base_url=base_url, sandbox=sandbox, unscripted=unscripted)
        way = RunOptions(model or "", "", sandbox or "", None, answers, auto_approve, json, quiet, plain)
        function(ctx, project=project, way=way, **own)

    for option in (
        with_plain,
        quiet_option,
        click.option("--json", is_flag=True, help="The journal's events on stdout, one JSON object per line."),
        unscripted_option,
        click.option("--auto-approve", is_flag=True, help="Take the first choice of every open question."),
        click.option("--answers", metavar="JSON|FILE", help="Answers to questions: a JSON object by phase, or a list."),
    ):
        command = option(command)
    return command


def cannot_run(opened: OpenedCascade) -> Failure:
    """Returns why a cascade with errors is not run: all of them."""
    return Failure(Exit.USAGE, "the cascade cannot run as it is", file=opened.shown, problems=opened.errors)


SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Until(Struct):
    """A gate that ends the run before the first call of a turn: ``phase`` or ``phase:turn``."""

    phase: str
    turn: int = 1
    reached: bool = False

    @classmethod
    def parse(cls, text: str) -> Until:
        """Raises Failure for a turn that is not a number."""
        phase, _, turn = text.partition(":")
        if turn and not (turn.isdigit() and int(turn) > 0):
            raise Failure(Exit.USAGE, f"'{text}' is not a place", hint="write phase or phase:turn, turns count from 1")
        return cls(phase, int(turn) if turn else 1)

    async def __call__(self, stop: Stop) -> Decision:
        here = stop.place
        if stop.kind is StopKind.BEFORE_CALL and stop.depth == 0 and (here.phase, here.turn) == (self.phase, self.turn):
            self.reached = True
            raise RunStopped(f"paused before {self.phase}:{self.turn}, as asked")
        return Decision()


def in_doubt(gate: Gate) -> Gate:
    """A gate that ends a resumed run before a tool that was started and whose result never came: running it twice may
    do harm, and there is no person to decide."""

    async def doubting(stop: Stop) -> Decision:
        if stop.answered_by == "maybe":
            raise RunStopped(f"{stop.tool} may have run already, at {stop.place.words}; --rerun-tools runs it again")
        return await gate(stop)

    return doubting


def person(answers: str | None, progress: Progress, *, approve: bool = False) -> tuple[Human, PreparedAnswers | None]:
    """Returns who answers questions: the prepared answers first, then the first choice if everything is to be approved,
    then the terminal, if there is one; and the prepared ones. Raises Failure for a file that holds no answers."""
    behind: Human = _Beside(Terminal(), progress) if sys.stdin.isatty() and sys.stderr.isatty() else NoHuman()
    if approve:
        behind = FirstChoice(behind)
    if answers is None:
        return behind, None
    written = answers.lstrip()[:1] in ("{", "[")
    file = "--answers" if written else answers
    given = read_json(answers if written else f"@{answers.removeprefix('@')}", "--answers")
    if not isinstance(given, dict | list):
        raise Failure(Exit.USAGE, "answers are an object by phase, or a list", file=file)
    try:
        prepared = PreparedAnswers(given, behind)
    except BadAnswers as fault:
        raise Failure(Exit.USAGE, str(fault), file=file) from fault
    return prepared, prepared


class _Beside(Struct):
    """Asks while the moving line stands still."""

    human: Human
    progress: Progress

    async def ask(self, question: Question, place: Place, index: int) -> str:
        with self.progress.person():
            return await self.human.ask(question, place, index)


class Verdict(Struct):
    """How a run ended, as an exit code."""

    fault: Mapping[str, Any] = field(default_factory=dict)
    """Why the last call that was tried got no answer: the ``error`` of its event; empty once one was answered."""
    needs_trust: bool = False
    signal: int = 0
    session: str = ""
    run_id: str = ""
    cascade_file: str = ""
    has_calls: bool = False
    """Whether a model was asked in this run itself; what only its children asked counts for them."""
    asked: Event | None = None
    """The question that waits for its answer."""
    json: bool = False
    stop: Callable[[int], None] = field(default=lambda number: None)
    """Stops the run as a signal of this number does."""

    def event(self, event: Event) -> None:
        """Take the next event; with ``json`` also print it."""
        match event.kind:
            case "run_started":
                self.session, self.run_id = event.data.get("session_id", ""), event.run_id
                self.cascade_file = event.data.get("cascade_file", "")
            case "call_started":
                self.has_calls = self.has_calls or event.run_id == self.run_id
            case "call_failed":
                self.fault = event.data.get("error") or {"kind": ""}
            case "call_finished":
                self.fault = {}
            case "human_asked":
                self.asked = event
            case "human_answered":
                self.asked = self.asked if event.data.get("refused") else None
            case "phase_finished":
                self.needs_trust = event.data.get("check") == "trust"
        if self.json:
            try:
                sys.stdout.write(json.dumps(event.to_json(), ensure_ascii=True, separators=(",", ":")) + "\n")
                sys.stdout.flush()
            except BrokenPipeError:  # Whoever read it has seen enough.
                self.json = False
                with Path(os.devnull).open("w") as nowhere:
                    os.dup2(nowhere.fileno(), sys.stdout.fileno())
                self.stop(signal.SIGPIPE)

    def exit_code(self, status: str, until: Until | None) -> int:
        """0 for success, and for a run that was paused as the user requested."""
        if self.signal:
            return 128 + self.signal
        if status == "success" or (until is not None and until.reached):
            return Exit.OK
        if self.needs_trust:
            return Exit.TRUST
        if status == "failed" and self.fault and self.fault.get("kind") != "unscripted":
            return Exit.PROVIDER
        return Exit.FAILED


def drive(work: Coroutine[Any, Any, Result], verdict: Verdict) -> Result:
    """Run to the end. The first signal stops the run, which is journaled as stopped; the second ends the process."""

    async def main() -> Result:
        task = asyncio.ensure_future(work)
        loop = asyncio.get_running_loop()

        def stop(number: int) -> None:
            verdict.signal = number
            task.cancel()
            for each in SIGNALS:
                loop.remove_signal_handler(each)
                signal.signal(each, signal.SIG_DFL)

        verdict.stop = stop
        for number in SIGNALS:
            with suppress(ValueError, RuntimeError):  # not the main thread: signals cannot be received there
                loop.add_signal_handler(number, stop, int(number))
        return await task

    return asyncio.run(main())


def run_file(project: Project, file: Path, input: Mapping[str, Any] | None, way: RunOptions) -> int:
    """Run a cascade file; the exit code. Raises the errors of opening the file, and Failure if it cannot run."""
    if way.session and not SESSION_ID.fullmatch(way.session):
        raise Failure(Exit.USAGE, f"'{way.session}' is not a session id", hint="letters, digits, '.', '_' and '-'")
    opened = project.open(file, way.allow)
    if opened.definition is None:
        raise cannot_run(opened)
    project.store.require_new(way.session)
    cascade = opened.definition.cascade
    if way.until:
        _known_phase(Until.parse(way.until).phase, [phase.name for phase in cascade.phases])
    choice = choose_model(project, cascade, file, way.model)
    if choice.offline:
        require_fitting(project, opened)  # a mistake in it should leave no empty run behind
    options = new_options(project, cascade.cascade_id, choice, way.session)
    given = default_input(file) if input is None else dict(input)
    start = Start(opened.definition, file.resolve(), given, choice, options, way.sandbox)
    return driven(project, way, choice, lambda attached: run_new(project, start, attached))


def chooser(project: Project, way: RunOptions) -> Callable[[Definition, Options], ModelChoice]:
    """Returns what chooses the model of a run that goes on from a stored one."""
    return lambda definition, options: chosen_for(project, definition, way.model, options.default_model)


def resume_run(project: Project, run_id: str, way: RunOptions, *, rerun_tools: bool = False) -> int:
    """Go on with a stored run; the exit code. A tool that may have run already stops it unless ``rerun_tools``. Raises
    Failure where a provider answered the run and the offline model would go on with it unasked."""

    choose = chooser(project, way)
    stands = from_checkpoint(project, run_id, choose, degrade=way.degrade)
    if stands is None and way.degrade:
        why = "only the run of a pipeline that stands at a node of its main walk can go on without its conversations"
        raise Failure(Exit.USAGE, why, hint="resume it without --resume-full degrade")
    if stands is not None:
        new, parent = stands
        return driven(project, way, new.choice, lambda attached: run_new(project, new, attached, parent=parent))
    start = start_of(project, run_id, choose)
    if goes_offline(project, run_id, start.choice, way.model):
        raise Failure(
            Exit.USAGE,
            f"a provider answered this run, and now none is known: {start.choice.why}",
            hint="name it again, --base-url or its key, or continue with scripted replies: --model offline",
        )
    if way.until:
        _known_phase(Until.parse(way.until).phase, [phase.name for phase in start.definition.cascade.phases])
    return driven(
        project,
        way,
        start.choice,
        lambda attached: resume(project, run_id, start, attached),
        resumed=True,
        gate=lambda progress, behind: behind if rerun_tools else in_doubt(behind),
        past=project.store.events(run_id),
    )


def driven(
    project: Project,
    way: RunOptions,
    choice: ModelChoice,
    begin: Callable[[RunAttachments], Coroutine[Any, Any, Outcome]],
    *,
    resumed: bool = False,
    gate: Callable[[Progress, Gate], Gate] | None = None,
    past: Iterable[Event] = (),
) -> int:
    """Drive a run on the main thread and tell how it goes; the exit code. ``gate`` is put before the one of the
    options, and keeps silent about what happens until it speaks. ``past``: what the journal of a resumed run holds.
    What is sent elsewhere meanwhile (spans, journals) is waited for when all is told, and not for long."""
    with Shipping(project.store, lambda text: talk(text, "warning")):
        code = _driven(project, way, choice, begin, resumed=resumed, gate=gate, past=past)
        finish_spans()
    return code


def _driven(
    project: Project,
    way: RunOptions,
    choice: ModelChoice,
    begin: Callable[[RunAttachments], Coroutine[Any, Any, Outcome]],
    *,
    resumed: bool,
    gate: Callable[[Progress, Gate], Gate] | None,
    past: Iterable[Event],
) -> int:
    for note in project.notes:
        talk(note, "warning")
    if choice.offline and not way.quiet:
        talk(f"model offline: scripted replies, no provider is called ({choice.why})", "warning")
    until = Until.parse(way.until) if way.until else None
    verdict, besides, known = Verdict(json=way.json), Unanswered(), 0
    for event in past:
        besides.take(event)
        known = event.seq
    with Progress(way.plain, quiet=way.quiet, resumed=resumed or gate is not None) as progress:

        def observe(event: Any) -> None:
            verdict.event(event)
            if event.seq > known:  # A resumed run tells its past again, but for its failed tries.
                besides.take(event)
            progress.event(event)

        human, prepared = person(way.answers, progress, approve=way.approve)
        behind: Gate = until if until is not None else open_gate
        attached = RunAttachments(
            gate(progress, behind) if gate is not None else behind, human, observe, progress.notice
        )
        if prepared is not None:
            attached = replace(attached, audibles=prepared, remarks=prepared.remarks)
        outcome = drive(begin(attached), verdict)
    if not way.json and outcome.output:
        _print_output(outcome.output)
    if until is not None and not until.reached:
        talk(f"{way.until} was not reached", "warning")
    for left in prepared.unused() if prepared is not None else ():
        talk(f"--answers: no question asked for '{left}'", "warning")
    code = verdict.exit_code(outcome.status, until)
    unanswered = verdict.fault if outcome.status == "failed" else {}
    if not way.quiet:
        look = "context" if verdict.has_calls else "show"
        way_on = _way_on(project, way, verdict, outcome.status, unanswered)
        closing_line(
            verdict.session,
            outcome.status,
            outcome.reason,
            unanswered,
            way_on=way_on,
            look=look,
            totals=_totals(project, verdict.run_id),
        )
        if outcome.status == "stopped" and verdict.asked is not None and not verdict.signal:
            talk(_answer_line(way_on, verdict.asked), "dim")
        if told := str(besides):
            talk(told, "warning")
    elif code:
        talk(ended_words(outcome.status, outcome.reason), "error")
    if unanswered.get("kind") == "context_length":
        _name_the_largest(project, verdict.run_id)
    elif unanswered.get("kind") in DOUBTED:
        _name_the_model(project, verdict.run_id)
    return code


def _totals(project: Project, run_id: str) -> str:
    """Calls, tokens, cost and time of a run; empty if its journal could not be written."""
    try:
        return totals_line(project.store.summary(run_id))
    except UnknownRun:
        return ""


def _way_on(project: Project, way: RunOptions, verdict: Verdict, status: str, fault: Mapping[str, Any]) -> str:
    """The line with the command that goes on, empty where none does. What was given for this start alone, no journal
    remembers, so the command gives it again: without its server a run would go on elsewhere, or offline."""
    flags = ["--model", OFFLINE] if way.model == OFFLINE else []
    if project.settings.origins["base_url"] == "flag":
        given = project.settings.base_url
        flags += ["--base-url", given if without_password(given) == given else "URL"]
    if way.sandbox:
        flags += ["--sandbox", way.sandbox]
    if fault and not remedy_of(fault).again:
        again = ["run", verdict.cascade_file, "--reuse", verdict.session, "--live", *flags]
        return f"after a change, with the answers so far: {shlex.join(['workbench', *again])}"
    if status == "stopped" or fault:
        return f"resume it: {shlex.join(['workbench', 'resume', verdict.session, *flags])}"
    return ""


def _answer_line(way_on: str, asked: Event) -> str:
    """The command that goes on with the answer to a question that nobody was there for: with its first choices,
    else with a word in the place of the answer."""
    answer = json.dumps({asked.place.phase: example_answer(asked.data)}, ensure_ascii=False)
    return f"with an answer: {way_on.partition(': ')[2]} {shlex.join(['--answers', answer])}"


def _name_the_largest(project: Project, run_id: str) -> None:
    """For a request that was too long: the messages with the most tokens."""
    for call in project.store.state(run_id).calls[-1:]:
        for number, entry in largest(call):
            tokens = count(entry.tokens_sent, entry.grade)
            talk(f"  #{number} {entry.item.message.role}, {origin(entry)}: {tokens} tokens", "dim")


def _name_the_model(project: Project, run_id: str) -> None:
    """For a missing model: the line that names it, and similar names."""
    state = project.store.state(run_id)
    for call in state.calls[-1:]:
        talk(model_words(state, call, PriceTable(project.settings.prices)))


def _print_output(text: str) -> None:
    """The output: unchanged for a program, made safe for a terminal."""
    sys.stdout.write((clean(text) if sys.stdout.isatty() else text).rstrip("\n") + "\n")
    sys.stdout.flush()


def _known_phase(name: str, phases: list[str]) -> None:
    if name not in phases:
        raise Failure(Exit.USAGE, f"'{name}' is not a phase", hint=f"there are {', '.join(phases)}")
