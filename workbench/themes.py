"""Colour themes from YAML files: checked completely before the app may know of them, so that none can end it later."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import yaml
from msgspec import Struct
from textual.color import Color, ColorParseError
from textual.theme import Theme

from workbench.files import read_plain
from workbench.language.clean import shown

DEFAULT = "workbench-dark"
LONGEST = 64 * 1024

_COLORS = (
    "primary",
    "secondary",
    "warning",
    "error",
    "success",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "boost",
)
_REQUIRED = ("primary", "secondary", "warning", "error", "success", "accent", "foreground", "background")
_KNOWN = frozenset(field.name for field in fields(Theme))


class ThemeError(Exception):
    """A theme file that cannot be used: ``file: key: what is wrong``."""


class _BadKey(ThemeError):
    """A mistake at one key."""

    def __init__(self, key: str, words: str) -> None:
        super().__init__(f"{key}: {words}" if key else words)
        self.key = key


class Themes(Struct, frozen=True):
    """The themes that can be used, by name, and what is wrong with the other files."""

    by_name: Mapping[str, Theme]
    problems: tuple[str, ...] = ()


def load_theme(file: Path) -> Theme:
    """Read one theme file. Raises ThemeError naming the file and the key."""
    try:
        text = read_plain(file).decode("utf-8")
    except (OSError, UnicodeDecodeError) as fault:
        raise ThemeError(f"{file}: cannot be read: {fault}") from fault
    if len(text) > LONGEST:
        raise ThemeError(f"{file}: a theme has at most {LONGEST:,} characters")
    try:
        body = yaml.load(text, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    except (yaml.YAMLError, RecursionError, ValueError) as fault:  # A date that there is not is a ValueError.
        mark = getattr(fault, "problem_mark", None)
        where = f":{mark.line + 1}:{mark.column + 1}" if mark is not None else ""
        raise ThemeError(f"{file}{where}: {getattr(fault, 'problem', None) or 'is not YAML'}") from fault
    try:
        return theme_of(body, file.stem)
    except _BadKey as fault:
        raise ThemeError(f"{file}:{_place(text, fault.key)}: {fault}") from fault


def theme_of(body: Any, default_name: str) -> Theme:
    """A theme from the value of a file. Raises ThemeError, which names the key and not the file."""
    if not isinstance(body, dict):
        raise _BadKey("", "a theme is a mapping of names to colours")
    for key in body:
        if key not in _KNOWN:
            raise _BadKey(str(key), "no such key")
    for key in _REQUIRED:
        if key not in body:
            raise _BadKey(key, "is missing")
    for key in _COLORS:
        if key in body:
            _color(body[key], key)
    for key in ("dark", "ansi"):
        if not isinstance(body.get(key, False), bool):
            raise _BadKey(key, "true or false")
    for key in ("luminosity_spread", "text_alpha"):
        value = body.get(key, 0.1)
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise _BadKey(key, "a number from 0 to 1")
    variables = body.get("variables", {})
    if not isinstance(variables, dict):
        raise _BadKey("variables", "a mapping")
    for key, value in variables.items():
        _variable(key, value)
    name = body.get("name", default_name)
    if not isinstance(name, str) or not name.replace("-", "").replace("_", "").isalnum():
        raise _BadKey("name", "letters, digits and dashes")
    try:
        theme = Theme(**{**body, "name": name})
        theme.to_color_system().generate()
    except (ColorParseError, ValueError, TypeError) as fault:
        raise _BadKey("", str(fault)) from fault
    return theme


def _color(value: Any, key: str) -> None:
    if not isinstance(value, str):
        raise _BadKey(key, f"'{shown(value)}' is not a colour (in YAML a colour with # needs quotes)")
    try:
        Color.parse(value)
    except ColorParseError:
        raise _BadKey(key, f"'{value}' is not a colour") from None


_STYLES = frozenset(
    {"none", "bold", "b", "dim", "d", "italic", "i", "underline", "u", "reverse", "r", "strike", "s", "not"}
)


def _variable(key: Any, value: Any) -> None:
    """An override is a colour, optionally with a share; a ``…-style`` one is a text style; a share stands alone."""
    label = f"variables.{key}"
    if not isinstance(key, str) or not key.replace("-", "").isalnum():
        raise _BadKey(label, "no name of a variable")
    if not isinstance(value, str):
        raise _BadKey(label, f"'{shown(value)}' is not text")
    words = value.split()
    if "style" in key.split("-"):
        if not words or any(word not in _STYLES for word in words):
            raise _BadKey(label, f"'{value}' is not a text style")
        return
    if key in ("text-lift", "line-lift"):
        if not _share(value):
            raise _BadKey(label, f"'{value}' is not a share such as 75%")
        return
    if key.startswith(("tone-", "paint-")):
        for word in words[:2]:
            _color(word, label)
        if not 1 <= len(words) <= 2:
            raise _BadKey(label, "a background, and optionally the colour of text on it")
        return
    if len(words) == 2 and _share(words[1]):
        words = words[:1]
    if words == ["auto"]:
        return
    _color(" ".join(words), label)


def _share(text: str) -> bool:
    return text.endswith("%") and text[:-1].isdigit() and int(text[:-1]) <= 100


def _place(text: str, key: str) -> str:
    """``line:column`` of a key in a theme file; its first line where the key is not written."""
    from workbench.language.read.text import read_source  # 190 ms, and only a mistake needs the place

    source = read_source(text, "theme.yaml")[0]
    head, _, rest = key.partition(".")
    for path in ((head, rest), (head,)):
        if source.data is not None and source.has(path):
            span = source.key_span(path)
            return f"{span.line}:{span.column}"
    return "1:1"


def find_theme(name: str, folders: Iterable[Path]) -> Theme | None:
    """The theme of a name by its file name alone: what the first frame needs. None where it must be searched for."""
    for directory in folders:
        file = directory / f"{name}.yaml"
        if file.is_file():
            try:
                theme = load_theme(file)
            except ThemeError:
                return None
            return theme if theme.name == name else None
    return None


def load_themes(folders: Iterable[Path]) -> Themes:
    """All themes of some folders; a later folder replaces themes of the same name."""
    found: dict[str, Theme] = {}
    problems: list[str] = []
    for directory in folders:
        for file in sorted(directory.glob("*.yaml")) if directory.is_dir() else ():
            try:
                theme = load_theme(file)
            except ThemeError as fault:
                problems.append(str(fault))
            else:
                found[theme.name] = theme
    return Themes(found, tuple(problems))
