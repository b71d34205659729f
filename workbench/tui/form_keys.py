"""The keys of forms, which people fill in: rows of the one table in ``keys.py``."""

from __future__ import annotations

from workbench.tui.key import Key

FORM_KEYS: tuple[Key, ...] = (
    Key("form.send", "ctrl+s,f10", "send", "form", "Send the answer, if it fits", "Forms", "send"),
    Key("form.next", "tab", "next", "form", "The next question", "Forms", "next", priority=True),
    Key("form.previous", "shift+tab", "previous", "form", "The question before", "Forms", priority=True),
    Key(
        "choices.choose",
        "space",
        "choose",
        "choices",
        "Choose the row, or take it back; a number does too",
        "Forms",
        "choose",
    ),
)
FORM_CONTEXTS: dict[str, tuple[str, ...]] = {
    "dialog": ("form", "choices"),
    "form": ("dialog", "choices"),
    "choices": ("dialog", "form"),
}
