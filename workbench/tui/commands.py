"""The command palette: every command of the key table by its name, every open tab, every theme, and on the Bench the
calls of the run by their places."""

from __future__ import annotations

import textwrap
from functools import partial
from typing import TYPE_CHECKING

from rich.cells import cell_len
from textual.command import DiscoveryHit, Hit, Hits, Provider
from textual.content import Content

from workbench.tui.contracts import Services, services_of
from workbench.tui.text import plain
from workbench.views.cells import fit, flat
from workbench.views.commands import NamedCommand, named
from workbench.views.keys import ON_SHEETS
from workbench.views.tab_line import SHOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.fuzzy import Matcher

    from workbench.engine.journal.parts import CallState
    from workbench.views.keys import Key

KEYS, NAMES, NARROW = 11, 32, 25
"""Cells of the columns of keys and of names, at most; of names below 100 columns, so that sentences can be read."""
WIDTH, SHARE, FRAME = 110, 94, 5
"""Cells of the palette at most, percent of the screen at most, and cells of its borders, padding and thumb."""
SENTENCES = 60
"""Columns of the screen below which no sentences stand behind the names."""
CONTEXTS = ("bench", "annotate", "app", "tree", "list")
"""Contexts of the keys that it offers on the Bench; another screen names its own contexts in ``PALETTE``."""
BY_NAME, BY_WORD, BY_SENTENCE = 200.0, 100.0, 0.0
"""Added to the score of a command that is found by its name, by a search word, by its sentence."""
MOST_CALLS = 20
"""Calls that are offered at most, as of many visits and branches with a turn of that number."""


class Commands(Provider):
    """Finds commands, tabs and themes for the palette."""

    @property
    def _services(self) -> Services:
        return services_of(self.screen)

    def _entries(self) -> list[NamedCommand]:
        """Those of a screen's own before those that it shares; a theme's command is ``theme:name``, and a tab's
        ``tab:number``."""
        own = getattr(self.screen, "PALETTE", ())
        contexts = (*own, "app") if own else CONTEXTS
        offered = [
            key
            for key in self._services.keys
            if key.context in contexts and key.id != "app.palette" and self._works(key)
        ]
        if own:
            offered.sort(key=lambda key: contexts.index(key.context))
        entries = list(named(offered))
        if not self.screen.is_modal:
            for number, tab in enumerate(self._services.tab_labels):
                now = " (shown)" if tab.current else ""
                entries.append(
                    NamedCommand(f"{SHOW}{number}", f"Tab {flat(tab.name)}{now}", "", "Show this run", "open buffer")
                )
        current = self.app.current_theme.name
        for name in sorted(self.app.available_themes):
            mark = " (now)" if name == current else ""
            entries.append(NamedCommand(f"theme:{name}", f"Theme {flat(name)}{mark}", "", "", "colour colors dark"))
        self._key_cells = min(KEYS, max((cell_len(entry.key) for entry in entries), default=0) + 2)
        most = NAMES if self.app.size.width >= 100 else NARROW
        # Names of tabs and themes are written out: few words, or none, stand behind them.
        self._name_cells = min(most, max((cell_len(entry.name) for entry in entries if not _is_long(entry)), default=0))
        return entries

    def _works(self, key: Key) -> bool:
        """No other room opens from a sheet: it would lie over it."""
        return key.context != "app" or not self.screen.is_modal or key.id in (*ON_SHEETS, "app.quit")

    async def discover(self) -> Hits:
        for entry in self._entries():
            yield DiscoveryHit(self._row(entry), partial(self._services.run_command, entry.id), text=entry.name)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for entry in self._entries():
            if (score := score_of(entry, query, matcher)) > 0:
                shown = self._row(entry, matcher)
                yield Hit(score, shown, partial(self._services.run_command, entry.id), text=entry.name)
        if not getattr(self.screen, "PALETTE", ()):
            for call in calls_found(query, self._services.calls)[:MOST_CALLS]:
                shown = self._row(NamedCommand("", flat(call.words), "", "Look at this call", ""))
                go = partial(self._services.look_at_call, call.place)
                yield Hit(BY_NAME + BY_WORD, shown, go, text=flat(call.words))

    def _row(self, entry: NamedCommand, matcher: Matcher | None = None) -> Content:
        """The key in a column of its own, the name, and what it does, in as many lines as that takes."""
        # Of sixteen colours none can be read on that of the cursor but its own.
        ansi = self.app.current_theme.ansi
        beside = self.app.size.width >= SENTENCES
        name = fit(entry.name, self._name_cells) if beside and not _is_long(entry) else entry.name
        before = self._key_cells + cell_len(name) + 2
        room = min(WIDTH, self.app.size.width * SHARE // 100) - FRAME - before
        sentence = f"\n{' ' * before}".join(textwrap.wrap(entry.sentence, max(16, room)))
        sentence = f"  {sentence}" if beside else ""
        return Content.assemble(
            (fit(entry.key, self._key_cells), "bold" if ansi else "bold $primary"),
            plain(name) if matcher is None else matcher.highlight(name),
            (sentence, "" if ansi else "$text-muted"),
        )


def _is_long(entry: NamedCommand) -> bool:
    """Returns whether the name of an entry may reach into the column of sentences."""
    return entry.id.startswith((SHOW, "theme:"))


def calls_found(query: str, calls: Sequence[CallState]) -> list[CallState]:
    """Returns the calls that are meant by ``triage:3``, ``tri 3`` or ``turn 3``: by the turn, and by the beginning of
    the phase's name; beside the turns by their names, as ``evaluation 2``."""
    *names, turn = query.casefold().replace(":", " ").split() or [""]
    if not turn.isdecimal():
        return []
    wanted = (call for call in calls if str(call.nth if call.aside else call.place.turn) == turn)
    return [call for call in wanted if _is_named(call, names)]


def _is_named(call: CallState, typed: Sequence[str]) -> bool:
    """Whether a word for a call, its phase or its place begins with each that is typed; of one beside the turns, with
    one of them a word of its own name."""
    own = call.aside.casefold().split()[:-1] or call.aside.casefold().split()
    words = ("call", call.place.phase.casefold(), call.words.casefold(), *(own or ("turn",)))
    by_name = not own or any(word.startswith(name) for name in typed for word in own)
    return by_name and all(any(word.startswith(name) for word in words) for name in typed)


def score_of(entry: NamedCommand, query: str, matcher: Matcher) -> float:
    """Returns how well a command fits what was typed: its name first, then its search words, then its sentence; 0 for
    not at all. Words count from their beginning, and the name by its letters, too."""
    typed = query.casefold().split()
    if not typed:
        return 0.0
    for text, bonus in ((entry.name, BY_NAME), (entry.words, BY_WORD), (entry.sentence, BY_SENTENCE)):
        words = text.casefold().replace(":", " ").replace(",", " ").split()
        if all(any(word.startswith(part) for word in words) for part in typed):
            exact = sum(part in words for part in typed) / len(typed)
            first = words[0].startswith(typed[0])
            short = 10 / (1 + len(words)) if text is entry.name else 0.0
            return bonus + 50 * exact + (20 * first + short if text is entry.name else 0.0) + 1
    return matcher.match(entry.name)
