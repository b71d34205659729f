"""Changes a run: edits where it is held, forks at a call, runs the file again after a save."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from workbench.engine.debugger.stepper import Mode
from workbench.engine.edits import EditError
from workbench.tui.screens.trust import asks_for_trust
from workbench.views.keys import told
from workbench.workspace.edit_text import FORMS_AT, read_edits

if TYPE_CHECKING:
    from workbench.tui.bench.presenter import Presenter
    from workbench.tui.bench.running import Running
    from workbench.tui.bench.stage import Stage
    from workbench.workspace.session import Session


class Editing:
    """What E, F and R do."""

    def __init__(self, stage: Stage, running: Running) -> None:
        self._stage = stage
        self._running = running

    def edit_held(self) -> None:
        """Edit what stands where the run is held: a message, the answer, a tool call, the state."""
        if (live := self._stage.live()) is None:
            return
        session, say = live[0], self._stage.services.say
        if (held := session.stepper.held) is None:
            words = "{run.over} steps to the next call, {run.fork} forks at one of the past."
            say(told("Edits are made where a run is held: " + words))
            return
        if (forms := FORMS_AT.get(held.kind)) is None:
            words = "Nothing can be edited {here}: {run.over} and {run.into} step to the next stop."
            say(told(words, here=str(held.kind).replace("_", " ")))
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
            self._stage.soon()
            return None

        self._stage.ask("edit", placeholder=forms, done=done)

    def fork(self) -> None:
        """Start a run that begins as this one did, held before the selected call."""
        if (live := self._stage.live()) is None:
            return
        state = live[1].state
        if not state.run.run_id:
            self._stage.services.say(told("There is no run yet: {run.start} makes one."))
            return
        place = state.selected or (state.run.calls[-1].place if state.run.calls else None)
        if place is None or state.run.call_at(place) is None:
            self._stage.services.say("Choose the call to fork at.")
            return
        self.fork_at(state.run.run_id, str(place), f"{place.phase}:{place.turn}")

    def fork_at(self, run_id: str, place: str, said: str = "") -> None:
        """Start a run that begins as a stored one did, in a tab of its own, paused before the call at a place that is
        named ``said``. What is shown stays."""
        if (live := self._stage.live()) is None:
            return
        if asks_for_trust(self._stage.services, live[0], partial(self.fork_at, run_id, place, said)):
            return
        navigation = self._stage.services.navigation
        navigation.beside(lambda: navigation.fork_here(run_id, place, said or place))

    def fork_here(self, run_id: str, place: str, said: str) -> None:
        """The same in what is shown, where no run is active."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        presenter.stepping = True
        session.fork(run_id, place, Mode.OVER)
        words = "A fork of the run, paused before {place}: {run.edit} edits, {run.over} steps. "
        back = "The run itself stays open in its own tab: {tabs.previous}."
        self._stage.services.say(told(words + back, place=said))
        self._running.begun()

    def rerun(self) -> None:
        """Run the file as it is now; calls whose requests are unchanged keep their answers."""
        if (ready := self._ready()) is None:
            return
        session, presenter = ready
        services = self._stage.services
        if asks_for_trust(services, session, self.rerun):
            return
        presenter.stepping = False
        try:
            session.rerun(presenter.state.run.run_id, Mode.CONTINUE)
        except RuntimeError as fault:
            services.say(str(fault), "error")
            return
        services.say("Runs again with the recorded answers; holds at the first request that has changed.")
        self._running.begun()

    def _ready(self) -> tuple[Session, Presenter] | None:
        """The session and its presenter, where a run is shown and none is going on; else says what is missing."""
        if (live := self._stage.live()) is None:
            return None
        session, presenter = live
        if session.running:
            self._stage.services.say(told("A run is going on: {run.stop} stops it first."), "warning")
            return None
        if not presenter.state.run.run_id:
            self._stage.services.say(told("There is no run yet: {run.start} makes one."))
            return None
        return live
