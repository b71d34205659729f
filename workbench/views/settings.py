"""The settings and the keys as rows, each with its details."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from workbench.engine.journal.redact import without_password
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.keys import Key, command_of, displayed, told
from workbench.views.model import Rows
from workbench.views.text import TextLine, TextRows, columns_whole, hung
from workbench.views.value import Block, Cell, Column, Table, View
from workbench.workspace.folders import at_home
from workbench.workspace.settings import SecretText, Setting, Settings

TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false", list: "list", dict: "mapping"}
ROOMY, NARROW = 100, 60
"""Cells from which on a row names the whole origin of its setting, and below which it has its name and value alone."""
NONE = "–"
"""How a row shows a value that is not set."""
HIDDEN = "(set)"
"""How a secret is shown."""
WHERE = 11
"""Width of the place where a key works; a narrow terminal shows it only in the pane below."""
AT_ONCE = frozenset({"theme", "keys"})
AT_START = frozenset({"data_dir", "prices", "tackle_dirs"})


def value_text(value: Any) -> str:
    """A value on one line, as it is written in a file."""
    if value in (None, "", [], {}):
        return NONE
    if isinstance(value, SecretText):
        return HIDDEN
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else without_password(str(value))


def order_words(room: int) -> str:
    """The order of the places that may set a value, in this many cells."""
    places = "flag, environment, workspace file, your file, default"
    said = (
        f"{places}: first match wins",
        "first match wins: flag, environment, workspace, user, default",
        "flag > environment > workspace > user > default",
    )
    return next((words for words in said if len(words) <= room), "")


def origin_text(origin: str, user_file: Path, workspace_file: Path) -> str:
    """The origin of a value, in two words."""
    named = {str(user_file): "user file", str(workspace_file): "workspace file"}
    return named.get(origin, origin)


COLUMNS = (Column("setting"), Column("value", flexible=True), Column("from", flexible=True, leaves=1))


class SettingsView(View):
    """Every setting, its value and its origin."""

    def __init__(self, table: Sequence[Setting], settings: Settings, in_force: Mapping[str, Any]) -> None:
        """``in_force``: the model that would answer, and what it would be asked with."""
        self.table, self.settings, self.in_force = table, settings, in_force

    def blocks(self) -> Iterator[Block]:
        yield Table(COLUMNS, [fields(row, self.settings) for row in self.table])

    def json(self) -> dict[str, Any]:
        return {"in_force": dict(self.in_force)} | {
            row.name: {
                "value": _harmless(self.settings.values[row.name]),
                "origin": self.settings.origins[row.name],
                "type": row.type.__name__,
                "default": row.default,
                "description": row.help,
                "choices": list(row.choices),
                "environment": list(row.env),
                "workspace": row.workspace,
            }
            for row in self.table
        }


def _harmless(value: object) -> object:
    """A value without the password of a URL."""
    return value_text(value) if isinstance(value, str) and value else value


def in_force_text(setting: Setting, settings: Settings, in_force: Mapping[str, str]) -> str:
    """The value that counts: the one that is set, else the one that a session of the app has found, else what an empty
    value means."""
    value = value_text(settings.values.get(setting.name))
    return value if value != NONE else in_force.get(setting.name, "") or setting.unset or NONE


def fields(setting: Setting, settings: Settings, in_force: Mapping[str, str] = {}) -> tuple[Cell, Cell, Cell]:
    """Name, value in force and origin of a setting."""
    origin = settings.origins.get(setting.name, "default")
    is_set = origin != "default"
    value = in_force_text(setting, settings, in_force)
    where = Cell(origin, "accent" if is_set else "faint")
    return Cell(setting.name, "name"), Cell(value, "" if is_set else "dim"), where


NAMED, VALUED, FROM = 22, 18, 10
"""Widths of name, value and origin in a narrow pane."""


class SettingRows(Rows):
    """Name, value, origin and meaning of each setting that holds the filter in its name, help or value."""

    spreads = True

    def __init__(
        self,
        table: Sequence[Setting],
        settings: Settings,
        files: tuple[Path, Path],
        problems: Mapping[str, str],
        in_force: Mapping[str, str] = {},
    ) -> None:
        """``files`` are the user's and the workspace's; ``problems`` by name; ``in_force`` are the open session's
        values for unset settings.
        """
        self.settings = tuple(table)
        self._values = settings
        self._files = files
        self._problems = problems
        self._in_force = in_force

    def __len__(self) -> int:
        return len(self.settings)

    def heads(self, width: int) -> Sequence[Row]:
        names = ("setting", "value", "from", "what it is")
        text = "".join(fit(name, room) for name, room in zip(names, self._widths(width), strict=False))
        return (Row(crop(((f"   {text}", "head"),), width)),)

    def row(self, index: int, width: int) -> Row:
        mark, cells = self._cells(index, width)
        return Row(crop((mark, *((fit(text, room - 1) + " ", token) for (text, token), room in cells)), width))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        mark, cells = self._cells(index, width)
        return columns_whole((mark,), cells)

    def _cells(self, index: int, width: int) -> tuple[Span, list[tuple[Span, int]]]:
        """The mark of a row, and what stands in each column with its width."""
        setting = self.settings[index]
        name, shown, place = fields(setting, self._values, self._in_force)
        where = origin_text(place.text, *self._files)
        if width < ROOMY:
            where = _SHORT.get(where, "env" if where.startswith("environment") else where)
        mark: Span = (" ✗ " if setting.name in self._problems else "   ", "error")
        texts: tuple[Span, ...] = (
            (name.text, name.token),
            (flat(shown.text), shown.token or "plain"),
            (flat(where), place.token),
            (setting.help, "dim"),
        )
        return mark, list(zip(texts, self._widths(width), strict=False))

    def _widths(self, width: int) -> tuple[int, ...]:
        """Widths of the name, of the value, of its origin, and of its meaning; the last two are left to the pane below
        where there is no room for them."""
        if width < NARROW:
            return NAMED, max(8, width - 3 - NAMED)
        if width < ROOMY:
            return NAMED, VALUED, FROM, max(8, width - 3 - NAMED - VALUED - FROM)
        named = (self._values.origins.get(setting.name, "default") for setting in self.settings)
        origins = (len(origin_text(place, *self._files)) for place in named)
        origin = min(34, max(8, max(origins, default=0) + 2), max(15, width // 5))
        name = max(18, *(len(setting.name) for setting in self.settings), 0) + 2
        room = width - 3 - name - origin
        texts = (in_force_text(setting, self._values, self._in_force) for setting in self.settings)
        value = min(48, max(14, max(map(cell_len, texts), default=0) + 2), room * 33 // 100)
        return name, value, origin, room - value

    def plain(self, index: int) -> str:
        setting = self.settings[index]
        return f"{setting.name} {value_text(self._values.values.get(setting.name))} {setting.help}"


_SHORT = {"user file": "user", "workspace file": "workspace"}
"""Origins in a narrow terminal."""


def setting_doc(
    setting: Setting,
    settings: Settings,
    files: tuple[Path, Path],
    problem: str = "",
    in_force: Mapping[str, str] = {},
) -> TextRows:
    """All facts about one setting: meaning, type, default, places that may set it, the value in force and
    its origin.
    """
    user, workspace = files
    origin = settings.origins.get(setting.name, "default")
    lines = [TextLine(flat(problem), "error", hang=2)] if problem else []
    lines.append(TextLine(setting.help))
    kind = TYPES[setting.type] + (f": one of {', '.join(setting.choices)}" if setting.choices else "")
    by_itself = value_text(setting.default)
    by_itself = (setting.unset or "none") if by_itself == NONE else by_itself
    lines.append(TextLine(f"{kind}; default: {by_itself}", "accent", hang=2))
    lines.append(TextLine(""))
    where = at_home(Path(origin)) if origin in (str(user), str(workspace)) else origin
    counts = flat(in_force_text(setting, settings, in_force))
    lines.append(TextLine(f"in force: {counts}, from {flat(where)}", hang=2))
    variables = [name for name in setting.env if not name.startswith("WINDLASS_") or origin.endswith(f" {name}")]
    if variables:
        lines.append(TextLine(f"environment: {', '.join(variables)}", "dim", hang=2))
    lines.append(TextLine(f"your file: {flat(at_home(user))}", "dim", hang=2))
    allowed = flat(at_home(workspace)) if setting.workspace else "not allowed: this setting acts outside the workspace"
    lines.append(TextLine(f"workspace file: {allowed}", "dim", hang=2))
    when = (
        "at once" if setting.name in AT_ONCE else "when the app starts" if setting.name in AT_START else "the next run"
    )
    applies = f"a change applies {when}" if setting.name in AT_ONCE | AT_START else f"a change applies to {when}"
    lines.append(TextLine(applies, "dim", hang=2))
    return TextRows(lines, (("Setting", "title"), (f"  {setting.name}", "name")))


class KeyRows(Rows):
    """Every command with its keys; what the user has changed is marked."""

    spreads = True

    def __init__(self, table: Sequence[Key], changed: Mapping[str, str], problems: Sequence[str] = ()) -> None:
        self.keys = tuple(table)
        self._changed = changed
        self._problems = {command_of(problem): problem for problem in problems}

    def __len__(self) -> int:
        return len(self.keys)

    def heads(self, width: int) -> Sequence[Row]:
        where = fit("where", WHERE) if width >= ROOMY else ""
        return (Row(crop(((f"   {fit('command', 22)}{fit('keys', 22)}{where}what it does", "head"),), width)),)

    def row(self, index: int, width: int) -> Row:
        return Row(crop((*self._first(index, width), (flat(self.keys[index].help), "plain")), width))

    def whole(self, index: int, width: int) -> tuple[Row, ...]:
        return hung(self._first(index, width), ((flat(self.keys[index].help), "plain"),), width)

    def _first(self, index: int, width: int) -> tuple[Span, ...]:
        """The columns before what the command does."""
        key = self.keys[index]
        wrong, own = key.id in self._problems, key.id in self._changed
        return (
            (" ✗ " if wrong else " ● " if own else "   ", "error" if wrong else "changed"),
            (fit(key.id, 21) + " ", "name"),
            (fit(displayed(key.keys), 21) + " ", "changed" if own else "key"),
            (fit(key.context, WHERE) if width >= ROOMY else "", "faint"),
        )

    def plain(self, index: int) -> str:
        key = self.keys[index]
        return f"{key.id} {displayed(key.keys)} {key.keys} {key.help} {key.group}"

    def doc(self, index: int, defaults: Mapping[str, str]) -> TextRows:
        """All about one command."""
        key = self.keys[index]
        lines = [TextLine(flat(self._problems[key.id]), "error", hang=2)] if key.id in self._problems else []
        lines.append(TextLine(key.help))
        usual = displayed(defaults.get(key.id, ""))
        now = displayed(key.keys)
        lines.append(TextLine(now if now == usual else f"{now}; default: {usual}", "accent", hang=2))
        lines.append(TextLine(f"works in: {key.context}; group: {key.group}", "dim"))
        lines.append(TextLine(""))
        lines.append(
            TextLine(
                told(
                    "{list.open} changes the keys: write them with commas between, as in f5,ctrl+r. "
                    "{settings.unset} restores the default."
                ),
                "dim",
            )
        )
        return TextRows(lines, (("Key", "title"), (f"  {key.id}", "name")))
