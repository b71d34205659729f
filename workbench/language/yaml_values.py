"""What a plain YAML word means: the core rules of YAML 1.2, with digits grouped by underscores, as plain JSON."""

from __future__ import annotations

import math
import re
from typing import Any

_FIXED: dict[str, Any] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?(?:[0-9][0-9_]*|0b[01][01_]*|0o[0-7][0-7_]*|0x[0-9a-fA-F][0-9a-fA-F_]*)")
_FLOAT = re.compile(
    r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*(?:[eE][-+]?[0-9]+)?|[0-9][0-9_]*[eE][-+]?[0-9]+|\.[0-9][0-9_]*(?:[eE][-+]?[0-9]+)?)"
)
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_DATE = re.compile(
    r"\d{4}-\d\d-\d\d|\d{4}-\d\d?-\d\d?(?:[Tt]|[ \t]+)\d\d?:\d\d:\d\d(?:\.\d*)?(?:[ \t]*(?:Z|[-+]\d\d?(?::?\d\d)?))?"
)
_STARTS = frozenset("0123456789+-.~tTfFnN")
_MAX_DIGITS = 400
"""Beyond the digits of the largest float; longer integers are no number anybody meant."""


class NotJson(ValueError):
    """A plain word that YAML reads as something JSON has no form for."""


def plain_value(word: str) -> Any:
    """null, a bool, an int, a float or the text itself. Raises NotJson for dates and what is not finite."""
    if not word:
        return None
    if word[0] not in _STARTS:
        return word
    if word in _FIXED:
        return _FIXED[word]
    if _INTEGER.fullmatch(word):
        return _integer(word)
    if _FLOAT.fullmatch(word):
        number = float(word.replace("_", ""))
        if not math.isfinite(number):
            raise NotJson(f"{word} is too large for a number")
        return number
    if _NOT_FINITE.fullmatch(word):
        raise NotJson(f"{word} is not a finite number")
    if _DATE.fullmatch(word):
        raise NotJson(f"{word} is a date")
    return word


def _integer(word: str) -> int:
    digits = word.replace("_", "")
    if len(digits) > _MAX_DIGITS:
        raise NotJson("a number has too many digits")
    sign = -1 if digits[0] == "-" else 1
    digits = digits.lstrip("+-")
    bases = {"0x": 16, "0o": 8, "0b": 2}
    base = bases.get(digits[:2].lower(), 10)
    return sign * int(digits[2:] if base != 10 else digits, base)
