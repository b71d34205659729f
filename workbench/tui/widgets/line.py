"""One-line widgets: the header, the breadcrumb and the footer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from textual import events
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from workbench.tui.contracts import palette_of
from workbench.tui.widgets.draw import strip_of
from workbench.views.cells import Span, Target, flat, target_at, width_of
from workbench.views.text import wrapped


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


class Verdict(SpanLine):
    """Says something in as many lines as it takes, up to ``MOST_LINES``."""

    def show(self, spans: Sequence[Span]) -> None:
        super().show(spans)
        self._fold()

    def on_resize(self) -> None:
        self._fold()

    def _fold(self) -> None:
        found = wrapped(self._spans, max(1, self.size.width - 2))[:MOST_LINES]
        self._lines = tuple(((" ", "plain"), *spans) for spans in found)
        self.styles.height = max(1, len(self._lines))
        self.refresh()

    def render_line(self, y: int) -> Strip:
        spans = self._lines[y] if y < len(self._lines) else ()
        return strip_of(spans, self.size.width, palette_of(self), self.rich_style)

    _lines: tuple[tuple[Span, ...], ...] = ()


KEPT = ("sheet.close", "app.help")
"""Of the fixed commands the one that the footer names in the narrowest terminal, too: the first that is there."""


MOST_LINES = 4
"""That messages may take at the foot of a screen."""
NEEDED = 5
"""Hints of the first group for which those of the second give way: with a paused run, all that move it on."""
FIRST_SHARE = 0.72
"""How much of the footer the keys of the first group may take while those of the second have no room."""
MARKS = {"information": (" ", "plain"), "warning": (" ⚠ ", "warning"), "error": (" ✗ ", "error")}
"""The mark before a message, by its severity."""

Hint = tuple[str, str, str]
"""A command, its key, and its word."""


class Footer(SpanLine):
    """The keys that matter now, in two groups: what drives the screen, and what the pane with the focus does. A click
    on one is a press. Messages take their place while they stand there."""

    class Read(Message):
        """A click on the messages."""

    def __init__(self, *, id: str) -> None:
        super().__init__(id=id)
        self._hints: tuple[Hint, ...] = ()
        self._pane: tuple[Hint, ...] = ()
        self._fixed: tuple[Hint, ...] = ()
        self._note = ""
        self._stretches: list[tuple[range, str]] = []
        self._messages: tuple[tuple[str, str], ...] = ()
        self._told: tuple[tuple[Span, ...], ...] = ()
        """The lines of the messages."""

    def offer(
        self, hints: Sequence[Hint], fixed: Sequence[Hint] = (), pane: Sequence[Hint] = (), note: str = ""
    ) -> None:
        """Show ``(command, key, word)``, as many as there is room for: ``hints``, then those of the ``pane`` with the
        focus, and the fixed ones at the right. Those give way in their order, all but one of ``KEPT``, where the first
        hint would have no room. ``note`` says before them why they are offered."""
        taken = {command for command, _, _ in (*hints, *fixed)}
        offered = (tuple(hints), tuple(hint for hint in pane if hint[0] not in taken), tuple(fixed), note)
        if offered != (self._hints, self._pane, self._fixed, self._note):
            self._hints, self._pane, self._fixed, self._note = offered
            self._lay_out()

    def tell(self, messages: Sequence[tuple[str, str]], width: int) -> None:
        """Show messages with their severity, wrapped to a width, in the place of the keys; the keys again for none."""
        self._messages = tuple(messages)
        lines: list[tuple[Span, ...]] = []
        for text, severity in messages:
            mark, token = MARKS[severity]
            words: list[Span] = [(flat(text, 1000), "plain" if severity == "information" else token)]
            found = wrapped(words, max(1, width - width_of(((mark, token),)) - 1))
            lines += [((mark if at == 0 else " " * len(mark), token), *spans) for at, spans in enumerate(found)]
        told = tuple(lines[-MOST_LINES:])
        if told != self._told:
            self._told = told
            self.styles.height = len(told) or None
            self.refresh()

    def render_line(self, y: int) -> Strip:
        if not self._told:
            return super().render_line(y)
        spans = self._told[y] if y < len(self._told) else ()
        return strip_of(spans, self.size.width, palette_of(self), self.rich_style)

    def on_click(self, event: events.Click) -> None:
        if self._told:
            event.prevent_default()
            self.post_message(self.Read())

    def on_resize(self) -> None:
        self._lay_out()
        self.tell(self._messages, self.size.width)

    def _lay_out(self) -> None:
        width = self.size.width
        fixed = self._beside_the_first(width)
        room = width - _cells(fixed) - 1
        spans: list[Span] = [(" ", "plain")]
        if self._note and width_of(((self._note, ""),)) < room // 3:
            spans.append((f"{flat(self._note)} ", "warning"))
        self._stretches = []
        x = width_of(spans)
        first, second = self._fitting(room - x + 1)  # One blank behind the last is enough.
        for number, hint in enumerate((*first, *second)):
            if first and number == len(first):
                spans.append(BETWEEN)
                x += width_of((BETWEEN,))
            x = self._put(hint, spans, x)
        spans.append((" " * max(0, room - x), "plain"))
        x = max(x, room)
        for hint in fixed:
            x = self._put(hint, spans, x)
        self.show(spans)

    def _put(self, hint: Hint, spans: list[Span], x: int) -> int:
        part = _spans(hint)
        self._stretches.append((range(x, x + width_of(part)), hint[0]))
        spans += part
        return x + width_of(part)

    def _fitting(self, room: int) -> tuple[Sequence[Hint], Sequence[Hint]]:
        """Returns how many of each group there is room for: the first one gives way where the second would have
        nothing."""
        whole, between = _cells(self._hints), width_of((BETWEEN,))
        if not self._pane or whole + between + _cells(self._pane) <= room:
            return _leading(self._hints, room), self._pane
        least = _cells(_leading(self._hints[:NEEDED], room))
        first = _leading(self._hints, max(least, round(room * FIRST_SHARE), room - between - _cells(self._pane)))
        second = _leading(self._pane, room - _cells(first) - between)
        if not second:
            return _leading(self._hints, room), ()
        more = _leading(self._hints[len(first) :], room - _cells(first) - between - _cells(second))
        return (*first, *more), second

    def _beside_the_first(self, width: int) -> tuple[Hint, ...]:
        fixed, there = self._fixed, {hint[0] for hint in self._fixed}
        kept = next((command for command in KEPT if command in there), "")
        while _cells((*self._hints[:1], *fixed)) + 2 > width and any(hint[0] != kept for hint in fixed):
            gone = next(hint for hint in fixed if hint[0] != kept)
            fixed = tuple(hint for hint in fixed if hint != gone)
        return fixed

    def command_at(self, x: int) -> str:
        if self._told:
            return ""
        return next((command for stretch, command in self._stretches if x in stretch), "")


BETWEEN: Span = ("│ ", "separator")
"""Between the two groups."""


def _leading(hints: Sequence[Hint], room: int) -> tuple[Hint, ...]:
    """As many from the first as there is room for."""
    fit: list[Hint] = []
    for hint in hints:
        room -= _cells((hint,))
        if room < 0:
            break
        fit.append(hint)
    return tuple(fit)


def _cells(hints: Iterable[Hint]) -> int:
    return sum(width_of(_spans(hint)) for hint in hints)


def _spans(hint: Hint) -> list[Span]:
    _, key, word = hint
    return [(key, "key"), (f" {word}  ", "dim")]
