"""The Bench's commands that drive a run: start, step, pause, stop, breakpoints, answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from textual import work

from workbench.tui.key_words import told
from workbench.tui.rows.numbers import plural
from workbench.tui.screens.bench_people import PeopleActions

if TYPE_CHECKING:
    from workbench.engine.stepper import Mode
    from workbench.language.load import Loaded
    from workbench.tui.presenter import Presenter
    from workbench.workspace.facts import Reload
    from workbench.workspace.session import Session

EVENTS_PER_FRAME = 2000
TURNS_PER_SECOND = 8
"""Of the spinner."""


class RunActions(PeopleActions):
    """What the keys of the group "Run" do."""

    restored: str = ""
    """The run that is shown because it was shown last, not because somebody asked for it now."""

    _catching_up: bool = False
    """Whether a resumed run still repeats what its journal holds."""

    def tick_frame(self) -> None:
        """Take what the engine sent since the last frame, and redraw what it changed."""
        if (live := self._live()) is None:
            return
        session, presenter = live
        arrived = [session.events.popleft() for _ in range(min(len(session.events), EVENTS_PER_FRAME))]
        noticed = [session.notices.popleft() for _ in range(len(session.notices))]
        now = monotonic()
        for notice in noticed:
            if notice.kind in ("failed", "unsaved", "offline"):
                self.app.say(str(notice.data.get("message", "")), "warning" if notice.kind == "offline" else "error")
        if presenter.state.absorb(arrived, noticed, now):
            self._catch_up(session, presenter)
            self.refresh_all()
            self.close_settled()
            self.ask_if_asked()
        elif presenter.state.waiting or (presenter.state.alive and presenter.state.held is None):
            tick = int(now * TURNS_PER_SECOND) if self.app.animation_level != "none" else 0
            turned, presenter.tick = tick != presenter.tick, tick
            self.refresh_live(turned=turned)
        self.tell_unheard()

    def action_step(self, mode: str) -> None:
        """Go on in a mode; starts a run when none is going."""
        from workbench.engine.stepper import Mode

        if (live := self._live()) is None:
            return
        session, presenter = live
        if self._steps_through_nested(presenter, mode):
            return
        if session.follows:
            own = told("{run.start} makes one of your own.")
            self.app.say(f"Another process makes this run: it can only be looked at. {own}", "warning")
            return
        wanted = Mode(mode)
        presenter.stepping = wanted is not Mode.CONTINUE
        if session.running:
            session.go(wanted)
            self.soon()
        elif presenter.state.resumable:
            self.resume(presenter.state.run.run_id, wanted)
        else:
            self.begin(wanted)

    def _steps_through_nested(self, presenter: Presenter, mode: str) -> bool:
        """``i`` on a nested run of the tree looks into it, ``o`` comes back out of one that is looked at; both step
        the run instead where it is held right there."""
        state, node = presenter.state, self.tree_node()
        if mode == "into" and node is not None and node.id[0] == "child" and state.held_run != node.run:
            if not state.look_into(node.run):
                self.app.say("This run made no model call.")
                return True
            state.folding[node.id] = True
        elif (
            mode != "out" or not state.selected_run or (state.held is not None and state.held_run == state.selected_run)
        ):
            return False
        else:
            state.come_back()
        if state.selected is not None and not state.selected_run:
            presenter.phase = state.selected.phase
        self.refresh_all()
        return True

    def action_start(self) -> None:
        from workbench.engine.stepper import Mode

        if (live := self._live()) is None:
            return
        session, presenter = live
        if self._is_busy(session):
            return
        presenter.stepping = False
        self.begin(Mode.CONTINUE)

    def _is_busy(self, session: Session) -> bool:
        """Whether a run is going on; says so, because another cannot begin beside it."""
        if session.running:
            self.app.say(told("A run is going on: {run.stop} stops it, {run.continue} lets it go on."), "warning")
        return session.running

    def begin(self, mode: Mode) -> None:
        """Start a run, after asking for inputs that the cascade declares and nobody gave."""
        if (live := self._live()) is None:
            return
        session, _ = live
        runnable = session.runnable
        if not session.runs:
            self.app.say(session.gone, "warning")
            return
        if runnable is None or runnable.cascade is None:
            self.app.say(told("The file has errors: it cannot run. {tab.problems} lists them."), "error")
            self.action_tab("problems")
            return
        from workbench.tui.screens.trust import asks_for_trust

        if asks_for_trust(self.app, session, partial(self.begin, mode)):
            return
        declared = runnable.cascade.inputs_schema
        missing = [name for name in declared if name not in self.app.given]
        if not missing:
            self.launch(self.app.given, mode)
            return
        from workbench.tui.screens.inputs import InputForm

        def filled(values: Mapping[str, Any] | None) -> None:
            if values is not None:
                self.app.given = {**self.app.given, **values}
                self.launch(self.app.given, mode)

        self.app.push_screen(InputForm(declared, self.app.given), filled)

    def shows(self, run_id: str) -> bool:
        """Whether a run is what the Bench shows."""
        return self.presenter is not None and bool(run_id) and self.presenter.state.run.run_id == run_id

    def launch(self, given: Mapping[str, Any], mode: Mode) -> None:
        if (live := self._live()) is None:
            return
        session, _ = live
        try:
            session.start(given, mode)
        except RuntimeError as fault:
            self.app.say(str(fault), "error")
            return
        self._asked = None
        self.soon()

    def _catch_up(self, session: Session, presenter: Presenter) -> None:
        """A resumed run repeats what is journaled before it does anything new: let it pass the calls that are over."""
        from workbench.engine.stepper import Mode

        held = presenter.state.held
        if not self._catching_up or held is None:
            return
        call = presenter.state.run.call_at(held.place)
        self._catching_up = call is not None and call.answer is not None
        if self._catching_up:
            presenter.state.held = None
            session.go(Mode.OVER)
            self.soon()

    def resume(self, run_id: str, mode: Mode, *, offline: bool = False) -> None:
        """Go on with a stored run where it stopped; in every mode but CONTINUE it is held before its next call. Unless
        ``offline``, it asks before the offline model goes on with what a provider began."""
        from workbench.engine.definition import DefinitionError
        from workbench.engine.stepper import Mode
        from workbench.store.faults import StoreError
        from workbench.tui.screens.trust import asks_for_trust
        from workbench.workspace.choice import GoesOffline

        if (live := self._live()) is None:
            return
        session, presenter = live
        if self._is_busy(session) or asks_for_trust(
            self.app, session, partial(self.resume, run_id, mode, offline=offline)
        ):
            return
        if presenter.state.run.run_id != run_id:
            session.view(run_id)
            self.show_what_is_stored()
        self._catching_up = mode is not Mode.CONTINUE
        try:
            session.resume(run_id, Mode.OVER if self._catching_up else mode, offline=offline)
        except GoesOffline as fault:
            self._catching_up = False
            self._ask_to_go_offline(run_id, mode, str(fault))
            return
        except (RuntimeError, StoreError, DefinitionError) as fault:
            self.app.say(str(fault), "error")
            return
        self._asked = None
        self.refresh_all()
        self.soon()

    def _ask_to_go_offline(self, run_id: str, mode: Mode, why: str) -> None:
        from workbench.tui.screens.dialog import Choice

        def chosen(answer: str | None) -> None:
            if answer == "go":
                self.resume(run_id, mode, offline=True)

        text = (
            f"A provider answered this run, and now none is known: {why}.\n"
            "Name it again (--model, --base-url or its key), or let scripted replies go on: no provider is called."
        )
        answers = (("stay", "s", "Leave it as it is"), ("go", "o", "Go on offline"))
        self.app.push_screen(Choice("Go on offline?", text, answers), chosen)

    def show_what_is_stored(self) -> None:
        """Take the events of a stored run, all at once; one without an end was interrupted."""
        if (live := self._live()) is None or not live[0].events:
            return
        session, presenter = live
        stored = [session.events.popleft() for _ in range(len(session.events))]
        presenter.state.absorb(stored, (), monotonic())
        if not session.running and session.project.store.writer(presenter.state.run.run_id) is None:
            presenter.state.end_unfinished()
        self._fetch_nested(presenter)

    @work(thread=True, group="nested", exit_on_error=False)
    def _fetch_nested(self, presenter: Presenter) -> None:
        """The nested runs of a stored one, read behind what is shown."""
        from workbench.store.faults import StoreError

        state, session = presenter.state, self.app.session
        wanted = state.unknown_children()
        while wanted and session is not None:
            for run_id in wanted:
                try:
                    found = session.project.store.state(run_id)
                except StoreError as fault:
                    self.app.call_later(self.app.say, f"a nested run cannot be read: {fault}", "warning")
                    return
                state.children.setdefault(run_id, found)
            wanted = state.unknown_children()
        self.app.call_later(self.refresh_all)

    def offer_to_go_on(self, run_id: str, label: str) -> None:
        """A run of this file did not end: ask whether it should go on, unless something was begun meanwhile."""
        from workbench.engine.stepper import Mode
        from workbench.tui.screens.dialog import Choice

        if (live := self._live()) is None or self.app.screen is not self:
            return
        session, presenter = live
        if session.running or self.is_writing or (presenter.state.started and not self.shows(self.restored)):
            return

        def chosen(answer: str | None) -> None:
            if answer == "go":
                self.resume(run_id, Mode.OVER)
            elif answer == "look":
                session.view(run_id)
                self.show_what_is_stored()
                self.refresh_all()

        answers = (
            ("go", "g", "Go on, and hold before the next call"),
            ("look", "l", "Look at it"),
            ("no", "n", "Not now"),
        )
        self.app.push_unasked(Choice("An unfinished run", label, answers), chosen)

    def action_pause(self) -> None:
        if (live := self._live()) is None:
            return
        session, presenter = live
        if presenter.state.held is not None:
            self.action_step("continue")
        elif session.running:
            session.pause()
            self.app.say("Holds at the next stop.")
        else:
            self.app.say("No run is going on.")

    def action_stop(self) -> None:
        if (live := self._live()) is None:
            return
        session, _ = live
        if session.running:
            session.stop()
            self.soon()
        else:
            self.app.say("No run is going on.")

    # -- breakpoints -------------------------------------------------------------------------------------------------

    def action_breakpoint(self) -> None:
        """Set or clear a breakpoint where the tree's cursor is, or at the selected call."""
        from workbench.engine.stepper import Breakpoint

        if (live := self._live()) is None:
            return
        session, presenter = live
        points = session.stepper.breakpoints
        node = self.tree_node()
        if node is not None and node.id[0] == "breakpoint":
            del points[int(node.id[1])]
            self.refresh_all()
            return
        place = presenter.state.selected if node is None or node.place is None else node.place
        turn = place.turn if place is not None and (node is None or node.id[0] == "call") else 0
        phase = node.phase if node is not None and node.phase else presenter.phase
        if not phase:
            return
        point = Breakpoint(phase, turn)
        if point in points:
            points.remove(point)
            self.app.say(f"Breakpoint {point} cleared.")
        else:
            points.append(point)
            self.app.say(f"Breakpoint {point}: the run holds there before the call.")
        self.refresh_all()

    def action_breakpoint_prompt(self) -> None:
        from workbench.tui.breakpoints import BreakpointError, parse_breakpoint

        if (live := self._live()) is None:
            return
        session, presenter = live

        def done(text: str) -> str | None:
            if not text.strip():
                return None
            try:
                session.stepper.breakpoints.append(parse_breakpoint(text, [p.name for p in presenter.outline]))
            except BreakpointError as fault:
                return str(fault)
            self.refresh_all()
            return None

        self.ask(
            "breakpoint",
            placeholder="phase · phase:turn · tool NAME · tokens > 6000 · state.score < 3",
            done=done,
        )

    # -- the file ----------------------------------------------------------------------------------------------------

    def outlined(self, loaded: Loaded) -> None:
        """A save was read and is being checked: show its phases."""
        presenter = self.presenter
        if presenter is not None and presenter.file is not None:
            presenter.file = replace(presenter.file, cascade=loaded.cascade, source=loaded.source)
            self.show_tree(presenter)

    def reloaded(self, session: Session, reload: Reload, saved: str) -> None:
        """A save was looked at: show the new text, what it changed, and what is wrong with it."""
        from workbench.tui.opening import file_view

        presenter = self.presenter
        if presenter is None:
            return
        before = presenter.file
        presenter.file = file_view(session, reload.opened, saved, reload.gone)
        if before is not None and reload.opened.cascade is None:
            presenter.keep_outline(before)
        if presenter.state.started:
            presenter.state.changed = presenter.state.changed | reload.changed
        self.refresh_all()
        if reload.gone:
            self.app.say(f"{reload.gone}; the last good version stays", "error")
        elif not reload.valid:
            errors = [problem for problem in reload.opened.problems if problem.severity == "error"]
            stays = ", the last good version stays" if presenter.file.good else ""
            self.app.say(f"{plural(len(errors), 'error')} in the file{stays}: {errors[0]}", "error")
            self.action_tab("problems")
        elif reload.changed:
            names = ", ".join(sorted(reload.changed))
            note = "; the run stays with the text it started with" if presenter.state.alive else ""
            self.app.say(f"taken over: {names} changed{note}")
