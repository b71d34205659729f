"""The base of all whole screens: a footer whose hints can be clicked, a one-line prompt in its place, and find and
filter with the same keys in every list."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, ClassVar

from textual import events, on
from textual.screen import Screen, ScreenResultType
from textual.widget import Widget
from textual.widgets import Input, TextArea

from workbench.tui.contracts import Services, services_of
from workbench.tui.widgets.line import Footer, SpanLine
from workbench.tui.widgets.prompt import Prompt, PromptClosed
from workbench.tui.widgets.rowview import RowView
from workbench.views.keys import hints


class WorkbenchScreen(Screen[ScreenResultType]):
    """A screen of lists whose last line tells the keys."""

    SEARCHED: ClassVar[str] = "pane"
    """The name of the things that a search looks through."""
    CLEARS: ClassVar[str] = "view.clear"
    """The command that shows all rows of a list again."""
    WORDS: ClassVar[Mapping[str, str]] = {}
    """Names in the footer of commands with another meaning here, by id."""
    _asked_in: RowView | None = None
    """The list that the prompt is about."""

    def __init__(self) -> None:
        super().__init__()
        self.footer = Footer(id="footer")

    @property
    def services(self) -> Services:
        """The services of the app for its screens."""
        return services_of(self)

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self.forget())

    def forget(self) -> None:
        """The theme changed: draw everything anew."""
        for view in self.query(RowView):
            view.forget()
        for line in self.query(SpanLine):
            line.refresh()

    def in_background(self, work: Callable[[], None], group: str) -> None:
        """Run work in a thread; other work of the group is given up."""
        # Without a description Textual prints the work's arguments: a run of 5,000 turns, in more than a second.
        self.run_worker(work, thread=True, group=group, description=group, exclusive=True, exit_on_error=False)

    def later(self, callback: Callable[..., object], *arguments: Any) -> None:
        """Call something on the screen's side; may be called in any thread."""
        self.app.call_later(callback, *arguments)

    def offer(
        self, commands: Iterable[str], fixed: Iterable[str] = (), words: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """Show commands in the footer, and fixed ones at its right end, by keys that write nothing into a text.
        ``words``: what some of them are called now."""
        writes = isinstance(self.focused, Input | TextArea)
        offered = hints(commands, self.services.keys, writes=writes)
        offered = tuple((id, key, words.get(id, self.WORDS.get(id, word))) for id, key, word in offered)
        self.footer.offer(offered, hints(fixed, self.services.keys, writes=writes))

    # -- messages ----------------------------------------------------------------------------------------------------

    @on(events.ScreenResume)
    def show_notices(self) -> None:
        """Draw the messages of the app in the last line, in the place of the keys."""
        notes = [(note.message, note.severity) for note in self.services.notices.all]
        self.footer.tell(notes, self.size.width)
        self.footer.display = bool(notes) or not self.is_writing

    @on(Footer.Read)
    def _notices_clicked(self) -> None:
        self.services.notices.clear()

    # -- the prompt --------------------------------------------------------------------------------------------------

    def ask(self, label: str, **options: Any) -> None:
        """Open the one-line prompt in the place of the footer; see ``Prompt`` for the options."""
        for old in self.query(Prompt):
            old.vanish()
        self.footer.display = bool(self.services.notices.all)
        self.mount(Prompt(label, **options), before=self.footer)

    @property
    def is_writing(self) -> bool:
        """Whether a line is being written in the place of the footer."""
        return any(not prompt.closed for prompt in self.query(Prompt))

    @on(PromptClosed)
    def _prompt_closed(self, event: PromptClosed) -> None:
        if not self.is_writing:
            self.footer.display = True
            if not event.left:
                self.refocus()

    @on(SpanLine.Pressed)
    async def _line_pressed(self, event: SpanLine.Pressed) -> None:
        await self.services.run_command(event.command)

    # -- the focus ---------------------------------------------------------------------------------------------------

    def pane(self) -> RowView:
        """The list that a command means: the one with the focus, else the main one."""
        return self.focused if isinstance(self.focused, RowView) else self.main_list()

    def main_list(self) -> RowView:
        """The list that a command means when none has the focus."""
        return self.query(RowView).first()

    def resting(self) -> Widget:
        """Returns the widget that has the focus when nothing asks for it."""
        return self.main_list()

    def refocus(self) -> None:
        """Focus the list that the prompt was about; else what has the focus when nothing asks for it."""
        view, self._asked_in = self._asked_in, None
        (view or self.resting()).focus()

    # -- find and filter ---------------------------------------------------------------------------------------------

    def search(self, view: RowView, text: str) -> bool:
        """Look for a text in a list, from where its cursor is."""
        return view.search(text, 1, again=False)

    def action_find(self) -> None:
        """Ask for a text and go to it while it is written."""
        view = self._asked_in = self.pane()

        def done(text: str) -> str | None:
            return None if self.search(view, text) else f"'{text}' is not in this {self.SEARCHED}"

        def changed(text: str) -> None:
            self.search(view, text)

        self.ask("find", value=view.needle, done=done, changed=changed, closed=lambda: changed(""))

    def action_find_again(self, step: int = 1) -> None:
        """Go to the next place, or the one before."""
        view = self.pane()
        if not view.needle:
            self.services.say("No search yet.")
        elif not view.search(view.needle, step, again=True):
            self.services.say(f"'{view.needle}' is not in this {self.SEARCHED}.")

    def action_filter(self) -> None:
        """Ask for a text and show only the rows that hold it while it is written."""
        view = self._asked_in = self.pane()

        def done(text: str) -> str | None:
            self.filter(view, text)
            return None

        self.ask(
            "filter",
            value=view.filter,
            done=done,
            changed=lambda text: self.filter(view, text),
            closed=lambda: self.filter(view, ""),
        )

    def filter(self, view: RowView, text: str) -> None:
        """Show only the rows of a list that hold a text."""
        view.filter_by(text)

    def clear_found(self) -> bool:
        """Show all rows again of the list with the focus, else of any; else take the marks of searches away. False
        where there was neither."""
        views = (self.pane(), *self.query(RowView))
        if filtered := next((view for view in views if view.filter), None):
            self.filter(filtered, "")
            return True
        marked = [view for view in views if view.needle]
        for view in marked:
            view.mark("")
        return bool(marked)
