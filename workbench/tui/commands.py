"""The command palette: every command of the key table, and every theme."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from workbench.tui.contracts import Services, services_of
from workbench.views.cells import fit
from workbench.views.keys import ON_SHEETS, display

if TYPE_CHECKING:
    from workbench.views.keys import Key

KEYS = 12
"""Cells of the column of keys."""
CONTEXTS = ("bench", "annotate", "app", "tree", "list")
"""What it offers on the Bench; another screen names its own contexts in ``PALETTE``."""


class Commands(Provider):
    """What the palette finds."""

    @property
    def _services(self) -> Services:
        return services_of(self.screen)

    def _entries(self) -> list[tuple[str, str, str]]:
        """``(key, words, command)``, those of a screen's own before those that it shares; a theme's command is
        ``theme:name``, and has no key."""
        own = getattr(self.screen, "PALETTE", ())
        contexts = (*own, "app") if own else CONTEXTS
        offered = [
            key
            for key in self._services.keys
            if key.context in contexts and key.id != "app.palette" and self._works(key)
        ]
        if own:
            offered.sort(key=lambda key: contexts.index(key.context))
        entries = [(display(key.keys), key.help, key.id) for key in offered]
        current = self.app.current_theme.name
        for name in sorted(self.app.available_themes):
            mark = "  (now)" if name == current else ""
            entries.append(("", f"Theme {name}{mark}", f"theme:{name}"))
        return entries

    def _works(self, key: Key) -> bool:
        """No other room opens from a sheet: it would lie over it."""
        return key.context != "app" or not self.screen.is_modal or key.id in (*ON_SHEETS, "app.quit")

    async def discover(self) -> Hits:
        for key, words, command in self._entries():
            yield DiscoveryHit(self._row(key, Content(words)), partial(self._services.run_command, command), text=words)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for key, words, command in self._entries():
            if (score := matcher.match(words)) > 0:
                shown = self._row(key, matcher.highlight(words))
                yield Hit(score, shown, partial(self._services.run_command, command), text=words)

    def _row(self, key: str, words: Content) -> Content:
        """One line: the key in a column of its own, and what it does."""
        # Of sixteen colours none can be read on that of the cursor but its own.
        style = "bold" if self.app.current_theme.ansi else "bold $primary"
        return Content.assemble((fit(key, KEYS), style), words)
