"""Completion in a text area: what may be written floats below the cursor, and is written when it is taken."""

from __future__ import annotations

from collections.abc import Callable

from textual.geometry import Offset

from workbench.language.edit.completion import Completion, Item
from workbench.tui.widgets.code import CodeArea
from workbench.tui.widgets.popup import Popup


class Completing:
    """Joins a text area and the list that floats over it. The screen that owns both hands over their messages."""

    def __init__(self, area: CodeArea, popup: Popup, offer: Callable[[str, int], Completion]) -> None:
        """``offer`` gets the text with ``\\\\n`` as line end and an offset into it."""
        self._area, self._popup, self._find = area, popup, offer
        self.offer: Completion | None = None
        """The last offers."""
        area.popup = popup

    def changed(self) -> None:
        """The text is another one: offer what fits the word that is being typed."""
        if self._popup.display or self._area.typed:
            self._area.typed = False
            self.open(asked=False)

    def moved(self) -> None:
        """The cursor is elsewhere: what was offered for another word goes."""
        offer = self.offer
        if self._popup.display and offer and not offer.start <= self._area.offset_in_text <= offer.end + 1:
            self._popup.close()

    def open(self, *, asked: bool) -> bool:
        """Offer what may be written at the cursor; False where there is nothing.

        Unless it was ``asked`` for, nothing is offered without a typed word or a point before it (``outputs.``), and
        nothing that is written already.
        """
        area, popup = self._area, self._popup
        if area.read_only:
            return False
        at, text = area.offset_in_text, area.plain_text
        found = self._find(text, at)
        done = any(_is_written(item, found.typed) for item in found.items)
        begun = found.typed or text[:at].endswith(".")
        if not found.items or (done and not asked) or (not begun and not asked and not popup.display):
            popup.close()
            return bool(found.items)
        self.offer = found
        x, y = area.cursor_screen_offset
        popup.open(found.items, Offset(max(0, x - (at - found.start)), y), area.screen.size)
        return True

    def take(self, item: Item) -> None:
        """Write an item in the place of the typed word."""
        offer, area = self.offer, self._area
        if offer is not None:
            start, end = area.location_of(offer.start), area.location_of(offer.end)
            written = (item.insert or item.text).replace("\n", "\n" + " " * start[1])
            area.replace(written, start, end)
            area.move_cursor(area.location_of(offer.start + len(written)))
        self._popup.close()


def _is_written(item: Item, typed: str) -> bool:
    """Returns whether taking an item would change nothing but the case of letters."""
    return item.text.casefold() == typed.casefold() and item.insert in ("", item.text)
