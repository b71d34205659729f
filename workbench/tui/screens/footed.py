"""What every screen with a footer shares: its hints can be clicked, and a one-line prompt may take its place."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from textual import on
from textual.screen import Screen, ScreenResultType

from workbench.tui.widgets.line import Footer, SpanLine
from workbench.tui.widgets.prompt import Prompt, PromptClosed

if TYPE_CHECKING:
    from workbench.tui.app import WorkbenchApp


class FootedScreen(Screen[ScreenResultType]):
    """A screen whose last line tells the keys."""

    app: WorkbenchApp

    def __init__(self) -> None:
        super().__init__()
        self.footer = Footer(id="footer")

    def ask(self, label: str, **options: Any) -> None:
        """Open the one-line prompt in the place of the footer; see ``Prompt`` for the options."""
        for old in self.query(Prompt):
            old.vanish()
        self.footer.display = False
        self.mount(Prompt(label, **options), before=self.footer)

    @property
    def is_writing(self) -> bool:
        """Whether a line is being written in the place of the footer."""
        return any(not prompt.closed for prompt in self.query(Prompt))

    def refocus(self) -> None:
        """Put the focus where it is when nothing asks for it."""
        raise NotImplementedError

    @on(PromptClosed)
    def _prompt_closed(self, event: PromptClosed) -> None:
        if not self.is_writing:
            self.footer.display = True
            if not event.left:
                self.refocus()

    @on(SpanLine.Pressed)
    async def _line_pressed(self, event: SpanLine.Pressed) -> None:
        await self.app.run_command(event.command)
