"""Find and filter in whichever list has the focus: the same keys and the same words on every screen."""

from __future__ import annotations

from typing import ClassVar

from textual.screen import ScreenResultType
from textual.widget import Widget

from workbench.tui.screens.footed import FootedScreen
from workbench.tui.widgets.rowview import RowView


class FindingScreen(FootedScreen[ScreenResultType]):
    """A screen of lists."""

    SEARCHED: ClassVar[str] = "pane"
    """What a search says it looked through."""
    CLEARS: ClassVar[str] = "view.clear"
    """The command that shows all rows of a list again."""
    _asked_in: RowView | None = None
    """The list that the prompt is about."""

    def pane(self) -> RowView:
        """The list that a command means: the one with the focus, else the one that had it."""
        raise NotImplementedError

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
            self.action_find()
        elif not view.search(view.needle, step, again=True):
            self.app.say(f"'{view.needle}' is not in this {self.SEARCHED}.")

    def action_filter(self) -> None:
        """Ask for a text and show only the rows that hold it while it is written."""
        view = self._asked_in = self.filtered_pane()

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

    def filtered_pane(self) -> RowView:
        """The list that a filter is for."""
        return self.pane()

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

    def resting(self) -> Widget:
        """What has the focus when nothing asks for it."""
        return self.pane()

    def refocus(self) -> None:
        """The list that the prompt was about; else what has the focus when nothing asks for it."""
        view, self._asked_in = self._asked_in, None
        (view or self.resting()).focus()
