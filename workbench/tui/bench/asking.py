"""The person beside the run: answers to its questions, and feedback to a running phase."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.tui.screens.dialog import Dialog
from workbench.tui.screens.feedback import FeedbackDialog, FeedbackText
from workbench.tui.screens.question import question_dialog
from workbench.views.keys import told

if TYPE_CHECKING:
    from workbench.engine.journal.event import Event
    from workbench.engine.journal.parts import VisitState
    from workbench.tui.bench.inspecting import Inspecting
    from workbench.tui.bench.presenter import Presenter
    from workbench.tui.bench.stage import Stage
    from workbench.tui.screens.form import UnsentForm


class Asking:
    """The actions of the keys a and S."""

    def __init__(self, stage: Stage, inspecting: Inspecting) -> None:
        """``inspecting`` shows the candidates that a question is about."""
        self._stage = stage
        self._inspecting = inspecting
        self._asked: Event | None = None
        """The question whose dialog was shown, so that one that was closed does not come back by itself."""
        self._written: UnsentForm | str | None = None
        """The content of its form, if that was left."""

    def begin_anew(self) -> None:
        """Another run: its questions are new ones."""
        self._asked = None

    # -- questions ---------------------------------------------------------------------------------------------------

    def ask_if_asked(self) -> None:
        """Show the dialog of a new question, unless another screen is open, or something is being written."""
        if (live := self._stage.live()) is None or not self._stage.is_free:
            return
        question = live[1].state.current_question()
        if question is not None and question is not self._asked:
            self.answer(unasked=True)

    def close_settled(self, screen: object) -> None:
        """Close the dialog of a question whose run no longer waits."""
        if (live := self._stage.live()) is None or not isinstance(screen, Dialog) or screen.question is None:
            return
        state, question = live[1].state, screen.question
        runs = (state.run, *state.children.values())
        if any(question is open for run in runs for open in run.questions):
            return
        screen.dismiss(None)
        if not any(run.answered_before(question) for run in runs if run.run_id == question.run_id):
            self._stage.services.say("Too late: the question was closed.", "warning")

    def answer(self, *, unasked: bool = False) -> None:
        """Show what waits for an answer; ``unasked`` where no key asked for it."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        services = self._stage.services
        question = presenter.state.current_question()
        if question is None or session.not_here:
            if not unasked:
                services.say(session.not_here or "No question is open.")
            return
        written = self._written if question is self._asked else None
        self._asked, self._written = question, None
        if question.data.get("candidates"):
            self._inspecting.show_candidates(question.run_id, question.place, unasked=unasked)
            return

        dialog = question_dialog(question, written)

        def answered(text: str | None) -> None:
            if text is None:
                self._written = dialog.written
            elif not session.answer(question, text):
                services.say("Too late: the run is no longer waiting for this answer.", "warning")
            self._stage.soon()

        show: Callable[..., object] = services.push_unasked if unasked else services.push_screen
        show(dialog, answered)

    def answer_over_candidates(self, *, unasked: bool) -> None:
        """Show the dialog of a question that is no choice among candidates, a reason for example; ``unasked``: only
        that of a new one."""
        question = live[1].state.current_question() if (live := self._stage.live()) is not None else None
        is_choice = question is not None and question.data.get("candidates")
        if not unasked and is_choice:
            self._stage.services.say(told("{candidates.choose} chooses the candidate under the cursor."))
        elif not is_choice and not (unasked and question in (None, self._asked)):
            self.answer(unasked=unasked)

    # -- feedback ----------------------------------------------------------------------------------------------------

    def feedback(self) -> None:
        """Send feedback to the running phase; while it is written, the run waits before its next call."""
        if (live := self._stage.live()) is None:
            return
        session, presenter = live
        services = self._stage.services
        if not session.running:
            services.say(session.not_here or "No run is active.")
            return
        visit = running_visit(presenter)
        rule = session.audibles_of(visit.phase) if visit is not None else None
        if visit is None or rule is None:
            where = f"'{visit.phase}' takes no feedback" if visit is not None else "No phase is running"
            services.say(f"{where}: a phase that does sets 'audibles'.")
            return
        left = rule.budget - len(visit.feedback) - len(session.audibles.unheard)
        if left <= 0:
            services.say(f"'{visit.phase}' has had all its feedback: {rule.budget} of {rule.budget}.", "warning")
            return
        session.audibles.raise_hand()

        def said(answer: FeedbackText | None) -> None:
            if answer is None:
                session.audibles.lower_hand()
            else:
                session.audibles.say(answer.text, redo=answer.redo)
                services.say("The turn is repeated with it." if answer.redo else "The next call sees it.")
            self._stage.soon()

        services.push_screen(FeedbackDialog(visit.phase, rule, left), said)

    def tell_unheard(self) -> None:
        """Once a run is over: what was said to it and came too late. Its thread may end frames after its last event."""
        live = self._stage.live()
        if live is None or not live[0].audibles.unheard or live[1].state.alive or live[0].running:
            return
        for feedback in live[0].audibles.forget():
            self._stage.services.say(f"The feedback came after the last call: {feedback.text[:60]}", "warning")


def running_visit(presenter: Presenter) -> VisitState | None:
    """The phase that runs, as the fold knows it."""
    visits = [visit for visit in presenter.state.run.visits if visit.status == "running" and visit.kind != "candidate"]
    return visits[-1] if visits else None
