"""One-line widgets: the header, the breadcrumb and the footer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.tui.contracts import palette_of
from workbench.tui.widgets.draw import strip_of
from workbench.views.cells import Span, Target, target_at, width_of


class SpanLine(Widget):
    """Shows spans in one line. A click on a ``Target`` is a press of its key; where the mouse is on one, it shows."""

    ALLOW_SELECT = False

    class Pressed(Message):
        """A click on what stands for a command."""

        def __init__(self, command: str) -> None:
            super().__init__()
            self.command = command

    def __init__(self, spans: Sequence[Span] = (), *, id: str) -> None:
        super().__init__(id=id)
        self._spans: tuple[Span, ...] = tuple(spans)
        self._over = ""
        """The command under the mouse."""

    def show(self, spans: Sequence[Span]) -> None:
        """Draw other spans; nothing happens when they are the same."""
        spans = tuple(spans)
        if spans != self._spans:
            self._spans = spans
            self.refresh()

    def render_line(self, y: int) -> Strip:
        palette = palette_of(self)
        spans = [(text, "link" if self._is_under_mouse(text) else token) for text, token in self._spans]
        return strip_of(spans if y == 0 else (), self.size.width, palette, self.rich_style)

    def _is_under_mouse(self, text: str) -> bool:
        return bool(self._over) and isinstance(text, Target) and text.command == self._over

    def command_at(self, x: int) -> str:
        """The command of what stands at a cell; empty where a click does nothing."""
        target = target_at(self._spans, x)
        return target.command if target is not None else ""

    def on_click(self, event: events.Click) -> None:
        if command := self.command_at(event.x):
            self.post_message(self.Pressed(command))

    def on_mouse_move(self, event: events.MouseMove) -> None:
        self._point_at(self.command_at(event.x))

    def on_leave(self) -> None:
        self._point_at("")

    def _point_at(self, command: str) -> None:
        if command != self._over:
            self._over = command
            self.refresh()


KEPT = "app.help"
"""The command that the footer names in the narrowest terminal, too."""


class Footer(SpanLine):
    """The keys that matter now. A click on one is a press."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._hints: tuple[tuple[str, str, str], ...] = ()
        self._fixed: tuple[tuple[str, str, str], ...] = ()
        self._stretches: list[tuple[range, str]] = []

    def offer(self, hints: Sequence[tuple[str, str, str]], fixed: Sequence[tuple[str, str, str]] = ()) -> None:
        """Show ``(command, key, word)``, as many as there is room for, and the fixed ones at the right. Those give way
        in their order, all but the help, where the first hint would have no room."""
        if (tuple(hints), tuple(fixed)) != (self._hints, self._fixed):
            self._hints, self._fixed = tuple(hints), tuple(fixed)
            self._lay_out()

    def on_resize(self) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        width = self.size.width
        fixed = self._beside_the_first(width)
        right = [_spans(hint) for hint in fixed]
        room = width - _cells(fixed) - 1
        spans: list[Span] = [(" ", "plain")]
        self._stretches = []
        x = 1
        for hint in self._hints:
            part = _spans(hint)
            need = width_of(part)
            if x + need > room:
                break
            self._stretches.append((range(x, x + need), hint[0]))
            spans += part
            x += need
        spans.append((" " * max(0, room - x), "plain"))
        x = max(x, room)
        for hint, part in zip(fixed, right, strict=True):
            self._stretches.append((range(x, x + width_of(part)), hint[0]))
            spans += part
            x += width_of(part)
        self.show(spans)

    def _beside_the_first(self, width: int) -> tuple[tuple[str, str, str], ...]:
        fixed = self._fixed
        while _cells((*self._hints[:1], *fixed)) + 2 > width and any(hint[0] != KEPT for hint in fixed):
            gone = next(hint for hint in fixed if hint[0] != KEPT)
            fixed = tuple(hint for hint in fixed if hint != gone)
        return fixed

    def command_at(self, x: int) -> str:
        return next((command for stretch, command in self._stretches if x in stretch), "")


def _cells(hints: Iterable[tuple[str, str, str]]) -> int:
    return sum(width_of(_spans(hint)) for hint in hints)


def _spans(hint: tuple[str, str, str]) -> list[Span]:
    _, key, word = hint
    return [(key, "key"), (f" {word}  ", "dim")]
