"""The Bench's commands that change the past: edit where the run is held, fork at a call, run again after a save."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from workbench.tui.key_words import told
from workbench.tui.screens.bench_run import RunActions

if TYPE_CHECKING:
    from workbench.tui.presenter import Presenter
    from workbench.workspace.session import Session


class TravelActions(RunActions):
    """What E, F and R do."""

    def action_edit_held(self) -> None:
        """Edit what stands where the run is held: a message, the answer, a tool call, the state."""
        from workbench.engine.edits import EditError
        from workbench.workspace.edit_text import FORMS_AT, read_edits

        if (live := self._live()) is None:
            return
        session, _ = live
        if (held := session.stepper.held) is None:
            words = "{run.over} steps to the next call, {run.fork} forks at one of the past."
            self.app.say(told("Edits are made where a run is held: " + words))
            return

        if (forms := FORMS_AT.get(held.kind)) is None:
            words = "Nothing can be edited {here}: {run.over} and {run.into} step to the next stop."
            self.app.say(told(words, here=str(held.kind).replace("_", " ")))
            return

        def done(text: str) -> str | None:
            if not text.strip():
                return None
            stop = session.stepper.held
            try:
                entries = stop.assembly.entries if stop is not None and stop.assembly is not None else ()
                session.edit(*read_edits([text], entries))
            except EditError as fault:
                return str(fault)
            self.soon()
            return None

        self.ask(
            "edit",
            placeholder=forms,
            done=done,
        )

    def action_fork(self) -> None:
        """A new run that begins as this one did, held before the selected call."""
        if (ready := self._ready_to_travel()) is None:
            return
        state = ready[1].state
        place = state.selected or (state.run.calls[-1].place if state.run.calls else None)
        if place is None or state.run.call_at(place) is None:
            self.app.say("Choose the call to fork at.")
            return
        self.fork_at(state.run.run_id, str(place), f"{place.phase}:{place.turn}")

    def fork_at(self, run_id: str, place: str, said: str = "") -> None:
        """A new run that begins as a stored one did, held before the call at a place, which a person calls ``said``."""
        from workbench.engine.stepper import Mode
        from workbench.tui.screens.trust import asks_for_trust

        if (ready := self._ready_to_travel()) is None:
            return
        session, presenter = ready
        if asks_for_trust(self.app, session, partial(self.fork_at, run_id, place, said)):
            return
        presenter.stepping = True
        session.fork(run_id, place, Mode.OVER)
        words = "A new run, forked from {run} and held before {place}: {run.edit} edits, {run.over} goes on. "
        back = "{run} stays as it is; {app.runs} lists both."
        self.app.say(told(words + back, run=presenter.state.run.session_id, place=said or place))
        self._begun()

    def action_rerun(self) -> None:
        """Run the file as it is now; calls whose requests are unchanged keep their answers."""
        from workbench.engine.stepper import Mode
        from workbench.tui.screens.trust import asks_for_trust

        if (ready := self._ready_to_travel()) is None:
            return
        session, presenter = ready
        if asks_for_trust(self.app, session, self.action_rerun):
            return
        presenter.stepping = False
        try:
            session.rerun(presenter.state.run.run_id, Mode.CONTINUE)
        except RuntimeError as fault:
            self.app.say(str(fault), "error")
            return
        self.app.say("Runs again with the recorded answers; holds at the first request that has changed.")
        self._begun()

    def _begun(self) -> None:
        self._asked = None
        self.soon()

    def _ready_to_travel(self) -> tuple[Session, Presenter] | None:
        """The session and its presenter, where a run is shown and none is going on; else says what is missing."""
        if (live := self._live()) is None:
            return None
        session, presenter = live
        if session.running:
            self.app.say(told("A run is going on: {run.stop} stops it first."), "warning")
            return None
        if not presenter.state.run.run_id:
            self.app.say(told("There is no run yet: {run.start} makes one."))
            return None
        return live
