"""The settings and the keys as rows, each with its details."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.cells import cell_len

from workbench.engine.journal.redact import without_password
from workbench.views.cells import Row, Span, crop, fit, flat
from workbench.views.keys import Key, command_of, told
from workbench.views.model import Rows
from workbench.views.text import TextLine, TextRows
from workbench.views.value import Block, Cell, Column, Table, View
from workbench.workspace.folders import at_home
from workbench.workspace.settings import Setting, Settings

TYPES = {str: "text", int: "whole number", float: "number", bool: "true or false", list: "list", dict: "mapping"}
ROOMY = 100
"""Cells from which on a row says what its setting is."""
NONE = "–"
"""How a row shows a value that is not set."""
WHERE = 11
"""Cells of where a key works, which has none in a narrow terminal: the pane below says it."""
AT_ONCE = frozenset({"theme", "keys"})
AT_START = frozenset({"data_dir", "prices", "tackle_dirs"})


def value_text(value: Any) -> str:
    """A value on one line, as it is written in a file."""
    if value in (None, "", [], {}):
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list):
        return ", ".join(map(str, value))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else without_password(str(value))


def order_words(room: int) -> str:
    """Which of the places that may set a value counts, in so many cells."""
    places = "flag, environment, workspace file, your file, default"
    said = (
        f"{places}: the first that says something counts",
        f"the first of {places}",
        "first of: flag, environment, workspace, user, default",
    )
    return next((words for words in said if len(words) <= room), "")


def origin_text(origin: str, user_file: Path, workspace_file: Path) -> str:
    """Where a value came from, in two words."""
    named = {str(user_file): "user file", str(workspace_file): "workspace file"}
    return named.get(origin, origin)


COLUMNS = (Column("setting"), Column("value", flexible=True), Column("from", flexible=True, leaves=1))


class SettingsView(View):
    """Every setting, its value and where that came from."""

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
    return without_password(value) if isinstance(value, str) else value


def fields(setting: Setting, settings: Settings) -> tuple[Cell, Cell, Cell]:
    """Name, value and origin of a setting."""
    origin = settings.origins.get(setting.name, "default")
    is_set = origin != "default"
    value = value_text(settings.values.get(setting.name))
    where = Cell(origin, "accent" if is_set else "faint")
    return Cell(setting.name, "name"), Cell(value, "" if is_set else "dim"), where


class SettingRows(Rows):
    """Name, value and origin of each setting that holds the filter in its name, help or value."""

    def __init__(
        self, table: Sequence[Setting], settings: Settings, files: tuple[Path, Path], problems: Mapping[str, str]
    ) -> None:
        """``files`` are the user's and the workspace's; ``problems`` by name."""
        self.settings = tuple(table)
        self._values = settings
        self._files = files
        self._problems = problems

    def __len__(self) -> int:
        return len(self.settings)

    def heads(self, width: int) -> Sequence[Row]:
        value, origin, about = self._widths(width)
        text = f"   {fit('setting', 20)}{fit('value', value)}{fit('from', origin)}{fit('what it is', about)}"
        return (Row(crop(((text, "head"),), width)),)

    def row(self, index: int, width: int) -> Row:
        setting = self.settings[index]
        value, origin, about = self._widths(width)
        name, shown, place = fields(setting, self._values)
        wrong = setting.name in self._problems
        spans: list[Span] = [
            (" ✗ " if wrong else "   ", "error"),
            (fit(name.text, 20), name.token),
            (fit(shown.text, value - 1) + " ", shown.token or "plain"),
            (fit(origin_text(place.text, *self._files), origin - 1) + " ", place.token),
            (fit(setting.help, about), "dim"),
        ]
        return Row(crop(spans, width))

    def _widths(self, width: int) -> tuple[int, int, int]:
        """Cells of the value, of where it is from, and of what it is, which has none in a narrow terminal."""
        named = (self._values.origins.get(setting.name, "default") for setting in self.settings)
        origins = (len(origin_text(place, *self._files)) for place in named)
        origin = min(34, max(15, max(origins, default=0) + 2), max(15, width // 5))
        room = max(10, width - 23 - origin)
        shown = (cell_len(value_text(self._values.values.get(setting.name))) for setting in self.settings)
        value = room if width < ROOMY else min(48, max(14, max(shown, default=0) + 2), room * 45 // 100)
        return value, origin, room - value if width >= ROOMY else 0

    def plain(self, index: int) -> str:
        setting = self.settings[index]
        return f"{setting.name} {value_text(self._values.values.get(setting.name))} {setting.help}"


def setting_doc(setting: Setting, settings: Settings, files: tuple[Path, Path], problem: str = "") -> TextRows:
    """All about one setting: meaning, type, default, where it may be set, where its value is from."""
    user, workspace = files
    origin = settings.origins.get(setting.name, "default")
    lines = [TextLine(flat(problem), "error", hang=2)] if problem else []
    lines.append(TextLine(setting.help))
    kind = TYPES[setting.type] + (f": one of {', '.join(setting.choices)}" if setting.choices else "")
    by_itself = value_text(setting.default)
    lines.append(TextLine(f"{kind}; {'no default' if by_itself == NONE else f'default {by_itself}'}", "accent", hang=2))
    lines.append(TextLine(""))
    now = value_text(settings.values.get(setting.name))
    known = origin in (str(user), str(workspace))
    where = at_home(Path(origin)) if known else origin
    lines.append(TextLine("not set" if now == NONE else f"now {flat(now)}, from {flat(where)}", hang=2))
    if setting.env:
        lines.append(TextLine(f"environment: {', '.join(setting.env)}", "dim", hang=2))
    lines.append(TextLine(f"your file: {flat(at_home(user))}", "dim", hang=2))
    allowed = flat(at_home(workspace)) if setting.workspace else "never: it could act outside of the workspace"
    lines.append(TextLine(f"the workspace's file: {allowed}", "dim", hang=2))
    when = "at once" if setting.name in AT_ONCE else "when the app starts" if setting.name in AT_START else "next run"
    lines.append(TextLine(f"a change counts: {when}", "dim", hang=2))
    return TextRows(lines, (("Setting", "title"), (f"  {setting.name}", "name")))


class KeyRows(Rows):
    """Every command with its keys; what the user has changed is marked."""

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
        key = self.keys[index]
        wrong, own = key.id in self._problems, key.id in self._changed
        spans: list[Span] = [
            (" ✗ " if wrong else " ● " if own else "   ", "error" if wrong else "changed"),
            (fit(key.id, 21) + " ", "name"),
            (fit(key.keys, 21) + " ", "changed" if own else "key"),
            (fit(key.context, WHERE) if width >= ROOMY else "", "faint"),
            (flat(key.help), "plain"),
        ]
        return Row(crop(spans, width))

    def plain(self, index: int) -> str:
        key = self.keys[index]
        return f"{key.id} {key.keys} {key.help} {key.group}"

    def doc(self, index: int, defaults: Mapping[str, str]) -> TextRows:
        """All about one command."""
        key = self.keys[index]
        lines = [TextLine(flat(self._problems[key.id]), "error", hang=2)] if key.id in self._problems else []
        lines.append(TextLine(key.help))
        lines.append(TextLine(f"{key.keys}; by itself {defaults.get(key.id, '')}", "accent", hang=2))
        lines.append(TextLine(f"works in: {key.context}; group {key.group}", "dim"))
        lines.append(TextLine(""))
        lines.append(
            TextLine(
                told(
                    "{list.open}: other keys, with commas between them, as in f5,ctrl+r. "
                    "{settings.unset}: back to the usual ones."
                ),
                "dim",
            )
        )
        return TextRows(lines, (("Key", "title"), (f"  {key.id}", "name")))
