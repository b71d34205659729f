"""A list to choose from, one or several, by space, enter, a number or the mouse."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from textual import events, on
from textual.binding import BindingType
from textual.containers import VerticalScroll
from textual.content import Content
from textual.css.styles import RulesMap
from textual.message import Message
from textual.strip import Strip
from textual.style import Style
from textual.visual import RenderOptions, Visual
from textual.widgets import OptionList
from textual.widgets.option_list import Option

from workbench.tui.bindings import bindings
from workbench.tui.text import styled
from workbench.views.form import SIGNS, Piece


class HangingIndent(Visual):
    """Lines that hang: each goes on below where its own words begin."""

    def __init__(self, content: Content, least: int) -> None:
        """``least``: the cells of the first line that its words come after; later lines begin there, or further in."""
        first, *rest = content.split("\n", allow_blank=True)
        spaces = [len(line.plain) - len(line.plain.lstrip()) for line in rest]
        blank = Content(" " * least)
        self.pieces = (
            (first[:least], first[least:]),
            *((blank if n < least else line[:n], line[n:]) for n, line in zip(spaces, rest, strict=True)),
        )
        """The text before the words of each line, and the words."""
        self.content = content

    def get_optimal_width(self, rules: RulesMap, container_width: int) -> int:
        return max(lead.cell_length + words.cell_length for lead, words in self.pieces)

    def get_height(self, rules: RulesMap, width: int) -> int:
        return sum(words.get_height(rules, max(1, width - lead.cell_length)) for lead, words in self.pieces)

    def render_strips(self, width: int, height: int | None, style: Style, options: RenderOptions) -> list[Strip]:
        strips: list[Strip] = []
        for lead, words in self.pieces:
            cells = lead.cell_length
            (before,) = lead.render_strips(cells, 1, style, options)
            after = Strip.blank(cells, style.rich_style)
            for line in words.render_strips(max(1, width - cells), None, style, options):
                strips.append(Strip.join((before, line)))
                before = after
        return strips[:height]


class Choices(OptionList):
    """Keeps what is chosen by value; nothing is chosen by moving, and choosing never moves the focus: a digit that
    follows cannot change another question than the one that is looked at."""

    BINDINGS: ClassVar[list[BindingType]] = bindings("choices")

    class Changed(Message):
        """Something else is chosen now."""

        def __init__(self, choices: Choices) -> None:
            super().__init__()
            self.choices = choices

        @property
        def control(self) -> Choices:
            """Where it was chosen: a binding's action is not run by the list itself, so that the sender is another."""
            return self.choices

    class Passed(Message):
        """The choice is made, and the person goes on."""

    def __init__(
        self,
        offered: Sequence[tuple[str, list[Piece]]],
        chosen: Sequence[str] = (),
        *,
        multiple: bool = False,
        **options: Any,
    ) -> None:
        self._offered = tuple(offered)
        self._multiple = multiple
        self._in_view: int | None = None
        """The option of the last cursor."""
        self._has_moved = False
        """Whether the cursor has moved since the form was opened."""
        self.chosen = [value for value, _ in offered if value in chosen]
        super().__init__(*(Option(self._prompt(at)) for at in range(len(self._offered))), markup=False, **options)

    def _prompt(self, at: int) -> HangingIndent:
        value, pieces = self._offered[at]
        shown = [(SIGNS[self._multiple, value in self.chosen], "$primary"), *pieces]
        if self.app.current_theme.ansi:
            # Of sixteen colours none can be read on that of the cursor but its own.
            shown = [(text, "" if style.startswith("$") else style) for text, style in shown]
        return HangingIndent(styled(shown), len(SIGNS[self._multiple, False]))

    def on_mount(self) -> None:
        self.app.theme_changed_signal.subscribe(self, lambda _: self._prompt_anew())

    def _prompt_anew(self) -> None:
        """The theme changed, perhaps to one of sixteen colours, or from one."""
        for position in range(len(self._offered)):
            self.replace_option_prompt_at_index(position, self._prompt(position))

    def choose(self, at: int) -> None:
        """Choose the option at a position, by its number. Where several can be chosen, doing so again takes it back;
        the only one stays, as it would go without a word."""
        if self._multiple or (0 <= at < len(self._offered) and self._offered[at][0] not in self.chosen):
            self.toggle(at)
        elif 0 <= at < len(self._offered):
            self.highlighted = at

    def toggle(self, at: int) -> None:
        """Choose the option at a position, or take it back."""
        if not 0 <= at < len(self._offered):
            return
        value = self._offered[at][0]
        if value in self.chosen:
            self._choose([other for other in self.chosen if other != value])
        else:
            self._choose([*(self.chosen if self._multiple else ()), value])
        self.highlighted = at
        self.scroll_visible(animate=False)
        self.post_message(self.Changed(self))

    def take_back(self) -> None:
        """Choose none."""
        self._choose([])

    def _choose(self, chosen: list[str]) -> None:
        before, self.chosen = self.chosen, chosen
        for position, (value, _) in enumerate(self._offered):
            if (value in before) != (value in chosen):
                self.replace_option_prompt_at_index(position, self._prompt(position))

    def on_focus(self) -> None:
        if self.highlighted is None and self._offered:
            first = self.chosen[0] if self.chosen else self._offered[0][0]
            self.highlighted = next(at for at, (value, _) in enumerate(self._offered) if value == first)

    def scroll_to_highlight(self, top: bool = False) -> None:
        """Keep the cursor in view, also in a form that is higher than the terminal: the list is as high as its
        options, so that what is around it scrolls. Until the cursor moves, a form shows its beginning, also when it is
        laid out again."""
        super().scroll_to_highlight(top)
        self._has_moved = self._has_moved or self._in_view not in (None, self.highlighted)
        if self._has_moved:
            self.call_after_refresh(self._scroll_around)
        self._in_view = self.highlighted

    def _scroll_around(self) -> None:
        around = next((one for one in self.ancestors if isinstance(one, VerticalScroll)), None)
        at = self.highlighted
        if around is None or at is None:
            return
        heights = [self._prompt(one).get_height({}, self.content_region.width) for one in range(at + 1)]
        first, shown = self.content_region.y + sum(heights[:-1]), around.content_region
        below = min(first + heights[-1] - shown.bottom, first - shown.y)
        around.scroll_relative(y=max(below, 0) + min(first - shown.y, 0), animate=False)

    def action_select(self) -> None:
        """Enter: choose the option; where the only one that can be chosen is, go on to the next question."""
        at = self.highlighted
        if not self._multiple and at is not None and self._offered[at][0] in self.chosen:
            self.post_message(self.Passed())
        else:
            super().action_select()

    def action_choose(self) -> None:
        if self.highlighted is not None:
            self.toggle(self.highlighted)

    def action_step(self, rows: int) -> None:
        """Go so many rows down, and no further than the ends."""
        if self.highlighted is not None:
            self.highlighted = max(0, min(self.highlighted + rows, len(self._offered) - 1))

    @on(OptionList.OptionSelected)
    def _selected(self, event: OptionList.OptionSelected) -> None:
        event.stop()
        self.toggle(event.option_index)

    def on_key(self, event: events.Key) -> None:
        """A number chooses its row; up and down leave the list at its ends."""
        if event.character and event.character.isdigit() and event.character != "0":
            event.stop()
            self.choose(int(event.character) - 1)
        elif event.key == "down" and self.highlighted == len(self._offered) - 1:
            event.stop()
            event.prevent_default()
            self.screen.focus_next()
        elif event.key == "up" and self.highlighted == 0:
            event.stop()
            event.prevent_default()
            self.screen.focus_previous()
