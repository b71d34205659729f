"""The playground: the request of a call, editable, sent again to one or more models; answers and costs side by side."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from msgspec import Struct, field
from textual import events, on, work
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Button, Input, Static

from workbench.context.edits import EditError
from workbench.engine.edits import Edit
from workbench.engine.journal.state import RunState
from workbench.language.clean import clean
from workbench.tui.bindings import bindings
from workbench.tui.screens.base import WorkbenchScreen
from workbench.tui.screens.dialog import ChoiceDialog, Dialog
from workbench.tui.screens.edit import EditScreen, ModelRows, ReviewSheet
from workbench.tui.screens.sheet import Sheet
from workbench.tui.text import plain
from workbench.tui.widgets.entry import LineInput
from workbench.tui.widgets.line import SpanLine
from workbench.tui.widgets.rowview import RowView
from workbench.views.cells import Span, dropping, flat
from workbench.views.edits import ChangeRows
from workbench.views.keys import ALWAYS, FOOTERS, told
from workbench.views.model import Rows
from workbench.views.numbers import plural
from workbench.views.playground import (
    AnswerColumns,
    SampleRows,
    answer_text,
    input_words,
    plan_words,
    request_rows,
    where,
)
from workbench.views.text import TextRows, text_lines
from workbench.workspace.edit_draft import Change, EditDraft
from workbench.workspace.known_models import KnownModels
from workbench.workspace.playground import Playground, PlaygroundError, PlaygroundPlan, Sample, dollars
from workbench.workspace.project import Project
from workbench.workspace.prompt_edit import PromptEdit, PromptError, prompt_edit
from workbench.workspace.text_file import CannotSave

TICK = 0.1
"""Seconds between two drawings while calls are under way."""


class PlaygroundState(Struct):
    """A playground with what was asked for and what came back: it is kept while the app runs, so that answers which
    were paid for are there when the same call is opened again."""

    playground: Playground
    models: tuple[str, ...] = ()
    """Empty: the model of the call."""
    samples: int = 1
    max_cost: float | None = None
    """US dollars."""
    answers: dict[tuple[str, int], Sample] = field(default_factory=dict)
    answered_with: tuple[Edit, ...] = ()
    """The edits of the request that the answers are to."""


class Arrived(Message):
    """Something is known of a sample, or the round is over (None)."""

    def __init__(self, sample: Sample | None, fault: str = "") -> None:
        super().__init__()
        self.sample = sample
        self.fault = fault


class PlannedCalls(Message):
    """The calls are priced, or there is a reason against them."""

    def __init__(self, plan: PlaygroundPlan | None, fault: str = "", *, send: bool) -> None:
        super().__init__()
        self.plan = plan
        self.fault = fault
        self.send = send


class RequestEdits:
    """Edits of the playground's request: they replace those that it has."""

    def __init__(self, playground: Playground, draft: EditDraft) -> None:
        self.where = where(playground.subject)
        self._playground = playground
        self._draft = draft

    def check(self, edits: Sequence[Edit]) -> str:
        """Raises EditError with the rule that the edits break."""
        self._playground.check(self._draft)
        return plural(len(self._playground.messages(self._draft)), "message")

    def make(self, edits: Sequence[Edit]) -> None:
        """Take them for the calls that follow."""
        self._playground.draft = self._draft


class PlaygroundScreen(WorkbenchScreen[None]):
    """Sends a request again. What is made of it, a fork or a change of the prompt, begins here."""

    CSS_PATH = "playground.tcss"
    AUTO_FOCUS = "#samples"
    BINDINGS: ClassVar[list[BindingType]] = [*bindings("playground"), *bindings("find")]
    CLEARS: ClassVar[str] = "playground.close"
    PALETTE: ClassVar[tuple[str, ...]] = ("playground", "find", "list")
    needs_focus: ClassVar[bool] = True

    def __init__(
        self,
        state: PlaygroundState,
        run: RunState,
        project: Project,
        fork: Callable[[Sequence[Edit], str], None],
    ) -> None:
        """``run``: the run that the call is of. ``fork`` starts one with edits at a stop of the call."""
        super().__init__()
        self.state = state
        self._run = run
        self._project = project
        self._fork = fork
        self._plan: PlaygroundPlan | None = None
        self._fault = ""
        self._first = 0
        """The first column that shows."""
        self._tick = 0
        self._task: asyncio.Task[Any] | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stale = True
        self.sending = False
        self.list = RowView(SampleRows(()), id="samples")
        self.columns = RowView(AnswerColumns(()), id="answers", selecting=False)
        self._header = SpanLine(id="header")
        self._note = Static("", id="note")
        """Why nothing is sent, or what speaks against a model; wrapped."""

    def compose(self) -> ComposeResult:
        yield self._header
        yield self._note
        yield self.list
        yield self.columns
        yield self.footer

    def on_mount(self) -> None:
        self.set_interval(TICK, self._draw)
        self._price()
        self._draw()

    def on_unmount(self) -> None:
        self.action_stop()

    def main_list(self) -> RowView:
        return self.list

    # -- what is shown -----------------------------------------------------------------------------------------------

    @property
    def _samples(self) -> tuple[Sample, ...]:
        return tuple(self.state.answers.values())

    def _draw(self) -> None:
        if not self._stale and not self.sending:
            return
        self._tick += self.sending
        samples = self._samples
        rows = SampleRows(samples, self._tick)
        most = max(6, self.size.height // 3)
        self.list.styles.height = max(6, min(len(samples) + 1, most)) if samples else len(rows.empty) + 2
        self.list.show(rows)
        if self._stale:
            self.columns.show(self._below(samples))
            unused = [] if samples else ["list.open", "playground.copy"]
            unused += [] if self.sending else ["playground.stop"]
            self.offer((id for id in FOOTERS["playground"] if id not in unused), ALWAYS[:2])
        self._stale = False
        self._show_header()

    def _below(self, samples: tuple[Sample, ...]) -> Rows:
        """The answers side by side; before there are any, the request."""
        if samples or self.sending:
            return AnswerColumns(samples, self._first)
        playground = self.state.playground
        try:
            return request_rows(playground.messages(playground.draft))
        except EditError:
            return AnswerColumns(())

    def _show_header(self) -> None:
        state, playground = self.state, self.state.playground
        parts: list[list[Span]] = [[("playground ", "faint"), (flat(where(playground.subject)), "bold")]]
        if edits := len(playground.draft.changes):
            later = "" if state.answered_with == playground.draft.edits or not state.answers else ", not sent yet"
            parts.append([(f"✎ {plural(edits, 'edit')}{later}", "changed")])
        if self._plan is not None:  # The names of several models may have no room; what they cost has.
            parts.append([(plan_words(self._plan), "changed" if self._plan.cost else "dim")])
            parts.append([(input_words(self._plan), "dim")])
        elif not self._fault:
            parts.append([("pricing the calls …", "dim")])
        self._header.show(((" ", "plain"), *dropping(parts, self.size.width - 2)))
        notes = [one.note for one in self._plan.models if one.note] if self._plan is not None else []
        said = [f"✗ {self._fault}"] if self._fault else notes
        self._note.display = bool(said)
        self._note.set_class(bool(self._fault), "-fault")
        self._note.update(plain("\n".join(flat(text, 600) for text in said)))

    def on_resize(self) -> None:
        self._stale = True

    # -- pricing and sending -----------------------------------------------------------------------------------------

    @work(thread=True, exclusive=True, group="plan", exit_on_error=False)
    def _price(self, *, send: bool = False) -> None:
        """Tokens and prices take longer than a key may."""
        state = self.state
        try:
            plan = state.playground.plan(state.models, state.samples, state.max_cost)
        except (PlaygroundError, EditError) as fault:
            self.post_message(PlannedCalls(None, str(fault), send=send))
        else:
            self.post_message(PlannedCalls(plan, send=send))

    def on_planned_calls(self, event: PlannedCalls) -> None:
        self._plan, self._fault, self._stale = event.plan, event.fault, True
        if event.fault and event.send:
            self.services.say(event.fault, "error")
        elif event.plan is not None and event.send and not self.sending:
            self.sending = self._stale = True
            self.state.answers = {}
            self.state.answered_with = self.state.playground.draft.edits
            self._send(event.plan)

    def action_send(self) -> None:
        """Send the request, to each model as often as asked for."""
        if self.sending:
            self.services.say(told("Calls are running: {playground.stop} stops them."))
        else:
            self._price(send=True)

    @work(thread=True, exclusive=True, group="send", exit_on_error=False)
    def _send(self, plan: PlaygroundPlan) -> None:
        async def main() -> None:
            self._loop = asyncio.get_running_loop()
            self._task = asyncio.ensure_future(self.state.playground.send(plan, self._arrived))
            await self._task

        fault = ""
        try:
            asyncio.run(main())
        except asyncio.CancelledError:
            fault = "Stopped by you."
        except Exception as error:  # noqa: BLE001 - whatever ends the calls is told, and does not end the app
            fault = f"{type(error).__name__}: {error}"
        self._task = None
        self.post_message(Arrived(None, fault))

    def _arrived(self, sample: Sample) -> None:
        self.post_message(Arrived(sample))

    def on_arrived(self, event: Arrived) -> None:
        self._stale = True
        if event.sample is not None:
            self.state.answers[event.sample.model, event.sample.number] = event.sample
            return
        self.sending = False
        if event.fault:
            self.services.say(event.fault, "warning")
        self._draw()

    def action_stop(self) -> None:
        """Stop the calls that are running; answers that are there stay."""
        if self._task is not None and self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._task.cancel)

    # -- the request -------------------------------------------------------------------------------------------------

    def _models(self) -> KnownModels:
        subject = self.state.playground.subject
        return KnownModels(self._project, subject.file, (subject.call.model,))

    def action_edit(self) -> None:
        """Edit the request."""
        playground = self.state.playground
        draft = playground.again()
        folder: Path = self._project.folders.state / "edits"
        screen = EditScreen(draft, RequestEdits(playground, draft), self._models, folder)

        def done(made: bool | None) -> None:
            if made:
                self._plan = None
                self._price()
            self._stale = True

        self.services.push_screen(screen, done)

    def action_settings(self) -> None:
        """Models, samples and budget."""

        def done(taken: bool | None) -> None:
            if taken:
                self._plan = None
                self._price()
            self._stale = True

        self.services.push_screen(PlaygroundForm(self.state, self._models), done)

    # -- the answers -------------------------------------------------------------------------------------------------

    def _sample(self) -> Sample | None:
        samples = self._samples
        return samples[self.list.cursor] if 0 <= self.list.cursor < len(samples) else None

    @on(RowView.Opened, "#samples")
    def _opened(self) -> None:
        if (sample := self._sample()) is None:
            self.action_send()
            return
        title: tuple[Span, ...] = ((flat(sample.model), "title"), (f"  {sample.number}", "name"))
        self.services.push_screen(Sheet(TextRows(text_lines(answer_text(sample), whole=True), title)))

    def action_columns(self, step: int) -> None:
        """Show the columns further right or left."""
        models = len({sample.model for sample in self._samples})
        self._first = max(0, min(self._first + step, models - 1))
        self._stale = True
        self._draw()

    def action_copy(self) -> None:
        """Copy the answer."""
        sample = self._sample()
        self.services.copy(answer_text(sample) if sample is not None else "", "the answer")

    def action_pane(self) -> None:
        """From the list to the answers and back."""
        (self.columns if self.focused is self.list else self.list).focus()

    # -- what becomes of it ------------------------------------------------------------------------------------------

    def action_fork(self) -> None:
        """Make a fork of the run: with the request as it is edited, or with an answer."""
        playground, sample = self.state.playground, self._sample()
        if playground.subject.depth:
            self.services.say("This call belongs to a nested run: fork the run that started it.")
            return
        model = sample.model if sample is not None else (self.state.models[0] if len(self.state.models) == 1 else "")
        request = playground.fork_edits(model)
        try:
            # A run that is paused before the call has no answer of its own yet that this one could stand in for.
            made = playground.subject.call.answer is not None
            answer = playground.answer_edits(sample) if sample is not None and made else ()
        except PlaygroundError:
            answer = ()
        if not answer:
            self._make_fork(request, "before_call")
            return
        assert sample is not None
        named = f"{flat(sample.model)} {sample.number}"

        def answered(choice: str | None) -> None:
            if choice == "request":
                self._make_fork(request, "before_call")
            elif choice == "answer":
                self._make_fork(answer, "after_call")

        answers = (
            ("answer", "a", f"Continue with the answer of {named}"),
            ("request", "r", "Pause before the call"),
        )
        words = "A new run with the same beginning. This run stays as it is."
        self.services.push_screen(ChoiceDialog("Make this a fork", words, answers), answered)

    def _make_fork(self, edits: Sequence[Edit], stop: str) -> None:
        self.dismiss()
        self._fork(edits, stop)

    def action_prompt(self) -> None:
        """Write the edited instructions into the cascade file, after a look at the change of its text."""
        playground = self.state.playground
        try:
            found = prompt_edit(self._project, self._run, playground.subject, playground.draft)
        except PromptError as fault:
            self.services.say(str(fault), "error")
            return
        change = Change("changed", f"{found.shown}:{found.line}", found.before, found.after)
        rows = ChangeRows((change,), "the cascade's prompt")
        self.services.push_screen(ReviewSheet(rows), lambda agreed: self._write(found) if agreed else None)

    def _write(self, found: PromptEdit) -> None:
        try:
            found.save()
        except CannotSave as fault:
            self.services.say(f"{fault}. Nothing was written.", "error")
        else:
            self.services.say(told("{file} is written. {run.again} runs it again from the Bench.", file=found.shown))

    def action_close(self) -> None:
        """Drop a filter or a search; stop the calls; else back."""
        if self.clear_found():
            return
        if self.sending:
            self.action_stop()
        else:
            self.dismiss()


class PlaygroundForm(Dialog[bool]):
    """The models to ask, how often, and what it may cost."""

    heading = "Models, samples, budget"
    offered = (("tab", "next"), ("↓", "models"), ("enter", "apply"))
    CSS_PATH: ClassVar[Any] = ["dialog.tcss", "playground.tcss"]

    def __init__(self, state: PlaygroundState, models: Callable[[], KnownModels]) -> None:
        super().__init__()
        self._state = state
        self._models = models
        self._known: KnownModels | None = None
        self.list = RowView(ModelRows(()), id="models")

    def content(self) -> Sequence[Widget]:
        state = self._state
        own = state.models or (state.playground.draft.model,)
        budget = "" if state.max_cost is None else dollars(state.max_cost).removeprefix("$")
        return (
            Static(plain("Models, with commas between them; 'offline' asks the scripted replies"), classes="label"),
            LineInput(
                ", ".join(own) if state.models or not state.playground.subject.offline else "offline", id="names"
            ),
            self.list,
            Static(plain("Answers of each model"), classes="label"),
            LineInput(str(state.samples), id="number"),
            Static(plain("Budget in US dollars for one round; empty for none"), classes="label"),
            LineInput(budget, id="budget"),
            Static("", id="objection"),
            Button(plain("Apply"), id="take", classes="go", compact=True),
        )

    def on_mount(self) -> None:
        self.query_one("#names", LineInput).focus()
        self._look_up("")

    @on(Input.Changed, "#names")
    def _typed(self, event: Input.Changed) -> None:
        self._look_up(event.value.rpartition(",")[2].strip())

    @work(thread=True, exclusive=True, group="models", exit_on_error=False)
    def _look_up(self, text: str) -> None:
        if self._known is None:
            self._known = self._models()
        found = self._known.matching("" if self._known.is_known(text) else text)
        self.app.call_later(self.list.show, ModelRows(found), 0)

    @on(RowView.Opened, "#models")
    def _model_chosen(self, event: RowView.Opened) -> None:
        """Add the model; one that is being written is completed by it."""
        rows, line = self.list.rows, self.query_one("#names", LineInput)
        if not isinstance(rows, ModelRows) or event.index >= len(rows):
            return
        name = rows.found[event.index].name
        named = [part.strip() for part in line.value.split(",") if part.strip()]
        if named and self._known is not None and not self._known.is_known(named[-1]):
            named.pop()
        line.value = ", ".join(dict.fromkeys((*named, name)))

    def on_key(self, event: events.Key) -> None:
        if event.key == "down" and isinstance(self.focused, LineInput) and self.focused.id == "names":
            event.stop()
            self.list.focus()

    @on(Input.Submitted)
    @on(Button.Pressed)
    def _done(self) -> None:
        """Take what is written, or say what is wrong with it."""
        values: Mapping[str, str] = {line.id or "": line.value.strip() for line in self.query(LineInput)}
        names = tuple(dict.fromkeys(part.strip() for part in values["names"].split(",") if part.strip()))
        if not names:
            self._object("at least one model")
        elif not values["number"].isdigit() or not 1 <= int(values["number"]) <= 100:
            self._object("answers: a number from 1 to 100")
        elif (budget := _dollars(values["budget"])) is not None and (math.isnan(budget) or budget < 0):
            self._object("budget: US dollars, as in 0.10, or nothing")
        else:
            self._state.models, self._state.samples = names, int(values["number"])
            self._state.max_cost = budget
            self.dismiss(True)

    def _object(self, words: str) -> None:
        line = self.query_one("#objection", Static)
        line.update(plain(clean(words)))
        line.display = True
        self.call_after_refresh(line.scroll_visible)


def _dollars(text: str) -> float | None:
    """An amount; None for no text, not a number for what is none."""
    if not text:
        return None
    try:
        value = float(text.removeprefix("$"))
    except ValueError:
        return math.nan
    return value if math.isfinite(value) else math.nan
