"""What keys are called: in the table, by people, and which names no terminal ever sends."""

from __future__ import annotations

import unicodedata
from functools import cache

SHOWN = {
    "left_square_bracket": "[",
    "right_square_bracket": "]",
    "slash": "/",
    "question_mark": "?",
    "pagedown": "pgdn",
    "pageup": "pgup",
    "escape": "esc",
    "left": "←",
    "right": "→",
    "up": "↑",
    "down": "↓",
}
"""Names of the table as they are shown, where that is shorter."""

_ALSO = {"ctrl+m": "enter", "ctrl+i": "tab", "ctrl+h": "backspace", "ctrl+left_square_bracket": "escape"}
"""Keys that terminals have sent as others since there were terminals."""
_MODIFIERS = ("ctrl", "alt", "shift", "super", "hyper", "meta")
_OTHER_WORDS = {
    "control": "ctrl",
    "option": "alt",
    "cmd": "super",
    "command": "super",
    "return": "enter",
    "del": "delete",
    "ins": "insert",
    "spacebar": "space",
    "page_down": "pagedown",
    "page_up": "pageup",
}
"""What other programs call them."""
_SYMBOLS = {"solidus": "slash", "reverse_solidus": "backslash", "commercial_at": "at", "hyphen_minus": "minus"} | {
    "plus_sign": "plus",
    "low_line": "underscore",
}
"""Names of characters that Textual shortens."""
_WORDS = (
    *("escape", "enter", "tab", "space", "backspace", "delete", "insert", "home", "end", "pageup", "pagedown"),
    *("left", "right", "up", "down"),
    *(f"f{number}" for number in range(1, 25)),
)


def display(keys: str) -> str:
    """Keys for people: ``ctrl+p`` as ``^p``, ``slash`` as ``/``; the first of several."""
    *modifiers, name = _parts(keys.split(",")[0].strip())
    prefix = "".join("^" if modifier == "ctrl" else f"{modifier}+" for modifier in modifiers)
    return prefix + SHOWN.get(name, name)


def table_name(key: str) -> str:
    """A key by its name in the table, however it is written: ``^p``, ``pgdn``, ``!``."""
    if len(key) > 1 and key.startswith("^"):
        key = f"ctrl+{key[1:]}"
    if key == "ctrl+@":  # Textual's own name of what most terminals send for ctrl+space.
        return key
    *modifiers, name = _parts(key)
    written = {shown: known for known, shown in SHOWN.items()}
    return "+".join((*modifiers, written.get(name, _of_character(name) if len(name) == 1 else name)))


def never_sent(key: str) -> str:
    """Why a key of the table's names can never arrive, with the nearest that can; empty for one that can."""
    if key in _ALSO:
        return f"most terminals send {_ALSO[key]} for '{key}'"
    *modifiers, name = _parts(key)
    wrong = [modifier for modifier in modifiers if modifier not in _MODIFIERS]
    capital = len(name) == 1 and name.isupper() and bool(modifiers)
    alone = modifiers == ["shift"] and len(name) == 1
    if not wrong and not capital and not alone and (len(name) == 1 or name in _known()):
        return ""
    guess = _guess(modifiers, name)
    return f"there is no key '{key}'" + (f" (did you mean '{guess}'?)" if guess else "")


def _guess(modifiers: list[str], name: str) -> str:
    meant = [near(modifier, _MODIFIERS) for modifier in modifiers]
    if len(name) == 1:
        if name.isupper():
            meant.append("shift")
        base = name.lower()
        if set(meant) == {"shift"}:
            return base.upper()
    else:
        base = near(name, _known())
    ordered = [modifier for modifier in _MODIFIERS if modifier in meant]
    return "+".join((*ordered, base)) if base and all(meant) else ""


def near(word: str, known: tuple[str, ...]) -> str:
    """The known word that was meant, or nothing."""
    from workbench.language.shape import nearest  # Only a mistake needs it; the first frame does without.

    low = word.lower()
    return low if low in known else _OTHER_WORDS.get(low, "") or nearest(low, known)


def _parts(key: str) -> list[str]:
    """Modifiers and the key itself, which may be a plus."""
    return [*filter(None, key[:-1].split("+")), "+"] if key.endswith("+") else key.split("+")


def _of_character(character: str) -> str:
    """What Textual calls the key of a character: letters and digits by themselves, others by their Unicode name."""
    if character.isalnum():
        return character
    name = unicodedata.name(character, character).lower().replace("-", "_").replace(" ", "_")
    return _SYMBOLS.get(name, name)


@cache
def _known() -> tuple[str, ...]:
    """Words that may stand for a key."""
    printed = (_of_character(chr(code)) for code in range(0x21, 0x180) if chr(code).isprintable())
    return (*_WORDS, *(name for name in printed if len(name) > 1))
