"""The Bench's commands for the person beside the run: answers to its questions, and feedback to a running phase."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import TYPE_CHECKING

from textual import events, on

from workbench.tui.screens.bench_look import LookActions
from workbench.tui.widgets.prompt import PromptClosed

if TYPE_CHECKING:
    from workbench.engine.event import Event
    from workbench.engine.state import VisitState
    from workbench.tui.presenter import Presenter
    from workbench.tui.screens.dialog import Dialog
    from workbench.tui.screens.feedback import Said
    from workbench.tui.screens.form import Written
    from workbench.workspace.session import Session


def question_dialog(question: Event, written: Written | str | None = None) -> Dialog[str]:
    """The dialog of a ``human_asked`` event: its form, where it has one, with what was put into it before."""
    from workbench.engine.forms.spec import FormInvalid
    from workbench.tui.screens.form import FormDialog
    from workbench.tui.screens.question import QuestionDialog

    typed = written if isinstance(written, str) else ""
    if question.data.get("form") is None:
        return QuestionDialog(question, typed)
    try:
        return FormDialog(question, None if isinstance(written, str) else written)
    except FormInvalid:
        # Of a newer version: it can still be answered as text.
        return QuestionDialog(question, typed)


TURNS_PER_SECOND = 8
"""Of the spinner."""


class PeopleActions(LookActions):
    """What a and S do, and what they need."""

    _asked: Event | None = None
    """The question whose dialog was shown, so that one that was closed does not come back by itself."""
    _written: Written | str | None = None
    """What was put into its form, if that was left."""

    def _live(self) -> tuple[Session, Presenter] | None:
        """The session and what shows it, once they are there."""
        session, presenter = self.app.session, self.presenter
        return None if session is None or presenter is None else (session, presenter)

    @abstractmethod
    def tick_frame(self) -> None:
        """Take what the engine sent since the last frame."""

    def soon(self) -> None:
        """Look at the queues sooner than the next frame: a step usually answers within milliseconds."""
        for delay in (0.008, 0.025):
            self.set_timer(delay, self.tick_frame)

    # -- questions ---------------------------------------------------------------------------------------------------

    def ask_if_asked(self) -> None:
        """Show the dialog of a new question, unless another screen is open, or something is being written."""
        if (live := self._live()) is None or self.app.screen is not self or self.is_writing:
            return
        question = live[1].state.current_question()
        if question is not None and question is not self._asked:
            self._ask_person(self.app.push_unasked)

    @on(PromptClosed)
    @on(events.ScreenResume)
    def _has_time(self) -> None:
        """What came up while something else was open, or was being written, is asked now."""
        self.call_after_refresh(self.ask_if_asked)

    def close_settled(self) -> None:
        """The dialog of a question that nobody waits for any longer leaves the screen."""
        from workbench.tui.screens.dialog import Dialog

        screen = self.app.screen
        if (live := self._live()) is None or not isinstance(screen, Dialog) or screen.question is None:
            return
        state = live[1].state
        if not any(screen.question is open for run in (state.run, *state.children.values()) for open in run.questions):
            screen.dismiss(None)
            self.app.say("The question is over: nobody waits for its answer any more.", "warning")

    def action_answer(self) -> None:
        self._ask_person(self.app.push_screen)

    def _ask_person(self, show: Callable[..., object]) -> None:
        """Show what waits for an answer."""
        if (live := self._live()) is None:
            return
        session, presenter = live
        question = presenter.state.current_question()
        if question is None:
            self.app.say("Nothing waits for an answer.")
            return
        written = self._written if question is self._asked else None
        self._asked, self._written = question, None
        if question.data.get("candidates"):
            self.show_candidates(question.run_id, question.place, show)
            return

        dialog = question_dialog(question, written)

        def answered(text: str | None) -> None:
            if text is None:
                self._written = getattr(dialog, "written", None)
            elif not session.answer(question, text):
                self.app.say("Nobody waits for this answer any more.", "warning")
            self.soon()

        show(dialog, answered)

    # -- feedback ----------------------------------------------------------------------------------------------------

    def action_feedback(self) -> None:
        """Say something to the running phase; while it is written, the run waits before its next call."""
        from workbench.tui.screens.feedback import FeedbackDialog

        if (live := self._live()) is None:
            return
        session, presenter = live
        if not session.running:
            self.app.say("No run is going on.")
            return
        visit = running_visit(presenter)
        rule = session.audibles_of(visit.phase) if visit is not None else None
        if visit is None or rule is None:
            where = f"'{visit.phase}' takes no feedback" if visit is not None else "No phase is running"
            self.app.say(f"{where}: a phase that does sets 'audibles'.")
            return
        left = rule.budget - len(visit.feedback) - len(session.audibles.unheard)
        if left <= 0:
            self.app.say(f"'{visit.phase}' has had all its feedback: {rule.budget} of {rule.budget}.", "warning")
            return
        session.audibles.raise_hand()

        def said(answer: Said | None) -> None:
            if answer is None:
                session.audibles.lower_hand()
            else:
                session.audibles.say(answer.text, redo=answer.redo)
                self.app.say("The turn is taken again with it." if answer.redo else "The next call sees it.")
            self.soon()

        self.app.push_screen(FeedbackDialog(visit.phase, rule, left), said)

    def tell_unheard(self) -> None:
        """Once a run is over: what was said to it and came too late. Its thread may end frames after its last event."""
        live = self._live()
        if live is None or not live[0].audibles.unheard or live[1].state.alive or live[0].running:
            return
        for feedback in live[0].audibles.forget():
            self.app.say(f"No call came after it, so nobody heard: {feedback.text[:60]}", "warning")


def running_visit(presenter: Presenter) -> VisitState | None:
    """The phase that runs, as the fold knows it."""
    visits = [visit for visit in presenter.state.run.visits if visit.status == "running" and visit.kind != "candidate"]
    return visits[-1] if visits else None
