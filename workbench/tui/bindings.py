"""The key table as Textual's bindings."""

from __future__ import annotations

from textual.binding import Binding, BindingType

from workbench.views.keys import KEYS, ON_DIALOGS, ON_SHEETS


def bindings(context: str) -> list[BindingType]:
    """The bindings of one context, for a widget's ``BINDINGS``."""
    return [
        Binding(
            key.keys,
            key.action if key.context == context else f"app.{key.action}",
            key.short or key.help,
            show=bool(key.short),
            tooltip=key.help,
            id=key.id,
            priority=key.priority,
        )
        for key in KEYS
        if key.context == context or key.id in ALSO.get(context, ())
    ]


ALSO = {"sheet": ON_SHEETS, "dialog": ON_DIALOGS}
"""Commands of the app in contexts that no key of the app reaches: Textual ends the search for it at a modal screen."""
