"""Writes a setting into a file of settings: one value changes, comments and all other text stay."""

from __future__ import annotations

from pathlib import Path as File
from typing import TYPE_CHECKING, Any, Literal

import yaml
from msgspec import Struct

from workbench.language.edit.edits import replace
from workbench.language.edit.emit import scalar
from workbench.language.edit.errors import EditError
from workbench.language.problem import Path, path_text
from workbench.language.read.text import read_source
from workbench.workspace.settings import Setting, Settings, SettingsError, checked_value, load_settings, setting_named
from workbench.workspace.text_file import CannotSave, TextFile

if TYPE_CHECKING:
    from workbench.workspace.project import Project

Target = Literal["user", "workspace"]


class WrittenSetting(Struct, frozen=True):
    """The result of a change of a setting."""

    file: File
    value: Any
    """The value in force."""
    origin: str
    """The origin of the value in force: another place may override this one."""


def file_of(project: Project, target: Target) -> File:
    """The file that a target means."""
    return project.folders.config / "config.yaml" if target == "user" else project.root / "workbench.yaml"


def place_of(settings: Settings, name: str, key: str = "") -> str:
    """``file:line:column`` of a value, or of one entry of it; of what no file sets, where it comes from."""
    origin = settings.origins[name]
    try:
        source, _ = read_source(File(origin).read_bytes(), origin)
    except OSError:
        return origin
    span = source.key_span((name, key) if key else (name,))
    return f"{origin}:{span.line}:{span.column}"


def read_value(setting: Setting, text: str) -> Any:
    """A value as a person writes it: lists with commas, mappings as YAML. Raises SettingsError."""
    text = text.strip()
    if setting.type is dict:
        try:
            found = yaml.load(text or "{}", Loader=yaml.CSafeLoader)
        except yaml.YAMLError:
            found = None
        if not isinstance(found, dict):
            raise SettingsError(f"'{setting.name}' is a mapping, as in {{name: value}}")
        return found
    if not text:
        raise SettingsError(f"'{setting.name}' needs a value; unset takes it out of the file")
    return checked_value(setting, text, setting.name)


def set_value(project: Project, name: str, value: Any, target: Target = "user", key: str = "") -> WrittenSetting:
    """Write a setting, or with ``key`` one entry of a mapping, and take the settings over into the project.

    Raises SettingsError where the value does not fit or the target may not set it, and CannotSave.
    """
    setting = setting_named(name)
    _allowed(setting, target)
    path: Path = (name, key) if key else (name,)
    if not key:
        checked_value(setting, value, name)
    file = file_of(project, target)
    return _changed(project, file, path, lambda text: _with(text, str(file), path, value))


def unset_value(project: Project, name: str, target: Target = "user", key: str = "") -> WrittenSetting:
    """Take a setting, or one entry of it, out of a file. Raises SettingsError, CannotSave."""
    setting_named(name)
    path: Path = (name, key) if key else (name,)
    file = file_of(project, target)
    return _changed(project, file, path, lambda text: _without(text, str(file), path))


def _allowed(setting: Setting, target: Target) -> None:
    if target == "workspace" and not setting.workspace:
        raise SettingsError(f"'{setting.name}' cannot be set by a workspace: it could act outside of it")


def _changed(project: Project, file: File, path: Path, change: Any) -> WrittenSetting:
    try:
        before = TextFile.read(file)
    except OSError as fault:
        raise CannotSave(f"{file}: cannot be read: {fault.strerror}") from fault
    text = change(before.text)
    file.parent.mkdir(parents=True, exist_ok=True)
    after = before.save(text)
    try:
        take_over(project)
    except SettingsError:
        if before.raw is None:
            file.unlink(missing_ok=True)
        else:
            after.save(before.text)
        raise
    name = str(path[0])
    return WrittenSetting(file, project.settings.values[name], project.settings.origins[name])


def take_over(project: Project) -> None:
    """Read the settings of a project again; flags stay in force. Raises SettingsError and changes nothing."""
    old = project.settings
    given = {name: value for name, value in old.values.items() if old.origins.get(name) == "flag"}
    fresh = load_settings(project.root, project.env, project.folders.config)
    values, origins = dict(fresh.values), dict(fresh.origins)
    for name, value in given.items():
        values[name], origins[name] = value, "flag"
    project.settings = Settings(values, origins)


def _with(text: str, file: str, path: Path, value: Any) -> str:
    if not text.strip() or read_source(text, file)[0].data is None:
        # Nothing but comments: there is no mapping yet that could be edited.
        lines = text if not text or text.endswith("\n") else text + "\n"
        if len(path) == 2:
            return f"{lines}{path[0]}:\n  {path[1]}: {scalar(value, in_flow=False)}\n"
        return lines + str(yaml.safe_dump({path[0]: value}, allow_unicode=True, sort_keys=False))
    try:
        return replace(read_source(text, file)[0], path, value).removeprefix("\ufeff")
    except EditError as fault:
        raise SettingsError(f"{file}: {fault}") from fault


def _without(text: str, file: str, path: Path) -> str:
    source = read_source(text, file)[0]
    spot = source.spot(path) if source.data is not None else None
    if spot is None or spot.key is None:
        raise SettingsError(f"{file}: does not set {path_text(path)}")
    begin = text.rfind("\n", 0, spot.key[0]) + 1
    end = max(spot.end, spot.key[1])
    if not text[:end].endswith("\n"):
        close = text.find("\n", end)
        end = len(text) if close < 0 else close + 1
    changed = text[:begin] + text[end:]
    wanted = _less(source.data, path)
    if (read_source(changed, file)[0].data or {}) != wanted:
        if len(path) == 2 and not wanted.get(str(path[0])):
            return _without(text, file, path[:1])
        raise SettingsError(f"{file}: {path_text(path)} cannot be taken out in place; edit the file")
    return changed


def _less(data: Any, path: Path) -> dict[str, Any]:
    return {
        name: (_less(value, path[1:]) if name == path[0] else value)
        for name, value in data.items()
        if not (name == path[0] and len(path) == 1)
    }
