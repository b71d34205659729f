"""A line to write on that keeps out what a terminal would act on, however it gets there: typed, pasted or prefilled."""

from __future__ import annotations

from textual.widgets import Input

from workbench.language.clean import clean_line


class LineInput(Input):
    """An input whose value is always one clean line."""

    def validate_value(self, value: str) -> str:
        return clean_line(value)

    def on_mount(self) -> None:
        self.cursor_blink = self.app.animation_level != "none"
