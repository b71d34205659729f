"""Drives the run of the Bench: start, step, pause, stop, resume, breakpoints, and what the engine sends."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import Enum
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from workbench.engine.debugger.stepper import Breakpoint, Mode
from workbench.engine.definition import DefinitionError
from workbench.engine.routing.choosing import outcomes_of
from workbench.store.faults import StoreError
from workbench.tui.bench.file_view import file_view
from workbench.tui.bench.opening import take_stored
from workbench.tui.screens.breakpoints import BreakpointSheet, KnownNames, ask_for_breakpoint
from workbench.tui.screens.dialog import ChoiceDialog
from workbench.tui.screens.inputs import InputForm
from workbench.tui.screens.trust import asks_for_trust
from workbench.views.breakpoints import meaning
from workbench.views.cells import flat
from workbench.views.keys import told
from workbench.views.numbers import plural
from workbench.workspace.input_file import CannotOpen, input_file, write_input
from workbench.workspace.model_choice import GoesOffline

if TYPE_CHECKING:
    from pathlib import Path

    from workbench.engine.journal.state import RunState
    from workbench.language.load import Loaded
    from workbench.tui.bench.presenter import Presenter
    from workbench.tui.bench.stage import Stage
    from workbench.tui.bench.state import HeldRun
    from workbench.workspace.session import Reload, Session

EVENTS_PER_FRAME = 2000
TURNS_PER_SECOND = 8
"""Of the spinner."""
SAID = {
    "failed": "error",
    "unsaved": "error",
    "offline": "warning",
    "spans": "warning",
    "told": "warning",
    "hint": "information",
}
"""Notices whose message is said, and how grave they are."""


def known_names(presenter: Presenter) -> KnownNames:
    """Returns the names that a breakpoint of the file may use."""
    cascade = presenter.file.cascade if presenter.file is not None else None
    tools = {tool for phase in cascade.phases for tool in phase.tools} if cascade is not None else set()
    tools |= {phase.tool for phase in cascade.phases if phase.tool} if cascade is not None else set()
    schemas = (schema for listed in presenter.state.run.tool_schemas.values() for schema in listed)
    tools |= {str((schema.get("function") or {}).get("name") or "") for schema in schemas} - {""}
    graph = presenter.file.graph if presenter.file is not None else None
    edges = tuple((edge.src, edge.dst) for edge in graph.edges) if graph is not None else ()
    phases, state = [phase.name for phase in presenter.outline], list(presenter.state.run.state)
    run, outcomes = presenter.state.run, outcomes_of(graph) if graph is not None else ()
    visits = [f"{visit.phase}#{visit.visit}" for visit in run.visits] if "imported" in run.ports else []
    return KnownNames(phases, sorted(tools), state, edges, outcomes, visits)


_GOES_ON = {
    Mode.OVER: "Pauses before the next call.",
    Mode.INTO: "Pauses at the next stop.",
    Mode.OUT: "Pauses at the end of this phase.",
    Mode.CONTINUE: "Continues to the next breakpoint, or to the end.",
}
"""How an active run goes on that is let go in another mode."""


def _past_mode(held: HeldRun, run: RunState) -> Mode | None:
    """Returns how a run that is resumed goes on from a stop that its journal has behind it; None where it has not. What
    had begun branches or a child goes on inside them."""
    call = run.call_at(held.place)
    if call is not None:
        return Mode.OVER if call.answer is not None else None
    visit = run.visit_of(held.place)
    if visit is None or held.kind not in ("before_phase", "after_route"):
        return None
    if visit.finished:
        return Mode.OVER
    return Mode.INTO if visit.kind in ("parallel", "subgraph") else None


class News(Enum):
    """What the engine sent since the last frame."""

    NONE = "nothing"
    TEXT = "pieces of an answer"
    """They change its text and what counts it, and no other pane: a frame of them takes half of the time of one that
    draws all panes, while a thread that reads the stream wants the other half."""
    MORE = "anything else"


class Running:
    """The actions of the keys of the group "Run"."""

    def __init__(self, stage: Stage, begun: Callable[[], object]) -> None:
        """``begun`` is called when a run begins or goes on."""
        self._stage = stage
        self._on_begun = begun
        self._catching_up = False
        """Whether a resumed run still repeats what its journal holds."""
        self._printed = 0
        """Bytes that the watched program had printed when they were looked at last."""
        self._declined = ""
        """The run that was offered to be resumed, and was not: no key resumes it unasked."""

    @property
    def _say(self) -> Callable[..., None]:
        return self._stage.services.say

    # -- what the engine sends ---------------------------------------------------------------------------------------

    def take_frame(self) -> bool:
        """Take what the engine sent since the last frame, and redraw what it changed; whether it sent anything."""
        if (live := self._stage.live()) is None:
            return False
        session, presenter = live
        if (news := self.drain(session, presenter)) is News.MORE:
            self._stage.redraw()
            return True
        if presenter.starting and not session.running:
            presenter.starting = False
            self._stage.redraw()
        now = monotonic()
        held = presenter.state.held
        if news is News.TEXT:
            self._show_live(presenter, now, grown=True)
        elif held is not None and held.since is not None:
            if int(now) != presenter.tick:
                presenter.tick = int(now)
                self._stage.panes.show_lines(presenter)
        elif presenter.state.waiting or (presenter.state.alive and held is None):
            self._show_live(presenter, now)
        return news is not News.NONE

    def _show_live(self, presenter: Presenter, now: float, *, grown: bool = False) -> None:
        """Redraw what moves during a call. ``grown``: its answer has; then rows whose spinner stands are drawn, too."""
        turning = self._stage.panes.tree.app.animation_level != "none"
        tick = int(now * TURNS_PER_SECOND) if turning else 0
        turned, presenter.tick = tick != presenter.tick, tick
        self._stage.panes.show_live(presenter, turned=turned or (grown and not turning))

    def drain(self, session: Session, presenter: Presenter) -> News:
        """Take what the engine sent into the state, also of a session that is not shown."""
        arrived = [session.events.popleft() for _ in range(min(len(session.events), EVENTS_PER_FRAME))]
        noticed = [session.notices.popleft() for _ in range(len(session.notices))]
        for notice in noticed:
            if (severity := SAID.get(notice.kind)) is not None:
                self._say(str(notice.data.get("message", "")), severity)
        if not presenter.state.absorb(arrived, noticed, monotonic()):
            return News.NONE
        presenter.starting = presenter.starting and not arrived and not presenter.state.failure
        presenter.state.page_out()
        self._catch_up(session, presenter)
        held = presenter.state.held
        if held is not None and held.at_node and presenter.state.visited == held.place.visit_key:
            presenter.phase = held.place.phase
        return News.MORE if arrived or any(notice.kind != "text" for notice in noticed) else News.TEXT

    def _catch_up(self, session: Session, presenter: Presenter) -> None:
        """A resumed run repeats what is journaled before it does anything new: let it pass the calls that are over."""
        held = presenter.state.held
        if not self._catching_up or held is None:
            return
        past = _past_mode(held, presenter.state.run)
        self._catching_up = past is not None
        if past is not None:
            presenter.state.held = None
            session.go(past)
            self._stage.soon()

    def follow(self) -> None:
        """Show what the watched program prints, and what another process adds to the run that is viewed; when that
        process is gone, the run is over."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        printed = session.program.size if session.program is not None else 0
        if printed != self._printed:
            self._printed = printed
            self._stage.panes.show_dock(presenter)
        if not session.follows:
            return
        session.follow()
        self.take_frame()
        if not session.follows and not session.running:
            presenter.state.end_unfinished()
            self._stage.redraw()

    def show_stored(self) -> None:
        """Take what is left of the events of a stored run, and read the runs inside it."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        if session.events:
            take_stored(session, presenter.state)
        if presenter.state.started:
            self._stage.in_background(partial(self._fetch_nested, session, presenter), "nested")

    def _fetch_nested(self, session: Session, presenter: Presenter) -> None:
        """In a thread: the nested runs of a stored one, read behind what is shown."""
        state, known = presenter.state, len(presenter.state.children)
        while wanted := state.unknown_children():
            for run_id in wanted:
                try:
                    found = session.project.store.state(run_id)
                except StoreError as fault:
                    self._stage.later(self._say, f"a nested run cannot be read: {fault}", "warning")
                    return
                state.children.setdefault(run_id, found)
        if len(state.children) > known:
            self._stage.later(self._stage.redraw)

    # -- start and step ----------------------------------------------------------------------------------------------

    def step(self, mode: str) -> None:
        """Go on in a mode; start a run when none is going."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        if mode == "into" and self._looks_into(presenter):
            return
        if session.not_here:
            self._say(session.not_here, "warning")
            return
        wanted = Mode(mode)
        presenter.stepping = wanted is not Mode.CONTINUE
        if session.running:
            self._go(session, presenter, wanted)
        elif presenter.state.resumable and presenter.state.run.run_id != self._declined:
            self.resume(presenter.state.run.run_id, wanted)
        elif presenter.state.started and not session.runs:
            self._say(session.gone, "warning")
        elif presenter.state.started:
            self._offer_again(presenter)
        else:
            self.begin(wanted)

    def _go(self, session: Session, presenter: Presenter, mode: Mode) -> None:
        """Let the run go on from where it is paused. Elsewhere it says what the key changes, or that it changes
        nothing: steps are not kept for later, because each may cost a call."""
        paused = presenter.state.held is not None or session.stepper.held is not None
        changes = session.go(mode)
        self._stage.soon()
        if presenter.state.current_question() is not None:
            self._say(told("The run waits for your answer: {run.answer} opens the question."), "warning")
        elif not changes and mode is Mode.CONTINUE:
            self._say(told("The run is active already; {run.pause} pauses it."), "warning")
        elif not changes:
            # A plain message: a key that is taken soon after must not leave it standing.
            self._say("Key ignored: the last step is not over yet.", "information")
        elif not paused:
            self._say(_GOES_ON[mode])

    def _offer_again(self, presenter: Presenter) -> None:
        """The run that is shown is over: a step starts nothing by itself."""
        state = presenter.state
        run_id = state.run.run_id

        def chosen(answer: str | None) -> None:
            if answer == "resume":
                self._declined = ""
                self.resume(run_id, Mode.OVER)
            elif answer in ("step", "run"):
                presenter.stepping = answer == "step"
                self.begin(Mode.OVER if answer == "step" else Mode.CONTINUE)

        answers = [("step", "", "Run again, and pause before the first call"), ("run", "", "Run again to the end")]
        if state.resumable:
            answers.insert(0, ("resume", "", "Resume this run, and pause before its next call"))
        text = f"{state.run.session_id or run_id} ended: {state.run.status}."
        self._stage.services.push_screen(ChoiceDialog("Run again?", text, answers), chosen)

    def out(self) -> None:
        """Step out of the phase; from a nested run that is looked at, back to what started it. That is a look alone: it
        steps nothing, and a second press right behind it does not either."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        state = presenter.state
        if state.looks_elsewhere:
            state.come_back()
            self._show_selected(presenter)
        elif session.running and not (state.held is not None and state.selected == state.held.place):
            self._say(told("{run.out} steps out where the run is paused; {run.step_out} steps out from anywhere."))
        else:
            self.step("out")

    def _looks_into(self, presenter: Presenter) -> bool:
        """``i`` on a nested run of the tree looks into it; it steps the run where that is paused right there."""
        state, node = presenter.state, self._stage.panes.tree_node()
        if node is None or node.id[0] != "child" or state.held_run == node.run:
            return False
        if state.look_into(node.run):
            state.folding[node.id] = True
            self._show_selected(presenter)
        else:
            self._say("This run made no model call.")
        return True

    def _show_selected(self, presenter: Presenter) -> None:
        state = presenter.state
        if state.selected is not None and not state.selected_run:
            presenter.phase = state.selected.phase
        elif state.selected is None and state.visited is not None:
            presenter.phase = state.visited[1]
        self._stage.redraw()

    def start(self) -> None:
        """Start a new run, and let it run to its end; beside a live one in a tab of its own, after asking."""
        if (live := self._stage.live()) is None:
            return
        if live[0].running:
            self._ask_to_start_beside()
            return
        live[1].stepping = False
        self.begin(Mode.CONTINUE)

    def _ask_to_start_beside(self) -> None:
        """A run is active here: offer to start another one of the file in a tab of its own."""
        navigation = self._stage.services.navigation

        def chosen(answer: str | None) -> None:
            if answer == "beside":
                navigation.beside(lambda: navigation.begin(Mode.CONTINUE))

        text = told("A run is active in this tab. Another one of the same file can run beside it.")
        answers = (("beside", "a", "Start another run in a new tab"), ("stay", "s", "Stay here"))
        self._stage.services.push_screen(ChoiceDialog("Run beside this one?", text, answers), chosen)

    def _is_busy(self, session: Session) -> bool:
        """Returns whether a run is going on; says so, because another cannot begin beside it."""
        if session.running:
            self._say(told("A run is active. Press {run.stop} to stop it."), "warning")
        return session.running

    def begin(self, mode: Mode) -> None:
        """Start a run, after asking for declared inputs that are missing."""
        if (live := self._stage.live()) is None:
            return
        session, _ = live
        services, runnable = self._stage.services, session.runnable
        if not session.runs:
            self._say(session.gone, "warning")
            return
        if runnable is None or runnable.cascade is None:
            self._say(told("The file has errors: it cannot run. {tab.problems} lists them."), "error")
            self._stage.show_tab("problems")
            return
        if asks_for_trust(services, session, partial(self.begin, mode)):
            return
        declared = runnable.cascade.inputs_schema
        if outdated := session.outdated(services.given):
            services.given = {name: value for name, value in services.given.items() if name not in outdated}
            names = ", ".join(map(flat, outdated))
            self._say(f"Not passed, as the file no longer declares {'it' if len(outdated) == 1 else 'them'}: {names}.")
        if all(name in services.given for name in declared):
            self._launch(services.given, mode)
            return

        def filled(values: Mapping[str, Any] | None) -> None:
            if values is not None:
                services.given = {**services.given, **values}
                self._keep_inputs(session.file, services.given)
                self._launch(services.given, mode)

        services.push_screen(InputForm(declared, services.given), filled)

    def change_inputs(self) -> None:
        """Show what the next run is given, to be changed and saved."""
        if (live := self._stage.live()) is None:
            return
        session, services = live[0], self._stage.services
        runnable = session.runnable or session.opened
        declared = runnable.cascade.inputs_schema if runnable.cascade is not None else {}
        if not declared:
            self._say("This cascade declares no inputs (inputs_schema).")
            return

        def filled(values: Mapping[str, Any] | None) -> None:
            if values is not None:
                others = {name: value for name, value in services.given.items() if name not in declared}
                services.given = {**others, **values}
                self._keep_inputs(session.file, services.given)
                self._stage.redraw()

        services.push_screen(InputForm(declared, services.given, kept=input_file(session.file).name), filled)

    def _keep_inputs(self, file: Path, given: Mapping[str, Any]) -> None:
        """Save them beside the file, where the next run takes them from."""
        try:
            self._say(told("Inputs saved in {name}; {run.inputs} changes them.", name=write_input(file, given).name))
        except CannotOpen as fault:
            self._say(f"The inputs are used and not saved: {fault}", "warning")

    def _launch(self, given: Mapping[str, Any], mode: Mode) -> None:
        if (live := self._stage.live()) is None:
            return
        try:
            live[0].start(given, mode)
        except RuntimeError as fault:
            self._say(str(fault), "error")
            return
        self.begun()

    def begun(self) -> None:
        """A run has begun, or goes on."""
        if (live := self._stage.live()) is not None and live[0].running:
            live[1].starting = True
            self._stage.redraw()
        self._on_begun()
        self._stage.soon()

    def pause(self) -> None:
        """Hold at the next stop; go on when held."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        if session.not_here:
            self._say(session.not_here, "warning")
        elif presenter.state.held is not None:
            self.step("continue")
        elif session.running:
            session.pause()
            self._say("Pauses at the next stop.")
        else:
            self._say("No run is active.")

    def stop(self) -> None:
        """Stop the run."""
        if (live := self._stage.live()) is None:
            return
        if live[0].running:
            live[0].stop()
            self._stage.soon()
        else:
            self._say(live[0].not_here or "No run is active.")

    # -- a run that did not end --------------------------------------------------------------------------------------

    def resume(self, run_id: str, mode: Mode, *, offline: bool = False) -> None:
        """Go on with the stored run that is shown, where it stopped; in every mode but CONTINUE it is held before its
        next call. Unless ``offline``, it asks before the offline model goes on with what a provider began."""
        if (live := self._stage.live()) is None:
            return
        session, _ = live
        again = partial(self.resume, run_id, mode, offline=offline)
        if self._is_busy(session) or asks_for_trust(self._stage.services, session, again):
            return
        self._catching_up = mode is not Mode.CONTINUE
        try:
            session.resume(run_id, Mode.OVER if self._catching_up else mode, offline=offline)
        except GoesOffline as fault:
            self._catching_up = False
            self._ask_to_go_offline(run_id, mode, str(fault))
            return
        except (RuntimeError, StoreError, DefinitionError, CannotOpen) as fault:
            self._catching_up = False
            self._say(str(fault), "error")
            return
        self._stage.redraw()
        self.begun()

    def _ask_to_go_offline(self, run_id: str, mode: Mode, why: str) -> None:
        def chosen(answer: str | None) -> None:
            if answer == "go":
                self.resume(run_id, mode, offline=True)

        text = (
            f"This run used a provider, and now none is configured: {why}.\n"
            "Name it again (--model, --base-url or its key), or continue with scripted replies: no provider is called."
        )
        answers = (("stay", "s", "Cancel"), ("go", "o", "Continue offline"))
        self._stage.services.push_screen(ChoiceDialog("Continue offline?", text, answers), chosen)

    def offer_to_go_on(self, run_id: str, label: str, restored: str) -> None:
        """A run of this file did not end: ask whether it should go on, unless something was begun meanwhile.
        ``restored`` is the run that is shown because it was shown last."""
        if (live := self._stage.live()) is None or not self._stage.is_free:
            return
        session, presenter = live
        begun = presenter.state.started and not (restored and presenter.state.run.run_id == restored)
        if session.running or begun:
            return

        def chosen(answer: str | None) -> None:
            if answer == "go":
                self._stage.services.navigation.resume_run(run_id)
            elif answer == "look":
                self._stage.services.navigation.show_run(run_id)
            else:
                self._declined = run_id

        # No letters: what a hand presses by habit here steps and resumes.
        answers = (
            ("go", "", "Resume it, and pause before its next call"),
            ("look", "", "Look at it"),
            ("no", "", "Not now"),
        )
        self._stage.services.push_unasked(ChoiceDialog("An unfinished run", label, answers), chosen)

    # -- breakpoints -------------------------------------------------------------------------------------------------

    def breakpoint(self) -> None:
        """Set or clear a breakpoint where the tree's cursor is, or at the selected call."""
        if (live := self._stage.live()) is None:
            return
        point = self._breakpoint_here(*live)
        if point is None:
            self._say("No breakpoint here: select a phase, a turn or a node.", "warning")
            return
        points = live[0].stepper.breakpoints
        same = [one for one in points if replace(one, disabled=False) == point]
        points[:] = [one for one in points if one not in same] if same else [*points, point]
        self._toggled(point, not same)

    def ask_for_breakpoint(self) -> None:
        """Ask for a breakpoint by phase, turn, tool or condition. The place of the cursor is offered, and one that is
        set there already is cleared by the same answer.
        """
        if (live := self._stage.live()) is not None:
            session, presenter = live
            points, here = session.stepper.breakpoints, self._breakpoint_here(session, presenter)
            known = known_names(presenter)
            ask_for_breakpoint(self._stage.ask, points, known, self._stage.redraw, offered=here, toggled=self._toggled)

    def _breakpoint_here(self, session: Session, presenter: Presenter) -> Breakpoint | None:
        """The breakpoint under the tree's cursor, else the one that would stop at what is selected."""
        node = self._stage.panes.tree_node()
        if node is not None and node.id[0] == "breakpoint":
            return replace(session.stepper.breakpoints[int(node.id[1])], disabled=False)
        if node is not None and not node.phase and node.place is None:
            return None  # A sum or a heading.
        place = presenter.state.selected if node is None or node.place is None else node.place
        turn = place.turn if place is not None and (node is None or node.id[0] == "call") else 0
        here = place.phase if place is not None else presenter.phase
        phase = node.phase if node is not None and node.phase else here
        # The contexts of a watched program have nothing in common but their name.
        visit = place.visit if place is not None and "imported" in presenter.state.run.ports else 0
        return Breakpoint(phase, turn, visit=visit) if phase else None

    def _toggled(self, point: Breakpoint, is_set: bool) -> None:
        self._say(f"Breakpoint set: the run pauses {meaning(point)}." if is_set else f"Breakpoint {point} cleared.")
        self._stage.redraw()

    def list_breakpoints(self) -> None:
        """Show all breakpoints, to edit, disable and delete them."""
        if (live := self._stage.live()) is not None:
            session, presenter = live
            points, known = session.stepper.breakpoints, known_names(presenter)
            screen = BreakpointSheet(points, known, self._stage.redraw, presenter.breakpoint_doc)
            self._stage.services.push_screen(screen)

    # -- the file ----------------------------------------------------------------------------------------------------

    def outlined(self, loaded: Loaded) -> None:
        """A save was read and is being checked: show its phases."""
        presenter = self._stage.presenter
        if presenter is not None and presenter.file is not None:
            presenter.file = replace(presenter.file, cascade=loaded.cascade, source=loaded.source)
            self._stage.panes.show_tree(presenter)

    def take_file(self, session: Session, presenter: Presenter, reload: Reload, saved: str) -> None:
        """A save was looked at: take the new text into what shows it, also where that is not shown."""
        before = presenter.file
        presenter.file = file_view(session, reload.opened, saved, reload.gone)
        if before is not None and reload.opened.cascade is None:
            presenter.keep_outline(before)
        if presenter.state.started:
            presenter.state.changed = presenter.state.changed | reload.changed

    def tell_reloaded(self, reload: Reload) -> None:
        """Show the new text of the file that is shown, what it changed, and what is wrong with it."""
        presenter = self._stage.presenter
        if presenter is None or presenter.file is None:
            return
        self._stage.redraw()
        if reload.gone:
            self._say(f"{reload.gone}; the last good version stays", "error")
        elif not reload.valid:
            errors = [problem for problem in reload.opened.problems if problem.severity == "error"]
            stays = ", the last good version stays" if presenter.file.good else ""
            self._say(f"{plural(len(errors), 'error')} in the file{stays}: {errors[0]}", "error")
            self._stage.show_tab("problems")
        elif reload.changed:
            names = ", ".join(sorted(reload.changed))
            note = " This run keeps the version it started with." if presenter.state.started else ""
            self._say(f"File reloaded: {names} changed.{note}")
