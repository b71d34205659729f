"""The choice among candidates: a person picks one, ranks or rates them, gives a reason, or rejects all."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from workbench.engine.picking import REJECT
from workbench.tui.rows.candidates import CandidateRows
from workbench.tui.screens.sheet import Sheet

if TYPE_CHECKING:
    from workbench.engine.event import Event
    from workbench.engine.standings import Standing
    from workbench.engine.state import RunState


class ChoosingSheet(Sheet):
    """Candidates among which a person chooses, where the run asks for it."""

    def __init__(self, rows: CandidateRows, answer: Callable[[Event, str], bool] | None) -> None:
        """``answer`` gives a person's choice to the run, False when nobody waits for it; without it nothing is
        chosen."""
        super().__init__(rows)
        self._answer = answer
        self._asked: Event | None = None
        """The question whose dialog was shown, so that one that was closed does not come back by itself."""

    @property
    def rows(self) -> CandidateRows:
        assert isinstance(self._rows, CandidateRows)
        return self._rows

    @property
    def candidate(self) -> Standing | None:
        """The one under the cursor."""
        return self.rows.candidate(self.view.cursor)

    def _question(self) -> Event | None:
        question = self.rows.question
        if question is None or self._answer is None:
            self.app.say("The run does not wait for a choice here.")
            return None
        return question

    def action_choose(self) -> None:
        """Give the person's choice, with a reason if there is one."""
        question, here = self._question(), self.candidate
        if question is None:
            return
        offered = list(question.data["candidates"])
        mode = question.data.get("mode", "pick_one")
        if mode != "pick_one":
            listed = " ".join(f"{number}={self._number_of(index)}" for number, index in enumerate(offered, 1))
            example = "2, 1, 3" if mode == "rank_all" else "70, 90, 55"
            words = f"{example}   for the attempts {listed}"
            self.ask("rank" if mode == "rank_all" else "rate", placeholder=words, done=self._sender(question, ""))
            return
        if here is None or here.entrant.index not in offered:
            self.app.say("Go to one of the candidates that are marked with ?")
            return
        number = offered.index(here.entrant.index) + 1
        needs = bool(self.rows.shown.get("reason"))
        why = "why: a reason is asked for" if needs else "why, if you like to say"
        self.ask(
            f"choose {here.number}",
            placeholder=f"{why}; enter chooses, esc does not",
            done=self._sender(question, f"Attempt {number}", needs=needs),
        )

    def _number_of(self, index: int) -> str:
        one = self.rows.by_index(index)
        return one.number if one is not None else str(index)

    def _sender(self, question: Event, pick: str, *, needs: bool = False) -> Callable[[str], str | None]:
        def done(text: str) -> str | None:
            said = text.strip()
            if not pick and not said:
                return "Give a number for each attempt."
            if needs and not said:
                return "Say why: the file asks for a reason."
            self._send(question, f"{pick}: {said}" if pick and said else pick or said)
            return None

        return done

    def _send(self, question: Event, text: str) -> None:
        if self._answer is not None and not self._answer(question, text):
            self.app.say("Nobody waits for this answer any more.", "warning")

    def action_reject(self) -> None:
        """Choose none of them, after asking: the phase fails."""
        from workbench.tui.screens.dialog import Choice

        question = self._question()
        if question is None:
            return
        if REJECT not in question.data.get("options", ()):
            self.app.say("The file does not let you reject all (allow_reject_all).")
            return

        def answered(answer: str | None) -> None:
            if answer == "reject":
                self._send(question, REJECT)

        answers = (("keep", "k", "Keep choosing"), ("reject", "r", "Reject all"))
        self.app.push_screen(Choice("Reject all candidates?", "The phase fails then.", answers), answered)

    def ask_further(self, state: RunState) -> None:
        """A question that is no choice among candidates, a reason for example, is asked in a dialog."""
        from workbench.tui.screens.bench_people import question_dialog

        question = next((q for q in state.questions if not q.data.get("candidates")), None)
        if question is None or question is self._asked or self._answer is None or self.app.screen is not self:
            return
        self._asked = question

        def answered(text: str | None) -> None:
            if text is not None:
                self._send(question, text)

        self.app.push_unasked(question_dialog(question), answered)
